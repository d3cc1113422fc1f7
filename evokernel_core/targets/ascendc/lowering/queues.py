"""Plans whose tensors all have a queue: a kernel has a few for inputs and as many for outputs."""

from __future__ import annotations

from evokernel_core.compiler.lowering import plan as neutral
from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.ascend.chip import Chip


def plan(task: KernelTask, chip: Chip) -> Plan:
    """``compiler.lowering.plan.plan``. Raises PlanError also where a kernel has too few queues."""
    return _queued(neutral.plan(task, chip, in_stripes=True), chip)


def plan_matrix(task: KernelTask, rows: tuple[Dim, ...], columns: tuple[Dim, ...], chip: Chip) -> Plan:
    """The same of ``plan_matrix``."""
    return _queued(neutral.plan_matrix(task, rows, columns, chip), chip)


def plan_channels(
    task: KernelTask, outer: tuple[Dim, ...], steps: tuple[Dim, ...], lanes: tuple[Dim, ...], chip: Chip
) -> Plan:
    """The same of ``plan_channels``."""
    return _queued(neutral.plan_channels(task, outer, steps, lanes, chip), chip)


def _queued(plan: Plan, chip: Chip) -> Plan:
    most, inputs = chip.memory.max_queue_buffers, len(plan.inputs)
    if sum(operand.domain is not Domain.SCALAR for operand in plan.inputs) > most:
        raise PlanError(
            "The region reads {inputs} tensors; one kernel has queues for {most}.", inputs=inputs, most=most
        )
    if len(plan.outputs) > most:
        raise PlanError(
            "The region has {count} outputs; one kernel has queues for {most}.",
            count=len(plan.outputs),
            most=most,
        )
    return plan
