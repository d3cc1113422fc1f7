"""Values as JSON that say enough to make them anew: numbers, tensors by shape, objects by what they hold.

Every value but ``None``, truth values, numbers and texts is ``{kind: ...}``. What can only be described is
``{"opaque": words}``.
"""

from __future__ import annotations

import base64
import enum
import functools
import io
import math
import os
import pickle
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

import torch

from .names import reference

MOST_VALUES = 2000
"""Values in one argument list; what holds more is described only."""
_DEEPEST = 16
_LONGEST_TEXT = 4096
_LARGEST_PICKLE = 65536
_MOST_ELEMENTS = 64

Built = Callable[[torch.nn.Module], Any]
"""Gives what a module was built with, as ``Encoder.call`` gave it, or None."""


class _TooMuch(Exception):
    """More values than are kept."""


class Encoder:
    """Encodes the arguments of one call. ``elements``: small tensors of whole numbers keep their values."""

    def __init__(self, built: Built, *, elements: bool = False) -> None:
        self._built = built
        self._elements = elements
        self._left = MOST_VALUES
        self._inside: list[int] = []
        self._kinds: tuple[tuple[type, Callable[[Any], Any]], ...] = (
            (torch.Tensor, self._tensor), (torch.nn.Module, self._module), (functools.partial, self._partial),
        )  # fmt: skip

    def call(self, args: Iterable[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """``{"args": [...], "kwargs": {...}}``; an argument that is too large is opaque."""
        return {
            "args": [self._argument(value) for value in args],
            "kwargs": {name: self._argument(value) for name, value in kwargs.items()},
        }

    def _argument(self, value: Any) -> Any:
        self._inside = []
        try:
            return self._value(value)
        except (_TooMuch, RecursionError):
            return _opaque(value, "is too large to be noted")
        except Exception as error:  # what an object of the program's own raises when it is looked at
            return _opaque(value, f"could not be read ({type(error).__name__})")

    def _value(self, value: Any) -> Any:
        self._left -= 1
        if self._left < 0 or len(self._inside) > _DEEPEST:
            raise _TooMuch
        plain = _plain(value)
        if plain is not _UNKNOWN:
            return plain
        if id(value) in self._inside:
            return _opaque(value, "holds itself")
        self._inside.append(id(value))
        try:
            return self._compound(value)
        finally:
            self._inside.pop()

    def _compound(self, value: Any) -> Any:
        for kind, encode in self._kinds:
            if isinstance(value, kind):
                return encode(value)
        if type(value) in (list, tuple, set, frozenset, torch.Size):
            return {type(value).__name__: [self._value(element) for element in value]}
        if type(value) is dict:
            return {"dict": self._items(value)}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {"named": [self._class(type(value)), [self._value(element) for element in value]]}
        return self._object(value)

    def _partial(self, value: functools.partial[Any]) -> Any:
        inner = (value.func, list(value.args), dict(value.keywords))
        return {"partial": [self._value(element) for element in inner]}

    def _items(self, value: dict[Any, Any]) -> list[Any]:
        return [[self._value(key), self._value(member)] for key, member in value.items()]

    def _tensor(self, value: torch.Tensor) -> Any:
        dtype = str(value.dtype).removeprefix("torch.")
        result: dict[str, Any] = {"shape": list(value.shape), "dtype": dtype, "device": str(value.device)}
        if value.layout is not torch.strided or value.is_quantized:
            return _opaque(value, "is a tensor with a layout of its own")
        if value.requires_grad:
            result["requires_grad"] = True
        if isinstance(value, torch.nn.Parameter):
            result["parameter"] = True
        if not value.is_contiguous():
            result["stride"] = list(value.stride())
        whole = not (value.is_floating_point() or value.is_complex())
        if self._elements and whole and value.numel() <= _MOST_ELEMENTS and value.device.type != "meta":
            result["elements"] = value.tolist()
        return {"tensor": result}

    def _module(self, value: torch.nn.Module) -> Any:
        if type(value) in (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict):
            children = [[name, self._value(child)] for name, child in value._modules.items()]
            return {"modules": [type(value).__name__, children]}
        result = self._built(value)
        if result is None:
            return _opaque(value, "is a module that was not built by a call of its class")
        return {"module": result}

    def _class(self, kind: type) -> Any:
        result = reference(kind)
        if result is None:
            raise TypeError(f"{kind.__qualname__} has no name that reaches it")
        return result

    def _object(self, value: Any) -> Any:
        named = reference(value) if isinstance(value, _NAMED) or callable(value) else None
        if named is not None:
            return {"name": named}
        if isinstance(value, (*_NAMED, types.ModuleType)):
            return _opaque(value, "has no name that reaches it")
        if reference(type(value)) is None:
            return _opaque(value, "is of a class that no name reaches")
        return self._by_state(value) if _is_simple(type(value)) else _pickled(value)

    def _by_state(self, value: Any) -> Any:
        """Class and attributes; with the items where the class is a dict or list."""
        state = {**getattr(value, "__dict__", {}), **_slots(value)}
        result: dict[str, Any] = {"class": self._class(type(value)), "state": self._items(state)}
        if isinstance(value, dict):
            result["items"] = [[self._value(key), self._value(value[key])] for key in dict.keys(value)]
        elif isinstance(value, list):
            result["items"] = [self._value(element) for element in list.__iter__(value)]
        return {"object": result}


_UNKNOWN = object()
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def _plain(value: Any) -> Any:
    """The JSON of a value that holds no others, _UNKNOWN for any else."""
    kind = type(value)
    if value is None or kind in (bool, int):
        return value
    if kind in _PLAIN:
        return _PLAIN[kind](value)
    if isinstance(value, PurePath):
        return {"path": os.fspath(value)}
    if isinstance(value, enum.Enum) and reference(kind) is not None:
        return {"enum": [reference(kind), value.name]}
    return _UNKNOWN


def _float(value: float) -> Any:
    return value if math.isfinite(value) else {"float": str(value)}


def _text(value: str) -> Any:
    return value if len(value) <= _LONGEST_TEXT else _opaque(value, "is a long text")


def _opaque(value: Any, why: str) -> dict[str, str]:
    return {"opaque": f"a {type(value).__qualname__} that {why}"}


def is_opaque(data: Any) -> str:
    """Why encoded data cannot be made anew, empty where it can."""
    if isinstance(data, dict):
        if isinstance(data.get("opaque"), str):
            return str(data["opaque"])
        return next(filter(None, map(is_opaque, data.values())), "")
    return next(filter(None, map(is_opaque, data)), "") if isinstance(data, list) else ""


_HOOKS = (
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
)
_OF_PYTHON = (object, dict, OrderedDict, list, types.SimpleNamespace)


def _is_simple(kind: type) -> bool:
    """Whether attributes, and items of a dict or list, are all that an object of the class is."""
    base = next((base for base in kind.__mro__ if base.__flags__ & _HEAP == 0), object)
    if base not in _OF_PYTHON:
        return False
    return all(getattr(kind, name, None) is getattr(base, name, None) for name in _HOOKS)


_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that Python code made


def _slots(value: Any) -> dict[str, Any]:
    names: list[str] = []
    for kind in type(value).__mro__:
        own = kind.__dict__.get("__slots__", ())
        names += [own] if isinstance(own, str) else list(own)
    names = [name for name in names if name not in ("__dict__", "__weakref__")]
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


class _Bounded(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() + len(data) > _LARGEST_PICKLE:
            raise _TooMuch
        return super().write(data)


class _Pickler(pickle.Pickler):
    def persistent_id(self, element: Any) -> None:
        if isinstance(element, (torch.Tensor, torch.nn.Module)):
            raise TypeError("holds tensors")


def _pickled(value: Any) -> Any:
    """A small object with a way of its own to be pickled."""
    out = _Bounded()
    try:
        _Pickler(out, protocol=4).dump(value)
    except _TooMuch:
        return _opaque(value, "is too large to be noted")
    except Exception as error:  # whatever the object's own code raises
        return _opaque(value, f"cannot be pickled ({type(error).__name__})")
    return {"pickle": base64.b64encode(out.getvalue()).decode()}


_PLAIN: dict[type, Callable[[Any], Any]] = {
    float: _float, str: _text, torch.device: lambda value: {"device": str(value)},
    torch.dtype: lambda value: {"dtype": str(value).removeprefix("torch.")},
    **dict.fromkeys((complex, bytes, slice, range, type(Ellipsis)), _pickled),
}  # fmt: skip
