"""Author: a strategy for a task becomes the two files of a kernel."""

from __future__ import annotations

import re

from evokernel_core.ascendc.families import pointwise, rowwise
from evokernel_core.ascendc.families.base import Kernel
from evokernel_core.ascendc.families.tiling import tiling_source
from evokernel_core.ascendc.plan import Plan, plan
from evokernel_core.ascendc.schedule_settings import Schedule
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip


def build(planned: Plan, schedule: Schedule) -> Kernel:
    """The kernel of a plan under a schedule, before it becomes text."""
    if planned.family == "rowwise":
        return rowwise.build(planned, schedule)
    return pointwise.build(planned, schedule)


def write(task: KernelTask, strategy: Strategy, chip: Chip) -> KernelSource:
    """tiling.h and op_kernel.cpp. Raises PlanError where the task cannot be planned."""
    kernel = build(plan(task, chip.hbm_bytes), Schedule.of(strategy))
    return KernelSource(tiling_source(kernel), kernel.source(_identifier(task.name)), strategy)


def _identifier(name: str) -> str:
    """A C++ identifier in snake case."""
    cleaned = re.sub(r"\W+", "_", name).strip("_").lower() or "fused"
    return cleaned if cleaned[0].isalpha() else f"op_{cleaned}"
