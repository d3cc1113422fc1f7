"""Shapes of what reads or writes where indices say so."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.compiler.rewrites.call_shapes.call import Rule, ShapedCall, Shapes, need
from evokernel_core.compiler.rewrites.call_shapes.pointwise import broadcast, reduced, same
from evokernel_core.domain.graph import ValueRef


def _gathered(call: ShapedCall) -> Shapes:
    shape, chosen = call.shape(), call.shape(2)
    dim = call.dim(1, len(shape))
    need(max(1, len(shape)) == max(1, len(chosen)))
    need(all(axis == dim or size <= shape[axis] for axis, size in enumerate(chosen) if shape))
    return [chosen]


def _scattered(call: ShapedCall) -> Shapes:
    _gathered(call)  # asks of the indices what it asks here
    chosen = call.shape(2)
    if isinstance(call.at(3), ValueRef) and ".value" not in call.operation.name:
        source = call.shape(3)
        need(max(1, len(source)) == max(1, len(chosen)))
        need(all(size <= have for size, have in zip(chosen, source, strict=False)))
    return same(call)


def _index_selected(call: ShapedCall) -> Shapes:
    shape, chosen = call.shape(), call.shape(2)
    need(len(chosen) <= 1)
    dim = call.dim(1, len(shape))
    return [(*shape[:dim], math.prod(chosen), *shape[dim + 1 :])] if shape else [()]


def _embedded(call: ShapedCall) -> Shapes:
    rows = call.shape()
    need(len(rows) == 2)
    return [(*call.shape(1), rows[1])]


def _embedding_gradient(call: ShapedCall) -> Shapes:
    gradient, chosen = call.shape(), call.shape(1)
    need(gradient[:-1] == chosen)
    return [(call.number(2, 0), gradient[-1])]


def _bagged(call: ShapedCall) -> Shapes:
    rows, bags = call.shape(), call.shape(2)
    need((len(rows), len(call.shape(1)), len(bags)) == (2, 1, 1))
    need(call.at(6) is None or call.shape(6) == call.shape(1))
    return [(bags[0] - bool(call.at(7)), rows[1])]


def _indexed(call: ShapedCall) -> Shapes:
    shape, given = call.shape(), call.at(1)
    need(isinstance(given, tuple) and len(given) <= len(shape))
    assert isinstance(given, tuple)
    if any(
        element is not None and (not isinstance(element, ValueRef) or _is_mask(call, element))
        for element in given
    ):
        return None  # as many as are set, or places that are numbers
    places = [axis for axis, element in enumerate(given) if element is not None]
    chosen = broadcast([call.shapes[element] if isinstance(element, ValueRef) else () for element in given])
    if not places:
        return [shape]
    at = places[0] if places == list(range(places[0], places[-1] + 1)) else 0
    left = [size for axis, size in enumerate(shape) if axis not in places]
    return [(*left[:at], *chosen, *left[at:])]


def _is_mask(call: ShapedCall, value_ref: ValueRef) -> bool:
    return call.node.op != "aten._unsafe_index.Tensor" and value_ref in call.masks


def _index_put(call: ShapedCall) -> Shapes:
    result = _indexed(call)
    if result is not None:
        need(broadcast([result[0], call.shape(2)]) == tuple(result[0]))
    return same(call)


def _slices(call: ShapedCall) -> Shapes:
    """index_add and index_copy: the source has as many slices as there are indices."""
    shape, index = call.shape(), call.shape(2)
    dim = call.dim(1, len(shape), 0)
    need(len(index) <= 1)
    count = index[0] if index else 1
    need(call.shape(3) == (*shape[:dim], count, *shape[dim + 1 :]))
    return same(call)


def _one_hot(call: ShapedCall) -> Shapes:
    classes = call.number(1, -1)
    need(classes > 0)
    return [(*call.shape(), classes)]


def _searched(call: ShapedCall) -> Shapes:
    edges, shape = call.shape(), call.shape(1)
    need(len(edges) == 1 or edges[:-1] == shape[:-1])
    return [shape]


def _bucketized(call: ShapedCall) -> Shapes:
    need(len(call.shape(1)) == 1)
    return [call.shape()]


def _top(call: ShapedCall) -> Shapes:
    shape, count = call.shape(), call.number(1, 0)
    dim = call.dim(2, len(shape), -1)
    need(0 <= count <= (shape[dim] if shape else 1))
    if not shape:
        return [(), ()]
    return [(*shape[:dim], count, *shape[dim + 1 :])] * 2


def _kth(call: ShapedCall) -> Shapes:
    shape = call.shape()
    need(1 <= call.number(1, 1) <= (shape[call.dim(2, len(shape), -1)] if shape else 1))
    return reduced(call)


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), _scattered),
    **dict.fromkeys(("index", "_unsafe_index"), _indexed),
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _bagged),
    "gather": _gathered,
    "index_select": _index_selected,
    "index_put": _index_put,
    **dict.fromkeys(("index_add", "index_copy"), _slices),
    "one_hot": _one_hot,
    "embedding": _embedded,
    "embedding_dense_backward": _embedding_gradient,
    "searchsorted": _searched,
    "bucketize": _bucketized,
    "topk": _top,
    "kthvalue": _kth,
}
"""By name with the overload, or without it."""
