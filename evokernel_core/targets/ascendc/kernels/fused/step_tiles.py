"""Runs of lanes too short to fill a tile: a tile has several of their steps, one below another.

A reduction keeps a partial result for every place of a tile, so that its instructions are as long as the
tile; at the end of a pass the places of a lane are folded together. Where a tile has room for all the steps
of its lanes, they are read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from attrs import frozen

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import whole
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    Expr,
    Int,
    Param,
    Var,
    ceil_div,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.floats import AsFloat, Inverse, Literal, Negative
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Slice
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.lanes import LaneRuns
from evokernel_core.targets.ascendc.kernels.fused.over_lanes import OverLanes, in_whole_blocks
from evokernel_core.targets.ascendc.kernels.fused.passes import COMBINE, Accumulation, Pass
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram
from evokernel_core.targets.ascendc.kernels.fused.selection import Selector
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.fused.steps import (
    MOST_STEPS,
    in_step_passes,
    lanes_per_block,
    whole_resources,
)
from evokernel_core.targets.ascendc.lowering.program import Instruction

_NOTE = (
    "Lanes side by side, of which a tile has several steps, one below another; they are folded at the end."
)
_DENSE_NOTE = (
    "A tile is one run of memory: as many whole steps, of which groups end with a block, are folded."
)
_WHOLE_NOTE = "Lanes side by side, of which a tile has all the steps, one below another: they are read once."
_MOST_STEPS = Constant("MOST_STEPS", MOST_STEPS, "repeats of one instruction")


@frozen
class StepTile:
    """Steps of a tile: its number, the first, how many, and the elements that they take."""

    number: Expr
    step: Expr
    rows: Expr
    count: Expr


class StepTiles(LaneRuns):
    """What kernels with several steps a tile share."""

    def __init__(self, kernel: Kernel, note: str) -> None:
        super().__init__(kernel, note)
        block = lanes_per_block(self.plan)
        self._block = Constant("LANES_PER_BLOCK", block)
        self.step = Constant("STEP", 4 * block, "lanes in 128 bytes")
        self._over = OverLanes(self.k, self.schedule.spread)
        most = Constant("MOST_COLUMNS", (2**32 - 1) // (BLOCK_BYTES // block), "what a copy can step over")
        self._most_columns = most

    def pitch(self) -> Var:
        """Elements from a step to the next in a tile."""
        self.k.require(self.columns, "<=", self._most_columns)
        return self.k.let("pitch", round_up(self.lanes, self._block), U32)

    def load_steps(self, operand: PlanInput, tile: StepTile) -> None:
        """The lanes of an input in the steps of a tile, or those that it has for all steps."""
        queue, tensor = self.storage.queues[operand.name], self.tensors[operand.name]
        if operand.domain is Domain.ROW:
            self.load(operand, self.place_of(operand, Int(0)), self.lanes)
            return
        place = self.place_of(operand, tile.step)
        self.k.load(queue, tensor, place, self.lanes, rows=tile.rows, apart=self.columns)

    def store_steps(self, tile: StepTile) -> None:
        """The outputs of the steps of a tile."""
        for output in self.outputs(Domain.FULL):
            queue, tensor = self.storage.queues[output.name], self.tensors[output.name]
            place = self.target(tile.step)
            self.k.store(tensor, place, queue, self.lanes, rows=tile.rows, apart=self.columns)

    def store_lanes(self) -> None:
        """The outputs with one number a lane."""
        for output in self.outputs(Domain.ROW):
            self.store(output, self.target(), self.lanes)

    def on_tile(self, tile: StepTile, pitch: Expr) -> Selector:
        """What writes the instructions of a tile."""
        selector = self.selector(tile.count, pitch)
        keys = ("Add", "Sub", "Mul", "Div", "Max", "Min")
        columns = {f"{key}Columns": partial(self._with_row, key, tile, pitch) for key in keys}
        selector.special = {
            **columns,
            "expand_columns": partial(self._repeat, tile, pitch),
            "lane_shift": partial(self._shift_lanes, tile, pitch, selector),
            "fold_steps": partial(self._fold_steps, tile, pitch),
        }
        return selector

    def _with_row(
        self, key: str, tile: StepTile, pitch: Expr, _: Instruction, slices: Sequence[Slice]
    ) -> None:
        to, source, row = slices
        self._over.with_row(key, to, source, row, tile.rows, pitch)

    def _repeat(self, tile: StepTile, pitch: Expr, _: Instruction, slices: Sequence[Slice]) -> None:
        to, row = slices
        self._over.repeat(to, row, tile.rows, pitch)

    def _fold_steps(
        self, tile: StepTile, pitch: Expr, instruction: Instruction, slices: Sequence[Slice]
    ) -> None:
        to, source = slices
        self._over.fold_apart(instruction.detail, to, source, self.place("accumulator0"), tile.rows, pitch)

    def _shift_lanes(
        self, tile: StepTile, pitch: Expr, selector: Selector, _: Instruction, slices: Sequence[Slice]
    ) -> None:
        """The mean of a lane's first tile: what is near zero sums without loss."""
        shift, source, running, *_rows = slices
        with self.k.when(tile.number, "==", 0):
            selector.call("Adds", running, source, Literal(0.0), count=tile.count)
            self._over.fold("Add", shift, running, tile.rows, pitch)
            selector.call("Muls", shift, shift, Inverse(AsFloat(tile.rows)), count=pitch)
            selector.call("Duplicate", running, Literal(0.0), count=tile.count)


