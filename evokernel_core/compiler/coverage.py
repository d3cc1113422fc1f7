"""What the families of a target compute, and which of them takes a task."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from evokernel_core.compiler.family import Family
from evokernel_core.compiler.legalise import rewrites
from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.compiler.rewrites.complexes import offered
from evokernel_core.compiler.target import Target
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.device import Device


@cache
def covered_ops(target: Target) -> Mapping[str, str]:
    """ATen name to ``pointwise``, ``reduction``, ``kernel`` or ``view``: what families compute, and what
    is rewritten into that."""
    result: dict[str, str] = {}
    for family in target.families():
        result = {**family.ops, **result}
    return dict.fromkeys(rewrites(target), "kernel") | result | dict(offered())


def single_ops(target: Target) -> Mapping[str, str]:
    """ATen name to its category in a single fused kernel, to ``program`` where only programs of several
    kernels compute it."""
    return dict.fromkeys(covered_ops(target), "program") | fused_ops()


@cache
def view_ops(target: Target) -> frozenset[str]:
    """The operations that only rename elements of their operand."""
    return frozenset(name for name, category in covered_ops(target).items() if category == "view")


def family_for(task: KernelTask, device: Device, target: Target) -> Family:
    """The first family that computes the task with one kernel. Raises PlanError where none does, with the
    reason of the family that knows most of its operations: first of those that take a kernel of their own,
    such as products, then of all."""
    ops = {node.op for node in task.graph.nodes}
    refusals: list[tuple[tuple[int, int], PlanError]] = []
    for family in target.families():
        try:
            family.check(task, device)
        except PlanError as error:
            known = ops & family.ops.keys()
            kernels = sum(family.ops[op] == "kernel" for op in known)
            refusals.append(((kernels, len(known)), error))
        else:
            return family
    raise max(refusals, key=lambda refusal: refusal[0])[1]


def family_of_task(task: KernelTask, device: Device, target: Target) -> Family | None:
    """The family that computes the whole task with one kernel, None where it takes several."""
    try:
        return family_for(task, device, target)
    except PlanError:
        return None
