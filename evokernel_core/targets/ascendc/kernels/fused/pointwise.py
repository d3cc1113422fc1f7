"""Family pointwise: element-wise graphs with broadcasting, one pass over the data."""

from __future__ import annotations

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.fused_rows import single_pass
from evokernel_core.targets.ascendc.kernels.fused.programs import whole_program
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule


def build(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel of a pointwise plan: flat runs, packed rows or segments of rows."""
    return single_pass(Kernel(plan, schedule, (whole_program(plan, schedule),)))
