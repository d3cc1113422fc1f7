"""Family rowwise: reductions over the columns of each row, with work before and after them."""

from __future__ import annotations

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.fused_rows import single_pass
from evokernel_core.targets.ascendc.kernels.fused.programs import whole_program
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.kernels.fused.streamed import resources


def build(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel of a rowwise plan: packed rows, one resident row, or streamed rows."""
    if schedule.form is Form.STREAM:
        return resources(plan, schedule)
    return single_pass(Kernel(plan, schedule, (whole_program(plan, schedule),)))
