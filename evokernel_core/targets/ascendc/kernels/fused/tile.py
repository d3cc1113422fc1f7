"""From a plan and a schedule to a kernel of tiles, before and as text."""

from __future__ import annotations

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.targets.ascendc.kernels.family import KernelFacts, StageText
from evokernel_core.targets.ascendc.kernels.fused import (
    columnwise,
    piecewise,
    pointwise,
    rowwise,
    shared,
    steps,
)
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.fused_tiling import tiling_texts
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule


def build(planned: Plan, schedule: Schedule) -> Kernel:
    """The kernel of a plan under a schedule, before it becomes text."""
    if schedule.form is Form.SHARED:
        return shared.build(planned, schedule)
    if schedule.form is Form.STEPS:
        return steps.build(planned, schedule)
    if planned.family == "piecewise":
        return piecewise.build(planned, schedule)
    if planned.family == "columnwise":
        return columnwise.build(planned, schedule)
    if planned.family == "rowwise":
        return rowwise.build(planned, schedule)
    return pointwise.build(planned, schedule)


def stage_text(planned: Plan, schedule: Schedule, name: str) -> StageText:
    """The kernel as text."""
    kernel = build(planned, schedule)
    return StageText(*tiling_texts(kernel), kernel.text(name), f"{name}_kernel", _facts(kernel))


def _facts(kernel: Kernel) -> KernelFacts:
    """Cores that share a row tell each other what they found, through the workspace."""
    shared = kernel.exchanged > 0
    return KernelFacts(waits_for_all=shared, uses_workspace=shared, reads_numbers=bool(kernel.numbers))
