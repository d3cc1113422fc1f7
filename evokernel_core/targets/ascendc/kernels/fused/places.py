"""Where the inputs and outputs of a tile lie in device memory, as expressions."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.compiler.lowering.values import WHOLE
from evokernel_core.targets.ascendc.ir.expr import Expr, Int, TilingField

MID = TilingField("mid")


def outer_loop(axis: int) -> TilingField:
    """How often an outer loop runs."""
    return TilingField(f"outer{axis}")


def outer_index(plan: Plan, axis: int, counter: Expr) -> Expr:
    """The index of an outer loop, from what counts the turns of all of them."""
    for below in range(len(plan.outer) - 1, axis, -1):
        counter = counter // outer_loop(below)
    return counter % outer_loop(axis) if axis else counter


def among(plan: Plan, present: Sequence[bool], counter: Expr) -> Expr:
    """The index among the turns of those outer loops that are ``present``; ``counter`` counts all turns."""
    if all(present):
        return counter
    index: Expr = Int(0)
    for axis, has in enumerate(present):
        if has:
            index = index * outer_loop(axis) + outer_index(plan, axis, counter)
    return index


def row_of(plan: Plan, operand: PlanInput, row: Expr) -> Expr:
    """The index, among the rows that an input has, of a row of the iteration space."""
    index = _own_row(plan, operand, row)
    return index if operand.stripe == WHOLE else index * operand.stripe.every + operand.stripe.first


def _own_row(plan: Plan, operand: PlanInput, row: Expr) -> Expr:
    if all(operand.outer) and operand.mid:
        return row
    if not operand.mid:
        return among(plan, operand.outer, row // MID) if any(operand.outer) else Int(0)
    return among(plan, operand.outer, row // MID) * MID + row % MID if any(operand.outer) else row % MID
