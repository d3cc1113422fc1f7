"""Layout, method copy: boxes whose rows lie together on both sides go through the unified buffer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

from attrs import frozen

from evokernel_core.compiler.schedule import Listed, Range, Schedule, Shifted, Word
from evokernel_core.compiler.shapes.boxes import Box, BoxAxis, Layout
from evokernel_core.compiler.shapes.sizes import ONE
from evokernel_core.compiler.shapes.sums import UNIT, ZERO, Sum
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Reuse, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, REPEAT_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, at, read_as
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    Expr,
    Int,
    Size,
    Table,
    Var,
    ceil_div,
    compared,
    equal,
    expr,
    greatest,
    is_open,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel, Tensor, TensorList
from evokernel_core.targets.ascendc.ir.traffic import Burst, Tile, grain_of, kernel_us
from evokernel_core.targets.ascendc.kernels.rendering import RAW, parameter
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS

FILL_BYTES = 8192
"""Of each number that boxes are filled with."""
LEAST_AXES = 3
"""Planes of rows of runs."""
LINE_BYTES, MOST_ROWS = 512, most_of("DataCopyPadIn", "blockCount")
"""Runs are cut where the memory's requests begin; rows of one copy."""
_MOST_GAP = 0xFFFFFFFF
"""Bytes between the rows of one copy."""


def loops(box: Box) -> tuple[BoxAxis, ...]:
    """The axes of a box with one that is dense on both sides last."""
    last = box.axes[-1] if box.axes else None
    dense = last is not None and last.to_stride == UNIT and (box.is_fill or last.from_stride == UNIT)
    return box.axes if dense else (*box.axes, BoxAxis(ONE, UNIT, UNIT))


def fills_of(layout: Layout) -> tuple[int, ...]:
    """The numbers that boxes are filled with, as bits."""
    return tuple(dict.fromkeys(box.fill for box in layout.boxes if box.is_fill))


