"""Tensors as the product sees them: shape, dtype, layout."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from attrs import field, frozen

Dim = int | str
"""A size: a number, or an integer expression over symbols such as ``"s0"`` or ``"s0*s1"``."""

ITEM_SIZE: Mapping[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
    "complex64": 8,
}
"""Bytes of one element, by dtype name (torch's names without the module)."""

_Meaning = Callable[[Mapping[str, int]], int]
"""The value of a size expression under a binding of its symbols, of which a lack is a KeyError."""
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


LONGEST_EXPRESSION = 4000
"""Characters of a size expression; those of deep networks of pooled layers have some hundred."""
DEEPEST_EXPRESSION = 48
"""How deep brackets may nest in one."""
MOST_OPERATORS = 256


_ALPHABET = re.compile(r"[A-Za-z0-9_+\-*/%() ]+")


def evaluate_dim(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The value of a size expression. Raises ValueError for anything but + - * // % over symbols, and for
    text that is longer or nests deeper than any that is captured; ZeroDivisionError as Python."""
    if isinstance(dim, int):
        return dim
    try:
        return _meaning(dim)(sizes)
    except KeyError as error:
        raise ValueError(f"{dim[:40]!r} is not a size expression over {sorted(sizes)}.") from error


@lru_cache(maxsize=1 << 14)
def _meaning(dim: str) -> _Meaning:
    _check_text(dim)
    try:
        return _meaning_of(ast.parse(dim, mode="eval").body)
    except SyntaxError as error:
        raise ValueError(f"{dim[:40]!r} is not a size expression.") from error


def _check_text(dim: str) -> None:
    """Words, numbers, operators and brackets, of bounded length and depth: a parser that meets more than that
    ends the process that asks it."""
    if len(dim) > LONGEST_EXPRESSION or not _ALPHABET.fullmatch(dim):
        raise ValueError(f"{dim[:40]!r} is not a size expression.")
    depth = operators = 0
    for char in dim:
        depth += {"(": 1, ")": -1}.get(char, 0)
        operators += char in "+-*/%"
        if depth > DEEPEST_EXPRESSION or operators > MOST_OPERATORS:
            raise ValueError(f"{dim[:40]!r} nests too deep for a size expression.")


def _meaning_of(node: ast.expr) -> _Meaning:
    match node:
        case ast.Constant(value=int(value)):
            return lambda _: value
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _meaning_of(operand)
            return lambda sizes: -negated(sizes)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            function, first, second = _OPERATORS[type(op)], _meaning_of(left), _meaning_of(right)
            return lambda sizes: function(first(sizes), second(sizes))
    raise ValueError(f"{ast.unparse(node)!r} is not a size expression.")


def _as_dims(shape: Any) -> tuple[Dim, ...]:
    return tuple(shape)


@frozen
class TensorSpec:
    """Shape (sizes or size expressions), dtype name and whether memory is row-major without gaps."""

    shape: tuple[Dim, ...] = field(converter=_as_dims)
    dtype: str
    contiguous: bool = True

    @property
    def rank(self) -> int:
        return len(self.shape)

    def sizes(self, symbols: Mapping[str, int]) -> tuple[int, ...]:
        """The concrete shape under a binding of the symbols."""
        return tuple(evaluate_dim(dim, symbols) for dim in self.shape)

    def nbytes(self, symbols: Mapping[str, int]) -> int:
        """Bytes of the tensor under a binding of the symbols."""
        count = 1
        for size in self.sizes(symbols):
            count *= size
        return count * ITEM_SIZE[self.dtype]
