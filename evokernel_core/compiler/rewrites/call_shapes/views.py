"""Shapes of views, joins, slices and padding."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.compiler.rewrites.call_shapes.call import Rule, ShapedCall, Shapes, inside, need
from evokernel_core.compiler.rewrites.call_shapes.pointwise import same
from evokernel_core.domain.graph import ValueRef


def _viewed(call: ShapedCall) -> Shapes:
    """As many elements as before; which shape it is, the result says."""
    need(math.prod(call.shape()) == math.prod(call.shapes[ValueRef(call.node.name)]))
    return None


def _permuted(call: ShapedCall) -> Shapes:
    shape = call.shape()
    order = [inside(dim, len(shape)) for dim in call.numbers(1)]
    need(sorted(order) == list(range(len(shape))))
    return [tuple(shape[axis] for axis in order)]


def _transposed(call: ShapedCall) -> Shapes:
    found, rank = list(call.shape()), len(call.shape())
    first, second = call.dim(1, rank), call.dim(2, rank)
    if rank:
        found[first], found[second] = found[second], found[first]
    return [tuple(found)]


def _t(call: ShapedCall) -> Shapes:
    need(len(call.shape()) <= 2)
    return [call.shape()[::-1]]


def _expanded(call: ShapedCall) -> Shapes:
    shape, wanted = call.shape(), call.numbers(1)
    need(len(wanted) >= len(shape))
    padded = (*[1] * (len(wanted) - len(shape)), *shape)
    result = tuple(old if size == -1 else size for old, size in zip(padded, wanted, strict=True))
    need(all(old in (1, size) for old, size in zip(padded, result, strict=True)))
    return [result]


def _squeezed(call: ShapedCall) -> Shapes:
    shape = call.shape()
    named = call.given("dim")
    dims = [inside(dim, len(shape)) for dim in call.numbers(1)] if named is not None else range(len(shape))
    gone = {axis for axis in dims if shape and shape[axis] == 1}
    return [tuple(size for axis, size in enumerate(shape) if axis not in gone)]


def _unsqueezed(call: ShapedCall) -> Shapes:
    shape = call.shape()
    at = call.dim(1, len(shape) + 1)
    return [(*shape[:at], 1, *shape[at:])]


def _selected(call: ShapedCall) -> Shapes:
    shape = call.shape()
    dim, place = call.dim(1, len(shape)), call.number(2, 0)
    need(bool(shape) and -shape[dim] <= place < shape[dim])
    return [(*shape[:dim], *shape[dim + 1 :])]


def _length(call: ShapedCall, dim: int, first: int) -> int:
    """Elements of a slice whose bounds and step are the arguments from ``first`` on."""
    bounds = [None if call.at(place) is None else call.number(place, 0) for place in (first, first + 1)]
    step = call.number(first + 2, 1)
    need(step > 0)
    return len(range(call.shape()[dim])[bounds[0] : bounds[1] : step])


def _sliced(call: ShapedCall) -> Shapes:
    shape = call.shape()
    dim = call.dim(1, len(shape))
    return [(*shape[:dim], _length(call, dim, 2), *shape[dim + 1 :])]


def _slice_replaced(call: ShapedCall) -> Shapes:
    shape = call.shape()
    dim = call.dim(2, len(shape))
    need(call.shape(1) == (*shape[:dim], _length(call, dim, 3), *shape[dim + 1 :]))
    return same(call)


def _place_replaced(call: ShapedCall) -> Shapes:
    shape = call.shape()
    dim, place = call.dim(2, len(shape)), call.number(3, 0)
    need(call.shape(1) == (*shape[:dim], *shape[dim + 1 :]) and -shape[dim] <= place < shape[dim])
    return same(call)


def _diagonal(call: ShapedCall) -> Shapes:
    shape, offset = call.shape(), call.number(1, 0)
    first, second = call.dim(2, len(shape)), call.dim(3, len(shape), 1)
    need(first != second)
    rows, columns = shape[first] - max(-offset, 0), shape[second] - max(offset, 0)
    left = (size for axis, size in enumerate(shape) if axis not in (first, second))
    return [(*left, max(0, min(rows, columns)))]


def _unfolded(call: ShapedCall) -> Shapes:
    shape = call.shape()
    dim, size, step = call.dim(1, len(shape)), call.number(2, 0), call.number(3, 1)
    need(bool(shape) and step > 0 and 0 <= size <= shape[dim])
    return [(*shape[:dim], (shape[dim] - size) // step + 1, *shape[dim + 1 :], size)]


def _unbound(call: ShapedCall) -> Shapes:
    shape = call.shape()
    dim = call.dim(1, len(shape))
    need(shape[dim] == len(call.node.outputs))
    return [(*shape[:dim], *shape[dim + 1 :])] * shape[dim]


def _split(call: ShapedCall) -> Shapes:
    shape = call.shape()
    dim = call.dim(2, len(shape))
    if call.operation.name == "aten.split.Tensor":
        each = call.number(1, 0)
        parts = [min(each, shape[dim] - first) for first in range(0, shape[dim], each)]
    else:
        parts = list(call.numbers(1))
    need(sum(parts) == shape[dim] and len(parts) == len(call.node.outputs) and min(parts) >= 0)
    return [(*shape[:dim], part, *shape[dim + 1 :]) for part in parts]


def _flattened(call: ShapedCall) -> Shapes:
    shape = call.shape()
    first, last = call.dim(1, len(shape)), call.dim(2, len(shape), -1)
    need(first <= last)
    return [(*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])]


def _unflattened(call: ShapedCall) -> Shapes:
    shape, sizes = call.shape(), call.numbers(2)
    dim = call.dim(1, len(shape))
    known = math.prod(size for size in sizes if size != -1)
    result = tuple(shape[dim] // known if size == -1 else size for size in sizes)
    need(bool(result) and math.prod(result) == shape[dim])
    return [(*shape[:dim], *result, *shape[dim + 1 :])]


def _repeated(call: ShapedCall) -> Shapes:
    shape, times = call.shape(), call.numbers(1)
    need(len(times) >= len(shape) and all(count >= 0 for count in times))
    padded = (*[1] * (len(times) - len(shape)), *shape)
    return [tuple(count * size for count, size in zip(times, padded, strict=True))]


def _strided(call: ShapedCall) -> Shapes:
    need(len(call.numbers(1)) == len(call.numbers(2)))
    return [call.numbers(1)]


def _joined(call: ShapedCall) -> Shapes:
    parts = call.listed(0)
    rank = len(parts[0])
    dim = call.dim(1, rank)
    need(rank > 0 and all(len(part) == rank for part in parts))
    others = {(*part[:dim], *part[dim + 1 :]) for part in parts}
    need(len(others) == 1)
    return [(*parts[0][:dim], sum(part[dim] for part in parts), *parts[0][dim + 1 :])]


def _stacked(call: ShapedCall) -> Shapes:
    parts = call.listed(0)
    at = call.dim(1, len(parts[0]) + 1)
    need(len(set(parts)) == 1)
    return [(*parts[0][:at], len(parts), *parts[0][at:])]


def _padded(dims: int, reaches: bool) -> Rule:
    """Pads of the last dimensions; those that mirror reach no further than the operand does."""

    def rule(call: ShapedCall) -> Shapes:
        found, pads = list(call.shape()), call.numbers(1)
        need(len(pads) % 2 == 0 and len(pads) // 2 <= len(found))
        need(not dims or (len(pads) == 2 * dims and len(found) in (dims + 1, dims + 2)))
        for place in range(0, len(pads), 2):
            axis = -1 - place // 2
            need(not reaches or max(pads[place : place + 2]) < found[axis])
            need(-min(pads[place], 0) - min(pads[place + 1], 0) <= found[axis])
            found[axis] += pads[place] + pads[place + 1]
        return [tuple(found)]

    return rule


def _made(call: ShapedCall) -> Shapes:
    return [call.numbers(0)]


def _unknown(call: ShapedCall) -> Shapes:
    return None


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _viewed),
    **dict.fromkeys(("expand", "broadcast_to"), _expanded),
    **dict.fromkeys(("full", "zeros", "ones"), _made),
    **dict.fromkeys(("arange", "view_as_real", "view_as_complex"), _unknown),
    **{f"reflection_pad{rank}d": _padded(rank, reaches=True) for rank in (1, 2, 3)},
    **{f"replication_pad{rank}d": _padded(rank, reaches=False) for rank in (1, 2, 3)},
    **dict.fromkeys(("split", "split_with_sizes"), _split),
    "permute": _permuted,
    "transpose": _transposed,
    "t": _t,
    "squeeze": _squeezed,
    "unsqueeze": _unsqueezed,
    "select": _selected,
    "slice": _sliced,
    "slice_scatter": _slice_replaced,
    "select_scatter": _place_replaced,
    "diagonal": _diagonal,
    "unfold": _unfolded,
    "unbind": _unbound,
    "flatten": _flattened,
    "unflatten": _unflattened,
    "repeat": _repeated,
    "as_strided": _strided,
    "cat": _joined,
    "stack": _stacked,
    "constant_pad_nd": _padded(0, reaches=False),
}
"""By name with the overload, or without it."""
