"""Reference expressions such as ``x / sqrt(mean(x*x, -1) + eps) * w``: parsed by an allow-list, computed in
float64.

Reductions keep their dimension with size 1. Nothing is ever evaluated as Python.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from evokernel_core.domain.errors import UsageError

LONGEST = 2_000
"""Characters of an expression."""
DEEPEST = 200
"""Operations within one another."""
MOST_ELEMENTS = 2**27
"""Of any value: a GiB in float64."""

Array = npt.NDArray[np.float64]

_BINARY: Mapping[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -x))


_ELEMENTWISE: Mapping[str, tuple[int, Callable[..., Any]]] = {
    **{
        name: (1, getattr(np, name))
        for name in ("abs", "ceil", "cos", "exp", "floor", "log", "sin", "sqrt", "tan", "tanh")
    },
    "round": (1, np.rint),
    "rsqrt": (1, lambda x: 1.0 / np.sqrt(x)),
    "erf": (1, _erf),
    "sigmoid": (1, _sigmoid),
    "silu": (1, lambda x: x * _sigmoid(x)),
    "relu": (1, lambda x: np.maximum(x, 0.0)),
    "gelu": (1, lambda x: x * 0.5 * (1.0 + _erf(x / math.sqrt(2)))),
    "maximum": (2, np.maximum),
    "minimum": (2, np.minimum),
    "where": (3, lambda condition, x, y: np.where(condition != 0, x, y)),
    "clip": (3, np.clip),
}
"""Functions of so many operands that broadcast."""
_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("sum", "mean", "max", "min", "prod", "var")},
    "softmax": lambda x, axis, keepdims: _softmax(x, axis),
}


def _softmax(x: Array, axis: Any) -> Array:
    raised = np.exp(x - np.max(x, axis, keepdims=True))
    return np.asarray(raised / np.sum(raised, axis, keepdims=True))


_SHAPED: Mapping[str, Callable[..., Any]] = {"reshape": np.reshape, "transpose": np.transpose}
"""Functions of an operand and a tuple of integers."""
FUNCTIONS = tuple(sorted((*_ELEMENTWISE, *_REDUCTIONS, *_SHAPED)))


@frozen
class Expression:
    """A checked expression, and the operands that it needs."""

    text: str
    names: frozenset[str]
    _body: ast.expr

    def value(self, operands: Mapping[str, Array]) -> Array:
        """What it computes. Raises UsageError for shapes that do not go together."""
        try:
            with np.errstate(all="ignore"):
                return np.asarray(_value(self._body, operands))
        except (ValueError, IndexError, OverflowError, MemoryError) as error:
            raise UsageError(
                "The reference {text} cannot be computed: {why}.", text=self.text, why=str(error)
            ) from error


def parse(text: str) -> Expression:
    """Raises UsageError that says what of a text is not allowed in a reference."""
    try:
        body = ast.parse(text.strip(), mode="eval").body if len(text) <= LONGEST else None
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        body = None
    if body is None:
        raise UsageError("The reference {text} is no expression.", text=text[:200])
    return Expression(text.strip(), frozenset(_names(body)), body)


def _names(node: ast.expr, depth: int = 0) -> Iterator[str]:
    """The operands of an expression, each part of which is allowed. Raises UsageError."""
    operands: Sequence[ast.expr]
    match node:
        case ast.Name(id=name):
            yield name
            return
        case ast.Constant(value=bool() | int() | float()):
            return
        case ast.BinOp(op=op) if type(op) in _BINARY or isinstance(op, ast.MatMult):
            operands = (node.left, node.right)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            operands = (node.operand,)
        case ast.Compare(ops=[op]) if type(op) in _COMPARED:
            operands = (node.left, *node.comparators)
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS:
            operands = _operands(name, node.args)
        case _:
            raise _refusal(node)
    if depth == DEEPEST:
        raise UsageError("A reference has at most {most} operations within one another.", most=DEEPEST)
    for operand in operands:
        yield from _names(operand, depth + 1)


def _operands(name: str, args: Sequence[ast.expr]) -> Sequence[ast.expr]:
    """The operands of a call that has as many arguments as it takes. Raises UsageError."""
    if name in _ELEMENTWISE and len(args) == _ELEMENTWISE[name][0]:
        return args
    if name in _REDUCTIONS and len(args) == 1:
        return args
    if name not in _ELEMENTWISE and len(args) == 2:
        if _integers(args[1]) is None:
            raise _refusal(args[1])
        return args[:1]
    raise UsageError("{name} in a reference takes another number of arguments.", name=name)


def _refusal(node: ast.expr) -> UsageError:
    return UsageError(
        "{text} is not allowed in a reference: it has numbers, parameters, operators and {names}.",
        text=ast.unparse(node)[:200],
        names=", ".join(FUNCTIONS),
    )


def _integers(node: ast.expr) -> tuple[int, ...] | None:
    """A dimension, or several, as written; None for what is neither."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return None
    sizes = value if isinstance(value, tuple) else (value,)
    return sizes if all(type(size) is int and abs(size) < 2**40 for size in sizes) else None


def _value(node: ast.expr, operands: Mapping[str, Array]) -> Array:
    match node:
        case ast.Name(id=name):
            value = operands[name]
        case ast.Constant(value=bool() | int() | float() as number):
            value = np.asarray(number, np.float64)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = np.negative(_value(operand, operands))
        case ast.UnaryOp(operand=operand):
            value = _value(operand, operands)
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            value = _product(_value(left, operands), _value(right, operands))
        case ast.BinOp(left=left, op=op, right=right):
            value = _broadcast(_BINARY[type(op)], (left, right), operands)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            value = _broadcast(_COMPARED[type(op)], (left, right), operands)
        case ast.Call(func=ast.Name(id=name), args=args):
            value = _called(name, args, operands)
        case _:
            raise _refusal(node)
    return value


def _called(name: str, args: Sequence[ast.expr], operands: Mapping[str, Array]) -> Array:
    if name in _ELEMENTWISE:
        return _broadcast(_ELEMENTWISE[name][1], args, operands)
    value = _value(args[0], operands)
    given = _integers(args[1]) if len(args) == 2 else None
    if name in _SHAPED:
        return np.asarray(_SHAPED[name](value, given))
    return np.asarray(_REDUCTIONS[name](value, axis=given, keepdims=True))


def _broadcast(
    function: Callable[..., Any], nodes: Sequence[ast.expr], operands: Mapping[str, Array]
) -> Array:
    values = [_value(node, operands) for node in nodes]
    _check_room(np.broadcast_shapes(*(value.shape for value in values)))
    return np.asarray(function(*values), np.float64)


def _product(left: Array, right: Array) -> Array:
    rows, columns = left.shape[-2:-1], right.shape[-1:] if right.ndim > 1 else ()
    _check_room((*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), *rows, *columns))
    return np.asarray(left @ right)


def _check_room(shape: Sequence[int]) -> None:
    if math.prod(shape) > MOST_ELEMENTS:
        raise ValueError(f"a value of shape {list(shape)} has more than {MOST_ELEMENTS} elements")
