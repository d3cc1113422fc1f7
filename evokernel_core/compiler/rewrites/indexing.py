"""Reading by index, in terms of runs of memory that indices choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evokernel_core.compiler.ops import GATHER, IOTA
from evokernel_core.compiler.rewrites.picking import as_arg, permuted, producer, view
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import extent, times
from evokernel_core.compiler.shapes.views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, SymbolicInt, ValueRef, literal
from evokernel_core.domain.tensor import Dim

_INDICES = frozenset({"int32", "int64"})
_REMAINDER = "aten.remainder.Scalar"


def take(
    writer: GraphWriter,
    source: ValueRef,
    indices: Sequence[ValueRef],
    shape: tuple[Dim, ...],
    count: Dim,
    wraps: bool,
) -> ValueRef:
    """The runs of a source of ``shape`` [outer, size of each index, lanes, run] that indices of
    [outer or 1, count, lanes] choose."""
    whole = view(writer, source, shape)
    result = (shape[0], count, *shape[-2:])
    dtype = writer.spec(source).dtype
    return writer.call(GATHER.name, whole, tuple(indices), wraps, shape=result, dtype=dtype)


def _gather(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    x, index = tensor(node, 0), unwidened(writer, tensor(node, 2))
    shape, chosen = writer.shape(x), writer.shape(index)
    if not shape:
        return (x,)
    dim = literal(node.args[1]) % len(shape)
    x = _cut(writer, x, chosen, dim)
    index, wraps = _without_remainder(writer, index, shape[dim])
    index, behind = without_expansion(writer, index, dim)
    outer, lanes, run = times(chosen[:dim]), times(chosen[dim + 1 : behind]), times(chosen[behind:])
    places = view(writer, index, (outer, chosen[dim], lanes))
    result = take(writer, x, [places], (outer, shape[dim], lanes, run), chosen[dim], wraps)
    return (view(writer, result, chosen),)


def unwidened(writer: GraphWriter, index: ValueRef) -> ValueRef:
    """Indices without their conversion to int64: kernels read those of 32 bits as they are."""
    below = producer(writer, index)
    if below is None or below.op != "aten._to_copy.default":
        return index
    source = next(iter(below.operands()))
    return source if writer.spec(source).dtype == "int32" else index


def tensor(node: Node, position: int) -> ValueRef:
    """A tensor argument."""
    return tensor_of(node, node.args[position])


def tensor_of(node: Node, value: Arg) -> ValueRef:
    """An argument of a node that has to be a tensor."""
    if not isinstance(value, ValueRef):
        raise PlanError("{op} is called on something that is not a tensor.", op=node.op)
    return value


def _cut(writer: GraphWriter, x: ValueRef, chosen: tuple[Dim, ...], dim: int) -> ValueRef:
    """The part of ``x`` that indices of a smaller shape can reach."""
    for axis, size in enumerate(chosen):
        shape = writer.shape(x)
        if axis != dim and extent(size) != extent(shape[axis]):
            result = (*shape[:axis], size, *shape[axis + 1 :])
            dtype = writer.spec(x).dtype
            x = writer.call("aten.slice.Tensor", x, axis, 0, as_arg(size), shape=result, dtype=dtype)
    return x


def _without_remainder(writer: GraphWriter, index: ValueRef, size: Dim) -> tuple[ValueRef, bool]:
    """The indices of which only the remainder by the dimension's size is taken, and whether that is so:
    negative ones then count from the end."""
    below = producer(writer, index)
    if below is None or below.op != _REMAINDER or not isinstance(below.args[0], ValueRef):
        return index, False
    divisor = below.args[1]
    divisor = divisor.expression if isinstance(divisor, SymbolicInt) else divisor
    if not isinstance(divisor, int | str) or extent(divisor) != extent(size):
        return index, False
    return below.args[0], True


def without_expansion(writer: GraphWriter, index: ValueRef, dim: int) -> tuple[ValueRef, int]:
    """Indices that are the same along the last dimensions, without those; and where those begin."""
    rank, below = len(writer.shape(index)), producer(writer, index)
    if below is None or below.op != "aten.expand.default" or not isinstance(below.args[0], ValueRef):
        return index, rank
    shape = writer.shape(below.args[0])
    if len(shape) != rank:
        return index, rank
    behind = rank
    while behind > dim + 1 and extent(shape[behind - 1]).is_one:
        behind -= 1
    kept = writer.shape(index)[:behind]
    if [*map(extent, shape[:behind])] != [*map(extent, kept)]:
        return index, rank
    return below.args[0], behind


def places_of(writer: GraphWriter, index: ValueRef, dim: int) -> tuple[ValueRef, int]:
    """Indices along ``dim`` as [outer or 1, count], and where the dimensions begin along which they are the
    same: where that is right behind ``dim``, whole runs move with one index."""
    chosen = writer.shape(index)
    bare, behind = _without_repeats(writer, index, dim), dim + 1
    if bare is None:
        bare, behind = without_expansion(writer, index, dim)
    if behind != dim + 1:
        return index, behind
    leading = times(writer.shape(bare)[:dim])
    return view(writer, bare, (leading, chosen[dim])), behind


def _without_repeats(writer: GraphWriter, index: ValueRef, dim: int) -> ValueRef | None:
    """Indices that are the same along all other dimensions, without those; None for any others."""
    below = producer(writer, index)
    if below is None or below.op != "aten.expand.default" or not isinstance(below.args[0], ValueRef):
        return None
    shape, chosen = writer.shape(below.args[0]), writer.shape(index)
    whole = (1,) * (len(chosen) - len(shape)) + tuple(shape)
    sizes = (*whole[:dim], *whole[dim + 1 :])
    if extent(whole[dim]) != extent(chosen[dim]) or not all(extent(size).is_one for size in sizes):
        return None
    return view(writer, below.args[0], whole)


def _index_select(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    x, index = tensor(node, 0), tensor(node, 2)
    shape = writer.shape(x)
    if not shape:
        return (x,)
    dim = literal(node.args[1]) % len(shape)
    return (_along(writer, x, dim, [unwidened(writer, index)], False),)


def _embedding(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    return (_along(writer, tensor(node, 0), 0, [unwidened(writer, tensor(node, 1))], False),)


def _index(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """``x[:, i, j]``: indices of neighbouring dimensions, broadcast against each other."""
    x, given = tensor(node, 0), node.args[1]
    if not isinstance(given, tuple):
        raise PlanError("{op} has indices that are not a list.", op=node.op)
    places = [axis for axis, element in enumerate(given) if element is not None]
    if any(_dtype(writer, given[axis]) not in _INDICES for axis in places):
        raise PlanError("A mask chooses elements: how many is not known before it runs; use where.")
    rank = len(node.outputs[0].shape) - (len(writer.shape(x)) - len(places))
    if places and places != list(range(places[0], places[-1] + 1)):  # what they choose comes first then
        others = (axis for axis in range(len(writer.shape(x))) if axis not in places)
        x = permuted(writer, x, (*places, *others))
        given, places = tuple(given[axis] for axis in places), list(range(len(places)))
    first = places[0] if places else 0
    shape = node.outputs[0].shape[first : first + rank]
    whole = next((axis for axis in places if _is_taken_whole(writer, x, axis, given, rank)), None)
    if whole is not None and len(places) > 1:
        return (_beside_whole(node, writer, x, given, whole, first, rank),)
    indices: list[ValueRef] = []
    for axis in reversed(places):
        number = _known(writer, given[axis])
        if number is None:
            index = unwidened(writer, tensor_of(node, given[axis]))
            indices.insert(0, expanded(writer, index, shape))
        else:
            x = _select(writer, x, axis, number)
    if not indices:  # every index is a number: a part of x, of which the shape alone differs
        return (view(writer, x, node.outputs[0].shape),)
    return (_along(writer, x, first, indices, True),)


def _is_taken_whole(writer: GraphWriter, x: ValueRef, axis: int, given: tuple[Arg, ...], rank: int) -> bool:
    """Whether an index is every place of its dimension in order, along a dimension of the result that no
    other index has."""
    index = given[axis]
    if not isinstance(index, ValueRef):
        return False
    place, below, source = _own_dim(writer, index, rank), producer(writer, index), index
    while below is not None and below.op in (*SAME_ORDER, "aten._to_copy.default"):
        source = next(iter(below.operands()))
        below = producer(writer, source)
    size = extent(writer.shape(x)[axis])
    if place is None or below is None or below.op != IOTA.name or below.args[:2] != (0, 1):
        return False
    others = [other for other in given if isinstance(other, ValueRef) and other != index]
    alone = all(extent(_sized(writer, other, rank)[place]).is_one for other in others)
    return alone and extent(writer.shape(source)[0]) == size and not size.is_one


def _sized(writer: GraphWriter, index: ValueRef, rank: int) -> tuple[Dim, ...]:
    shape = writer.shape(index)
    return (*(1 for _ in range(rank - len(shape))), *shape)


def _own_dim(writer: GraphWriter, index: ValueRef, rank: int) -> int | None:
    """The one dimension of the result along which an index has more than one element."""
    long = [dim for dim, size in enumerate(_sized(writer, index, rank)) if not extent(size).is_one]
    return long[0] if len(long) == 1 else None


def _beside_whole(
    node: Node, writer: GraphWriter, x: ValueRef, given: tuple[Arg, ...], axis: int, first: int, rank: int
) -> ValueRef:
    """What the other indices choose, each a row of the dimension that is taken whole: it comes last, and then
    to its place."""
    place = _own_dim(writer, tensor_of(node, given[axis]), rank)
    assert place is not None
    axes = [dim for dim in range(len(writer.shape(x))) if dim != axis]
    rows = permuted(writer, x, (*axes, axis))
    shape, dtype = list(node.outputs[0].shape), node.outputs[0].dtype
    last = shape.pop(first + place)
    indices = []
    for other in (element for dim, element in enumerate(given) if dim != axis):
        if isinstance(other, ValueRef):
            sized = _sized(writer, other, rank)
            other = view(writer, other, (*sized[:place], *sized[place + 1 :]))  # noqa: PLW2901
        indices.append(other)
    made = writer.call(node.op, rows, tuple(indices), shape=(*shape, last), dtype=dtype)
    back = list(range(len(shape)))
    back.insert(first + place, len(shape))
    return permuted(writer, made, back)


def _dtype(writer: GraphWriter, index: Arg) -> str:
    if isinstance(index, ValueRef):
        return writer.spec(index).dtype
    return "bool" if isinstance(index, bool) else "int64"


def _known(writer: GraphWriter, index: Arg) -> int | None:
    """The number that all of an index is, as in ``x[:, [-1]]``; None where it is a tensor of any."""
    if isinstance(index, int) and not isinstance(index, bool):
        return index
    below = producer(writer, index) if isinstance(index, ValueRef) else None
    number = below.args[1] if below is not None and below.op == "aten.full.default" else None
    ones = below is not None and all(extent(size).is_one for size in below.outputs[0].shape)
    return number if ones and isinstance(number, int) and not isinstance(number, bool) else None


def _select(writer: GraphWriter, x: ValueRef, dim: int, number: int) -> ValueRef:
    """The part of ``x`` at one place of a dimension, without that dimension."""
    shape = writer.shape(x)
    left = (*shape[:dim], *shape[dim + 1 :])
    return writer.call("aten.select.int", x, dim, number, shape=left, dtype=writer.spec(x).dtype)


def expanded(writer: GraphWriter, index: ValueRef, shape: tuple[Dim, ...]) -> ValueRef:
    """A value broadcast to a shape."""
    if [*map(extent, writer.shape(index))] == [*map(extent, shape)]:
        return index
    sizes = tuple(map(as_arg, shape))
    return writer.call("aten.expand.default", index, sizes, shape=shape, dtype=writer.spec(index).dtype)


def _along(writer: GraphWriter, x: ValueRef, dim: int, indices: Sequence[ValueRef], wraps: bool) -> ValueRef:
    """``x`` with the dimensions from ``dim`` on replaced by those of the indices."""
    shape, chosen = writer.shape(x), writer.shape(indices[0])
    behind = dim + len(indices)
    count = times(chosen)
    places = [view(writer, index, (1, count, 1)) for index in indices]
    whole = (times(shape[:dim]), *shape[dim:behind], 1, times(shape[behind:]))
    result = take(writer, x, places, whole, count, wraps)
    return view(writer, result, (*shape[:dim], *chosen, *shape[behind:]))


REWRITES: Mapping[str, Rewrite] = {
    "aten.embedding.default": _embedding,
    "aten.gather.default": _gather,
    "aten.index.Tensor": _index,
    "aten.index_select.default": _index_select,
    "aten._unsafe_index.Tensor": _index,
    _REMAINDER: lambda node, writer: None,  # what reads by index understands it
}
