"""Reductions whose lanes lie side by side and are kept: runs of lanes, their passes, and the steps of each.

A unit of work is a run of lanes of one outer iteration. Its steps are read one after another, and every
reduction accumulates lane by lane; so no lane ever meets another, and a value after a reduction is a tensor
as long as a tile. With a further reduction, or full outputs, the steps are read once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.compiler.shapes.sizes import product
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Constant,
    Expr,
    Int,
    Param,
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


class Lanes(Nest):
    """One kernel of runs of lanes."""

    def __init__(self, kernel: Kernel, steps: list[LanePass], final: TileProgram) -> None:
        super().__init__(kernel, _NOTE)
        self._passes, self._final = steps, final

    def build(self) -> IRKernel:
        k = self.k
        units, per_core, chunks, elements = self._runs()
        self.loops()
        self.define_lanes()
        self.read_numbers(lambda one: not one.mid and not any(one.outer), lambda _: Int(0))
        with k.cores("unit", units, run=per_core) as unit:
            self._outer = k.let("outer", unit // chunks, U64)
            self._column = k.let("column", unit % chunks * elements, U64)
            self._count = k.let("count", least(self._columns - self._column, elements))
            self.read_numbers(
                lambda one: not one.mid and any(one.outer), lambda one: self._place(one, Int(0))
            )
            for operand in self.kernel.held:
                self.load(operand, self._place(operand, Int(0)), self._count)
            for part in self._passes:
                self._accumulate(part)
            self._finish()
        return k.kernel()

    def _runs(self) -> tuple[Param, Param, Param, Param]:
        """Fields for how lanes are cut into equal runs, small enough that every core gets work."""
        k, plan = self.k, self.plan
        self._steps = k.param("steps", Size(plan.mid))
        self._columns = k.param("columns", Size(plan.inner))
        outer = k.on_host("outerCount", Size(product(plan.outer)))
        for size in (self._steps, self._columns, outer):
            k.require(size, ">=", 1)
        cores = self.cores()
        share = k.on_host("share", round_up(ceil_div(outer * self._columns, cores), _STEP))
        parts = ceil_div(self._columns, least(share, self.tile))
        elements = k.param("chunkElements", round_up(ceil_div(self._columns, parts), _STEP))
        chunks = k.param("chunks", ceil_div(self._columns, elements))
        units = k.param("units", outer * chunks)
        return units, k.param("unitsPerCore", ceil_div(units, cores)), chunks, elements

    # -- data ---------------------------------------------------------------------------------

    def _place(self, operand: PlanInput, step: Expr) -> Expr:
        """Where the unit's lanes of an input begin, at a step."""
        index = among(self.plan, operand.outer, self._outer) if any(operand.outer) else Int(0)
        index = index * self._steps + step if operand.mid else index
        return index * self._columns + self._column if operand.inner else index

    @contextmanager
    def _steps_of(self, program: TileProgram) -> Iterator[Var]:
        """The steps of a unit, with what they have of a program's inputs."""
        k = self.k
        with k.loop("step", self._steps, U64, preloaded=self.schedule.ahead) as step:
            for operand in self.queued(program):
                if operand.domain is not Domain.ROW:
                    self.load(operand, self._place(operand, step), self._count)
            self.read_numbers(lambda one: one.mid, lambda one: self._place(one, step))
            yield step

    # -- passes -------------------------------------------------------------------------------

    def _accumulate(self, part: LanePass) -> None:
        """A pass that reduces lane by lane."""
        selector = self.selector(self._count, self._count)
        self.write(part.program.prologue, part.program, selector)
        for target, start in part.starts:
            selector.call("Duplicate", self.place(target), start, count=self._count)
        with self._steps_of(part.program):
            self.write(part.program.body, part.program, selector)

    def _finish(self) -> None:
        """What is written: the numbers of lanes, then their steps."""
        final, selector = self._final, self.selector(self._count, self._count)
        self.write(final.prologue, final, selector)
        for output in self.outputs(Domain.ROW):
            self.store(output, self._outer * self._columns + self._column, self._count)
        full = self.outputs(Domain.FULL)
        if not full:
            return
        with self._steps_of(final) as step:
            self.write(final.body, final, selector)
            for output in full:
                row = self._outer * self._steps + step
                self.store(output, row * self._columns + self._column, self._count)


def build(plan: Plan, schedule: Schedule) -> IRKernel:
    """The kernel of a plan."""
    return Lanes(*in_passes(plan, schedule)).build()
