"""Guard: one condition of a call site, and values as the Python text that a guard compares with."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

import torch

MOST_ENTRIES = 64
"""Entries of a container whose values a guard spells out."""
_NUMBERS = (bool, int, float, complex)
_PLAIN = (*_NUMBERS, str, bytes, type(None), type(...), torch.dtype, torch.device, torch.layout)
_TORCH_CONSTANTS = (torch.dtype, torch.layout)
_EQUAL = "guards.equal"


@dataclass(frozen=True)
class CapturedGuard:
    """``text`` is a Python condition with ``{}`` where the object at the path ``owner`` stands; without an
    owner it is the whole condition."""

    owner: str
    text: str

    @property
    def condition(self) -> str:
        return self.text.replace("{}", self.owner, 1) if self.owner else self.text

    def fixes(self, path: str) -> bool:
        """Whether it asks for one value of what stands at a path."""
        return self.condition.startswith(f"{_EQUAL}({path}, ")

    def data(self) -> dict[str, str]:
        return {"owner": self.owner, "text": self.text}


def is_plain(value: Any) -> bool:
    """Whether a Python text can give the value again: numbers, strings, dtypes, containers of these."""
    kind = type(value)
    if kind in (tuple, list, set, frozenset, torch.Size):
        return len(value) <= MOST_ENTRIES and all(map(is_plain, value))
    if kind is dict:
        return len(value) <= MOST_ENTRIES and all(is_plain(k) and is_plain(v) for k, v in value.items())
    if kind is slice:
        return all(map(is_plain, (value.start, value.stop, value.step)))
    return kind in _PLAIN


def literal(value: Any) -> str:  # noqa: PLR0911 - one return a kind of value
    """Python text that gives a plain value; ``torch`` is known where it is evaluated."""
    kind = type(value)
    if kind is float and not math.isfinite(value):
        return f'float("{value}")'
    if kind in (tuple, torch.Size):
        entries = f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
        return f"torch.Size({entries})" if kind is torch.Size else entries
    if kind is list:
        return f"[{', '.join(map(literal, value))}]"
    if kind in (set, frozenset):
        return f"{kind.__name__}([{', '.join(sorted(map(literal, value)))}])"
    if kind is dict:
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if kind is torch.device:
        return f'torch.device("{value}")'
    return repr(value)


def same(owner: str, member: str, value: Any) -> CapturedGuard:
    """That a member (``.eps``, ``[0]``, or nothing) is a plain value, its type included: 1 is not 1.0 to
    PyTorch's rules of promotion, and not True."""
    if value is None or isinstance(value, (bool, *_TORCH_CONSTANTS)):
        return CapturedGuard(owner, f"{{}}{member} is {literal(value)}")
    return CapturedGuard(owner, f"{_EQUAL}({{}}{member}, {literal(value)})")


def is_member(owner: str, member: str, value: enum.Enum) -> CapturedGuard:
    """That a member is an entry of an enumeration, by the names of both."""
    return CapturedGuard(owner, f'guards.entry({{}}{member}, "{type(value).__qualname__}.{value.name}")')


def name_of(value: Any) -> str:
    """``torch.nn.functional.gelu``; of a user's class or function without its module, which is another one
    where the file is run as a program."""
    code = getattr(value, "__code__", None)
    if code is not None and hasattr(code, "co_qualname"):
        return str(code.co_qualname)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", "") or str(value)
    module = getattr(value, "__module__", "") or ""
    return f"{module}.{name}" if module.split(".")[0] == "torch" else str(name)


def owner_and_member(path: str) -> tuple[str, str]:
    """A path as the owner of its last part, and that part: ``self.a``, ``.b``."""
    depth = 0
    for place in range(len(path) - 1, 0, -1):
        depth += {"]": 1, ")": 1, "[": -1, "(": -1}.get(path[place], 0)
        if not depth and path[place] in ".[":
            return path[:place], path[place:]
    return path, ""
