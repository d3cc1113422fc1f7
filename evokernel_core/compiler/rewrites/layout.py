"""Operations that move elements, in terms of slices, joins, flips and expansions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evokernel_core.compiler.ops import INTERLEAVE
from evokernel_core.compiler.rewrites.interleaving import is_interleaved
from evokernel_core.compiler.rewrites.picking import argument, as_arg
from evokernel_core.compiler.rewrites.rotating import rotated
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, SymbolicInt, ValueRef, literal
from evokernel_core.domain.tensor import Dim

_MOST_JOINED = 48
"""Tensors that one kernel joins."""


def _as_dim(arg: Arg) -> Dim:
    if isinstance(arg, SymbolicInt):
        return arg.expression
    if isinstance(arg, int):
        return arg
    raise PlanError("{arg} is not a size.", arg=arg)


def _sum(*dims: Dim) -> Dim:
    numbers = sum(dim for dim in dims if isinstance(dim, int))
    words = [dim for dim in dims if isinstance(dim, str)]
    if not words:
        return numbers
    return " + ".join(words) + (f" + {numbers}" if numbers else "")


def _dims(arg: Arg) -> list[int]:
    return [literal(item) for item in arg] if isinstance(arg, tuple) else [literal(arg)]


def _operand(node: Node) -> ValueRef:
    return next(iter(node.operands()))


def _slice(writer: GraphWriter, x: ValueRef, dim: int, start: Dim, length: Dim) -> ValueRef:
    """``length`` elements of a dimension from ``start`` on."""
    shape, dtype = writer.shape(x), writer.spec(x).dtype
    if extent(length) == extent(shape[dim]):
        return x
    end = as_arg(_sum(start, length))
    result = (*shape[:dim], length, *shape[dim + 1 :])
    return writer.call("aten.slice.Tensor", x, dim, as_arg(start), end, shape=result, dtype=dtype)


def _cat(writer: GraphWriter, parts: Sequence[ValueRef], dim: int, length: Dim) -> ValueRef:
    shape, dtype = writer.shape(parts[0]), writer.spec(parts[0]).dtype
    result = (*shape[:dim], length, *shape[dim + 1 :])
    if len(parts) == 1:
        return parts[0]
    return writer.call("aten.cat.default", tuple(parts), dim, shape=result, dtype=dtype)


def viewed(writer: GraphWriter, x: ValueRef, shape: Sequence[Dim]) -> ValueRef:
    """The same elements in the same order under another shape."""
    sizes = tuple(map(as_arg, shape))
    return writer.call("aten.view.default", x, sizes, shape=tuple(shape), dtype=writer.spec(x).dtype)


def _joined(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """Thin tensors are interleaved; an earlier join of the first ones is taken as it is; more tensors than a
    kernel takes are joined in groups first."""
    refs, shape, dim = list(node.operands()), node.outputs[0].shape, _join_dim(node)
    if is_interleaved(writer, refs, dim):
        spec = node.outputs[0]
        return (writer.like(spec, INTERLEAVE.name, tuple(refs), dim),)
    earlier = _earlier_join(writer, refs, dim)
    if earlier is not None and writer.spec(earlier[0]).dtype == node.outputs[0].dtype:
        whole, held = earlier
        return (_cat(writer, [whole, *refs[held:]], dim, shape[dim]),)
    if len(refs) <= _MOST_JOINED:
        return None
    parts = []
    for first in range(0, len(refs), _MOST_JOINED):
        group = refs[first : first + _MOST_JOINED]
        parts.append(_cat(writer, group, dim, _sum(*(writer.shape(ref)[dim] for ref in group))))
    return (_cat(writer, parts, dim, shape[dim]),)


def _earlier_join(writer: GraphWriter, refs: Sequence[ValueRef], dim: int) -> tuple[ValueRef, int] | None:
    """The longest join of the first of these tensors along a dimension that is there, with how many they are.

    Layers that read all results before them (dense blocks) join them anew each time.
    """
    parts: dict[ValueRef, tuple[ValueRef, ...]] = {}
    for node in writer.nodes:
        if node.op == "aten.cat.default" and _join_dim(node) == dim:
            result = (parts.get(ref, (ref,)) for ref in node.operands())
            parts[ValueRef(node.name)] = tuple(ref for some in result for ref in some)
    given = tuple(refs)
    held = {
        ref: len(some) for ref, some in parts.items() if some == given[: len(some)] and len(some) < len(given)
    }
    return max(held.items(), key=lambda item: item[1], default=None)


def _join_dim(node: Node) -> int:
    return literal(argument(node, 1, "dim", 0)) % len(node.outputs[0].shape)


def _stack(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    shape = node.outputs[0].shape
    dim = literal(argument(node, 1, "dim", 0)) % len(shape)
    product = rotated(writer, list(node.operands())) if dim == len(shape) - 1 else None
    if product is not None:
        return (product,)
    narrow = (*shape[:dim], 1, *shape[dim + 1 :])
    parts = [viewed(writer, ref, narrow) for ref in node.operands()]
    return (_cat(writer, parts, dim, shape[dim]),)


def _split(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """A slice for each result, which is as long as its spec says."""
    x = _operand(node)
    dim = literal(argument(node, 2, "dim", 0)) % len(writer.shape(x))
    start: Dim = 0
    parts = []
    for spec in node.outputs:
        parts.append(_slice(writer, x, dim, start, spec.shape[dim]))
        start = _sum(start, spec.shape[dim])
    return tuple(parts)


def _unbind(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    x = _operand(node)
    dim = literal(argument(node, 1, "dim", 0)) % len(writer.shape(x))
    return tuple(
        writer.like(spec, "aten.select.int", x, dim, index) for index, spec in enumerate(node.outputs)
    )


def _roll(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    x = _operand(node)
    shape = writer.shape(x)
    shifts, dims = _dims(node.args[1]), _dims(argument(node, 2, "dims", ()))
    if not dims:  # of the flattened tensor
        flat = flat_size(shape)
        return (viewed(writer, _rolled(writer, viewed(writer, x, (flat,)), 0, shifts[0]), shape),)
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(writer, x, dim % len(shape), shift)
    return (x,)


def flat_size(shape: Sequence[Dim]) -> Dim:
    """The number of elements as one size."""
    number, words = 1, []
    for dim in shape:
        if isinstance(dim, int):
            number *= dim
        else:
            words.append(dim if dim.isidentifier() else f"({dim})")
    return "*".join([*words, *([str(number)] if number != 1 else [])]) if words else number


def _rolled(writer: GraphWriter, x: ValueRef, dim: int, shift: int) -> ValueRef:
    """The last ``shift`` elements of a dimension in front of the others."""
    length = writer.shape(x)[dim]
    if isinstance(length, int):
        shift = shift % length if length else 0
    if shift == 0:
        return x
    size = writer.task.sizes
    if not isinstance(length, int) and abs(shift) > extent(length).evaluate(size):
        raise PlanError("A roll by more than the whole dimension is covered for sizes that are numbers only.")
    front = shift if shift > 0 else _sum(length, shift)
    rest = _sum(length, -shift) if shift > 0 else -shift
    parts = [_slice(writer, x, dim, rest, front), _slice(writer, x, dim, 0, rest)]
    return _cat(writer, parts, dim, length)


def _repeat(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """An expansion over a dimension in front of each that is repeated."""
    x, shape = _operand(node), node.outputs[0].shape
    given = writer.shape(x)
    padded = (*[1] * (len(shape) - len(given)), *given)
    times = [_as_dim(argument) for argument in node.args[1]] if isinstance(node.args[1], tuple) else []
    apart: list[Dim] = []
    wide: list[Dim] = []
    for count, length in zip(times, padded, strict=True):
        if count != 1:
            apart.append(1)
            wide.append(count)
        apart.append(length)
        wide.append(length)
    if not wide or apart == wide:
        return (viewed(writer, x, shape),)
    expanded = writer.call("aten.expand.default", viewed(writer, x, apart), tuple(map(as_arg, wide)),
                           shape=tuple(wide), dtype=writer.spec(x).dtype)  # fmt: skip
    return (viewed(writer, expanded, shape),)


def _padded(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """Pads that repeat the edge, or mirror what lies inside of it: pieces joined, dimension by dimension."""
    x, pads = _operand(node), _dims(node.args[1])
    mirrored = "reflection" in node.op
    rank = len(node.outputs[0].shape)
    for place in range(0, len(pads), 2):
        dim = rank - 1 - place // 2
        length = writer.shape(x)[dim]
        low, high = pads[place], pads[place + 1]
        x = _cropped(writer, x, dim, min(low, 0), min(high, 0))
        inner = writer.shape(x)[dim]
        parts = [x]
        if low > 0:
            parts.insert(0, _edge(writer, x, dim, 1 if mirrored else 0, low, mirrored))
        if high > 0:
            first = _sum(inner, -high - 1) if mirrored else _sum(inner, -1)
            parts.append(_edge(writer, x, dim, first, high, mirrored))
        x = _cat(writer, parts, dim, _sum(length, low + high))
    return (x,)


def _cropped(writer: GraphWriter, x: ValueRef, dim: int, low: int, high: int) -> ValueRef:
    return _slice(writer, x, dim, -low, _sum(writer.shape(x)[dim], low + high))


def _edge(writer: GraphWriter, x: ValueRef, dim: int, start: Dim, count: int, mirrored: bool) -> ValueRef:
    dtype = writer.spec(x).dtype
    part = _slice(writer, x, dim, start, count if mirrored else 1)
    shape = (*writer.shape(x)[:dim], count, *writer.shape(x)[dim + 1 :])
    if mirrored:
        return writer.call("aten.flip.default", part, (dim,), shape=shape, dtype=dtype)
    sizes = tuple(map(as_arg, shape))
    return writer.call("aten.expand.default", part, sizes, shape=shape, dtype=dtype)


def _whole_and_part(node: Node) -> tuple[ValueRef, ValueRef]:
    whole, part = node.args[:2]
    if not isinstance(whole, ValueRef) or not isinstance(part, ValueRef):
        raise PlanError("{op} writes into a tensor that nothing has filled: start from zeros.", op=node.op)
    return whole, part


def _slice_scatter(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """What lies before, the new part, what lies behind."""
    x, part = _whole_and_part(node)
    shape = writer.shape(x)
    dim = literal(argument(node, 2, "dim", 0)) % len(shape)
    start, step = argument(node, 3, "start", None), literal(argument(node, 5, "step", 1))
    first = 0 if start is None else _as_dim(start)
    if isinstance(first, int) and first < 0:
        first = _sum(shape[dim], first)
    if step != 1:
        return (_interleaved(writer, x, part, dim, first, step),)
    return (_replaced(writer, x, part, dim, first, writer.shape(part)[dim]),)


def _interleaved(
    writer: GraphWriter, x: ValueRef, part: ValueRef, dim: int, first: Dim, step: int
) -> ValueRef:
    """Every ``step``-th element of a dimension from ``first`` on is replaced: those of whole steps are
    columns of a matrix with a row for each step."""
    shape, count = writer.shape(x), writer.shape(part)[dim]
    length = shape[dim]
    if not (isinstance(length, int) and isinstance(count, int) and isinstance(first, int)):
        raise PlanError(
            "Writing every n-th element of a dimension of dynamic size is not covered: join the "
            "parts with torch.stack and flatten them instead."
        )
    whole = count if first + count * step <= length else count - 1
    before, behind = shape[:dim], shape[dim + 1 :]
    pieces = [_slice(writer, x, dim, 0, first)] if first else []
    if whole:
        rows = viewed(writer, _slice(writer, x, dim, first, whole * step), (*before, whole, step, *behind))
        kept = _slice(writer, rows, dim + 1, 1, step - 1)
        column = viewed(writer, _slice(writer, part, dim, 0, whole), (*before, whole, 1, *behind))
        joined = _cat(writer, [column, kept], dim + 1, step)
        pieces.append(viewed(writer, joined, (*before, whole * step, *behind)))
    end = first + whole * step
    if whole < count:
        pieces.append(_slice(writer, part, dim, whole, 1))
        end += 1
    if end < length:
        pieces.append(_slice(writer, x, dim, end, length - end))
    return _cat(writer, pieces, dim, length)


def _select_scatter(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    x, part = _whole_and_part(node)
    shape = writer.shape(x)
    dim, place = literal(node.args[2]) % len(shape), _as_dim(node.args[3])
    if isinstance(place, int) and place < 0:
        place = _sum(shape[dim], place)
    row = viewed(writer, part, (*shape[:dim], 1, *shape[dim + 1 :]))
    return (_replaced(writer, x, row, dim, place, 1),)


def _replaced(writer: GraphWriter, x: ValueRef, part: ValueRef, dim: int, first: Dim, count: Dim) -> ValueRef:
    length = writer.shape(x)[dim]
    end = _sum(first, count)
    pieces = [part]
    if first != 0:
        pieces.insert(0, _slice(writer, x, dim, 0, first))
    both = isinstance(length, int) and isinstance(end, int)
    rest: Dim = int(length) - int(end) if both else f"{length} - ({end})"
    if extent(length) != extent(end):
        pieces.append(_slice(writer, x, dim, end, rest))
    return _cat(writer, pieces, dim, length)


def _as_strided(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """Pooling to one element gives a mean the strides that it has anyway; any other strides depend on
    how PyTorch lays the operand out, which the graph does not say."""
    x, shape = _operand(node), node.outputs[0].shape
    producer = next((node for node in writer.nodes if node.name == x.name), None)
    given = node.args[2] if isinstance(node.args[2], tuple) else ()
    steps = [extent(_as_dim(element)) for element in given]
    offset = argument(node, 3, "storage_offset", None)
    dense = Extent()
    wanted: list[Extent] = []
    for dim in reversed(shape):
        wanted.insert(0, dense)
        dense = dense.times(extent(dim))
    same = [extent(dim) for dim in shape] == [extent(dim) for dim in writer.shape(x)]
    kept = all(a == b or extent(dim).is_one for a, b, dim in zip(steps, wanted, shape, strict=True))
    if producer is None or producer.op != "aten.mean.dim" or offset not in (None, 0) or not (same and kept):
        raise PlanError("as_strided reads memory in a way that depends on the operand's strides.")
    return (x,)


REWRITES: Mapping[str, Rewrite] = {
    "aten.as_strided.default": _as_strided,
    "aten.cat.default": _joined,
    "aten.stack.default": _stack,
    "aten.split_with_sizes.default": _split,
    "aten.split.Tensor": _split,
    "aten.unbind.int": _unbind,
    "aten.roll.default": _roll,
    "aten.repeat.default": _repeat,
    "aten.reflection_pad1d.default": _padded,
    "aten.reflection_pad2d.default": _padded,
    "aten.reflection_pad3d.default": _padded,
    "aten.replication_pad1d.default": _padded,
    "aten.replication_pad2d.default": _padded,
    "aten.replication_pad3d.default": _padded,
    "aten.slice_scatter.default": _slice_scatter,
    "aten.select_scatter.default": _select_scatter,
}
"""Operation to its rewrite."""
