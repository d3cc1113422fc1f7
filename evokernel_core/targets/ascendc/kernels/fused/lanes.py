"""Reductions whose lanes lie side by side and are kept: runs of lanes, their passes, and the steps of each.

A unit of work is a run of lanes of one outer iteration. Its steps are read one after another, and every
reduction accumulates lane by lane; so no lane ever meets another, and a value after a reduction is a tensor
as long as a tile. With a further reduction, or full outputs, the steps are read once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.compiler.shapes.sizes import product
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Constant,
    Expr,
    Int,
    Size,
    Var,
    ceil_div,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.columnwise import LanePass, in_passes
from evokernel_core.targets.ascendc.kernels.fused.nest import Nest
from evokernel_core.targets.ascendc.kernels.fused.places import among
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule

_NOTE = "Lanes side by side: a core has runs of them, whose steps are read one after another in each pass."
_STEP = Constant("STEP", 128, "lanes, so that copies are aligned")


class LaneRuns(Nest):
    """A kernel whose cores have runs of lanes."""

    @contextmanager
    def units(self, step: Constant, most: Callable[[], Expr], more: Callable[[], None]) -> Iterator[None]:
        """The loop over runs of at most ``most()`` lanes, cut so that every core gets work, in whole steps of
        lanes; ``more()`` adds fields of the tiling."""
        k, plan = self.k, self.plan
        self.steps = k.param("steps", Size(plan.mid))
        self.columns = k.param("columns", Size(plan.inner))
        outer = k.on_host("outerCount", Size(product(plan.outer)))
        for size in (self.steps, self.columns, outer):
            k.require(size, ">=", 1)
        cores = self.cores()
        share = k.on_host("share", round_up(ceil_div(outer * self.columns, cores), step))
        parts = ceil_div(self.columns, least(share, most()))
        run = self.run_of(round_up(ceil_div(self.columns, parts), step))
        self.elements = k.param("chunkElements", run)
        chunks = k.param("chunks", ceil_div(self.columns, self.elements))
        units = k.param("units", outer * chunks)
        per_core = k.param("unitsPerCore", ceil_div(units, cores))
        more()
        self.loops()
        self.define_lanes()
        self.read_numbers(lambda one: not one.mid and not any(one.outer), lambda _: Int(0))
        with k.cores("unit", units, run=per_core) as unit:
            self.outer = k.let("outer", unit // chunks, U64)
            self.column = k.let("column", unit % chunks * self.elements, U64)
            self.lanes = k.let("lanes", least(self.columns - self.column, self.elements))
            self.read_numbers(
                lambda one: not one.mid and any(one.outer), lambda one: self.place_of(one, Int(0))
            )
            for operand in self.kernel.held:
                self.load(operand, self.place_of(operand, Int(0)), self.lanes)
            yield

    def run_of(self, lanes: Expr) -> Expr:
        """How many lanes a run has, of which cores would have so many."""
        return lanes

    def place_of(self, operand: PlanInput, step: Expr) -> Expr:
        """Where the unit's lanes of an input begin, at a step."""
        index = among(self.plan, operand.outer, self.outer) if any(operand.outer) else Int(0)
        index = index * self.steps + step if operand.mid else index
        return index * self.columns + self.column if operand.inner else index

    def target(self, step: Expr | None = None) -> Expr:
        """Where the unit's lanes of an output begin, at a step where it has steps."""
        index = self.outer if step is None else self.outer * self.steps + step
        return index * self.columns + self.column


class Lanes(LaneRuns):
    """One kernel with one step a tile."""

    def __init__(self, kernel: Kernel, steps: list[LanePass], final: TileProgram) -> None:
        super().__init__(kernel, _NOTE)
        self._passes, self._final = steps, final

    def build(self) -> IRKernel:
        with self.units(_STEP, lambda: self.tile, lambda: None):
            for part in self._passes:
                self._accumulate(part)
            self._finish()
        return self.k.kernel()

    @contextmanager
    def _steps_of(self, program: TileProgram) -> Iterator[Var]:
        """The steps of a unit, with what they have of a program's inputs."""
        k = self.k
        with k.loop("step", self.steps, U64, preloaded=self.schedule.ahead) as step:
            for operand in self.queued(program):
                if operand.domain is not Domain.ROW:
                    self.load(operand, self.place_of(operand, step), self.lanes)
            self.read_numbers(
                lambda one: one.mid and one in program.inputs, lambda one: self.place_of(one, step)
            )
            yield step

    # -- passes -------------------------------------------------------------------------------

    def _accumulate(self, part: LanePass) -> None:
        """A pass that reduces lane by lane."""
        selector = self.selector(self.lanes, self.lanes)
        self.write(part.program.prologue, part.program, selector)
        for target, start in part.starts:
            selector.call("Duplicate", self.place(target), start, count=self.lanes)
        with self._steps_of(part.program):
            self.write(part.program.body, part.program, selector)

    def _finish(self) -> None:
        """What is written: the numbers of lanes, then their steps."""
        final, selector = self._final, self.selector(self.lanes, self.lanes)
        self.write(final.prologue, final, selector)
        for output in self.outputs(Domain.ROW):
            self.store(output, self.target(), self.lanes)
        full = self.outputs(Domain.FULL)
        if not full:
            return
        with self._steps_of(final) as step:
            self.write(final.body, final, selector)
            for output in full:
                self.store(output, self.target(step), self.lanes)


def build(plan: Plan, schedule: Schedule) -> IRKernel:
    """The kernel of a plan."""
    return Lanes(*in_passes(plan, schedule)).build()
