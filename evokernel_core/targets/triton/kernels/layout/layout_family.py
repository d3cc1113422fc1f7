"""Family layout: kernels that move elements without computing: permutations, joins, pads, slices, flips.

The result is a few boxes, each a strided copy of an input or one number. A tile has two axes, the one along
which the result lies in memory and, where that is another one, the one along which the input does, so that
both sides move whole sectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import frozen

from evokernel_core.compiler.shapes.boxes import VIEWS, WORK, Box, BoxAxis, number_of, read_boxes
from evokernel_core.compiler.shapes.sizes import ONE, product
from evokernel_core.compiler.shapes.sums import UNIT, ZERO, Sum
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.device import SECTOR_BYTES
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels import tiles
from evokernel_core.targets.triton.kernels.function import (
    JitFunction,
    both,
    divides,
    expression,
    factor,
    masked,
)
from evokernel_core.targets.triton.kernels.names import output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily, always, on_any_gpu
from evokernel_core.targets.triton.kernels.text import DTYPES, TritonKernel
from evokernel_core.targets.triton.kernels.tiles import TileSchedule
from evokernel_core.targets.triton.kernels.values import literal

_NOTHING = BoxAxis(ONE, ZERO, ZERO)
_SQUARES = ((32, 32, 4), (64, 32, 4), (32, 64, 4), (64, 64, 8), (16, 64, 4), (64, 16, 4))


@frozen
class Copies:
    """The boxes of a result of a dtype."""

    boxes: tuple[Box, ...]
    dtype: str


@frozen
class TiledBox:
    """A box whose ``lines`` and ``columns`` are the axes of a tile; ``outer`` are the others."""

    box: Box
    outer: tuple[BoxAxis, ...]
    lines: BoxAxis
    columns: BoxAxis

    @property
    def is_turned(self) -> bool:
        """Whether input and result lie along different axes."""
        return self.lines.from_stride == UNIT and self.columns.from_stride != UNIT


def tiled(box: Box) -> TiledBox:
    """Which axes of a box are those of a tile."""
    axes = list(box.axes)
    columns = axes.pop() if axes else _NOTHING
    place = next((number for number, axis in enumerate(axes) if axis.from_stride == UNIT), len(axes) - 1)
    if columns.from_stride == UNIT:
        place = len(axes) - 1
    lines = axes.pop(place) if axes else _NOTHING
    return TiledBox(box, tuple(axes), lines, columns)


def _read(task: KernelTask) -> Copies:
    return Copies(read_boxes(task), task.graph.output_specs()[0].dtype)


def _elements(box: Box, sizes: Mapping[str, int]) -> int:
    return math.prod(axis.size.evaluate(sizes) for axis in box.axes)


def _starts(problem: Copies, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[TileSchedule]:
    largest = tiled(max(problem.boxes, key=lambda box: _elements(box, sizes)))
    lines, columns = largest.lines.size.evaluate(sizes), largest.columns.size.evaluate(sizes)
    yield from tiles.first(lines, columns, gpu)
    if any(tiled(box).is_turned for box in problem.boxes):
        for height, width, warps in _SQUARES:
            yield TileSchedule(height, width, warps)


def _programs(box: TiledBox, schedule: TileSchedule, sizes: Mapping[str, int]) -> int:
    outer = math.prod(axis.size.evaluate(sizes) for axis in box.outer)
    lines = tiles.covered(box.lines.size.evaluate(sizes), schedule.lines)
    return outer * lines * tiles.covered(box.columns.size.evaluate(sizes), schedule.columns)


def _cost_us(problem: Copies, schedule: TileSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    size, nbytes, programs = ITEM_SIZE[problem.dtype], 0.0, 0
    for box in map(tiled, problem.boxes):
        count = _elements(box.box, sizes)
        run = schedule.lines if box.is_turned else schedule.columns
        apart = max(1.0, SECTOR_BYTES / (run * size))  # of a sector only what the tile has is used
        written = max(1.0, SECTOR_BYTES / (schedule.columns * size))
        nbytes += count * size * (written + (0 if box.box.is_fill else apart))
        programs += _programs(box, schedule, sizes)
    return tiles.tiled_us(gpu, nbytes, programs, schedule, 4.0)


class _LayoutPrinter:
    def __init__(self, problem: Copies, schedule: TileSchedule, name: str) -> None:
        self.problem, self.schedule, self.function = problem, schedule, JitFunction(name)
        self.boxes = tuple(map(tiled, problem.boxes))

    def text(self, output: str) -> TritonKernel:
        function = self.function
        self.output = function.tensor(output)
        ends = [""]
        for box in self.boxes:
            ends.append(" + ".join(filter(None, (ends[-1], self._grid(box)))))
        for number, box in enumerate(self.boxes):
            if len(self.boxes) == 1:
                self._copy(box, "", "program")
                continue
            begin = function.computed(f"begin_{number}", ends[number]) if number else "0"
            end = function.computed(f"begin_{number + 1}", ends[number + 1])
            with function.block(f"if (program >= {begin}) & (program < {end}):"):
                self._copy(box, f"_{number}", f"(program - {begin})" if number else "program")
        return tiles.kernel(function, self.schedule, ends[-1] or "0")

    def _grid(self, box: TiledBox) -> str:
        """Programs of a box."""
        outer = expression(product(axis.size for axis in box.outer))
        return (
            f"{outer} * {tiles.grid(self.schedule, expression(box.lines.size), expression(box.columns.size))}"
        )

    def _copy(self, box: TiledBox, label: str, program: str) -> None:
        """One tile of a box; ``label`` ends the names of its parameters."""
        function = self.function
        add = function.add
        lines = function.number(f"lines{label}", box.lines.size)
        columns = function.number(f"columns{label}", box.columns.size)
        add(f"rest = {program}", f"tiles = tl.cdiv({columns}, COLUMNS)")
        add("column = rest % tiles * COLUMNS + tl.arange(0, COLUMNS)[None, :]", "rest = rest // tiles")
        add(f"tiles = tl.cdiv({lines}, LINES)")
        add("line = rest % tiles * LINES + tl.arange(0, LINES)[:, None]")
        if box.outer:
            add("rest = (rest // tiles).to(tl.int64)")
        to, source = (
            [self._number(f"to_start{label}", box.box.to_start)],
            [self._number(f"from_start{label}", box.box.from_start)],
        )
        for number, axis in reversed(list(enumerate(box.outer))):
            size = function.number(f"size{label}_{number}", axis.size)
            add(f"index_{number} = rest % {factor(size)}" if number else f"index_{number} = rest")
            if number:
                add(f"rest = rest // {factor(size)}")
            to.append(self._times(f"index_{number}", f"to{label}_{number}", axis.to_stride))
            source.append(self._times(f"index_{number}", f"from{label}_{number}", axis.from_stride))
        for index, axis in (("line", box.lines), ("column", box.columns)):
            to.append(self._times(index, f"to{label}_{index}", axis.to_stride))
            source.append(self._times(index, f"from{label}_{index}", axis.from_stride))
        mask = masked(
            both(
                "" if divides(self.schedule.lines, box.lines.size) else f"line < {lines}",
                "" if divides(self.schedule.columns, box.columns.size) else f"column < {columns}",
            )
        )
        if box.box.is_fill:
            add(f"x = {self._fill(box.box.fill)}")
        else:
            add(f"x = tl.load({self._at(function.tensor(box.box.source), source)}{mask})")
        add(f"tl.store({self._at(self.output, to)}, x{mask})")

    def _fill(self, bits: int) -> str:
        """A tile of one number."""
        number, dtype = number_of(bits, self.problem.dtype), DTYPES[self.problem.dtype]
        if isinstance(number, float):
            cast = "" if self.problem.dtype == "float32" else f".to({dtype})"
            return f"tl.full((LINES, COLUMNS), {literal(number)}, tl.float32){cast}"
        return f"tl.full((LINES, COLUMNS), {int(number)}, {dtype})"

    def _number(self, name: str, number: Sum) -> str:
        """A place or a stride, which may be negative."""
        if number.constant is not None:
            return str(number.constant)
        return self.function.computed(name, " + ".join(map(expression, number.terms)))

    def _times(self, index: str, name: str, stride: Sum) -> str:
        if stride.constant in (0, 1):
            return index if stride.constant else ""
        wide = index if index.startswith("index") else f"{index}.to(tl.int64)"
        if stride.constant is not None and stride.constant < 0:
            return f"-{wide}" if stride.constant == -1 else f"-{wide} * {-stride.constant}"
        return f"{wide} * {factor(self._number(name, stride))}"

    def _at(self, pointer: str, terms: list[str]) -> str:
        """The pointers of a tile: of its whole shape, whatever the axes that one side has."""
        there = [term for term in terms if term not in ("", "0")]
        shaped = any("line" in term for term in there) and any("column" in term for term in there)
        terms = [*there, *([] if shaped else ["(line + column) * 0"])]
        return pointer + "".join(f" - {term[1:]}" if term[0] == "-" else f" + {term}" for term in terms)


def _text(problem: Copies, schedule: TileSchedule, task: KernelTask, name: str) -> TritonKernel:
    (output,) = output_names(task)
    return _LayoutPrinter(problem, schedule, name).text(output)


FAMILY = GpuFamily(
    name="layout",
    ops=dict.fromkeys(sorted(WORK), "kernel") | dict.fromkeys(sorted(VIEWS), "view"),
    read=on_any_gpu(_read),
    schedule_of=TileSchedule.of,
    starts=_starts,
    refusal=tiles.why_not,
    cost_us=_cost_us,
    notes=always((Sentence("Tiles of {lines} x {columns} elements, {warps} warps a program."),)),
    cell=always(Descriptor(Dataflow.BLOCKS, "NONE", Split.TILES, Algorithm.COPY)),
    text_of=_text,
)
