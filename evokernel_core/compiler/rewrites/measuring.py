"""Distances, places between boundaries, and cross products, in terms of what one kernel fuses."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.compiler.rewrites.elementwise import apply, cast, part
from evokernel_core.compiler.rewrites.indexing import tensor
from evokernel_core.compiler.rewrites.picking import argument, numbers, permuted, view
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import extent, times
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef, literal

_FEW = 25
"""Points up to which PyTorch, too, measures Euclidean distances one by one."""


_FEW_BINS = 64
"""Bins up to which each is compared with every element."""
_MANY_COMPARED = 2**24
"""Elements times bins up to which each is compared with each, and nothing but elements is in memory."""
_MOST_COUNTED = 2**25
"""Elements whose rows of ones and zeros, some gigabytes, are laid into memory."""


def _cdist(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """The distance of every point of one set to every point of the other."""
    x, y, order = tensor(node, 0), tensor(node, 1), float(str(node.args[2]))
    left, right = writer.shape(x), writer.shape(y)
    many = max(extent(dim).evaluate(writer.sizes) for dim in (left[-2], right[-2])) > _FEW
    if order == 2.0 and (many or argument(node, 3, "compute_mode") == 1):
        return (_by_products(node, writer, x, y),)
    spec, batch = node.outputs[0], node.outputs[0].shape[:-2]
    one = view(writer, x, (*left[:-1], 1, left[-1]))
    other = view(writer, y, (*right[:-2], 1, *right[-2:]))
    apart = writer.call(
        "aten.sub.Tensor", one, other, shape=(*batch, left[-2], right[-2], left[-1]), dtype=spec.dtype
    )
    norm = writer.like(spec, "aten.linalg_vector_norm.default", apart, order, (len(spec.shape),))
    return (norm,)


def _by_products(node: Node, writer: GraphWriter, x: ValueRef, y: ValueRef) -> ValueRef:
    """Of Euclid: the squares of both less twice their product, which the cube cores compute."""
    spec = node.outputs[0]
    *batch, points, others = spec.shape
    depth, count = writer.shape(x)[-1], times(batch)
    if [*map(extent, writer.shape(x)[:-2])] != [*map(extent, writer.shape(y)[:-2])]:
        raise PlanError("Distances of points whose batches are broadcast are not covered.")
    one, other = view(writer, x, (count, points, depth)), view(writer, y, (count, others, depth))
    turned = permuted(writer, other, (0, 2, 1))
    product = writer.call("aten.bmm.default", one, turned, shape=(count, points, others), dtype=spec.dtype)
    left = _squares(writer, one)
    right = view(writer, _squares(writer, other), (count, 1, others))
    total = apply(writer, "add.Tensor", left, right)
    total = apply(writer, "sub.Tensor", total, apply(writer, "mul.Scalar", product, 2.0))
    root = apply(writer, "sqrt.default", apply(writer, "clamp_min.default", total, 0.0))
    return view(writer, cast(writer, root, spec.dtype), spec.shape)


def _squares(writer: GraphWriter, x: ValueRef) -> ValueRef:
    """The sum of squares along the last dimension, which is kept with a size of 1."""
    square = apply(writer, "mul.Tensor", x, x)
    shape = (*writer.shape(x)[:-1], 1)
    return writer.call("aten.sum.dim_IntList", square, (-1,), True, shape=shape, dtype="float32")


def _bucketize(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    return _places(node, writer, tensor(node, 1), tensor(node, 0))


def _searchsorted(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    keywords = dict(node.kwargs)
    if keywords.get("sorter") is not None:
        raise PlanError("searchsorted with a sorter is not covered: sort the sequence first.")
    return _places(node, writer, tensor(node, 0), tensor(node, 1))


def _places(node: Node, writer: GraphWriter, bounds: ValueRef, x: ValueRef) -> tuple[ValueRef, ...]:
    """How many boundaries lie below each element; those equal to it count from the ``right``."""
    keywords = dict(node.kwargs)
    right = bool(keywords.get("right", False)) or keywords.get("side") == "right"
    shape, limits = writer.shape(x), writer.shape(bounds)
    if not limits or len(limits) not in (1, len(shape)):
        raise PlanError("Boundaries are a tensor of one dimension, or of as many as the elements.")
    if "int" in writer.spec(bounds).dtype or "int" in writer.spec(x).dtype:
        raise PlanError("Places of integers between boundaries are not covered: convert them to float32.")
    wide = (*shape, limits[-1])
    one = view(writer, x, (*shape, 1))
    other = bounds if len(limits) == 1 else view(writer, bounds, (*limits[:-1], 1, limits[-1]))
    below = writer.call("aten.ge.Tensor" if right else "aten.gt.Tensor", one, other, shape=wide, dtype="bool")
    number = cast(writer, below, "float32")
    total = writer.call("aten.sum.dim_IntList", number, (len(shape),), False, shape=shape, dtype="float32")
    return (cast(writer, total, node.outputs[0].dtype),)


def _histc(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """How many elements fall into each of some equal parts of a range, its end included."""
    x, spec = tensor(node, 0), node.outputs[0]
    low, high = (float(str(argument(node, i, name, 0))) for i, name in ((2, "min"), (3, "max")))
    bins = spec.shape[0]
    if not isinstance(bins, int) or low >= high:
        raise PlanError("A histogram over the range of its own elements is not covered: give min and max.")
    flat = view(writer, x, (1, times(writer.shape(x))))
    share = apply(writer, "mul.Scalar", apply(writer, "sub.Scalar", flat, low), bins / (high - low))
    place = apply(writer, "floor.default", share)
    last = apply(writer, "eq.Scalar", flat, high, dtype="bool")
    place = apply(writer, "where.ScalarSelf", last, float(bins - 1), place)
    count = extent(times(writer.shape(x))).evaluate(writer.sizes)
    if bins > _FEW_BINS and count * bins > _MANY_COMPARED and count <= _MOST_COUNTED:
        return (cast(writer, _counted_by_products(writer, place, bins), spec.dtype),)
    total = writer.call(
        "aten.sum.dim_IntList", _among(writer, place, bins), (1,), False, shape=spec.shape, dtype="float32"
    )
    return (cast(writer, total, spec.dtype),)


def _among(writer: GraphWriter, places: ValueRef, count: int) -> ValueRef:
    """A row of ones and zeros for each of the numbers 0, 1 .. ``count``: where (1, n) ``places`` have it."""
    column = view(writer, numbers(writer, count), (count, 1))
    return cast(writer, apply(writer, "eq.Tensor", places, column, dtype="bool"), "float32")


def _counted_by_products(writer: GraphWriter, places: ValueRef, bins: int) -> ValueRef:
    """How often each bin is among the ``places`` (1, n). A bin is a row and a column of a square, so that few
    comparisons tell both; the product of rows and columns counts where they meet."""
    columns = 2 ** math.ceil(math.log2(bins) / 2)
    rows = -(-bins // columns)
    row = apply(writer, "floor.default", apply(writer, "mul.Scalar", places, 1 / columns))
    column = apply(writer, "sub.Tensor", places, apply(writer, "mul.Scalar", row, float(columns)))
    left, right = _among(writer, row, rows), _among(writer, column, columns)
    turned = permuted(writer, right, (1, 0))
    product = writer.call("aten.mm.default", left, turned, shape=(rows, columns), dtype="float32")
    whole = view(writer, product, (rows * columns,))
    return writer.call("aten.slice.Tensor", whole, 0, 0, bins, shape=(bins,), dtype="float32")


def _cross(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """Three components, each of the two others of both vectors."""
    x, y, spec = tensor(node, 0), tensor(node, 1), node.outputs[0]
    dim = literal(dict(node.kwargs).get("dim", -1))
    result = []
    for i in range(3):
        after, behind = (i + 1) % 3, (i + 2) % 3
        first = _product(writer, part(writer, x, dim, after), part(writer, y, dim, behind), spec.dtype)
        second = _product(writer, part(writer, x, dim, behind), part(writer, y, dim, after), spec.dtype)
        result.append(apply(writer, "sub.Tensor", first, second, dtype=spec.dtype))
    place = dim % len(spec.shape)
    return (writer.like(spec, "aten.cat.default", tuple(result), place),)


def _product(writer: GraphWriter, x: ValueRef, y: ValueRef, dtype: str) -> ValueRef:
    return apply(writer, "mul.Tensor", x, y, dtype=dtype)


REWRITES: Mapping[str, Rewrite] = {
    "aten._cdist_forward.default": _cdist,
    "aten.bucketize.Tensor": _bucketize,
    "aten.histc.default": _histc,
    "aten.linalg_cross.default": _cross,
    "aten.searchsorted.Tensor": _searchsorted,
}
