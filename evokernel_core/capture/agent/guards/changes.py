"""What code sets anew in objects, classes and modules while it runs: a kernel's call sets none of it."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

_PLAIN = (bool, int, float, str, type(None))
_SHARED = (type, types.ModuleType)


class Held:
    """The attributes of owners, by the text that names each, as they are when it is added."""

    def __init__(self) -> None:
        self._before: list[tuple[str, Any, dict[str, Any]]] = []

    def add(self, path: str, owner: Any) -> None:
        """An owner without attributes holds nothing."""
        attributes = getattr(owner, "__dict__", None)
        if attributes is not None:
            self._before.append((path, owner, dict(attributes)))

    def changed(self) -> Iterator[str]:
        """The text of each attribute that is another one now. A tensor in an object does not count: a kernel
        may set that, and where it does not it is refused elsewhere."""
        for path, owner, before in self._before:
            now: Mapping[str, Any] = owner.__dict__
            for name in dict.fromkeys((*before, *now)):
                is_there = name in before and name in now
                value = now.get(name)
                if name.startswith("__") or (is_there and is_same(before[name], value)):
                    continue
                if isinstance(owner, _SHARED) or not isinstance(value, torch.Tensor):
                    yield f"{path}.{name}"


def is_same(before: Any, now: Any) -> bool:
    return before is now or (type(before) is type(now) and isinstance(now, _PLAIN) and before == now)


def shared(modules: Iterable[types.ModuleType]) -> Held:
    """What modules of the user's hold, and the classes and objects in them."""
    held = Held()
    for module in modules:
        held.add(module.__name__, module)
        for name, value in vars(module).items():
            if _holds(value, module):
                held.add(name, value)
    return held


def _holds(value: Any, module: types.ModuleType) -> bool:
    """Whether a global is a class of the module, or an object that only code of the user's sets."""
    if isinstance(value, type):
        return value.__module__ == module.__name__
    is_torchs = type(value).__module__.startswith("torch.")
    return not is_torchs and not isinstance(value, (types.ModuleType, types.FunctionType, torch.nn.Module))
