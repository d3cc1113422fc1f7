"""Whole numbers over the sizes of a task, as launch records write them.

The language is Python's: names of symbols, whole numbers, ``+ - * // %``, comparisons, and the calls
``cdiv``, ``min``, ``max`` and ``next_power_of_2``. Text is read by its syntax tree and never evaluated.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

from evokernel_core.domain.errors import UsageError

LONGEST = 2_000
"""Characters of an expression."""
LARGEST = 1 << 63
"""No number on the way is this large: what is larger fits no argument of a kernel."""


def cdiv(numerator: int, denominator: int) -> int:
    """The quotient rounded up."""
    return -(-numerator // denominator)


def next_power_of_2(number: int) -> int:
    """The least power of two that is no less, 1 for what is below."""
    return 1 << max(number - 1, 0).bit_length()


CALLS: Mapping[str, Callable[..., int]] = {
    "cdiv": cdiv,
    "min": min,
    "max": max,
    "next_power_of_2": next_power_of_2,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """The number that an expression is at given sizes; 0 or 1 for a comparison. Raises UsageError for what is
    no expression, for an unknown name, a division by zero and a number beyond 63 bits."""
    try:
        return _number(_parsed(text), sizes)
    except (KeyError, ZeroDivisionError, TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            "{text} is no number over the sizes {names}; use + - * // %, cdiv, min, max, next_power_of_2.",
            text=repr(text[:60]),
            names=", ".join(sizes) or "(none)",
        ) from error


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise ValueError(text)
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, MemoryError) as error:
        raise ValueError(text) from error


def _number(node: ast.expr, sizes: Mapping[str, int]) -> int:
    result = _value(node, sizes)
    if not -LARGEST <= result < LARGEST:
        raise ValueError(result)
    return result


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return int(number)
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_number(left, sizes), _number(right, sizes))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return int(_COMPARISONS[type(op)](_number(left, sizes), _number(right, sizes)))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]):
            return CALLS[name](*(_number(argument, sizes) for argument in given))
    raise ValueError(ast.dump(node))
