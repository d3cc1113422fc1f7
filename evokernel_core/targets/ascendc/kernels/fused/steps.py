"""Reductions over leading or middle dimensions with several steps a tile, for runs of lanes too short to
fill one.

A tile holds a run of lanes of several steps, one below another. A reduction keeps a partial result for
every place of a tile, so that its instructions are as long as the tile; at the end of a pass the places of
a lane are folded together. Where a tile has room for all the steps of its lanes, they are read once. What
a lane comes to is read by the steps of a tile in turn, with a repeat stride of 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from attrs import define

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import REDUCTIONS, Domain, Operand, Value, needed
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.targets.ascendc.ir.expr import Expr
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import FLOATS_PER_BLOCK
from evokernel_core.targets.ascendc.kernels.fused.columnwise import LaneLowerer
from evokernel_core.targets.ascendc.kernels.fused.passes import COMBINE, Pass, in_passes
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram, finish, virtuals
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.lowering.program import Instruction, Lowerer, Virtual, used_inputs

MOST_STEPS = most_of("Add", "repeatTime")
"""Repeats of one instruction, which takes a repeat a step."""


@define
class StepLowerer(LaneLowerer):
    """Values of a lane are tensors of one step, which the steps of a tile read in turn."""

    row_suffix: ClassVar[str] = "Columns"

    def at(self, operand: Operand, domain: Domain) -> Virtual:
        tensor = LaneLowerer.at(self, operand, domain)
        if domain is Domain.ROW or tensor.domain is not Domain.ROW:
            return tensor
        if tensor.index not in self._spread:
            self._spread[tensor.index] = self._spread_row(tensor)
        return self._spread[tensor.index]

    def _narrow(self, operand: Operand) -> Virtual | None:
        operand = self.plain(operand)
        if not isinstance(operand, Value) or operand.domain is not Domain.ROW or self.scalar(operand):
            return None
        return self.tensor(operand)

    def _mask(self, value: Operand, domain: Domain) -> Virtual:
        return Lowerer._mask(self, value, domain)

    def shifted(self, source: Virtual, rows: Sequence[Virtual], running: Virtual) -> Virtual:
        shift = self.virtual(Domain.ROW, name=f"{rows[1].name}Shift")
        held = (source, running, *rows)  # both rows are filled at the end of the pass, whoever reads them
        self.instructions.append(Instruction("lane_shift", shift, held, origin=self.origin))
        return self.emit("SubColumns", self.virtual(Domain.FULL), source, shift)

    def _spread_row(self, row: Virtual) -> Virtual:
        return self.emit("expand_columns", self.virtual(Domain.FULL), row)


@define
class WholeLowerer(StepLowerer):
    """All steps of a lane are in the tile: what they come to is known without another pass."""

    def _make(self, value: Value) -> Virtual:
        if value.op not in REDUCTIONS:
            return StepLowerer._make(self, value)
        source = self.at(value.args[0], Domain.FULL)
        return self.emit("fold_steps", self._new(Domain.ROW, value), source, detail=COMBINE[value.op])


@define
class ChannelLowerer(WholeLowerer):
    """Steps are the channels of a result: a number for each of them lies in the unified buffer and is taken
    by all lanes of its step."""

    column_suffix: ClassVar[str] = "Rows"

    def scalar(self, operand: Operand) -> Expr | None:
        return None if self._of_steps(operand) else WholeLowerer.scalar(self, operand)

    def at(self, operand: Operand, domain: Domain) -> Virtual:
        tensor = WholeLowerer.at(self, operand, domain)
        if tensor.domain is not Domain.COLUMN:
            return tensor
        if tensor.index not in self._spread:
            self._spread[tensor.index] = self.emit("expand_rows", self.virtual(Domain.FULL), tensor)
        return self._spread[tensor.index]

    def _narrow(self, operand: Operand) -> Virtual | None:
        operand = self.plain(operand)
        if isinstance(operand, Value) and self._of_steps(operand):
            return self.tensor(operand)
        return WholeLowerer._narrow(self, operand)

    def _of_steps(self, operand: Operand) -> bool:
        operand = self.plain(operand)
        if not isinstance(operand, Value) or operand.op != "load":
            return False
        return self.inputs[operand.index].mid and not self.inputs[operand.index].inner


def refusal(plan: Plan) -> str | None:
    """Why the steps of a plan cannot lie one below another."""
    if any(operand.mid and not operand.inner for operand in plan.inputs):
        return "A number for each step would differ inside a tile."
    tensors: tuple[PlanInput | PlanOutput, ...] = (*plan.inputs, *plan.outputs)
    widths = {ITEM_SIZE[tensor.dtype] for tensor in tensors if tensor.domain is Domain.FULL}
    if len(widths) != 1 or max(widths) > ITEM_SIZE["float32"]:
        return "Steps of tensors of several widths do not lie equally far apart."
    wider = (
        ITEM_SIZE[operand.dtype] > max(widths) for operand in plan.inputs if operand.domain is Domain.ROW
    )
    return "A copy of wider lanes does not fill the distance between steps." if any(wider) else None


def in_whole_blocks(lanes: int) -> int:
    """How many steps of so many lanes end with a block at least."""
    return FLOATS_PER_BLOCK // math.gcd(lanes, FLOATS_PER_BLOCK)


def dense_refusal(plan: Plan) -> str | None:
    """Why the steps of a plan cannot lie as in memory, where most of them begin inside a block: instructions
    take a tile from its first element on, and nothing but whole tiles."""
    if any(output.domain is Domain.FULL for output in plan.outputs):
        return "Steps that are stored begin at whole blocks."
    _, parts, _ = in_step_passes(plan, Schedule(Form.STEPS, 0))
    if len(parts) > 1:
        return "Steps that are read again read what their lanes come to."
    (program,) = (part.program for part in parts)
    domains = {operand.domain for operand in program.inputs}
    domains |= {virtual.domain for virtual in virtuals(program.instructions)}
    return None if domains <= {Domain.FULL} else "What lanes have beside steps is repeated at whole blocks."


def lanes_per_block(plan: Plan) -> int:
    """Lanes in whole blocks of every tensor that has steps: the distance of steps is a multiple of it."""
    narrow = min(ITEM_SIZE[operand.dtype] for operand in plan.inputs if operand.domain is Domain.FULL)
    return FLOATS_PER_BLOCK * ITEM_SIZE["float32"] // narrow


def resources(plan: Plan, schedule: Schedule) -> Kernel:
    """What the kernel whose tiles have several steps takes."""
    return whole_resources(plan, schedule) if schedule.whole else in_step_passes(plan, schedule)[0]


def whole_resources(plan: Plan, schedule: Schedule) -> Kernel:
    """What the kernel takes whose tiles have all steps of their lanes."""
    program = whole_program(plan, WholeLowerer(plan, True, schedule.eager_rounding))
    return Kernel(plan, schedule, (program,), accumulators=1)


def in_step_passes(plan: Plan, schedule: Schedule) -> tuple[Kernel, list[Pass], TileProgram]:
    """What the kernel takes, the passes that reduce, and the program that writes the outputs."""
    return in_passes(plan, schedule, StepLowerer(plan, True, schedule.eager_rounding))


def whole_program(plan: Plan, lowerer: WholeLowerer) -> TileProgram:
    """All of the plan as one program over a tile with all steps."""
    roots = [output.value for output in plan.outputs]
    lowerer.lower(roots)
    return finish(lowerer, used_inputs(plan, needed(roots)), plan.outputs)
