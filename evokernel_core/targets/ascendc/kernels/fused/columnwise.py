"""Passes of reductions over leading or middle dimensions: the lanes behind them are kept."""

from __future__ import annotations

from attrs import define, frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain, Operand, Value
from evokernel_core.targets.ascendc.ir.expr import Expr
from evokernel_core.targets.ascendc.ir.floats import Literal
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.pairs import Levels
from evokernel_core.targets.ascendc.kernels.fused.passes import COMBINE, IDENTITY, needed_now
from evokernel_core.targets.ascendc.kernels.fused.pieces import PieceLowerer
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram, finish
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.lowering.program import Virtual, used_inputs


@define
class LaneLowerer(PieceLowerer):
    """Row values are tensors whose lanes lie beside those of the tile: nothing is ever spread."""

    def at(self, operand: Operand, domain: Domain) -> Virtual:
        scalar = self.scalar(operand)
        if scalar is not None:
            return self._fill(scalar, domain)
        assert isinstance(operand, Value)
        return self.tensor(operand)

    def _usable_scalar(self, operand: Operand, domain: Domain) -> Expr | None:
        return self.scalar(operand)

    def _narrow(self, operand: Operand) -> Virtual | None:
        return None

    def _mask(self, value: Operand, domain: Domain) -> Virtual:
        assert isinstance(value, Value)
        return self.tensor(value)


@frozen
class LanePass:
    """One reading of the steps: what it computes, and the row tensors that it accumulates into."""

    program: TileProgram
    starts: tuple[tuple[str, Literal], ...]
    number: int


def resources(plan: Plan, schedule: Schedule) -> Kernel:
    """What the kernel of a columnwise plan takes."""
    return in_passes(plan, schedule)[0]


def in_passes(plan: Plan, schedule: Schedule) -> tuple[Kernel, list[LanePass], TileProgram]:
    """What the kernel takes, the passes that reduce, and the program that writes the outputs."""
    lowerer = LaneLowerer(plan, packed=True, eager=schedule.eager_rounding)
    levels = Levels(())
    depth = max(levels.of(value) for value in plan.reductions)
    steps = [_reducing_pass(plan, lowerer, levels, level) for level in range(1, depth + 1)]
    lowerer.forget_tile()
    full = [output.value for output in plan.outputs if output.domain is Domain.FULL]
    lowerer.lower([output.value for output in plan.outputs])
    final = finish(lowerer, used_inputs(plan, needed_now(full)), plan.outputs, split=True)
    return Kernel(plan, schedule, (*(step.program for step in steps), final)), steps, final


def _reducing_pass(plan: Plan, lowerer: LaneLowerer, levels: Levels, level: int) -> LanePass:
    lowerer.forget_tile()
    here = [value for value in plan.reductions if levels.of(value) == level]
    roots = [value.args[0] for value in here]
    lowerer.lower(roots)
    starts = []
    for value in here:
        source = lowerer.at(value.args[0], Domain.FULL)
        total = lowerer.hold(value)
        running = lowerer.virtual(Domain.FULL, name=total.name)
        lowerer.origin = value.origin
        lowerer.emit(COMBINE[value.op], running, running, source)
        starts.append((total.name, IDENTITY[value.op]))
    program = finish(lowerer, used_inputs(plan, needed_now(roots)), (), split=True)
    return LanePass(program, tuple(starts), level)
