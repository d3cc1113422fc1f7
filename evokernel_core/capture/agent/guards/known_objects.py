"""The objects that a call reaches, by the Python text that leads to each, and the guards that ask of them."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..sentence import Sentence
from .code import file_of, is_workspace
from .guard import CapturedGuard, owner_and_member

_MODULE = torch.nn.Module
_NAMES = re.compile(r"\w+")


class KnownObjects:
    """``roots`` are the objects that the call site knows, by name; ``shared`` are those that globals hold,
    which a call has only where its code reads the global."""

    def __init__(self, roots: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
        self._paths: dict[int, str] = {}
        self._shared: dict[int, str] = {}
        self._shared_paths: set[str] = set()
        self._shared_roots = dict(shared)
        self._kept: list[Any] = []
        self._guards: dict[CapturedGuard, None] = {}
        self._modules: dict[str, Any] = {}
        self._codes: set[tuple[int, int]] = set()
        self.problem: Sentence = Sentence()
        self._roots = set(roots)
        self._registered = {
            id(module): path for root, value in roots.items() for path, module in _modules_below(root, value)
        }
        # a function that is an argument is asked for where the arguments are
        given = (value for value in roots.values() if isinstance(value, types.FunctionType))
        self._codes.update((id(value.__code__), 0) for value in given)
        for name, value in roots.items():
            self._know(value, name)
        for name, value in shared.items():
            self._shared_paths.add(name)
            self._know(value, name)

    def know(self, value: Any, path: str) -> None:
        """An object that the call site itself reaches by a path, be it a global's name."""
        self._shared_paths.discard(path)
        self._shared_roots.pop(path, None)
        self._same(*owner_and_member(path), value)
        self._know(value, path)

    def _know(self, value: Any, path: str) -> None:
        """What the call itself reaches has that path, whatever global holds it, too."""
        paths = self._shared if path in self._shared_paths else self._paths
        if id(value) not in paths:
            paths[id(value)] = path
            self._kept.append(value)
            if isinstance(value, _MODULE):
                self._modules[path] = value

    def _below(self, owner: str, member: str) -> None:
        """Notes that what a member reaches is shared as its owner is."""
        if owner in self._shared_paths:
            self._shared_paths.add(owner + member)

    def _same(self, owner: str, member: str, value: Any) -> None:
        """That a second way to an object leads to it still: what is asked of it is asked by the first one."""
        first = self._paths.get(id(value))
        path = owner + member
        if first is not None and path not in self._shared_paths and _steps(first) != _steps(path):
            self.add(CapturedGuard(owner, f"{{}}{member} is {first}"))

    def is_known(self, value: Any) -> bool:
        """Whether an object is one that the call has reached from outside."""
        return self.path_of(value) is not None

    def path_of(self, value: Any) -> str | None:
        """The text that reaches an object; None where none is known."""
        return self._paths.get(id(value)) or self._shared.get(id(value))

    def add(self, guard: CapturedGuard) -> None:
        self._guards.setdefault(guard)

    def refuse(self, template: str, /, **values: object) -> None:
        """No guards can tell what was read; the first reason stays."""
        self.problem = self.problem or Sentence(template, **values)

    def asks(self, path: str, name: str) -> bool:
        """Whether a guard compares what an attribute of an object gives."""
        return any(guard.owner == path and f"{{}}.{name}" in guard.text for guard in self._guards)

    def asks_code(self, code: types.CodeType, receiver: Any) -> bool:
        """Whether guards ask for a function of that code, or for the method of that object."""
        return (id(code), 0) in self._codes or (id(code), id(receiver)) in self._codes

    def classes(self) -> dict[str, type]:
        """The user's classes of objects that were reached, by a text each."""
        result: dict[int, tuple[str, type]] = {}
        for value in self._kept:
            path = self._paths.get(id(value))
            if path is not None and is_workspace(file_of(type(value))):
                result.setdefault(id(type(value)), (f"type({path})", type(value)))
        return dict(result.values())


def _modules_below(root: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The modules that a root's own attributes reach, by path."""
    for name, module in value.named_modules() if isinstance(value, _MODULE) else ():
        yield root + "".join(f"._modules[{part!r}]" for part in name.split(".") if part), module


def _steps(path: str) -> tuple[str, ...]:
    """The names on a path: ``.layers[0]`` and ``._modules['layers']._modules['0']`` have the same ones."""
    return tuple(name for name in _NAMES.findall(path) if name != "_modules")
