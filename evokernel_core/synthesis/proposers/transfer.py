"""Carrying a schedule over to another task of the same family, where its rules allow that."""

from __future__ import annotations

from attrs import evolve

from evokernel_core.ascendc.families.base import LANES
from evokernel_core.ascendc.plan import plan
from evokernel_core.ascendc.schedule import forms, largest_tile, refusal, strategy_of
from evokernel_core.ascendc.schedule_settings import Schedule
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip


def adapt(task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
    """The same form, buffering and method for this task, its tile cut to what fits.

    None where the family or the form does not apply, or a rule of the hardware refuses it. Raises
    PlanError where no family covers the task.
    """
    planned = plan(task, chip.hbm_bytes)
    if strategy.family != planned.family:
        return None
    columns = planned.inner.evaluate(task.sizes)
    schedule = Schedule.of(strategy)
    if schedule.form not in forms(planned, columns):
        return None
    if schedule.packed:
        schedule = evolve(schedule, columns=-(-columns // LANES) * LANES)
    try:
        schedule = evolve(schedule, tile=min(schedule.tile, largest_tile(planned, schedule, chip)))
        if refusal(planned, schedule, task, chip) is not None:
            return None
    except PlanError:
        return None
    return strategy_of(planned, schedule, "")
