"""Writing by index, in terms of a copy into which runs of memory are put."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.ascendc.families.put import PUT
from evokernel_core.ascendc.lowering_sizes import extent
from evokernel_core.ascendc.rewrites.indexing import expanded, tensor, times, without_expansion
from evokernel_core.ascendc.rewrites.picking import argument, as_arg, view
from evokernel_core.ascendc.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.tensor import Dim

_HALVES = frozenset({"float16", "bfloat16"})


def _put(
    writer: GraphWriter, source: ValueRef, index: ValueRef, values: ValueRef, adds: bool, wraps: bool
) -> ValueRef:
    """PUT; sums of half types are formed in float32 and rounded once."""
    spec = writer.spec(source)
    if not (adds and spec.dtype in _HALVES):
        return writer.call(PUT, source, index, values, adds, wraps, shape=spec.shape, dtype=spec.dtype)
    wide = [
        writer.call("aten._to_copy.default", item, shape=writer.shape(item), dtype="float32")
        for item in (source, values)
    ]
    total = writer.call(PUT, wide[0], index, wide[1], adds, wraps, shape=spec.shape, dtype="float32")
    return writer.call("aten._to_copy.default", total, shape=spec.shape, dtype=spec.dtype)


def _scatter(adds: bool) -> Rewrite:
    """``x.scatter(dim, index, src)``: one index for each element of src."""

    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
        x, index = tensor(node, 0), tensor(node, 2)
        shape, chosen = writer.shape(x), writer.shape(index)
        if not shape:
            raise PlanError(f"{node.op} of a tensor without dimensions is not covered.")
        dim = int(str(node.args[1])) % len(shape)
        if any(
            axis != dim and extent(a) != extent(b)
            for axis, (a, b) in enumerate(zip(shape, chosen, strict=True))
        ):
            raise PlanError(f"{node.op} with fewer indices than the other dimensions have is not covered.")
        values = _values(node, writer, x, chosen)
        index, behind = without_expansion(writer, index, dim)
        if behind == len(shape) and dim != len(shape) - 1:
            return (_turned(writer, x, index, values, dim, adds),)
        outer, run = times(shape[:dim]), times(shape[behind:])
        if behind != dim + 1:
            raise PlanError(f"{node.op} with indices of this layout is not covered.")
        return (_placed(writer, x, index, values, (outer, shape[dim], chosen[dim], run), adds),)

    return rewrite


def _values(node: Node, writer: GraphWriter, x: ValueRef, chosen: tuple[Dim, ...]) -> ValueRef:
    """What is written, in the shape of the indices."""
    given, dtype = node.args[3], writer.spec(x).dtype
    if not isinstance(given, ValueRef):
        sizes = tuple(map(as_arg, chosen))
        return writer.call("aten.full.default", sizes, given, shape=chosen, dtype=dtype)
    for axis, size in enumerate(chosen):
        shape = writer.shape(given)
        if extent(size) != extent(shape[axis]):
            result = (*shape[:axis], size, *shape[axis + 1 :])
            given = writer.call("aten.slice.Tensor", given, axis, 0, as_arg(size), shape=result, dtype=dtype)
    return given


def _placed(
    writer: GraphWriter,
    x: ValueRef,
    index: ValueRef,
    values: ValueRef,
    sizes: tuple[Dim, Dim, Dim, Dim],
    adds: bool,
) -> ValueRef:
    """Into ``x`` as [outer, size, run] the values as [outer, count, run]; ``sizes`` are outer, size, count
    and run."""
    outer, size, count, run = sizes
    found = _put(
        writer, view(writer, x, (outer, size, run)), view(writer, index, (outer, count)),
        view(writer, values, (outer, count, run)), adds, False,
    )  # fmt: skip
    return view(writer, found, writer.shape(x))


def _turned(
    writer: GraphWriter, x: ValueRef, index: ValueRef, values: ValueRef, dim: int, adds: bool
) -> ValueRef:
    """The same with the written dimension turned to be the last one, and back."""
    rank = len(writer.shape(x))
    order = (*(axis for axis in range(rank) if axis != dim), dim)
    back = tuple(order.index(axis) for axis in range(rank))
    x, index, values = (_permuted(writer, item, order) for item in (x, index, values))
    shape, chosen = writer.shape(x), writer.shape(index)
    sizes = (times(shape[:-1]), shape[-1], chosen[-1], 1)
    return _permuted(writer, _placed(writer, x, index, values, sizes, adds), back)


def _permuted(writer: GraphWriter, x: ValueRef, order: tuple[int, ...]) -> ValueRef:
    shape = tuple(writer.shape(x)[axis] for axis in order)
    return writer.call("aten.permute.default", x, order, shape=shape, dtype=writer.spec(x).dtype)


def _index_put(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """``x[:, index] = values``, or ``+=``."""
    x, given, values = tensor(node, 0), node.args[1], tensor(node, 2)
    places = list(enumerate(given)) if isinstance(given, tuple) else []
    indices = [(axis, item) for axis, item in places if isinstance(item, ValueRef)]
    if len(indices) != 1:
        raise PlanError(f"{node.op} with indices of several dimensions is not covered.")
    (dim, index), shape = indices[0], writer.shape(x)
    if not shape:
        raise PlanError(f"{node.op} on a tensor without dimensions is not covered.")
    if writer.spec(index).dtype == "bool":
        raise PlanError("A mask chooses elements: how many is not known before it runs; use where.")
    chosen = writer.shape(index)
    values = expanded(writer, values, (*shape[:dim], *chosen, *shape[dim + 1 :]))
    outer, count, run = times(shape[:dim]), times(chosen), times(shape[dim + 1 :])
    found = _put(
        writer, view(writer, x, (outer, shape[dim], run)), view(writer, index, (1, count)),
        view(writer, values, (outer, count, run)), bool(argument(node, 3, "accumulate", False)), True,
    )  # fmt: skip
    return (view(writer, found, shape),)


REWRITES: Mapping[str, Rewrite] = {
    "aten.index_put.default": _index_put,
    "aten.scatter.src": _scatter(False),
    "aten.scatter.value": _scatter(False),
    "aten.scatter_add.default": _scatter(True),
}
