"""Makes the values that ``encode`` described: tensors without memory, objects with what they held."""

from __future__ import annotations

import base64
import enum
import functools
import io
import pickle
import types
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .encode import is_opaque
from .names import file_of, resolve


class CannotBuild(Exception):
    """Nothing can be made from what was noted; the message says of what."""


class Decoder:
    """Makes values for the file ``path``, which was executed as ``module``."""

    def __init__(self, module: types.ModuleType, path: str) -> None:
        self._module, self._path = module, path
        self._makers: dict[str, Callable[[Any], Any]] = {
            "float": float, "dtype": lambda name: getattr(torch, name), "device": torch.device,
            "path": Path, "list": self._all, "tuple": lambda data: tuple(self._all(data)),
            "set": lambda data: set(self._all(data)), "frozenset": lambda data: frozenset(self._all(data)),
            "Size": lambda data: torch.Size(self._all(data)), "dict": self._dict, "tensor": _tensor,
            "named": self._named, "partial": self._partial, "name": self._name, "enum": self._enum,
            "object": self._object, "module": self._built, "modules": self._modules, "pickle": self._pickle,
        }  # fmt: skip

    def call(self, data: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call. Raises CannotBuild, or what a class of the person's raises."""
        if why := is_opaque(data):
            raise CannotBuild(why)
        kwargs = {name: self.value(value) for name, value in data["kwargs"].items()}
        return tuple(self._all(data["args"])), kwargs

    def value(self, data: Any) -> Any:
        """The value of encoded data."""
        if not isinstance(data, dict):
            return data
        ((kind, inner),) = data.items()
        return self._makers[kind](inner)

    def _all(self, data: list[Any]) -> list[Any]:
        return [self.value(element) for element in data]

    def _dict(self, data: list[Any]) -> dict[Any, Any]:
        return {self.value(key): self.value(element) for key, element in data}

    def _name(self, data: dict[str, str]) -> Any:
        return resolve(data, self._module, self._path)

    def _named(self, data: Any) -> Any:
        return self._name(data[0])(*self._all(data[1]))

    def _partial(self, data: list[Any]) -> Any:
        function, args, kwargs = self._all(data)
        return functools.partial(function, *args, **kwargs)

    def _enum(self, data: Any) -> enum.Enum:
        member: enum.Enum = self._name(data[0])[data[1]]
        return member

    def _object(self, data: dict[str, Any]) -> Any:
        kind = self._name(data["class"])
        made = kind.__new__(kind)
        if isinstance(made, dict):
            base = OrderedDict if isinstance(made, OrderedDict) else dict
            for key, value in self._dict(data["items"]).items():
                base.__setitem__(made, key, value)
        elif isinstance(made, list):
            list.extend(made, self._all(data["items"]))
        for name, value in self._dict(data["state"]).items():
            _set(made, name, value)
        return made

    def _built(self, data: dict[str, Any]) -> Any:
        args, kwargs = self.call(data)
        return self._name(data["class"])(*args, **kwargs)

    def _modules(self, data: Any) -> torch.nn.Module:
        kind, children = data
        made: torch.nn.Module = getattr(torch.nn, kind)()
        for name, child in children:
            made.add_module(name, self.value(child))
        return made

    def _pickle(self, data: str) -> Any:
        return _Unpickler(base64.b64decode(data), self._module, self._path).load()


def _set(made: Any, name: str, value: Any) -> None:
    """An attribute as it was, past a class that computes or forbids its own."""
    if hasattr(made, "__dict__") and name not in _slot_names(type(made)):
        vars(made)[name] = value
    else:
        object.__setattr__(made, name, value)


def _slot_names(kind: type) -> set[str]:
    return {
        name for base in kind.__mro__ for name, value in vars(base).items()
        if isinstance(value, types.MemberDescriptorType)
    }  # fmt: skip


def _tensor(data: dict[str, Any]) -> torch.Tensor:
    dtype = getattr(torch, data["dtype"])
    if "elements" in data:
        return torch.tensor(data["elements"], dtype=dtype).reshape(data["shape"])
    if "stride" in data:
        made = torch.empty_strided(data["shape"], data["stride"], dtype=dtype)
    else:
        made = torch.empty(data["shape"], dtype=dtype)
    if data.get("parameter"):
        return torch.nn.Parameter(made, data.get("requires_grad", False))
    return made.requires_grad_() if data.get("requires_grad") else made


class _Unpickler(pickle.Unpickler):
    """Classes that the program's own script defined are those of the file itself."""

    def __init__(self, data: bytes, module: types.ModuleType, path: str) -> None:
        super().__init__(io.BytesIO(data))
        self._module = module

    def find_class(self, module: str, name: str) -> Any:
        own = module in ("__main__", self._module.__name__) and file_of(self._module)
        return (
            getattr(self._module, name)
            if own and hasattr(self._module, name)
            else super().find_class(module, name)
        )
