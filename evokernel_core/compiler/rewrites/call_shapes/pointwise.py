"""Shapes of what works element by element, or along dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evokernel_core.compiler.rewrites.call_shapes.call import Rule, Shape, ShapedCall, Shapes, inside, need


def broadcast(shapes: Sequence[Shape]) -> Shape:
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            need(size in (1, result[axis]) or result[axis] == 1)
            result[axis] = max(result[axis], size)
    return tuple(result)


def elementwise(call: ShapedCall) -> Shapes:
    shape = broadcast([call.shapes[ref] for ref in call.node.operands()])
    return [shape] * len(call.node.outputs)


def reduced(call: ShapedCall) -> Shapes:
    shape, dims = call.shape(), call.given("dim")
    keep, rank = bool(call.given("keepdim")), len(shape)
    listed = dims if isinstance(dims, tuple) else () if dims is None else (dims,)
    if not listed and call.operation.name == "aten.kthvalue.default":
        listed = (-1,)
    axes = [inside(call.whole(dim, 0), rank) for dim in listed]
    need(len(set(axes)) == len(axes))
    over = set(axes or range(rank))
    kept = tuple(1 if axis in over else size for axis, size in enumerate(shape))
    result = kept if keep else tuple(size for axis, size in enumerate(shape) if axis not in over)
    return [result] * len(call.node.outputs)


def _counted(call: ShapedCall) -> Shapes:
    return [(call.number(1, 100),)]


def _number(call: ShapedCall) -> Shapes:
    return [()]


def same(call: ShapedCall) -> Shapes:
    return [call.shape()] * len(call.node.outputs)


def _along(call: ShapedCall) -> Shapes:
    """A result as large as the operand, along a dimension that it has."""
    inside(call.whole(call.given("dim"), -1), len(call.shape()))
    return same(call)


def _rolled(call: ShapedCall) -> Shapes:
    shifts, dims = call.numbers(1), call.numbers(2)
    need(len(shifts) == (len(dims) or 1))
    return _flipped(call, dims)


def _flipped(call: ShapedCall, dims: Shape | None = None) -> Shapes:
    axes = [inside(dim, len(call.shape())) for dim in (call.numbers(1) if dims is None else dims)]
    need(dims is not None or len(set(axes)) == len(axes))
    return same(call)


def _triangle(call: ShapedCall) -> Shapes:
    need(len(call.shape()) >= 2)
    return same(call)


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("sum.default", "mean.default", "prod.default", "max.default", "min.default"), _number),
    **dict.fromkeys(("any.default", "all.default", "median"), _number),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"), _along),
    **dict.fromkeys(("sort", "_softmax", "_log_softmax"), _along),
    **dict.fromkeys(("tril", "triu"), _triangle),
    "histc": _counted,
    "roll": _rolled,
    "flip": _flipped,
}
"""By name with the overload, or without it."""
