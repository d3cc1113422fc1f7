"""Rows longer than the unified buffer: for each row its passes, for each pass its tiles.

The first tile of a pass is loaded while the lanes of the pass before are combined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import frozen

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    Expr,
    Int,
    State,
    Var,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.floats import FLOAT, Arithmetic, AsFloat, Negative
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.kernels.fused import access
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.nest import Nest
from evokernel_core.targets.ascendc.kernels.fused.passes import Accumulation, Pass, in_passes
from evokernel_core.targets.ascendc.kernels.fused.places import row_of
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.text import REDUCTION_NAMES
from evokernel_core.targets.ascendc.lowering.program import Lowerer

_NOTE = """\
Rows longer than the unified buffer: each pass over a row reads its tiles, and keeps a partial result in
every lane, so that the slow reduction runs once a row."""
_ALIGNED = Constant("ALIGNED_ELEMENTS", 128, "of the narrowest float type in 256 bytes")
"""Tiles that start there are copied faster."""


@frozen
class Tile:
    """A tile of a row: its number, its first column and its length."""

    number: Var
    column: Var
    count: Var


class Streamed(Nest):
    """One kernel of rows in passes."""

    def __init__(self, kernel: Kernel, steps: Sequence[Pass], final: TileProgram) -> None:
        super().__init__(kernel, _NOTE)
        self._steps, self._final = steps, final

    def build(self) -> IRKernel:
        k, plan = self.k, self.plan
        rows, self._columns = self.sizes()
        per_core = k.param("rowsPerCore", ceil_div(rows, self.cores()))
        self.loops()
        self.define_lanes()
        self.read_numbers(lambda number: not access.varies(number), lambda _: Int(0))
        with k.cores("row", rows, run=per_core) as row:
            self.read_numbers(access.varies, lambda number: row_of(plan, number, row))
            self._skew = self._skew_of(row)
            self._number = k.let("tiles", ceil_div(self._columns + self._skew, self.tile), U64)
            for step in self._steps:
                self._reduce_row(row, step)
            self._finish_row(row)
        return k.kernel()

    # -- tiles --------------------------------------------------------------------------------

    def _skew_of(self, row: Var) -> Expr:
        """Elements that a row's first tile is shorter by, so that the others are aligned."""
        columns = self.plan.inner.constant
        if columns is not None and columns % _ALIGNED.value == 0:
            return Int(0)
        return self.k.let("skew", row * self._columns % _ALIGNED, U64)

    @contextmanager
    def _tiles(self, row: Var, inputs: Sequence[PlanInput]) -> Iterator[Tile]:
        """The tiles of a row, with what they have of the inputs."""
        k, columns, skew = self.k, self._columns, self._skew
        with k.loop("tile", self._number, U64, preloaded=self.schedule.ahead) as tile:
            start: Expr = tile * self.tile
            end = least((tile + 1) * self.tile - skew, columns)
            if skew != Int(0):
                start = Choice(tile, ">", Int(0), start - skew, Int(0))
            column = k.let("column", start, U64)
            count = k.let("count", end - column)
            for operand in inputs:
                self.load(operand, self._place(operand, row, column), count)
            yield Tile(tile, column, count)

    def _place(self, operand: PlanInput, row: Var, column: Var) -> Expr:
        index = row_of(self.plan, operand, row)
        return index * self._columns + column if operand.inner else index

    # -- passes -------------------------------------------------------------------------------

    def _reduce_row(self, row: Var, step: Pass) -> None:
        """A pass that reduces: its tiles lane by lane, then the lanes."""
        k, program = self.k, step.program
        head = self.selector(self.tile, Int(1))
        self.write(program.prologue, program, head)
        for accumulation in step.accumulations:
            place = self.place(accumulation.accumulator)
            head.call("Duplicate", place, step.start_of(accumulation), count=self.tile)
        with self._tiles(row, self.queued(program)) as tile:
            self.write(program.body, program, self.selector(tile.count, Int(1), tile.number))
        lanes = k.let(f"lanes{step.number}", least(self._columns, self.tile))
        for accumulation in step.accumulations:
            self._combine(step, accumulation, lanes)

    def _combine(self, step: Pass, accumulation: Accumulation, lanes: Expr) -> None:
        """Lanes to the row's number."""
        pair, here = step.pair_of(accumulation), self.place(accumulation.row)
        if pair is not None and not pair.is_moments:
            self._rescale(step.first_of(pair), accumulation, lanes)
        name = REDUCTION_NAMES[accumulation.value.op]
        self.reduce(name, here, self.place(accumulation.accumulator), lanes)
        if pair is not None and pair.is_moments:
            self._centre(step.first_of(pair), accumulation)

    def _rescale(self, largest: Accumulation, total: Accumulation, lanes: Expr) -> None:
        """The sums of lanes to the common maximum."""
        powers, sums = self.place(largest.accumulator), self.place(total.accumulator)
        top = self.k.get(f"{largest.row}Top", self.place(largest.row), 0, FLOAT)
        lane = self.selector(lanes, Int(1))
        lane.call("Adds", powers, powers, Negative(top), count=lanes)
        lane.call("Exp", powers, powers, count=lanes)
        lane.call("Mul", sums, sums, powers, count=lanes)

    def _centre(self, running: Accumulation, squares: Accumulation) -> None:
        """From sums around the shift to the sum, and to squares around the mean."""
        one, first, here = Int(1), self.place(running.row), self.place(squares.row)
        shift = next(state for state in self._shifts() if state.name == f"{squares.row}Shift")
        elements = AsFloat(self._columns)
        total = self.k.get(f"{running.row}Total", first, 0, FLOAT)
        row = self.selector(one, one)
        mean = Arithmetic("/", Negative(total), elements)
        row.call("Axpy", here, first, mean, count=one)
        row.call("Abs", here, here, count=one)
        row.call("Adds", first, first, Arithmetic("*", shift, elements), count=one)

    def _shifts(self) -> Iterator[State]:
        """What the first tiles of rows shift others by."""
        items = (item for step in self._steps for item in step.program.body if item.op == "shift")
        yield from (item.scalar for item in items if isinstance(item.scalar, State))

    def _finish_row(self, row: Var) -> None:
        """What is written: the numbers of a row, then its tiles."""
        final = self._final
        one = Int(1)
        self.write(final.prologue, final, self.selector(one, one))
        for output in self.outputs(Domain.ROW):
            self.store(output, row, one)
        full = self.outputs(Domain.FULL)
        if not full:
            return
        with self._tiles(row, self.queued(final)) as tile:
            self.write(final.body, final, self.selector(tile.count, one))
            for output in full:
                self.store(output, row * self._columns + tile.column, tile.count)


def resources(plan: Plan, schedule: Schedule) -> Kernel:
    """What the kernel of a plan takes."""
    return _in_passes(plan, schedule)[0]


def build(plan: Plan, schedule: Schedule) -> IRKernel:
    """The kernel of a plan."""
    return Streamed(*_in_passes(plan, schedule)).build()


def _in_passes(plan: Plan, schedule: Schedule) -> tuple[Kernel, list[Pass], TileProgram]:
    return in_passes(plan, schedule, Lowerer(plan, False, schedule.eager_rounding))
