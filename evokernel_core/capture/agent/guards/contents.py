"""Whether what guards compare is behind a call as it was before."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable, Iterator
from operator import length_hint
from typing import Any

from .guard import MOST_ENTRIES, is_plain

_MUTABLE = (tuple, list, dict, set, deque, bytearray)
_DEEPEST = 3
"""Containers in containers whose entries are compared before and behind a call."""


class Contents:
    """What values held when they were first read, by the text that reaches them."""

    def __init__(self) -> None:
        self._compared: dict[str, tuple[Any, Any]] = {}
        self._before: dict[int, tuple[Any, Any]] = {}

    def note(self, path: str, value: Any) -> None:
        """Notes what a guard compares of a container, or of an object by its text, when it is first read."""
        before = self._before.get(id(value), (value, None))[1]
        self._compared.setdefault(path, (value, _contents(value) if before is None else before))

    def note_globals(self, modules: Iterable[types.ModuleType]) -> None:
        """What the containers of modules hold before the call: which of them it reads is seen behind it."""
        for module in modules:
            for value in vars(module).values():
                held = value.__defaults__ if isinstance(value, types.FunctionType) else value
                if isinstance(held, _MUTABLE):
                    self._before[id(held)] = (held, _contents(held))

    def changed(self) -> Iterator[str]:
        """The values that hold something else by now, of which no guard would hold again."""
        for path, (value, before) in self._compared.items():
            after = _contents(value)
            if after is not before and after != before:  # NaN is no other NaN
                yield path


def _contents(value: Any, depth: int = 0) -> Any:
    """What tells whether a value that guards compare is as it was: objects by their identity, and of what is
    large or deep the size."""
    if isinstance(value, (tuple, list, dict, deque)):
        if depth > _DEEPEST or len(value) > MOST_ENTRIES:
            return len(value)
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        return [(key, _contents(element, depth + 1)) for key, element in entries]
    if isinstance(value, (set, frozenset, bytearray)) or _is_shown(value):
        size = length_hint(value)  # 0 for what has none, as an array without dimensions
        return repr(value) if size <= MOST_ENTRIES else size
    return value if is_plain(value) else id(value)


def _is_shown(value: Any) -> bool:
    return "__repr__" in vars(type(value)) and not hasattr(value, "__dict__") and not is_plain(value)
