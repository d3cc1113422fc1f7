"""The schedule families in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.compiler.rewrites.complexes import offered
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.argmax import argmax_family as arg
from evokernel_core.targets.ascendc.kernels.attention import attention_family as attention
from evokernel_core.targets.ascendc.kernels.complex_multiply import complex_multiply_family as paired
from evokernel_core.targets.ascendc.kernels.conv_transpose import conv_transpose_family as transposed
from evokernel_core.targets.ascendc.kernels.convolution import convolution_family as convolution
from evokernel_core.targets.ascendc.kernels.embedding_bag import embedding_bag_family as bag
from evokernel_core.targets.ascendc.kernels.family import Family
from evokernel_core.targets.ascendc.kernels.fused.fused_family import FusedFamily
from evokernel_core.targets.ascendc.kernels.gather import gather_family as take
from evokernel_core.targets.ascendc.kernels.grid_sample import grid_sample_family as grid_sample
from evokernel_core.targets.ascendc.kernels.integers import integers_family as integers
from evokernel_core.targets.ascendc.kernels.integers import integers_rows as integer_rows
from evokernel_core.targets.ascendc.kernels.interleave import interleave_family as interleave
from evokernel_core.targets.ascendc.kernels.iota import iota_family as iota
from evokernel_core.targets.ascendc.kernels.layout import layout_family as layout
from evokernel_core.targets.ascendc.kernels.matmul import matmul_family as matmul
from evokernel_core.targets.ascendc.kernels.pooling import pooling_family as windowed
from evokernel_core.targets.ascendc.kernels.recurrent import recurrent_family as recurrent
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_schedule import layers_together
from evokernel_core.targets.ascendc.kernels.resize import resize_family as resize
from evokernel_core.targets.ascendc.kernels.scan import scan_family as scan
from evokernel_core.targets.ascendc.kernels.scatter import scatter_family as put
from evokernel_core.targets.ascendc.kernels.sort import sort_family as sort
from evokernel_core.targets.ascendc.kernels.space_to_depth import space_to_depth_family as phases
from evokernel_core.targets.ascendc.kernels.tril import tril_family as triangle
from evokernel_core.targets.ascendc.rewrites import registry as rewriting

FAMILIES: tuple[Family, ...] = (
    FusedFamily(),
    matmul.FAMILY,
    attention.FAMILY,
    windowed.FAMILY,
    convolution.FAMILY,
    phases.FAMILY,
    paired.FAMILY,
    interleave.FAMILY,
    transposed.FAMILY,
    layout.FAMILY,
    triangle.FAMILY,
    arg.FAMILY,
    iota.FAMILY,
    integers.FAMILY,
    integer_rows.FAMILY,
    take.FAMILY,
    put.FAMILY,
    bag.FAMILY,
    resize.FAMILY,
    grid_sample.FAMILY,
    scan.FAMILY,
    sort.FAMILY,
    recurrent.FAMILY,
)


def legalised(task: KernelTask, chip: Chip) -> KernelTask:
    """The task in the operations that families know, grouped as their estimates say. Its inputs, outputs and
    symbols are the same. Raises PlanError for an operation that cannot be computed."""
    return rewriting.legalised(task, chip, layers_together)


@cache
def covered_ops() -> Mapping[str, str]:
    """ATen name to ``pointwise``, ``reduction``, ``kernel`` or ``view``: what families compute, and what
    is rewritten into that."""
    result: dict[str, str] = {}
    for family in FAMILIES:
        result = {**family.ops, **result}
    return dict.fromkeys(rewriting.rewrites(layers_together), "kernel") | result | dict(offered())


def single_ops() -> Mapping[str, str]:
    """ATen name to its category in a single fused kernel, to ``program`` where only programs of several
    kernels compute it."""
    return dict.fromkeys(covered_ops(), "program") | fused_ops()


def view_ops() -> frozenset[str]:
    """The operations that only rename elements of their operand."""
    return frozenset(name for name, category in covered_ops().items() if category == "view")


def family_for(task: KernelTask, chip: Chip) -> Family:
    """The first family that computes the task with one kernel. Raises PlanError where none does, with the
    reason of the family that knows most of its operations: first of those that take a kernel of their own,
    such as products, then of all."""
    ops = {node.op for node in task.graph.nodes}
    refusals: list[tuple[tuple[int, int], PlanError]] = []
    for family in FAMILIES:
        try:
            family.check(task, chip)
        except PlanError as error:
            known = ops & family.ops.keys()
            kernels = sum(family.ops[op] == "kernel" for op in known)
            refusals.append(((kernels, len(known)), error))
        else:
            return family
    raise max(refusals, key=lambda refusal: refusal[0])[1]
