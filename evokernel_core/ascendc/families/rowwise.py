"""Family rowwise: reductions over the columns of each row, with work before and after them."""

from __future__ import annotations

from evokernel_core.ascendc.families.base import Kernel
from evokernel_core.ascendc.families.programs import whole_program
from evokernel_core.ascendc.families.rows import (
    PACKED_LOOP,
    RESIDENT_LOOP,
    packed_rows_method,
    single_pass,
)
from evokernel_core.ascendc.families.stream import build_stream
from evokernel_core.ascendc.plan import Plan
from evokernel_core.ascendc.schedule_settings import Form, Schedule


def build(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel of a rowwise plan."""
    if schedule.form is Form.STREAM:
        return build_stream(plan, schedule)
    kernel = Kernel(plan, schedule, (whole_program(plan, schedule),))
    if schedule.form is Form.PACKED:
        single_pass(kernel, "uint64_t row, uint32_t rows", PACKED_LOOP)
        kernel.methods.insert(0, packed_rows_method(kernel))
        return kernel
    single_pass(kernel, "uint64_t row, uint32_t count", RESIDENT_LOOP)
    return kernel