def build(layout: Layout, tile_bytes: int, buffers: int) -> Kernel:
    """The kernel of a legal schedule."""
    width, fills = layout.width, fills_of(layout)
    k = Builder("Copies boxes in tiles. Elements are moved as they are, so only their width matters.")
    names = [parameter(source) for source in layout.inputs]
    sources = k.inputs("sources", names, RAW[width], width) if names else None
    result = k.output("result", "output", RAW[width], width)
    boxes = _Boxes(k, layout, tile_bytes)
    tile = Constant("TILE", tile_bytes // width, "elements")
    fill = Constant("FILL", FILL_BYTES // width, "elements of each number that boxes are filled with")
    held = Buffer("held", RAW[width], width, tile, buffers)
    numbers = Buffer("numbers", RAW[width], width, fill * max(1, len(fills)))
    for place, bits in enumerate(fills):
        target, number = at(numbers, fill * place), bits
        if width == 1:  # two elements each
            target, number = read_as(RAW[2], target), bits * 257
        word = max(width, 2)
        count = FILL_BYTES // word
        repeats = FILL_BYTES // REPEAT_BYTES
        k.call("Duplicate", target, number, count, repeats=repeats, template=RAW[word])
    with k.cores("tile", boxes.tiles) as index:
        mover = _Mover(k, boxes, boxes.piece(index), width)
        if sources is None:
            mover.fill(result, numbers, fill)
        elif not fills:
            mover.copy(sources, result, held)
        else:
            with k.when(boxes["isFill"], "==", 1):
                mover.fill(result, numbers, fill)
            with k.otherwise():
                mover.copy(sources, result, held)
    return k.kernel()


@frozen
class _Piece:
    """A tile: how many planes, rows and elements of a run, where it begins, and elements around its rows."""

    planes: Expr
    rows: Expr
    run: Expr
    source: Expr
    result: Expr
    left: Expr
    right: Expr


class _Boxes:
    """What boxes are: a field of the tiling for all, or a table where they differ. Of an axis its size, how
    far its elements lie apart in the input and in the result, how many of them a tile has, and the tiles."""

    def __init__(self, k: Builder, layout: Layout, tile_bytes: int) -> None:
        self._k, self._boxes, self._width = k, layout.boxes, layout.width
        self._problem: dict[str, Table | Expr] = {}
        self._number: Expr = Int(0)
        self.axes = max(LEAST_AXES, *(len(loops(box)) for box in layout.boxes))
        self.is_padded = any(box.left or box.right for box in layout.boxes)
        axes = [self._whole(box) for box in layout.boxes]
        for i in range(self.axes):
            self._add(f"size{i}", [_exact(Sum.of(of[i].size)) for of in axes])
            self._add(
                f"source{i}", [_exact(of[i].from_stride) for of in axes], "elements in the input", "int64_t"
            )
            self._add(f"result{i}", [_exact(of[i].to_stride) for of in axes], "elements in the result")
        self._add("from", [_exact(box.from_start) for box in layout.boxes], "elements in front of it")
        self._add("to", [_exact(box.to_start) for box in layout.boxes])
        of_fill = {bits: place for place, bits in enumerate(fills_of(layout))}
        of_source = {name: place for place, name in enumerate(layout.inputs)}
        self._add("isFill", [Int(int(box.is_fill)) for box in layout.boxes])
        self._add("number", [Int(of_fill.get(box.fill, 0) if box.is_fill else 0) for box in layout.boxes])
        self._add("source", [Int(of_source.get(box.source, 0)) for box in layout.boxes])
        for name in ("left", "right"):
            self._add(name, [Int(0 if box.is_fill else getattr(box, name)) for box in layout.boxes])
        self._add("padding", [Int(box.fill if box.left or box.right else 0) for box in layout.boxes])
        self._cut([FILL_BYTES if box.is_fill else tile_bytes for box in layout.boxes])
        self.tiles = self._counted()

    def _whole(self, box: Box) -> tuple[BoxAxis, ...]:
        axes = loops(box)
        return (*[BoxAxis(ONE, ZERO, ZERO)] * (self.axes - len(axes)), *axes)

    def _add(self, name: str, values: Sequence[Expr], note: str = "", ctype: str = U64) -> None:
        """Numbers are fields too, so that kernels of other sizes share a class, but for those that say that
        there is nothing to do."""
        first = values[0]
        if any(value != first for value in values):
            self._problem[name] = self._k.table(name, values, note, ctype)
        elif first in (Int(0), Int(1)):
            self._problem[name] = first
        else:
            self._problem[name] = self._k.param(name, first, note, ctype)

    def __getitem__(self, name: str) -> Expr:
        """Of the box at work."""
        return self._of(name, self._number)

    def _of(self, name: str, box: Expr) -> Expr:
        result = self._problem[name]
        return result[box] if isinstance(result, Table) else result

    def _each(self, make: Callable[[Expr], Expr]) -> list[Expr]:
        result = [make(Int(box)) for box in range(len(self._boxes))]
        return [element if is_open(element) else Int(element.evaluate({})) for element in result]

    def _cut(self, most_bytes: Sequence[int]) -> None:
        """As much of a row as fits, then rows, then planes of rows, in parts as equal as possible."""
        width, (plane, row, run) = self._width, range(self.axes - 3, self.axes)
        line, block = LINE_BYTES // width, BLOCK_BYTES // width
        most = [Int(number // width) for number in most_bytes]

        def run_of(box: Expr) -> Expr:
            size, pads = self._of(f"size{run}", box), self._of("left", box) + self._of("right", box)
            fitting = (most[box.evaluate({})] - pads) // line * line
            return Choice(size, ">", fitting, round_up(equal(size, fitting), line), size)

        def pitch(box: Expr) -> Expr:
            length = self._of(f"tile{run}", box) + self._of("left", box) + self._of("right", box)
            return round_up(greatest(length, 1), block)

        def rows_of(box: Expr) -> Expr:
            return _part(self._of(f"size{row}", box), least(most[box.evaluate({})] // pitch(box), MOST_ROWS))

        def planes_of(box: Expr) -> Expr:
            held = pitch(box) * greatest(self._of(f"tile{row}", box), 1)
            return _part(self._of(f"size{plane}", box), most[box.evaluate({})] // held)

        for axis, make in ((run, run_of), (row, rows_of), (plane, planes_of)):
            self._add(f"tile{axis}", self._each(make), "elements of it in one tile")
            number = self._each(partial(self._parts_of, axis))
            self._add(f"tiles{axis}", number)
        for axis in range(self.axes - 3):
            self._problem[f"tile{axis}"], self._problem[f"tiles{axis}"] = Int(1), self._problem[f"size{axis}"]

    def _parts_of(self, axis: int, box: Expr) -> Expr:
        """Tiles of a box along an axis."""
        return ceil_div(self._of(f"size{axis}", box), greatest(self._of(f"tile{axis}", box), 1))

    def _counted(self) -> Expr:
        """Tiles of all boxes; a table has those in front of each."""
        ends: list[Expr] = [Int(0)]
        for box in range(len(self._boxes)):
            number = expr(1)
            for axis in range(self.axes):
                number = number * self._of(f"tiles{axis}", Int(box))
            ends.append(self._k.param(f"end{box}", ends[-1] + number, "tiles of boxes up to this one"))
        self._firsts = self._k.table("firsts", ends[:-1], "tiles of boxes before") if len(ends) > 2 else None
        self._k.require(ends[-1], ">=", 1)
        return ends[-1]

    def piece(self, tile: Var) -> _Piece:
        """Where a tile of its box begins, and how much of each axis it has."""
        k, rest = self._k, self._chosen(tile)
        source, result, counts = self["from"], self["to"], [expr(1)] * self.axes
        begin: Expr = Int(0)
        for i in reversed(range(self.axes)):
            size, part, number = self[f"size{i}"], self[f"tile{i}"], self[f"tiles{i}"]
            counts[i] = size
            if number != Int(1):
                begin = k.let(f"begin{i}", (rest % number if i else rest) * part, U64)
                rest = k.let(f"rest{i}", rest // number, U64) if i else rest
                counts[i] = Int(1) if part == Int(1) else k.let(f"count{i}", least(size - begin, part))
                source, result = source + begin * self[f"source{i}"], result + begin * self[f"result{i}"]
            elif is_open(size):
                counts[i] = k.let(f"count{i}", size)
            if i == self.axes - 1:
                left, right = self["left"], self["right"]
                if self.is_padded and number != Int(1):
                    left = Choice(begin, "==", Int(0), left, Int(0))
                    right = Choice(begin + counts[i], "==", size, right, Int(0))
        left, right = (
            k.let(name, side) if is_open(side) else side for name, side in (("left", left), ("right", right))
        )
        places = k.let("origin", source, U64), k.let("target", result - left, U64)
        planes, rows, run = counts[-3:]
        return _Piece(planes, rows, run, *places, left, right)

    def _chosen(self, tile: Var) -> Expr:
        """The number of a tile in its box: the last that begins in front of it."""
        k, count = self._k, len(self._boxes)
        if self._firsts is None:
            return tile
        for step in (1 << bit for bit in reversed(range((count - 1).bit_length()))):
            later, here = self._number + step, self._number
            choice = Choice(self._firsts[later], "<=", tile, later, here)
            self._number = k.let(f"box{step}", Choice(later, "<", Int(count), choice, here))
        return k.let("inBox", tile - self._firsts[self._number], U64)


def _part(size: Expr, most: Expr) -> Expr:
    return Choice(size, ">", most, equal(size, most), size)


def _exact(value: Sum) -> Expr:
    number = value.constant
    return Size(value) if number is None else Int(number)


_Copy = Callable[..., None]


class _Mover:
    """The copies of a tile, plane by plane."""

    def __init__(self, k: Builder, boxes: _Boxes, piece: _Piece, width: int) -> None:
        self._k, self._boxes, self._piece, self._width = k, boxes, piece, width
        self._block = Constant("BLOCK", BLOCK_BYTES // width, "elements")
        self._plane, self._row = boxes.axes - 3, boxes.axes - 2

    def copy(self, sources: TensorList, result: Tensor, held: Buffer) -> None:
        """Rows lie in the tile from a block of their own on, what is put around them included."""
        k, boxes, piece = self._k, self._boxes, self._piece
        row = k.let("row", piece.left + piece.run + piece.right)
        pitch = k.let("pitch", round_up(row, self._block))
        stride, filler = boxes[f"source{self._row}"], boxes["padding"] if boxes.is_padded else None
        index = k.let("input", boxes["source"])
        with k.loop("plane", piece.planes, U64) as plane:
            first = piece.source + plane * boxes[f"source{self._plane}"]
            place = plane * piece.rows * pitch

            def load(step: Expr, length: Expr, **several: Any) -> None:
                k.load(
                    at(held, place + step * pitch), sources, first + step * stride, length, index=index,
                    before=piece.left, zeros=piece.right, filler=filler, **several,
                )  # fmt: skip

            self._rows(load, piece.run, stride, piece.left + piece.right)
        with k.loop("plane", piece.planes, U64) as plane:
            self._store(result, held, plane, plane * piece.rows * pitch, row, pitch)

    def fill(self, result: Tensor, numbers: Buffer, fill: Constant) -> None:
        """All rows from the same run."""
        with self._k.loop("plane", self._piece.planes, U64) as plane:
            pitch = self._k.let("pitch", round_up(self._piece.run, self._block))
            self._store(result, numbers, plane, self._boxes["number"] * fill, self._piece.run, pitch)

    def _store(self, result: Tensor, source: Buffer, plane: Var, place: Expr, run: Expr, pitch: Expr) -> None:
        stride = self._boxes[f"result{self._row}"]
        first = self._piece.result + plane * self._boxes[f"result{self._plane}"]

        def store(step: Expr, length: Expr, **several: Any) -> None:
            self._k.store(result, first + step * stride, at(source, place + step * pitch), length, **several)

        self._rows(store, run, stride, Int(0))

    def _rows(self, copy: _Copy, run: Expr, stride: Expr, around: Expr) -> None:
        """The rows of a plane: one run where they follow each other in both memories, else one copy, else,
        where they overlap, lead backwards or lie too far apart, row by row."""
        k, count = self._k, self._piece.rows
        if count == Int(1):
            copy(Int(0), run)
            return

        def one_by_one() -> None:
            with k.loop("line", count, U64) as line:
                copy(line, run)

        def apart() -> None:
            far = Int(_MOST_GAP // self._width)
            if isinstance(stride, Int) and stride.value <= 0:
                one_by_one()
            else:
                fits = Choice(stride, "<=", far, stride, Int(0))
                self._either(fits, ">=", run, lambda: copy(Int(0), run, rows=count, apart=stride), one_by_one)

        whole = Choice(run % self._block, "==", Int(0), run, stride + 1)
        whole = whole if around == Int(0) else Choice(around, "==", Int(0), whole, stride + 1)
        self._either(stride, "==", whole, lambda: copy(Int(0), count * run), apart)

    def _either(
        self, left: Expr, sign: str, right: Expr, then: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        """One of two, by what the call knows."""
        if not is_open(left) and not is_open(right):
            (then if compared(left, sign, right, {}) else otherwise)()
            return
        with self._k.when(left, sign, right):
            then()
        with self._k.otherwise():
            otherwise()


_TILES = (4096, 8192, 16384, 24576, 32768, 49152, 65536)


@frozen
class CopySchedule(Schedule):
    """Bytes of a tile, and how many are in flight."""

    family: ClassVar[str] = "layout_copy"
    tile_bytes: Annotated[
        int,
        Word("bytes"),
        Range(BLOCK_BYTES, unit=BLOCK_BYTES),
        Listed("larger tile", "smaller tile", _TILES),
    ] = 32768
    buffers: Annotated[int, BUFFERS, Shifted("one more tile in flight", "one tile in flight less")] = 2


def starts() -> Iterator[CopySchedule]:
    for tile in _TILES:
        yield CopySchedule(tile, 2)
        yield CopySchedule(tile, 4)


def refusal(layout: Layout, schedule: CopySchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    used = schedule.tile_bytes * schedule.buffers + len(fills_of(layout)) * FILL_BYTES
    return "The tiles do not fit the unified buffer." if used > chip.ub_bytes else None


# -- cost -----------------------------------------------------------------------------------------


def estimate_us(layout: Layout, schedule: CopySchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds of a schedule."""
    tiles, held = [], 0.0
    for box in layout.boxes:
        number, tile = _tile(box, layout.width, schedule, sizes)
        tiles.append((number, tile))
        held += number * sum(burst.bytes for burst in (*tile.loads, *tile.stores))
    return kernel_us(tiles, held, (schedule.buffers, schedule.buffers), chip)


def _tile(box: Box, width: int, schedule: CopySchedule, sizes: Mapping[str, int]) -> tuple[float, Tile]:
    axes = [
        (a.size.evaluate(sizes), a.from_stride.evaluate(sizes), a.to_stride.evaluate(sizes))
        for a in loops(box)
    ]
    axes = [(1, 0, 0)] * (LEAST_AXES - len(axes)) + axes
    (planes, _, _), (rows, from_stride, to_stride), (run, _, _) = axes[-3:]
    pads = (box.left + box.right) * width
    most = FILL_BYTES if box.is_fill else schedule.tile_bytes
    part = min(run, max((most - pads) // LINE_BYTES * LINE_BYTES // width, 1))
    parts = math.ceil(run / max(part, 1)) or 1
    length = run * width / parts
    pitch = math.ceil((length + pads) / BLOCK_BYTES) * BLOCK_BYTES or BLOCK_BYTES
    height = min(rows, max(1, min(most // pitch, MOST_ROWS))) or 1
    depth = min(planes, max(1, most // (pitch * height))) or 1
    number = math.prod(size for size, _, _ in axes[:-3]) * parts * (rows / height) * (planes / depth)
    starts = [box.from_start.evaluate(sizes), *(step for _, step, _ in axes[:-1])]
    ends = [box.to_start.evaluate(sizes) - box.left, *(step for _, _, step in axes[:-1])]

    def burst(stride: int, length: float, places: list[int]) -> Burst:
        grain = grain_of(place * width for place in places)
        if stride * width == length and length % BLOCK_BYTES == 0:
            return Burst(depth, 1, height * length, grain)
        if stride * width < length:
            return Burst(depth * height, 1, length, grain)
        return Burst(depth, height, length, grain)

    loads = () if box.is_fill else (burst(from_stride, length, starts),)
    return number, Tile(loads, (burst(to_stride, length + pads, ends),), bound=True)


# -- kernel ---------------------------------------------------------------------------------------


NOTES = (
    Sentence("Rows that lie together on both sides are copied in tiles of {bytes} bytes."),
    Sentence("{buffers} tiles are in flight."),
)
CELL = Descriptor(Dataflow.STREAMED, Reuse.NONE, Split.SEGMENTS, Algorithm.COPY)


def kernel(layout: Layout, schedule: CopySchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return build(layout, schedule.tile_bytes, schedule.buffers)
