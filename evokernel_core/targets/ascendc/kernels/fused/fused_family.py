"""Family of fused tiles: element-wise graphs and reductions over rows, on the vector cores."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from evokernel_core.compiler.family import Move
from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.kernels.fused import fused_schedule as schedules
from evokernel_core.targets.ascendc.kernels.fused.fused_estimate import estimate_us
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.fused.tile import build, made
from evokernel_core.targets.ascendc.kernels.stage import KernelStage
from evokernel_core.targets.ascendc.lowering.queues import plan

_STRATEGIES = frozenset({"pointwise", "rowwise", "columnwise", "piecewise"})


@frozen(eq=False)
class FusedFamily:
    """One pass over the points of a space of rows and columns; see plan.py and schedule.py."""

    name: str = field(default="fused", init=False)
    strategies: frozenset[str] = field(default=_STRATEGIES, init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return fused_ops()

    def check(self, task: KernelTask, chip: Chip) -> None:
        plan(task, chip)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        return schedules.initial(task, chip)

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        return schedules.moves(task, strategy, chip)

    def descriptor(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Descriptor:
        return schedules.descriptor_of(plan(task, chip), Schedule.of(strategy))

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        kernel = build(plan(task, chip), Schedule.of(strategy))
        return estimate_us(kernel, task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> KernelStage:
        return KernelStage(vectors=made(plan(task, chip), Schedule.of(strategy)))

    def why_illegal(self, task: KernelTask, strategy: Strategy, chip: Chip) -> str | None:
        planned = plan(task, chip)
        if strategy.family != planned.family:
            return Sentence(
                "The task takes a {wanted} kernel, and no {given} one.",
                wanted=planned.family,
                given=strategy.family,
            )
        return schedules.refusal(planned, Schedule.of(strategy), task, chip)

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        """The same form, buffering and method, its tile cut to what fits."""
        planned = plan(task, chip)
        if strategy.family != planned.family:
            return None
        columns = schedules.row_room(planned, task)
        schedule = Schedule.of(strategy)
        if schedule.form not in schedules.forms(planned, columns):
            return None
        if schedule.packed:
            schedule = evolve(schedule, columns=-(-columns // LANES) * LANES)
        if schedule.dense:
            schedule = evolve(schedule, columns=schedules.dense_room(planned, task))
        try:
            most = schedules.largest_tile(planned, schedule, chip)
            schedule = evolve(schedule, tile=min(schedule.tile, most))
            if schedules.refusal(planned, schedule, task, chip) is not None:
                return None
        except PlanError:
            return None
        return schedules.strategy_of(planned, schedule, "")
