"""Family rowwise: reductions over the columns of each row, with work before and after them."""

from __future__ import annotations

from evokernel_core.ascendc.families.base import Kernel
from evokernel_core.ascendc.families.programs import whole_program
from evokernel_core.ascendc.families.rows import single_pass
from evokernel_core.ascendc.families.stream import build_stream
from evokernel_core.ascendc.plan import Plan
from evokernel_core.ascendc.schedule_settings import Form, Schedule


def build(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel of a rowwise plan: packed rows, one resident row, or streamed rows."""
    if schedule.form is Form.STREAM:
        return build_stream(plan, schedule)
    return single_pass(Kernel(plan, schedule, (whole_program(plan, schedule),)))
