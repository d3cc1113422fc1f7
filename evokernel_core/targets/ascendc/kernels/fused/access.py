"""Where the inputs and outputs of a tile lie in device memory."""

from __future__ import annotations

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.fused.settings import IN_LANES, IN_PIECES, Form

_NESTED = IN_PIECES | IN_LANES


def varies(plan_input: PlanInput) -> bool:
    """Whether the input has more than one row."""
    return any(plan_input.outer) or plan_input.mid


def invariant_columns(plan: Plan, form: Form) -> tuple[PlanInput, ...]:
    """Column inputs that one load per core serves: whole rows, the same for every row."""
    if form not in (Form.PACKED, Form.RESIDENT):
        return ()
    return tuple(
        operand for operand in plan.inputs if operand.domain is Domain.COLUMN and not any(operand.outer)
    )


def as_numbers(plan: Plan, form: Form) -> tuple[PlanInput, ...]:
    """Inputs that are read as single numbers through the scalar unit."""
    if form is Form.CHANNELS:
        return tuple(operand for operand in plan.inputs if not operand.inner and not operand.mid)
    if form in _NESTED:
        return tuple(operand for operand in plan.inputs if not operand.inner)
    single = form not in (Form.PACKED, Form.REGION)
    return tuple(
        operand
        for operand in plan.inputs
        if operand.domain is Domain.SCALAR or (single and operand.domain is Domain.ROW)
    )
