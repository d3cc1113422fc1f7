"""Rows that are read in passes: each keeps a partial result in every lane, and combines the lanes at last."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import ClassVar

from attrs import frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.ir.expr import Expr, Int, State, Var
from evokernel_core.targets.ascendc.ir.floats import FLOAT, Arithmetic, AsFloat, Negative
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.ir.nodes import Slice
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.nest import Nest
from evokernel_core.targets.ascendc.kernels.fused.passes import Accumulation, Pass
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.text import REDUCTION_NAMES


@frozen
class RowTile:
    """A tile of a row: its number, its length, and where outputs have it."""

    number: Var
    count: Var
    place: Expr


class RowPasses(Nest):
    """A kernel of rows in passes; its tiles, its lanes and its elements are a form's own, and so is ``note``,
    what its text says of it."""

    note: ClassVar[str]

    def __init__(self, plan: Plan, schedule: Schedule) -> None:
        kernel, self.steps, self.final = self._in_passes(plan, schedule)
        super().__init__(kernel, self.note)

    @classmethod
    def resources(cls, plan: Plan, schedule: Schedule) -> Kernel:
        """What the kernel of a plan takes."""
        return cls._in_passes(plan, schedule)[0]

    @classmethod
    def kernel_of(cls, plan: Plan, schedule: Schedule) -> IRKernel:
        """The kernel of a plan."""
        return cls(plan, schedule).build()

    @classmethod
    @abstractmethod
    def _in_passes(cls, plan: Plan, schedule: Schedule) -> tuple[Kernel, list[Pass], TileProgram]:
        """What the kernel takes, its passes that reduce, and the program that writes the outputs."""

    @abstractmethod
    def build(self) -> IRKernel: ...

    @abstractmethod
    def tiles(self, row: Var, program: TileProgram) -> AbstractContextManager[RowTile]:
        """The loop over the tiles of a row, with what they have of a program's inputs."""

    @abstractmethod
    def lanes(self) -> Expr:
        """How many lanes of the accumulators are in use."""

    @abstractmethod
    def elements(self) -> Expr:
        """How many elements a row has."""

    def take_row(self, row: Var) -> None:
        """All passes over a row, and what is written of it."""
        for step in self.steps:
            self.reduce_row(row, step)
        self.finish_row(row)

    def reduce_row(self, row: Var, step: Pass) -> None:
        """A pass that reduces: its tiles lane by lane, then the lanes."""
        k, program = self.k, step.program
        head = self.selector(self.tile, Int(1))
        self.write(program.prologue, program, head)
        for accumulation in step.accumulations:
            place = self.place(accumulation.accumulator)
            head.call("Duplicate", place, step.start_of(accumulation), count=self.tile)
        with self.tiles(row, program) as tile:
            self.write(program.body, program, self.selector(tile.count, Int(1), tile.number))
        lanes = k.let(f"lanes{step.number}", self.lanes())
        for accumulation in step.accumulations:
            self._combine(step, accumulation, lanes)
        self.leave(step)

    def numbers_at(self, step: Pass, one: Accumulation) -> Slice:
        """Where the lanes of an accumulation become a number."""
        return self.place(one.row)

    def top_of(self, step: Pass, largest: Accumulation) -> Expr:
        """The common maximum of lanes."""
        return self.k.get(f"{largest.row}Top", self.numbers_at(step, largest), 0, FLOAT)

    def leave(self, step: Pass) -> None:
        """What else a pass leaves."""

    def _combine(self, step: Pass, accumulation: Accumulation, lanes: Expr) -> None:
        """Lanes to the row's number."""
        pair, here = step.pair_of(accumulation), self.numbers_at(step, accumulation)
        if pair is not None and not pair.is_moments:
            self._rescale(step, step.first_of(pair), accumulation, lanes)
        name = REDUCTION_NAMES[accumulation.value.op]
        self.reduce(name, here, self.place(accumulation.accumulator), lanes)
        if pair is not None and pair.is_moments:
            self._centre(step, step.first_of(pair), accumulation)

    def _rescale(self, step: Pass, largest: Accumulation, total: Accumulation, lanes: Expr) -> None:
        """The sums of lanes to the common maximum."""
        powers, sums = self.place(largest.accumulator), self.place(total.accumulator)
        top = self.top_of(step, largest)
        lane = self.selector(lanes, Int(1))
        lane.call("Adds", powers, powers, Negative(top), count=lanes)
        lane.call("Exp", powers, powers, count=lanes)
        lane.call("Mul", sums, sums, powers, count=lanes)

    def _centre(self, step: Pass, running: Accumulation, squares: Accumulation) -> None:
        """From sums around the shift to the sum, and to squares around the mean."""
        one = Int(1)
        first, here = self.numbers_at(step, running), self.numbers_at(step, squares)
        shift = next(state for state in self._shifts() if state.name == f"{squares.row}Shift")
        elements = AsFloat(self.elements())
        total = self.k.get(f"{running.row}Total", first, 0, FLOAT)
        row = self.selector(one, one)
        mean = Arithmetic("/", Negative(total), elements)
        row.call("Axpy", here, first, mean, count=one)
        row.call("Abs", here, here, count=one)  # rounding may leave it below zero
        row.call("Adds", first, first, Arithmetic("*", shift, elements), count=one)

    def _shifts(self) -> Iterator[State]:
        """What the first tiles of rows shift others by."""
        items = (
            statement for step in self.steps for statement in step.program.body if statement.op == "shift"
        )
        yield from (item.scalar for item in items if isinstance(item.scalar, State))

    def finish_row(self, row: Var) -> None:
        """What is written: the numbers of a row, then its tiles."""
        final, one = self.final, Int(1)
        self.write(final.prologue, final, self.selector(one, one))
        for output in self.outputs(Domain.ROW):
            self.store(output, row, one)
        full = self.outputs(Domain.FULL)
        if not full:
            return
        with self.tiles(row, final) as tile:
            self.write(final.body, final, self.selector(tile.count, one))
            for output in full:
                self.store(output, tile.place, tile.count)
