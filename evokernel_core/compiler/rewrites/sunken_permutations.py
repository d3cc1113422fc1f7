"""Permutations behind element-wise operations and reductions, which compute in the order that lies in memory.

A sum of permuted values is the permuted sum: one tensor changes its order instead of several, and a reduction
leaves less of it. Done where fewer elements change their order then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import evolve

from evokernel_core.compiler.lowering.pointwise import POINTWISE
from evokernel_core.compiler.rewrites.picking import argument, permuted, producer, view
from evokernel_core.compiler.rewrites.split_reductions import reduced_dims
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.compiler.shapes.boxes import dimension_order
from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim, TensorSpec, evaluate_dim
from evokernel_core.hardware.device import Device

_REDUCTIONS = ("aten.sum.dim_IntList", "aten.mean.dim", "aten.amax.default", "aten.amin.default")


def sunken_permutations(task: KernelTask, device: Device) -> KernelTask:
    """The task with permutations behind what does not depend on the order; the same task where that does not
    make them smaller."""
    table = {**dict.fromkeys(POINTWISE, _pointwise), **dict.fromkeys(_REDUCTIONS, _reduction)}
    made = {node.name for node in task.graph.nodes if node.op in PERMUTATIONS}
    readers = (node for node in task.graph.nodes if node.op in table)
    if not made or not any(ref.name in made for node in readers for ref in node.operands()):
        return task
    result = rewritten(task, table, device)
    return result if _moved_elements(result) < _moved_elements(task) else task


def _moved_elements(task: KernelTask) -> int:
    """Those that permutations write elsewhere, at the sizes of the user's file."""
    moved = 0
    for node in task.graph.nodes:
        if node.op in PERMUTATIONS:
            shape = task.graph.spec(next(iter(node.operands()))).shape
            if not _is_view(dimension_order(node, len(shape)), shape):
                moved += math.prod(evaluate_dim(dim, task.sizes) for dim in shape)
    return moved


def _is_view(order: Sequence[int], shape: Sequence[Dim]) -> bool:
    """Whether only dimensions of size one change places."""
    long = [dim for dim in order if shape[dim] != 1]
    return long == sorted(long)


def _below(writer: GraphWriter, arg: Arg) -> tuple[ValueRef, tuple[int, ...]] | None:
    """What a permutation permutes, and how; None for anything else."""
    node = producer(writer, arg) if isinstance(arg, ValueRef) else None
    if node is None or node.op not in PERMUTATIONS:
        return None
    source = next(iter(node.operands()))
    shape = writer.shape(source)
    order = tuple(dimension_order(node, len(shape)))
    return None if _is_view(order, shape) else (source, order)


def _pointwise(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """The operation in the order of its permuted operands, and its result permuted. All are in one order, or
    take another shape at no cost."""
    shape = node.outputs[0].shape
    order = next(
        (found[1] for arg in node.args if (found := _below(writer, arg)) and len(found[1]) == len(shape)),
        None,
    )
    if order is None or any(isinstance(value, ValueRef) for _, value in node.kwargs):
        return None
    args: list[Arg] = []
    for arg in node.args:
        operand = _in_order(writer, arg, order) if isinstance(arg, ValueRef) else arg
        if operand is None and arg is not None:
            return None
        args.append(operand)
    inner = tuple(shape[order.index(dim)] for dim in range(len(order)))
    (made,) = writer.keep(evolve(node, args=tuple(args), outputs=_shaped(node, inner)))
    return (permuted(writer, made, order),)


def _shaped(node: Node, shape: tuple[Dim, ...]) -> tuple[TensorSpec, ...]:
    return (TensorSpec(shape, node.outputs[0].dtype),)


def _in_order(writer: GraphWriter, ref: ValueRef, order: tuple[int, ...]) -> ValueRef | None:
    """An operand in the order that lies below; None where it would have to be copied."""
    below = _below(writer, ref)
    if below is not None and below[1] == order:
        return below[0]
    shape = writer.shape(ref)
    whole = (*(1 for _ in range(len(order) - len(shape))), *shape)
    back = [order.index(dim) for dim in range(len(order))]
    if not _is_view(back, whole):
        return None
    return view(writer, ref, tuple(whole[dim] for dim in back)) if len(shape) else ref


def _reduction(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    below = _below(writer, node.args[0])
    if below is None:
        return None
    source, order = below
    dims, shape = reduced_dims(node, len(order)), writer.shape(source)
    if not dims:
        return None
    keeps = bool(argument(node, 2, "keepdim", False))
    gone = sorted(order[dim] for dim in dims)
    left = [dim for dim in range(len(order)) if keeps or dim not in gone]
    inner = tuple(1 if dim in gone else shape[dim] for dim in left)
    kwargs = tuple((key, value) for key, value in node.kwargs if key not in ("dim", "keepdim"))
    args = (source, tuple(gone), keeps)
    (made,) = writer.keep(evolve(node, args=args, kwargs=kwargs, outputs=_shaped(node, inner)))
    return (permuted(writer, made, [left.index(dim) for dim in order if dim in left]),)
