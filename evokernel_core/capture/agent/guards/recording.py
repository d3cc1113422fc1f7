"""Notes what traced code reads: for a while the methods of classes that give attributes say so."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .code import is_called_by_workspace
from .reads import Reads
from .value_guards import OF_PYTHON

_MODULE = torch.nn.Module


@contextmanager
def recording(reads: Reads) -> Iterator[None]:
    """Attributes that are read meanwhile, of modules and of the objects that they hold, are noted."""
    patches = _Patches()
    reads.watch = functools.partial(_watch, patches, reads)  # type: ignore[method-assign]
    try:
        _watch(patches, reads, _MODULE)
        patches.wrap(_MODULE, "__init__", functools.partial(_noting_init, reads))
        for kind in {type(value) for value in reads._kept}:
            if not issubclass(kind, (_MODULE, torch.Tensor)):
                _watch(patches, reads, kind)
        _watch_environment(patches, reads)
        reads.is_watching = True
        yield
    finally:
        reads.is_watching = False
        reads.watched = patches.classes
        patches.undo()


class _Patches:
    """Methods of classes that are replaced for a while."""

    def __init__(self) -> None:
        self._before: list[tuple[type, str, Any]] = []
        self._known: set[tuple[type, str]] = set()

    def wrap(self, kind: type, name: str, make: Callable[[Any], Any]) -> bool:
        """Whether it is: of a class that cannot be changed, such as one of C, objects are compared whole."""
        if (kind, name) in self._known or not hasattr(kind, name):
            return (kind, name) in self._known
        before = kind.__dict__.get(name)
        try:
            setattr(kind, name, make(getattr(kind, name)))
        except TypeError:
            return False
        self._known.add((kind, name))
        self._before.append((kind, name, before))
        return True

    @property
    def classes(self) -> frozenset[type]:
        return frozenset(kind for kind, name in self._known if name == "__getattribute__")

    def undo(self) -> None:
        for kind, name, before in reversed(self._before):
            if before is None:
                delattr(kind, name)
            else:
                setattr(kind, name, before)


def _watch(patches: _Patches, reads: Reads, kind: type) -> bool:
    if kind.__module__ == "builtins" or (kind.__module__.startswith("torch") and kind is not _MODULE):
        return bool(kind.__flags__ & OF_PYTHON)
    is_last = not hasattr(kind, "__getattr__")
    done = patches.wrap(kind, "__getattribute__", functools.partial(_noting, reads, is_last=is_last))
    patches.wrap(kind, "__getattr__", functools.partial(_noting, reads, is_last=True))
    patches.wrap(kind, "__delattr__", functools.partial(_noting_deletion, reads))
    return done


def _watch_environment(patches: _Patches, reads: Reads) -> None:
    def noting(method: Any) -> Any:
        def read(owner: Any, name: str) -> Any:
            try:
                value = method(owner, name)
            except KeyError:
                if is_called_by_workspace():
                    reads.environment(name, None)
                raise
            if is_called_by_workspace():
                reads.environment(name, value)
            return value

        return read

    patches.wrap(type(os.environ), "__getitem__", noting)


def _noting(reads: Reads, method: Any, *, is_last: bool) -> Any:
    def read(owner: Any, name: str) -> Any:
        try:
            value = method(owner, name)
        except AttributeError:
            if is_last:
                reads.absent(owner, name)
            raise
        reads.attribute(owner, name, value)
        return value

    return read


def _noting_deletion(reads: Reads, method: Any) -> Any:
    def delete(owner: Any, name: str) -> None:
        reads.deleted(owner, name)
        method(owner, name)

    return delete


def _noting_init(reads: Reads, method: Any) -> Any:
    def init(module: Any, *args: Any, **kwargs: Any) -> None:
        reads.made(module)
        method(module, *args, **kwargs)

    return init
