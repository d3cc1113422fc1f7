"""What every kernel of a resizing shares: its tensors, the tables of rows, and weighted sums of rows."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.problems.resize import Resize, ResizeAxis
from evokernel_core.compiler.schedule import Range, Scaled, Schedule, Shifted
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, at
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    Constant,
    Expr,
    Index,
    Int,
    Size,
    ceil_div,
    greatest,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Enumerator, Operand, Slice, Tensor
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.resize.axis import Window, window_of
from evokernel_core.targets.ascendc.kernels.resize.tables import LANES, Tables
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

REPEAT = Constant("REPEAT", LANES, "float32 elements")


@frozen
class ResizeSchedule(Schedule):
    """A tile has ``columns`` columns and ``rows`` rows of results, of which ``joined`` rows are stored at a
    time; ``buffers`` tiles are under way. ``phased``: all rows of a phase are weighed together; then so many
    rows of a phase are stored at a time, ``woven`` with those of the others or one phase after another."""

    columns: Annotated[int, Range()]
    rows: Annotated[int, Range(), Scaled("more rows", "fewer rows", least=1)]
    joined: Annotated[
        int, Range(), Scaled("more rows stored at a time", "fewer rows stored at a time", least=1)
    ]
    buffers: Annotated[int, BUFFERS, Shifted("one more tile under way", "one tile less under way")]
    phased: bool = False
    woven: bool = False


def start_of(axis: ResizeAxis, window: Window, run: Expr) -> Expr:
    """Where the part of the source begins that run number ``run`` of results needs."""
    if window.span >= axis.sources:
        return Int(0)
    guess = run * window.length * axis.sources // axis.results
    begin = guess + window.ahead if window.ahead >= 0 else greatest(guess, -window.ahead) - -window.ahead
    return least(begin, axis.sources - window.span)


class Resizing:
    """What both kernels share: the two tensors, the tables of rows, and a tile's rows."""

    def __init__(self, note: str, problem: Resize, schedule: ResizeSchedule) -> None:
        self.k, self.problem, self.schedule = Builder(note), problem, schedule
        self.ctype, self.width = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
        self.x = self.k.input("x", parameter(problem.source), self.ctype, self.width)
        self.y: Tensor = self.k.output("y", "output", self.ctype, self.width)
        self.planes = self.k.param("planes", Size(problem.planes))
        self.k.require(self.planes, ">=", 1)
        self.source_plane = Constant("SOURCE_PLANE", problem.rows.sources * problem.columns.sources)
        self.result_plane = Constant("RESULT_PLANE", problem.rows.results * problem.columns.results)
        self.source_columns = Constant("SOURCE_COLUMNS", problem.columns.sources)
        self.result_columns = Constant("RESULT_COLUMNS", problem.columns.results)
        self.result_rows = Constant("RESULT_ROWS", problem.rows.results)
        self.window, self.alone = window_of(problem.rows, schedule.rows), window_of(problem.rows, 1)
        sparse = self.alone.span * schedule.rows
        self.is_sparse = sparse < self.window.span
        """Whether results are so far apart that each has rows of the source for itself."""
        self.each = Constant("EACH", self.alone.span, "rows of the source that one row of results needs")
        self.span = Constant("SPAN", min(sparse, self.window.span), "rows of the source that a tile needs")
        self.tile_rows = Constant("TILE_ROWS", schedule.rows, "rows of results in a tile")
        self.table = Tables(self.k, "row", problem.rows, problem.rows.results)

    @property
    def row_tables(self) -> tuple[Buffer, ...]:
        """Those that last, of rows."""
        return (
            (self.table.first, self.table.weights) if self.problem.rows.is_weighted else (self.table.first,)
        )

    @property
    def is_float(self) -> bool:
        return self.ctype == "float"

    @property
    def block(self) -> int:
        """Elements of a block in device memory."""
        return BLOCK_BYTES // self.width

    def start_of_tile(self, band: Expr) -> Expr:
        """The first row of the source that a tile needs; not asked for where each result has its own."""
        if self.is_sparse:
            return Int(0)
        return self.k.let("start", start_of(self.problem.rows, self.window, band), U32)

    def load_rows(
        self, target: Slice, place: Expr, rows: tuple[Expr, Expr, Expr], count: Expr, pitch: Expr
    ) -> None:
        """The rows of a tile from ``place`` on, where those of the source begin. ``rows``: the first of the
        results, how many they are, and the first row of the source."""
        k, apart = self.k, self.source_columns
        row, high, start = rows
        if not self.is_sparse:
            k.load(target, self.x, place + start * apart, count, rows=self.span, apart=apart, pitch=pitch)
            return
        with k.loop("own", high) as i:
            first = start_of(self.problem.rows, self.alone, row + i)
            moved = target.behind(i * self.each * pitch)
            k.load(moved, self.x, place + first * apart, count, rows=self.each, apart=apart, pitch=pitch)

    def slot_of(self, tap: int, first: Expr, i: Expr, tile: tuple[Expr, Expr]) -> Expr:
        """The place in a tile of a tap of result number ``i``, whose first one is known. ``tile``: the first
        row of its results, and that of the source."""
        axis, (row, start) = self.problem.rows, tile
        number = first + tap
        if axis.shift:
            number = greatest(number, axis.shift) - axis.shift
        if axis.taps > 1:
            number = least(number, axis.sources - 1)
        if self.is_sparse:
            return i * self.each + number - start_of(axis, self.alone, row + i)
        return number - start

    def first_of(self, row: Expr) -> Expr:
        """The number of the first tap of a result."""
        axis = self.problem.rows
        likely = row * axis.sources // axis.results + axis.shift
        return self.k.get("firstTap", at(self.table.first, row), likely, U32)

    def weigh(
        self, to: Slice, i: Expr, tile: tuple[Expr, Expr], pitch: Index, source: Buffer, count: Expr
    ) -> None:
        """The weighted sum of the rows that result number ``i`` is made of; rows are a pitch apart."""
        k, axis, table = self.k, self.problem.rows, self.table
        repeats, row = ceil_div(count, REPEAT), tile[0] + i
        first = self.first_of(row)
        weights = [
            k.get(f"weight{tap}", at(table.weights, table.length * tap + row), Int(0), "float")
            for tap in range(axis.taps if axis.is_weighted else 0)
        ]
        for tap in range(axis.taps):
            taken = at(source, self.slot_of(tap, first, i, tile) * pitch)
            weight: Operand = Converted(weights[tap], "float") if weights else Converted(Int(1), "float")
            k.call("Axpy" if tap else "Muls", to, taken, weight, count, repeats=repeats)

    def cast(self, to: Place, source: Place, count: Expr, mode: str) -> None:
        rounding = Enumerator(f"RoundMode::CAST_{mode}")
        self.k.call("Cast", to, source, rounding, count, repeats=ceil_div(count, REPEAT))
