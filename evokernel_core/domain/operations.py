"""The operations that a task may name, and what each takes: one declared table for every way in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.graph import Arg, DTypeArg, SymbolicInt, ValueRef
from evokernel_core.domain.tensor import ITEM_SIZE

TABLE = Path(__file__).with_name("operations.txt")
"""The table; its first lines say how to read it. The torch agent reads the same file."""
NAMESPACE = "aten"
MOST_LISTED = 4096
"""Elements of a list in a node's arguments: ``cat`` of more tensors than this is no kernel's work."""
MOST_NUMBER = 2**63
"""Integers are those of PyTorch's own 64 bits."""

_KIND = re.compile(r"(?:w\((?P<words>[a-z/]+)\)|(?P<base>[tnifbd]))(?P<inner>\?)?(?P<list>\*)?(?P<outer>\?)?")


@frozen
class OperationParameter:
    """One parameter: its name and its kind, as in the table."""

    name: str
    base: str
    words: tuple[str, ...] = ()
    listed: bool = False
    optional: bool = False
    holes: bool = False
    """Whether elements of the list may be absent."""

    def takes(self, value: Arg) -> bool:
        """Whether a value is of this kind."""
        if value is None:
            return self.optional
        if not self.listed:
            return self._takes_one(value)
        if not isinstance(value, tuple):
            return self.base == "i" and self._takes_one(value)  # one number for every dimension
        return len(value) <= MOST_LISTED and all(
            self.holes if element is None else self._takes_one(element) for element in value
        )

    def _takes_one(self, value: Arg) -> bool:
        match self.base:
            case "t":
                return isinstance(value, (ValueRef, SymbolicInt)) or _is_number(value)
            case "d":
                return isinstance(value, DTypeArg) and value.name in ITEM_SIZE
            case "w":
                return isinstance(value, str) and value in self.words
            case "i":
                return isinstance(value, SymbolicInt) or (isinstance(value, int) and _is_number(value))
            case "b":
                return isinstance(value, bool)
        return isinstance(value, SymbolicInt) or _is_number(value)


def _is_number(value: Arg) -> bool:
    if isinstance(value, int):
        return -MOST_NUMBER <= value < MOST_NUMBER
    return isinstance(value, float)


@frozen
class Operation:
    """What an operation takes in order, and by name only."""

    name: str
    positional: tuple[OperationParameter, ...]
    named: tuple[OperationParameter, ...]

    def parameter(self, name: str) -> OperationParameter | None:
        return next((part for part in (*self.positional, *self.named) if part.name == name), None)


@cache
def operations() -> Mapping[str, Operation]:
    """The table by full name, such as ``aten.add.Tensor``."""
    lines = (line.split() for line in TABLE.read_text("ascii").splitlines() if line.strip())
    result = (_operation(words) for words in lines if not words[0].startswith("#"))
    return {element.name: element for element in result}


def _operation(words: list[str]) -> Operation:
    name, *rest = words
    at = rest.index("|") if "|" in rest else len(rest)
    positional = tuple(map(_parameter, rest[:at]))
    return Operation(f"{NAMESPACE}.{name}", positional, tuple(map(_parameter, rest[at + 1 :])))


def _parameter(text: str) -> OperationParameter:
    name, _, kind = text.partition(":")
    match = _KIND.fullmatch(kind)
    if match is None:
        raise ValueError(f"{TABLE.name} has the kind {kind!r}, which is none.")
    words = tuple((match["words"] or "").split("/")) if match["words"] else ()
    listed, inner, outer = (bool(match[key]) for key in ("list", "inner", "outer"))
    optional = outer or (inner and not listed)
    return OperationParameter(
        name, "w" if words else match["base"], words, listed, optional, inner and listed
    )
