"""Sorting and what is read off a sorted row, in terms of rows that lie one behind the other."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.limits import SORTED_KEPT, SORTED_TILES
from evokernel_core.compiler.ops import SORT
from evokernel_core.compiler.rewrites.elementwise import apply, cast
from evokernel_core.compiler.rewrites.indexing import tensor
from evokernel_core.compiler.rewrites.picking import argument, permuted, view
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import extent, times
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef, literal
from evokernel_core.domain.tensor import Dim, TensorSpec

_LEAST_PART = 1024
"""Elements of a part of a long row that pay for its start."""

_INTEGERS: Mapping[str, tuple[tuple[int, int], ...]] = {
    **dict.fromkeys(("int8", "uint8", "int16"), ((0, 0),)),
    "int32": ((0, 16), (16, 0)),
    "int64": ((0, 22), (22, 22), (44, 0)),
}
"""Where each digit of an integer begins, and its bits, 0 for all that are left; at most 24 with the sign."""

Sorted = tuple[ValueRef, ValueRef]
"""The elements, and where they were."""


def _along(writer: GraphWriter, x: ValueRef, dim: int, keep: Dim, descending: bool) -> Sorted:
    """The first elements of ``x`` sorted along ``dim``."""
    shape = writer.shape(x)
    if not shape:
        x, shape = view(writer, x, (1,)), (1,)
        dim = 0
    dim %= len(shape)
    order = (*range(dim), *range(dim + 1, len(shape)), dim)
    turned = permuted(writer, x, order)
    rows = view(writer, turned, (times([shape[i] for i in order[:-1]]), shape[dim]))
    result = _first(writer, rows, keep, descending)
    whole = (*(shape[i] for i in order[:-1]), keep)
    back = tuple(order.index(i) for i in range(len(shape)))
    values, indices = (permuted(writer, view(writer, ref, whole), back) for ref in result)
    return values, indices


def _first(writer: GraphWriter, rows: ValueRef, keep: Dim, descending: bool) -> Sorted:
    """The first elements of each sorted row. Few long rows are cut into parts, whose first elements are
    then sorted."""
    if writer.spec(rows).dtype in _INTEGERS:
        return _by_digits(writer, rows, keep, descending)
    count, columns = writer.shape(rows)
    parts = _parts(writer, count, columns, keep)
    if parts == 1:
        return _sorted(writer, rows, None, keep, descending, 1)
    assert isinstance(columns, int) and isinstance(keep, int)
    cut = view(writer, rows, (times((count, parts)), columns // parts))
    result = _sorted(writer, cut, None, keep, descending, parts)
    values, indices = (view(writer, ref, (count, parts * keep)) for ref in result)
    return _sorted(writer, values, indices, keep, descending, 1)


def _by_digits(writer: GraphWriter, rows: ValueRef, keep: Dim, descending: bool) -> Sorted:
    """The same of integers, which the sorting unit does not compare: their digits are sorted as floats, the
    lowest first, and each time equals stay in the order of the digits before."""
    columns = writer.shape(rows)[1]
    digits = _digits(writer, rows)
    order: ValueRef | None = None
    for place, digit in enumerate(digits):
        key = digit if order is None else _taken(writer, digit, order)
        _, found = _first(writer, key, keep if place == len(digits) - 1 else columns, descending)
        order = found if order is None else _taken(writer, order, found)
    assert order is not None
    return _taken(writer, rows, order), order


def _digits(writer: GraphWriter, rows: ValueRef) -> list[ValueRef]:
    """The digits of integers as float32, which holds each exactly, the lowest first; the highest has the
    sign."""
    spec = writer.spec(rows)
    result = []
    for begin, bits in _INTEGERS[spec.dtype]:
        digit = rows
        if begin:
            digit = apply(writer, "bitwise_right_shift.Tensor_Scalar", digit, begin, dtype=spec.dtype)
        if bits:
            digit = apply(writer, "bitwise_and.Scalar", digit, (1 << bits) - 1, dtype=spec.dtype)
        result.append(cast(writer, digit, "float32"))
    return result


def _taken(writer: GraphWriter, rows: ValueRef, order: ValueRef) -> ValueRef:
    """The elements of each row in an order."""
    shape, dtype = writer.shape(order), writer.spec(rows).dtype
    return writer.call("aten.gather.default", rows, 1, order, shape=shape, dtype=dtype)


def _parts(writer: GraphWriter, count: Dim, columns: Dim, keep: Dim) -> int:
    """Into how many parts rows are cut so that every core has work; 1 where that does not pay."""
    if (
        not isinstance(columns, int)
        or not isinstance(keep, int)
        or columns <= SORTED_TILES[-1]
        or keep > SORTED_KEPT[-1]
    ):
        return 1
    most = min(
        writer.device.parallel // extent(count).evaluate(writer.sizes), columns // max(_LEAST_PART, 2 * keep)
    )
    return next((parts for parts in range(most, 1, -1) if columns % parts == 0), 1)


def _sorted(
    writer: GraphWriter, rows: ValueRef, indices: ValueRef | None, keep: Dim, descending: bool, parts: int
) -> Sorted:
    shape = (writer.shape(rows)[0], keep)
    outputs = (TensorSpec(shape, writer.spec(rows).dtype), TensorSpec(shape, "int64"))
    values, found = writer.call_many(SORT.name, rows, indices, descending, parts, outputs=outputs)
    return values, found


def _shaped(writer: GraphWriter, node: Node, sorted_: Sorted) -> tuple[ValueRef, ...]:
    """As the node's results are shaped."""
    return tuple(view(writer, ref, spec.shape) for ref, spec in zip(sorted_, node.outputs, strict=True))


