"""A task that only moves elements, as boxes: parts of the result, each a strided box of one input or one
number."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping

from attrs import evolve, field, frozen

from evokernel_core.compiler.shapes.access import Index, Reading, Term, quotient
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent
from evokernel_core.compiler.shapes.sums import UNIT, ZERO, Sum, expanded, integer, size
from evokernel_core.compiler.shapes.views import BROADCASTS, SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, ValueRef, literal
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE, Dim
from evokernel_core.hardware.device import SECTOR_BYTES

ORDERS = frozenset({"aten.permute.default", "aten.transpose.int", "aten.t.default"})
PARTS = frozenset({"aten.slice.Tensor", "aten.select.int", "aten.diagonal.default", "aten.unfold.default"})
MADE = frozenset({"aten.full.default", "aten.zeros.default", "aten.ones.default"})
WORK = frozenset({"aten.cat.default", "aten.constant_pad_nd.default", "aten.flip.default"}) | MADE
VIEWS = frozenset((*SAME_ORDER, *BROADCASTS)) | ORDERS | PARTS

MOST_BOXES = 64
_FORMATS = {"float32": "<f", "float16": "<e", "int64": "<q", "int32": "<i", "int16": "<h", "int8": "<b",
            "uint8": "<B", "bool": "<?", "float64": "<d"}  # fmt: skip


@frozen
class BoxAxis:
    """One loop of a box, and how far apart its elements lie in the input and in the result."""

    size: Extent
    from_stride: Sum
    to_stride: Sum

    @property
    def symbols(self) -> frozenset[str]:
        return self.size.symbols | self.from_stride.symbols | self.to_stride.symbols


@frozen
class Box:
    """Part of the result: ``source`` is an input's name, or "" where all elements are ``fill`` (bits).

    Around each row along the last axis the copy puts ``left`` and ``right`` elements ``fill`` more.
    """

    source: str
    axes: tuple[BoxAxis, ...]
    from_start: Sum
    to_start: Sum
    fill: int = 0
    left: int = 0
    right: int = 0

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that places and sizes depend on."""
        axes = frozenset[str]().union(*(axis.symbols for axis in self.axes))
        return self.from_start.symbols | self.to_start.symbols | axes

    @property
    def is_fill(self) -> bool:
        return not self.source


@frozen
class Layout:
    """What a task moves: elements of ``width`` bytes in boxes that make up the result."""

    boxes: tuple[Box, ...]
    width: int
    inputs: tuple[str, ...] = field(default=())


def read_layout(task: KernelTask) -> Layout:
    """The boxes of a task. Raises PlanError with the reason where it does more than move elements."""
    boxes, width = _boxes(task), ITEM_SIZE[task.graph.output_specs()[0].dtype]
    least = {symbol.name: symbol.minimum for symbol in task.symbols}
    merged = tuple(_merged(box) for box in _in_lanes(_absorbed(boxes, width, least), width))
    sources = dict.fromkeys(box.source for box in merged if box.source)
    return Layout(merged, min(width, 4), tuple(sources))


def read_boxes(task: KernelTask) -> tuple[Box, ...]:
    """The boxes of a task in elements of its dtype, each a copy or a fill. Raises PlanError as
    ``read_layout``."""
    return tuple(map(_merged, _boxes(task)))


def number_of(bits: int, dtype: str) -> float | int:
    """The number that the bits of a fill are."""
    size = ITEM_SIZE[dtype]
    if dtype == "bfloat16":
        bits, size, dtype = bits << 16, 4, "float32"
    number: float | int = struct.unpack(_FORMATS[dtype], bits.to_bytes(size, "little"))[0]
    return number


