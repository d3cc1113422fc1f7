"""The schedule families in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.compiler.rewrites.complexes import offered
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.argmax import family as arg
from evokernel_core.targets.ascendc.kernels.attention import family as attention
from evokernel_core.targets.ascendc.kernels.complex_multiply import family as paired
from evokernel_core.targets.ascendc.kernels.conv_transpose import family as transposed
from evokernel_core.targets.ascendc.kernels.convolution.family import ConvolutionFamily
from evokernel_core.targets.ascendc.kernels.embedding_bag import family as bag
from evokernel_core.targets.ascendc.kernels.family import Family
from evokernel_core.targets.ascendc.kernels.fused.family import FusedFamily
from evokernel_core.targets.ascendc.kernels.gather import family as take
from evokernel_core.targets.ascendc.kernels.grid_sample import family as grid_sample
from evokernel_core.targets.ascendc.kernels.integers import family as integers
from evokernel_core.targets.ascendc.kernels.integers import rows as integer_rows
from evokernel_core.targets.ascendc.kernels.interleave import family as interleave
from evokernel_core.targets.ascendc.kernels.iota import family as iota
from evokernel_core.targets.ascendc.kernels.layout.family import LayoutFamily
from evokernel_core.targets.ascendc.kernels.matmul.family import MatmulFamily
from evokernel_core.targets.ascendc.kernels.pooling import family as windowed
from evokernel_core.targets.ascendc.kernels.recurrent.family import RecurrentFamily
from evokernel_core.targets.ascendc.kernels.recurrent.schedule import layers_together
from evokernel_core.targets.ascendc.kernels.resize import family as resize
from evokernel_core.targets.ascendc.kernels.scan import family as scan
from evokernel_core.targets.ascendc.kernels.scatter import family as put
from evokernel_core.targets.ascendc.kernels.sort import family as sort
from evokernel_core.targets.ascendc.kernels.space_to_depth import family as phases
from evokernel_core.targets.ascendc.kernels.tril import family as triangle
from evokernel_core.targets.ascendc.rewrites import registry as rewriting

FAMILIES: tuple[Family, ...] = (
    FusedFamily(),
    MatmulFamily(),
    attention.FAMILY,
    windowed.FAMILY,
    ConvolutionFamily(),
    phases.FAMILY,
    paired.FAMILY,
    interleave.FAMILY,
    transposed.FAMILY,
    LayoutFamily(),
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
    RecurrentFamily(),
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