class Blocked(StepTiles):
    """A kernel that reads the steps of its lanes once for each pass."""

    note = _NOTE

    def __init__(self, kernel: Kernel, passes: Sequence[Pass], final: TileProgram) -> None:
        super().__init__(kernel, self.note)
        self._passes, self._final = passes, final

    def build(self) -> IRKernel:
        with self.units(self.step, lambda: self.storage.row_capacity, self._cut):
            self._pitch = self.pitch()
            for part in self._passes:
                self._reduce_lanes(part)
            self._finish()
        return self.k.kernel()

    def _cut(self) -> None:
        """Fields for the steps of a tile, which are as many in all but the last."""
        k = self.k
        most = k.on_host("mostSteps", least(least(self.steps, self.tile // self.elements), _MOST_STEPS))
        rows = ceil_div(self.steps, ceil_div(self.steps, most))
        self._rows: Param = k.param("stepsPerTile", rows, ctype=U32)
        self._tiles = k.param("tilesOfSteps", ceil_div(self.steps, self._rows))

    @contextmanager
    def _tiles_of(self, program: TileProgram) -> Iterator[StepTile]:
        """The tiles of a unit, with what they have of a program's inputs."""
        k = self.k
        with k.loop("tile", self._tiles, U64, preloaded=self.schedule.ahead) as number:
            step = k.let("step", number * self._rows, U64)
            rows = k.let("rows", least(self.steps - step, self._rows))
            tile = StepTile(number, step, rows, k.let("count", rows * self._pitch))
            for operand in self.queued(program):
                if operand.domain is not Domain.ROW:
                    self.load_steps(operand, tile)
            yield tile

    def _first(self) -> StepTile:
        """The first tile, than which no other has more steps."""
        return StepTile(Int(0), Int(0), self._rows, self._rows * self._pitch)

    def _reduce_lanes(self, part: Pass) -> None:
        """A pass that reduces: its tiles place by place, then the places of each lane."""
        first, program = self._first(), part.program
        head = self.on_tile(first, self._pitch)
        self.write(program.prologue, program, head)
        for one in part.accumulations:
            head.call("Duplicate", self.place(one.accumulator), part.start_of(one), count=first.count)
        with self._tiles_of(program) as tile:
            self.write(program.body, program, self.on_tile(tile, self._pitch))
        for one in part.accumulations:
            self._combine(part, one, head)

    def _combine(self, part: Pass, one: Accumulation, head: Selector) -> None:
        """The places of each lane to its number."""
        key, pair = COMBINE[one.value.op], part.pair_of(one)
        row, places = self.place(one.row), self.place(one.accumulator)
        if pair is not None and not pair.is_moments:
            self._rescale(part.first_of(pair), places, head)
        is_read_again = any(other.first is one.value and not other.is_moments for other in part.pairs)
        self._fold(key, row, places, keep=is_read_again)
        if pair is not None and pair.is_moments:
            self._centre(part.first_of(pair), one, head)

    def _fold(self, key: str, row: Slice, places: Slice, *, keep: bool) -> None:
        fold = self._over.fold_kept if keep else self._over.fold
        fold(key, row, places, self._rows, self._pitch)

    def _rescale(self, largest: Accumulation, sums: Slice, head: Selector) -> None:
        """The sums of a lane to its maximum."""
        powers, count = self.place(largest.accumulator), self._first().count
        self._over.with_row("Sub", powers, powers, self.place(largest.row), self._rows, self._pitch)
        head.call("Exp", powers, powers, count=count)
        head.call("Mul", sums, sums, powers, count=count)

    def _centre(self, running: Accumulation, squares: Accumulation, head: Selector) -> None:
        """From sums around the shift to the sum, and to squares around the mean."""
        first, here, scratch = (self.place(name) for name in (running.row, squares.row, running.accumulator))
        steps, pitch = AsFloat(self.steps), self._pitch
        head.call("Mul", scratch, first, first, count=pitch)
        head.call("Axpy", here, scratch, Negative(Inverse(steps)), count=pitch)
        head.call("Abs", here, here, count=pitch)  # rounding may leave it below zero
        head.call("Axpy", first, self.place(f"{squares.row}Shift"), steps, count=pitch)

    def _finish(self) -> None:
        """What is written: the numbers of lanes, then their steps."""
        final = self._final
        self.write(final.prologue, final, self.on_tile(self._first(), self._pitch))
        self.store_lanes()
        if not self.outputs(Domain.FULL):
            return
        with self._tiles_of(final) as tile:
            self.write(final.body, final, self.on_tile(tile, self._pitch))
            self.store_steps(tile)


class Dense(Blocked):
    """A kernel whose tiles are runs of memory, where a core has all lanes of its steps: a step may begin
    inside a block, and as many as end with one are a group. Where a tile is too small for a group, steps are
    cut into runs of lanes, each of which begins a block."""

    note = _DENSE_NOTE

    def __init__(self, kernel: Kernel, passes: Sequence[Pass], final: TileProgram) -> None:
        super().__init__(kernel, passes, final)
        capacity = self.storage.row_capacity
        self._table = whole(Buffer("laneTable", "int32_t", 4, capacity))
        self._step_inside = whole(Buffer("laneStep", "float", 4, capacity))

    def run_of(self, lanes: Expr) -> Expr:
        k, columns = self.k, self.columns
        group = k.on_host("inWholeBlocks", in_whole_blocks(columns), "steps that end with a block")
        room = k.on_host(
            "room", least(self.storage.row_capacity, self.tile // group), "lanes of a group's steps"
        )
        self._group = k.param("group", Choice(columns, "<=", room, group, Int(0)), "0: lanes are cut", U32)
        return Choice(self._group, ">", Int(0), columns, lanes)

    def _cut(self) -> None:
        k = self.k
        group = k.on_host("stepsOfGroup", greatest(self._group, Int(1)))
        most = k.on_host("mostSteps", self.tile // self.elements // group * group)
        rows = round_up(ceil_div(self.steps, ceil_div(self.steps, most)), group)
        self._rows = k.param("stepsPerTile", rows, ctype=U32)
        self._tiles = k.param("tilesOfSteps", ceil_div(self.steps, self._rows))

    def pitch(self) -> Var:
        self.k.require(self.columns, "<=", self._most_columns)
        apart = Choice(self._group, ">", Int(0), self.columns, round_up(self.lanes, self._block))
        return self.k.let("pitch", apart, U32)

    def define_lanes(self) -> None:
        super().define_lanes()
        self._over.define_places(self._table, least(self.columns, self.storage.row_capacity))

    def load_steps(self, operand: PlanInput, tile: StepTile) -> None:
        with self.k.when(self._group, ">", 0):
            queue, tensor = self.storage.queues[operand.name], self.tensors[operand.name]
            self.k.load(queue, tensor, self.place_of(operand, tile.step), tile.count)
        with self.k.otherwise():
            super().load_steps(operand, tile)

    def _fold(self, key: str, row: Slice, places: Slice, *, keep: bool) -> None:
        group = self.k.let("stepsOfGroup", greatest(self._group, Int(1)))
        inside = self._table, self._step_inside
        self._over.fold_dense(key, row, places, inside, (self._rows, group, self._pitch))


class Whole(StepTiles):
    """A kernel whose tiles have all the steps of their lanes."""

    def build(self) -> IRKernel:
        k, (program,) = self.k, self.kernel.programs
        with self.units(self.step, self._most, lambda: None):
            pitch = self.pitch()
            rows = k.let("rows", self.steps)
            tile = StepTile(Int(0), Int(0), rows, k.let("count", rows * pitch))
            for operand in self.kernel.queued:
                self.load_steps(operand, tile)
            self.write(program.body, program, self.on_tile(tile, pitch))
            self.store_lanes()
            self.store_steps(tile)
        return k.kernel()

    def _most(self) -> Expr:
        """Lanes of which a tile has all steps."""
        k = self.k
        most = k.on_host("mostLanes", self.tile // self.steps // self.step * self.step)
        k.require(most, ">", 0)
        return least(most, self.storage.row_capacity)


def build(plan: Plan, schedule: Schedule) -> IRKernel:
    """The kernel of a plan."""
    if schedule.whole:
        return Whole(whole_resources(plan, schedule), _WHOLE_NOTE).build()
    kind = Dense if schedule.dense else Blocked
    return kind(*in_step_passes(plan, schedule)).build()