def _boxes(task: KernelTask) -> list[Box]:
    graph = task.graph
    if len(graph.outputs) != 1:
        raise PlanError("A kernel that moves elements has exactly one result.")
    spec = graph.spec(graph.outputs[0])
    for node in graph.nodes:
        if node.op not in VIEWS | WORK:
            raise PlanError("{op} does more than move elements.", op=node.op)
    walk = _BoxWalk(task, graph.nodes_by_name, spec.dtype)
    boxes = list(walk.read(graph.outputs[0], Reading.whole(spec.shape)))
    if len(boxes) > MOST_BOXES:
        raise PlanError(
            "The result consists of {count} parts, more than the {most} of a kernel.",
            count=len(boxes),
            most=MOST_BOXES,
        )
    return boxes


@frozen
class _BoxWalk:
    task: KernelTask
    nodes: Mapping[str, Node]
    dtype: str

    def read(self, ref: ValueRef, reading: Reading) -> Iterator[Box]:
        """The boxes of a value where it is read."""
        spec = self.task.graph.spec(ref)
        if spec.dtype != self.dtype:
            raise PlanError(
                "{name} has dtype {dtype}, but the result {result}.",
                name=ref.name,
                dtype=spec.dtype,
                result=self.dtype,
            )
        node, base = self.nodes.get(ref.name), self._base(ref)
        if base.name not in self.nodes:  # an input, under views that leave its elements where they are
            yield _leaf(base.name, reading, spec.shape)
        elif node is None:
            raise PlanError("{name} is no value of the graph.", name=ref.name)
        elif node.op in MADE:
            yield _box("", reading, fill=_bits(_value(node), self.dtype))
        elif node.op == "aten.cat.default":
            yield from self._cat(node, reading)
        elif node.op == "aten.constant_pad_nd.default":
            yield from self._pad(node, reading)
        else:
            operand = next(iter(node.operands()), None)
            if operand is None and node.op in BROADCASTS and not isinstance(node.args[0], str):
                yield _box("", reading, fill=_bits(node.args[0], self.dtype))  # a number everywhere
                return
            if operand is None:
                raise PlanError("{op} makes elements that no copy can read.", op=node.op)
            shape = self.task.graph.spec(operand).shape
            yield from self.read(operand, _below(node, reading, shape))

    def _base(self, ref: ValueRef) -> ValueRef:
        while ref.name in self.nodes and self.nodes[ref.name].op in SAME_ORDER:
            ref = next(iter(self.nodes[ref.name].operands()))
        return ref

    def _cat(self, node: Node, reading: Reading) -> Iterator[Box]:
        refs, dim = list(node.operands()), _axis(node, 1, 0)
        first = ZERO
        for ref in refs:
            length = self.task.graph.spec(ref).shape[dim]
            part = _within(reading, dim, first, length, node.outputs[0].shape[dim])
            first = first.plus(size(length))
            if part is not None:
                yield from self.read(ref, part)

    def _pad(self, node: Node, reading: Reading) -> Iterator[Box]:
        operand = next(iter(node.operands()))
        inner, outer = self.task.graph.spec(operand).shape, node.outputs[0].shape
        value = node.args[2] if len(node.args) > 2 else dict(node.kwargs).get("value", 0)
        fill = _bits(value, self.dtype)
        pads = list(node.args[1]) if isinstance(node.args[1], tuple) else []
        for dim in range(len(inner) - len(pads) // 2, len(inner)):
            place = 2 * (len(inner) - 1 - dim)
            low, high = pads[place], pads[place + 1]
            if not isinstance(low, int) or not isinstance(high, int):
                raise PlanError("Padding whose size is not a number is not covered.")
            kept = _plus(inner[dim], min(low, 0) + min(high, 0))
            before, behind = max(low, 0), max(high, 0)
            for first, length in ((ZERO, before), (size(kept).plus(Sum.number(before)), behind)):
                if length:
                    strip = _within(reading, dim, first, length, outer[dim])
                    if strip is not None:
                        yield _box("", strip, fill=fill)
            rest = _within(reading, dim, Sum.number(before), kept, outer[dim])
            if rest is None:
                return
            cropped = rest.dims[dim].scaled(1, Sum.number(max(-low, 0)))
            reading = rest.with_dim(dim, cropped)
        yield from self.read(operand, reading)


def _below(node: Node, reading: Reading, shape: tuple[Dim, ...]) -> Reading:
    """The reading of a view's operand, which has ``shape``."""
    result, rank = node.outputs[0].shape, len(shape)
    if node.op in SAME_ORDER:
        return reading.reshaped(result, shape, Sentence("the operand of {name}", name=node.name))
    if node.op in PARTS:
        return _part(node, reading, shape)
    if node.op in BROADCASTS:
        skipped = len(result) - rank
        dims = [Index() if extent(dim).is_one else reading.dims[skipped + i] for i, dim in enumerate(shape)]
        return evolve(reading, dims=tuple(dims))
    if node.op in ORDERS:
        order = dimension_order(node, rank)
        return evolve(reading, dims=tuple(reading.dims[order.index(dim)] for dim in range(rank)))
    return _flipped(node, reading, shape)


def _part(node: Node, reading: Reading, shape: tuple[Dim, ...]) -> Reading:
    """The reading below an operation that keeps a part of its operand."""
    if node.op == "aten.diagonal.default":
        return _diagonal(node, reading, len(shape))
    dim = _axis(node, 1, 0)
    if node.op == "aten.unfold.default":
        inside, apart = reading.dims[-1], literal(node.args[3])
        windows = reading.dims[dim].scaled(apart, ZERO)
        both = Index((*windows.terms, *inside.terms), windows.start.plus(inside.start))
        return evolve(reading, dims=(*reading.dims[:dim], both, *reading.dims[dim + 1 : -1]))
    start = _bound(node, 2, shape[dim])
    if node.op == "aten.select.int":
        return evolve(reading, dims=(*reading.dims[:dim], Index((), start), *reading.dims[dim:]))
    step = node.args[4] if len(node.args) > 4 and node.op == "aten.slice.Tensor" else 1
    if not isinstance(step, int):
        raise PlanError("{op} with a step that is not a number is not covered.", op=node.op)
    return reading.with_dim(dim, reading.dims[dim].scaled(step, start))


def dimension_order(node: Node, rank: int) -> list[int]:
    """For each dimension of the result the operand's dimension."""
    order = list(range(rank))
    if not rank:
        return order
    if node.op == "aten.permute.default":
        return [literal(dim) % rank for dim in node.args[1]]  # type: ignore[union-attr]
    if node.op == "aten.transpose.int":
        first, second = (literal(dim) % rank for dim in node.args[1:3])
        order[first], order[second] = second, first
        return order
    return order[::-1]


def _flipped(node: Node, reading: Reading, shape: tuple[Dim, ...]) -> Reading:
    for arg in node.args[1] if isinstance(node.args[1], tuple) else ():
        dim = literal(arg) % len(shape)
        last = size(shape[dim]).plus(Sum.number(-1))
        reading = reading.with_dim(dim, reading.dims[dim].scaled(-1, last))
    return reading


def _diagonal(node: Node, reading: Reading, rank: int) -> Reading:
    offset, first, second = (
        *(literal(arg) for arg in node.args[1:4]),
        *(0, 0, 1)[len(node.args) - 1 :],
    )
    along = reading.dims[-1]
    dims = list(reading.dims[:-1])
    rows, columns = along.scaled(1, Sum.number(max(-offset, 0))), along.scaled(1, Sum.number(max(offset, 0)))
    for dim, index in sorted(((first % rank, rows), (second % rank, columns)), key=lambda choice: choice[0]):
        dims.insert(dim, index)
    return evolve(reading, dims=tuple(dims))


def _axis(node: Node, position: int, default: int) -> int:
    arg = node.args[position] if len(node.args) > position else dict(node.kwargs).get("dim", default)
    more = {"aten.select.int": 1, "aten.unfold.default": -1}.get(node.op, 0)
    rank = len(node.outputs[0].shape) + more
    return literal(arg) % rank


def _bound(node: Node, position: int, length: Dim) -> Sum:
    """The first index of a slice: counted from the end where negative, inside the operand."""
    arg = node.args[position] if len(node.args) > position else None
    start = ZERO if arg is None else integer(arg)
    if start is None:
        raise PlanError("{op} starts at {arg}, which is not a number.", op=node.op, arg=arg)
    number, whole = start.constant, size(length)
    if number is not None and number < 0:
        start = whole.plus(start)
    last = whole.constant
    number = start.constant
    if last is not None and number is not None:
        start = Sum.number(min(max(number, 0), last))
    return start


def _within(reading: Reading, dim: int, first: Sum, length: Dim, whole: Dim) -> Reading | None:
    """The reading cut to where the index of ``dim`` lies in ``first`` up to ``length`` more, and counted
    from ``first``; None where nothing is left."""
    index = reading.dims[dim]
    wanted = extent(length)
    if wanted.constant == 0:
        return None
    if not index.terms:
        return _single(reading, dim, index, first, size(length))
    head = index.terms[0]
    covers = expanded(reading.atoms[head.atom].size).times(expanded(head.weight)) == size(whole)
    inner, start = wanted.divided_by(head.weight), quotient(first, head.weight)
    if index.start == ZERO and covers and inner is not None and start is not None:
        return reading.cut(head.atom, start, inner)
    if len(index.terms) == 1 and head.weight == ONE:
        low, span, count = (
            first.minus(index.start).constant,
            size(length).constant,
            reading.atoms[head.atom].size,
        )
        if low is not None and span is not None and count.constant is not None:
            begin, end = max(low, 0), min(low + span, count.constant)
            if begin >= end:
                return None
            cut = reading.cut(head.atom, Sum.number(begin), Extent(end - begin))
            return cut.with_dim(dim, Index((Term(head.atom, ONE),), Sum.number(begin - low)))
    raise PlanError("A part of joined or padded tensors is read in a way that does not keep its pieces.")


def _single(reading: Reading, dim: int, index: Index, first: Sum, length: Sum) -> Reading | None:
    place, span = index.start.minus(first).constant, length.constant
    if place is None or span is None:
        raise PlanError("One element of joined tensors is read whose place depends on sizes.")
    return reading.with_dim(dim, Index((), Sum.number(place))) if 0 <= place < span else None


def _plus(dim: Dim, number: int) -> Dim:
    if number == 0:
        return dim
    return dim + number if isinstance(dim, int) else f"{dim} + {number}"


def _value(node: Node) -> Arg:
    if node.op == "aten.full.default":
        return node.args[1]
    return int(node.op == "aten.ones.default")


def _bits(value: Arg, dtype: str) -> int:
    """The number as the bits of an element. Raises PlanError where it is none."""
    if not isinstance(value, int | float):
        raise PlanError("{value} is not a number to fill a tensor with.", value=value)
    if dtype == "bfloat16":
        bits = int.from_bytes(struct.pack("<f", float(value)), "little")
        return bits >> 16 if math.isnan(value) else (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    is_float = dtype in ("float32", "float16", "float64")
    try:
        packed = struct.pack(_FORMATS[dtype], float(value) if is_float else int(value))
    except (OverflowError, ValueError, struct.error) as error:
        raise PlanError("{value} does not fit {dtype}.", value=value, dtype=dtype) from error
    return int.from_bytes(packed, "little")


# -- boxes ----------------------------------------------------------------------------------------


def _leaf(name: str, reading: Reading, shape: tuple[Dim, ...]) -> Box:
    strides: list[Sum] = []
    stride = UNIT
    for dim in reversed(shape):
        strides.insert(0, stride)
        stride = stride.times(size(dim))
    return _box(name, reading, strides)


def _box(name: str, reading: Reading, strides: list[Sum] | None = None, fill: int = 0) -> Box:
    """The box of a reading of an input with ``strides``, or of a number; it runs forwards through the
    result."""
    for atom, item in enumerate(reading.atoms):
        if item.backwards:
            reading = reading.mirrored(atom)
    steps = [ZERO] * len(reading.atoms)
    start = ZERO
    for index, stride in zip(reading.dims, strides or (), strict=strides is not None):
        start = start.plus(index.start.times(stride))
        for term in index.terms:
            steps[term.atom] = steps[term.atom].plus(Sum.of(term.weight).times(stride))
    axes = tuple(
        BoxAxis(atom.size, step, atom.stride) for atom, step in zip(reading.atoms, steps, strict=True)
    )
    return Box(name, axes, start, reading.origin, fill)


def _absorbed(boxes: list[Box], width: int, least: Mapping[str, int]) -> list[Box]:
    """Thin fills beside the rows of a copy become part of it: a copy pads rows by up to 32 bytes. Rows that
    are empty at the least sizes would be no copy, and leave the fill out."""
    kept = list(boxes)
    for box in boxes:
        if box.is_fill or not box.axes or box.axes[-1].from_stride != UNIT:
            continue
        if box.axes[-1].size.evaluate(least) < 1:
            continue
        whole = box
        for fill in [entry for entry in kept if entry.is_fill]:  # each goes to one copy
            wider = _joined(whole, fill, width)
            if wider is not None:
                kept.remove(fill)
                whole = wider
        kept[kept.index(box)] = whole
    return kept


def _joined(box: Box, fill: Box, width: int) -> Box | None:
    """The copy with a fill to its left or right, None where they are not neighbours."""
    same = [(axis.size, axis.to_stride) for axis in box.axes[:-1]]
    count = fill.axes[-1].size.constant if fill.axes else None
    if count is None or count * width > SECTOR_BYTES or width > 4:
        return None
    if [(axis.size, axis.to_stride) for axis in fill.axes[:-1]] != same:
        return None
    if (box.left or box.right) and box.fill != fill.fill:
        return None
    row = expanded(box.axes[-1].size)
    if fill.to_start == box.to_start.plus(row) and not box.right:
        return evolve(box, fill=fill.fill, right=count)
    if box.to_start == fill.to_start.plus(Sum.number(count)) and not box.left:
        return evolve(box, fill=fill.fill, left=count)
    return None


def _in_lanes(boxes: list[Box], width: int) -> Iterator[Box]:
    """Elements of 8 bytes are moved as two of 4."""
    if width < 8:
        yield from boxes
        return
    two = Sum.number(2)
    for box in boxes:
        axes = tuple(BoxAxis(a.size, a.from_stride.times(two), a.to_stride.times(two)) for a in box.axes)
        start, place = box.from_start.times(two), box.to_start.times(two)
        low, high = box.fill & 0xFFFFFFFF, box.fill >> 32
        if not box.is_fill or low == high:
            yield Box(box.source, (*axes, BoxAxis(Extent(2), UNIT, UNIT)), start, place, low)
        else:
            yield Box("", axes, start, place, low)
            yield Box("", axes, start, place.plus(UNIT), high)


def _merged(box: Box) -> Box:
    """Neighbouring axes that both sides run through alike become one; axes of one element go."""
    axes: list[BoxAxis] = []
    kept = [axis for axis in box.axes[:-1] if not axis.size.is_one]
    last = box.axes[-1:] if box.left or box.right else tuple(a for a in box.axes[-1:] if not a.size.is_one)
    for axis in (*kept, *last):
        length = expanded(axis.size)
        above = axes[-1] if axes else None
        if (
            above is not None
            and above.from_stride == axis.from_stride.times(length)
            and above.to_stride == axis.to_stride.times(length)
            and not (axis is box.axes[-1] and (box.left or box.right))
        ):
            axes[-1] = BoxAxis(above.size.times(axis.size), axis.from_stride, axis.to_stride)
        else:
            axes.append(axis)
    return evolve(box, axes=tuple(axes))
