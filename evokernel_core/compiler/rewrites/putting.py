"""Writing by index, in terms of a copy into which runs of memory are put."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evokernel_core.compiler.ops import LAST, SCATTER, SCATTER_PARTS, SCATTER_TYPES
from evokernel_core.compiler.rewrites.elementwise import broadcast, cast
from evokernel_core.compiler.rewrites.indexing import expanded, places_of, tensor, unwidened
from evokernel_core.compiler.rewrites.picking import argument, as_arg, permuted, producer, view
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import extent, product, times
from evokernel_core.compiler.shapes.views import BROADCASTS, SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef, literal
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.hardware.device import Device

_HALVES = frozenset({"float16", "bfloat16"})
_STEP_US = 3.0
_COPY_CYCLES, _LOOK_CYCLES, _SORT_CYCLES = 42.0, 0.4, 2.4
_TILE_CYCLES = 2500.0
_LEAST_SEGMENT = 512
_TILE = 2048
"""Elements of a row that one core has at a time."""
_MOST_BYTES = 512 << 20
"""Of the results of all parts."""
_REDUCTIONS = {"add": "sum.dim_IntList", "max": "amax.default", "min": "amin.default"}
_COMBINATIONS = {"add": "add.Tensor", "max": "maximum.default", "min": "minimum.default"}


def put(
    writer: GraphWriter,
    source: ValueRef,
    indices: Sequence[ValueRef],
    values: ValueRef,
    kind: str,
    wraps: bool,
) -> ValueRef:
    """SCATTER; half types are combined in float32 and rounded once. Raises PlanError for other types."""
    spec = writer.spec(source)
    args = (source, tuple(indices), values, kind, wraps)
    if kind == LAST:
        return writer.like(spec, SCATTER.name, *args)
    if spec.dtype in _HALVES:
        wide = [cast(writer, choice, "float32") for choice in (source, values)]
        return cast(writer, put(writer, wide[0], indices, wide[1], kind, wraps), spec.dtype)
    if spec.dtype not in SCATTER_TYPES:
        raise PlanError(
            "Values of {dtype} are not combined at indices: convert them to int32.", dtype=spec.dtype
        )
    if kind == "add" and "int" in spec.dtype and number_everywhere(writer, values) == 1:
        return _counted(writer, source, indices, values, wraps)
    if (kind == "mul" or spec.dtype == "int64") and not extent(spec.shape[-1]).is_one:
        return _by_element(writer, source, indices, values, kind, wraps)
    parts = _parts(writer, source, values) if spec.dtype == "float32" and kind in _REDUCTIONS else 1
    # Zeros are neither written nor read before anything is added to them.
    is_zero = spec.dtype == "float32" and kind == "add" and number_everywhere(writer, source) == 0
    if is_zero or parts > 1:
        total = _in_parts(writer, spec, indices, values, (kind, wraps), parts)
        return total if is_zero else _on_top(writer, source, total, kind)
    return writer.like(spec, SCATTER.name, *args)


def _counted(
    writer: GraphWriter, source: ValueRef, indices: Sequence[ValueRef], values: ValueRef, wraps: bool
) -> ValueRef:
    """How often each place is an index, on top of the source; float32 counts exactly up to 16 million."""
    spec, chosen = writer.spec(source), writer.shape(values)
    zeros, ones = (
        writer.call("aten.full.default", tuple(map(as_arg, shape)), number, shape=shape, dtype="float32")
        for shape, number in ((spec.shape, 0.0), (chosen, 1.0))
    )
    result = cast(writer, put(writer, zeros, indices, ones, "add", wraps), spec.dtype)
    if number_everywhere(writer, source) == 0:
        return result
    return writer.like(spec, "aten.add.Tensor", source, result)


def _by_element(
    writer: GraphWriter,
    source: ValueRef,
    indices: Sequence[ValueRef],
    values: ValueRef,
    kind: str,
    wraps: bool,
) -> ValueRef:
    """The same with the elements of runs as rows of their own."""
    outer, *sizes, run = writer.shape(source)
    count, rank = writer.shape(values)[1], len(sizes)
    rows = times((outer, run))
    turned = permuted(writer, source, (0, rank + 1, *range(1, rank + 1)))
    spread = [_for_each(writer, index, (outer, run, count)) for index in indices]
    given = view(writer, permuted(writer, values, (0, 2, 1)), (rows, count, 1))
    result = put(writer, view(writer, turned, (rows, *sizes, 1)), spread, given, kind, wraps)
    return permuted(writer, view(writer, result, (outer, run, *sizes)), (0, *range(2, rank + 2), 1))


def _for_each(writer: GraphWriter, index: ValueRef, shape: tuple[Dim, Dim, Dim]) -> ValueRef:
    """Indices of [outer, count] for each element of a run; those of all rows stay shared."""
    outer, run, count = shape
    if extent(writer.shape(index)[0]).is_one and not extent(outer).is_one:
        return index
    middle = view(writer, index, (outer, 1, count))
    return view(writer, expanded(writer, middle, shape), (times((outer, run)), count))


def _parts(writer: GraphWriter, source: ValueRef, values: ValueRef) -> int:
    """Into how many parts the entries are dealt at the sizes of the user's file: where few cores would
    write everything, more of them write results of their own, which takes memory traffic."""
    outer, count, run = (extent(dim).evaluate(writer.sizes) for dim in writer.shape(values))
    size = product(map(extent, writer.shape(source)[1:-1])).evaluate(writer.sizes)
    results = outer * size * run * 4
    device = writer.device
    rate = math.sqrt(device.memory_bytes_us * device.l2_bytes_us)  # between those of memory and of L2
    by_element, segments = extent(writer.shape(values)[2]).is_one, -(-run * 4 // _LEAST_SEGMENT)

    def cost(parts: int) -> float:
        more = _STEP_US + 2 * parts * results / rate if parts > 1 else 0.0
        cycles = [-(-parts * outer * segments // device.parallel) * _COPY_CYCLES * count / parts]
        if by_element:
            cycles.append(_sorted_cycles(parts * outer, size, count / parts, device))
        elif parts == 1:  # places are dealt out, and each core looks at all entries
            cycles.append(
                count * _LOOK_CYCLES + outer * count * _COPY_CYCLES / min(outer * size, device.parallel)
            )
        return min(cycles) / device.clock_mhz + more

    most = min(device.parallel // max(outer, 1), _MOST_BYTES // max(results, 1))
    return min(range(1, max(most, 1) + 1), key=cost)


def _on_top(writer: GraphWriter, source: ValueRef, total: ValueRef, kind: str) -> ValueRef:
    """The source combined with what was put into a result that changes nothing."""
    spec = writer.spec(source)
    return writer.like(spec, f"aten.{_COMBINATIONS[kind]}", source, total)


def _in_parts(
    writer: GraphWriter,
    spec: TensorSpec,
    indices: Sequence[ValueRef],
    values: ValueRef,
    how: tuple[str, bool],
    parts: int,
) -> ValueRef:
    """Each part of the entries is put into a result of its own, of what changes nothing; these are then
    combined in order. ``how``: the kind, and whether indices wrap."""
    sizes = tuple(map(as_arg, spec.shape[1:-1]))
    args = (sizes, tuple(indices), values, *how, parts)
    result = writer.call(SCATTER_PARTS.name, *args, shape=(parts, *spec.shape), dtype=spec.dtype)
    if parts == 1:
        return view(writer, result, spec.shape)
    op = f"aten.{_REDUCTIONS[how[0]]}"
    return writer.like(spec, op, result, (0,), False)


def scattered(
    writer: GraphWriter, x: ValueRef, dim: int, index: ValueRef, values: ValueRef, kind: str
) -> ValueRef:
    """``x.scatter(dim, index, values)``: one index for each value; those of expanded indices move in runs.
    Fewer indices than the other dimensions have reach the first part of these."""
    shape, chosen = writer.shape(x), writer.shape(index)
    for axis, size in enumerate(chosen):
        if axis != dim and extent(size) != extent(shape[axis]):
            return _into_first(writer, x, dim, index, values, kind, axis)
    places, behind = places_of(writer, index, dim)
    if behind == dim + 1:
        run = times(shape[behind:])
        sizes = (times(shape[:dim]), shape[dim], chosen[dim], run)
        return _placed(writer, x, places, values, sizes, kind)
    order = (*(axis for axis in range(len(shape)) if axis != dim), dim)
    back = tuple(order.index(axis) for axis in range(len(shape)))
    turned, given = permuted(writer, x, order), permuted(writer, values, order)
    rows = times(writer.shape(turned)[:-1])
    places = view(writer, permuted(writer, index, order), (rows, chosen[dim]))
    sizes = (rows, shape[dim], chosen[dim], 1)
    return permuted(writer, _placed(writer, turned, places, given, sizes, kind), back)


def _into_first(
    writer: GraphWriter, x: ValueRef, dim: int, index: ValueRef, values: ValueRef, kind: str, axis: int
) -> ValueRef:
    """What has as many elements along ``axis`` as there are indices, in the place of what it comes from."""
    spec, size = writer.spec(x), writer.shape(index)[axis]
    shape = (*spec.shape[:axis], size, *spec.shape[axis + 1 :])
    first = writer.call("aten.slice.Tensor", x, axis, 0, as_arg(size), shape=shape, dtype=spec.dtype)
    result = scattered(writer, first, dim, index, values, kind)
    return writer.like(spec, "aten.slice_scatter.default", x, result, axis, 0, as_arg(size))


def _placed(
    writer: GraphWriter,
    x: ValueRef,
    places: ValueRef,
    values: ValueRef,
    sizes: tuple[Dim, Dim, Dim, Dim],
    kind: str,
) -> ValueRef:
    """Into ``x`` as [outer, size, run] the values as [outer, count, run]; ``sizes`` are outer, size, count
    and run."""
    outer, size, count, run = sizes
    whole, given = view(writer, x, (outer, size, run)), view(writer, values, (outer, count, run))
    return view(writer, put(writer, whole, [places], given, kind, False), writer.shape(x))


def _scatter(kind: str) -> Rewrite:
    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
        x, index, dim = scatter_arguments(node, writer)
        values = values_of(writer, node.args[3], index, writer.spec(x).dtype)
        return (scattered(writer, x, dim, index, values, kind),)

    return rewrite


def scatter_arguments(node: Node, writer: GraphWriter) -> tuple[ValueRef, ValueRef, int]:
    """The tensor, the indices and the dimension. Raises PlanError for a tensor without dimensions."""
    x, index = tensor(node, 0), unwidened(writer, tensor(node, 2))
    rank = len(writer.shape(x))
    if not rank:
        raise PlanError("{op} of a tensor without dimensions is not covered.", op=node.op)
    return x, index, literal(node.args[1]) % rank


def values_of(writer: GraphWriter, given: object, index: ValueRef, dtype: str) -> ValueRef:
    """What is written, a tensor or a number, in the shape of the indices."""
    chosen = writer.shape(index)
    if not isinstance(given, ValueRef):
        sizes = tuple(map(as_arg, chosen))
        return writer.call("aten.full.default", sizes, _number(given), shape=chosen, dtype=dtype)
    if not writer.shape(given):
        return expanded(writer, given, chosen)
    for axis, size in enumerate(chosen):
        shape = writer.shape(given)
        if extent(size) != extent(shape[axis]):
            result = (*shape[:axis], size, *shape[axis + 1 :])
            given = writer.call("aten.slice.Tensor", given, axis, 0, as_arg(size), shape=result, dtype=dtype)
    return given


def _number(given: object) -> bool | int | float:
    if not isinstance(given, bool | int | float):
        raise PlanError("A value that is written by index is neither a tensor nor a number.")
    return given


def _index_put(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """``x[:, i, j] = values``, or ``+=``: indices of neighbouring dimensions, broadcast to each other."""
    x, given, values = tensor(node, 0), node.args[1], tensor(node, 2)
    if not isinstance(given, tuple):
        raise PlanError("{op} has indices that are not a list.", op=node.op)
    dims = [axis for axis, element in enumerate(given) if isinstance(element, ValueRef)]
    indices = [unwidened(writer, element) for element in given if isinstance(element, ValueRef)]
    if any(writer.spec(index).dtype == "bool" for index in indices):
        raise PlanError("A mask chooses elements: how many is not known before it runs; use where.")
    shape = writer.shape(x)
    if not dims or dims[-1] >= len(shape):
        raise PlanError(
            "{op} has indices of dimensions that a tensor of {count} lacks.", op=node.op, count=len(shape)
        )
    first, behind = dims[0], dims[-1] + 1
    if dims != list(range(first, behind)):
        raise PlanError("{op} with indices of dimensions that are not neighbours is not covered.", op=node.op)
    chosen = broadcast([writer.shape(index) for index in indices])
    spread = [view(writer, expanded(writer, index, chosen), (1, times(chosen))) for index in indices]
    values = expanded(writer, values, (*shape[:first], *chosen, *shape[behind:]))
    outer, count, run = times(shape[:first]), times(chosen), times(shape[behind:])
    kind = "add" if argument(node, 3, "accumulate", False) else LAST
    result = put(
        writer, view(writer, x, (outer, *shape[first:behind], run)), spread,
        view(writer, values, (outer, count, run)), kind, True,
    )  # fmt: skip
    return (view(writer, result, shape),)


def _slices(kind: str) -> Rewrite:
    """Whole slices of a dimension, at indices of its own: index_add and index_copy."""

    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
        x, index, dim = scatter_arguments(node, writer)
        shape, source = writer.shape(x), _scaled(writer, tensor(node, 3), argument(node, 4, "alpha", 1))
        count = writer.shape(index)[0] if writer.shape(index) else 1
        outer, size, run = times(shape[:dim]), shape[dim], times(shape[dim + 1 :])
        whole, given = view(writer, x, (outer, size, run)), view(writer, source, (outer, count, run))
        places = view(writer, index, (1, count))
        return (view(writer, put(writer, whole, [places], given, kind, False), shape),)

    return rewrite


def _scaled(writer: GraphWriter, source: ValueRef, alpha: object) -> ValueRef:
    if alpha == 1:
        return source
    spec = writer.spec(source)
    return writer.like(spec, "aten.mul.Tensor", source, _number(alpha))


def _sorted_cycles(rows: int, size: int, count: float, device: Device) -> float:
    """Cycles of the busiest core that sorts single elements by their places: each range of a row looks at all
    entries of the row and sorts its own."""
    ranges = max(-(-size // _TILE), min(device.parallel // max(rows, 1), -(-size // 64)))
    tile = _TILE_CYCLES + count * _LOOK_CYCLES + count / ranges * _SORT_CYCLES
    return -(-rows * ranges // device.parallel) * tile


REWRITES: Mapping[str, Rewrite] = {
    "aten.index_put.default": _index_put,
    "aten.index_add.default": _slices("add"),
    "aten.index_copy.default": _slices(LAST),
    "aten.scatter.src": _scatter(LAST),
    "aten.scatter.value": _scatter(LAST),
    "aten.scatter_add.default": _scatter("add"),
}


_MOVES = frozenset((*SAME_ORDER, *BROADCASTS, "aten._to_copy.default", "aten.permute.default"))
_FILLS = {"zeros": 0, "zeros_like": 0, "ones": 1, "ones_like": 1}
_GIVEN = frozenset({"full", "full_like"})


def number_everywhere(writer: GraphWriter, ref: ValueRef) -> bool | int | float | None:
    """The number that all elements of a value are, None where they may differ."""
    below = producer(writer, ref)
    while below is not None and below.op in _MOVES:
        operand = next(iter(below.operands()), None)
        below = None if operand is None else producer(writer, operand)
    if below is None or not below.op.startswith("aten."):
        return None
    packet = below.op.split(".")[1]
    given = below.args[1] if packet in _GIVEN else _FILLS.get(packet)
    return given if isinstance(given, bool | int | float) else None