def _sort(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    keywords = dict(node.kwargs)
    x, stable = tensor(node, 0), node.op.endswith("stable")
    dim = keywords.get("dim", -1) if stable else argument(node, 1, "dim", -1)
    descending = keywords.get("descending", False) if stable else argument(node, 2, "descending", False)
    dim = literal(dim)
    keep = writer.shape(x)[dim] if writer.shape(x) else 1
    return _shaped(writer, node, _along(writer, x, dim, keep, bool(descending)))


def _topk(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    x, dim = tensor(node, 0), literal(argument(node, 2, "dim", -1))
    largest = bool(argument(node, 3, "largest", True))
    keep = node.outputs[0].shape[dim] if node.outputs[0].shape else 1
    return _shaped(writer, node, _along(writer, x, dim, keep, largest))


def _kthvalue(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    k, dim = node.args[1], literal(argument(node, 2, "dim", -1))
    if not isinstance(k, int):
        raise PlanError("kthvalue with a k that is not a literal is not covered.")
    return _shaped(writer, node, _at(writer, tensor(node, 0), dim, k))


def _at(writer: GraphWriter, x: ValueRef, dim: int, k: int) -> Sorted:
    """The ``k``-th smallest element along a dimension, which is kept with a size of 1."""
    shape = writer.shape(x)
    if not shape:
        return _along(writer, x, 0, 1, descending=False)
    dim %= len(shape)
    values, indices = _along(writer, x, dim, k, descending=False)
    one = (*shape[:dim], 1, *shape[dim + 1 :])

    def last(ref: ValueRef) -> ValueRef:
        if k == 1:
            return ref
        dtype = writer.spec(ref).dtype
        return writer.call("aten.slice.Tensor", ref, dim, k - 1, k, shape=one, dtype=dtype)

    return last(values), last(indices)


def _median(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """The lower of the two middle elements; what is not a number is every median."""
    x = tensor(node, 0)
    if node.op.endswith("default"):
        flat = view(writer, x, (times(writer.shape(x)),))
        found, _ = _at(writer, flat, 0, _middle(writer.shape(flat)[0]))
        return (_nan_where_any(writer, x, view(writer, found, ())),)
    raise PlanError("median along a dimension is not covered: use kthvalue.")


def _nan_where_any(writer: GraphWriter, x: ValueRef, value: ValueRef) -> ValueRef:
    """The single number ``value``, or NaN where ``x`` has one."""
    dtype = writer.spec(x).dtype
    if dtype in _INTEGERS:
        return value
    apart = writer.call("aten.ne.Tensor", x, x, shape=writer.shape(x), dtype="bool")
    strange = writer.call("aten.any.default", apart, shape=(), dtype="bool")
    endless = writer.call("aten.where.Scalar", strange, float("inf"), 0.0, shape=(), dtype=dtype)
    nothing = writer.call("aten.sub.Tensor", endless, endless, shape=(), dtype=dtype)
    return writer.call("aten.add.Tensor", value, nothing, shape=(), dtype=dtype)


def _middle(size: Dim) -> int:
    if not isinstance(size, int):
        raise PlanError("median over a size that differs from call to call is not covered.")
    return (size + 1) // 2


REWRITES: Mapping[str, Rewrite] = {
    "aten.kthvalue.default": _kthvalue,
    "aten.median.default": _median,
    "aten.sort.default": _sort,
    "aten.sort.stable": _sort,
    "aten.topk.default": _topk,
}
