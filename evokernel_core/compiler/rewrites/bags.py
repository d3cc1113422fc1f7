"""Bags of embeddings: rows that indices choose and that are summed, averaged or compared at once."""

from __future__ import annotations

from collections.abc import Mapping, Set

from evokernel_core.compiler.ops import BAG_MODES, EMBEDDING_BAG, IOTA
from evokernel_core.compiler.rewrites.elementwise import cast
from evokernel_core.compiler.rewrites.indexing import tensor
from evokernel_core.compiler.rewrites.picking import (
    argument,
    as_arg,
    others_are_read,
    producer,
    read_once,
    view,
)
from evokernel_core.compiler.rewrites.putting import put
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite, rewritten
from evokernel_core.compiler.shapes.sizes import extent, times
from evokernel_core.compiler.shapes.views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.device import Device

_EMBEDDING = "aten.embedding.default"
_REDUCTIONS = {"aten.sum.dim_IntList": "sum", "aten.mean.dim": "mean", "aten.amax.default": "max"}
_DTYPES = frozenset({"float32", "float16", "bfloat16"})


def recognise_bags(task: KernelTask, device: Device) -> KernelTask:
    """The task with one bag for rows that are read, multiplied by a number each where there are weights,
    and then reduced over the indices of each bag, if nothing else reads them."""
    if not any(node.op == _EMBEDDING for node in task.graph.nodes):
        return task
    alone = read_once(task)

    def reduced(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        return _reduced(node, writer, alone)

    return rewritten(task, dict.fromkeys(_REDUCTIONS, reduced), device)


def _reduced(node: Node, writer: GraphWriter, alone: Set[str]) -> tuple[ValueRef, ...] | None:
    mode, below = _REDUCTIONS[node.op], _read_alone(writer, node.args[0], alone)
    if below is None or argument(node, 2, "keepdim", False) or dict(node.kwargs).get("dtype") is not None:
        return None
    weights = None
    if below.op == "aten.mul.Tensor" and mode == "sum":
        weights = _column(writer, below.args[1])
        below = _read_alone(writer, below.args[0], alone)
    if below is None or below.op != _EMBEDDING or (weights is None and node.args[0] != ValueRef(below.name)):
        return None
    table, indices = tensor(below, 0), tensor(below, 1)
    chosen, spec = writer.shape(indices), node.outputs[0]
    rank = len(chosen) + 1
    dims = argument(node, 1, "dim")
    if rank < 3 or not isinstance(dims, tuple) or [literal(dim) % rank for dim in dims] != [rank - 2]:
        return None
    if weights is not None and [*map(extent, writer.shape(weights))] != [*map(extent, chosen)]:
        return None
    if writer.spec(table).dtype not in _DTYPES or spec.dtype != writer.spec(table).dtype:
        return None
    bags = times(chosen[:-1])
    whole = view(writer, indices, (bags, chosen[-1]))
    numbers = None if weights is None else view(writer, cast(writer, weights, "float32"), (bags, chosen[-1]))
    shape = (bags, spec.shape[-1])
    result = writer.call(
        EMBEDDING_BAG.name, table, whole, None, numbers, mode, -1, False, shape=shape, dtype=spec.dtype
    )
    return (view(writer, result, spec.shape),)


def _read_alone(writer: GraphWriter, ref: object, alone: Set[str]) -> Node | None:
    """What makes a value that only one node reads."""
    if not isinstance(ref, ValueRef) or ref.name not in alone:
        return None
    return producer(writer, ref)


def _column(writer: GraphWriter, ref: object) -> ValueRef | None:
    """The numbers that a last dimension of one element was put behind."""
    below = producer(writer, ref) if isinstance(ref, ValueRef) else None
    if below is None or below.op != "aten.unsqueeze.default" or not isinstance(below.args[0], ValueRef):
        return None
    rank = len(below.outputs[0].shape)
    return below.args[0] if literal(below.args[1]) % rank == rank - 1 else None


def _bag(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """``embedding_bag(table, indices, offsets, ...)``; of its results the first."""
    if others_are_read(node, writer):
        raise PlanError("embedding_bag is asked for results beside the bags, which are not covered.")
    table, indices, offsets = (tensor(node, place) for place in range(3))
    weights, padding = (
        argument(node, 6, "per_sample_weights"),
        literal(argument(node, 8, "padding_idx", -1)),
    )
    spec = node.outputs[0]
    if writer.spec(table).dtype not in _DTYPES:
        raise PlanError("embedding_bag of {dtype} is not covered.", dtype=writer.spec(table).dtype)
    numbers = cast(writer, weights, "float32") if isinstance(weights, ValueRef) else None
    mode, whole = (
        BAG_MODES[literal(argument(node, 4, "mode", 0))],
        bool(argument(node, 7, "include_last_offset")),
    )
    starts: ValueRef | None = offsets
    length = _step(writer, offsets)
    if length is not None and not whole and _is_product(writer, indices, spec.shape[0], length):
        starts, indices = None, view(writer, indices, (spec.shape[0], length))
        numbers = None if numbers is None else view(writer, numbers, (spec.shape[0], length))
    elif _is_computed(writer, offsets):
        raise PlanError("embedding_bag with offsets that the model computes is not covered: pass them in.")
    args = (table, indices, starts, numbers, mode, padding, whole)
    result = writer.like(spec, EMBEDDING_BAG.name, *args)
    return (result, *(ValueRef(result.name) for _ in node.outputs[1:]))


def _step(writer: GraphWriter, offsets: ValueRef) -> int | None:
    """How far offsets are apart that are counted from zero in equal steps."""
    below = producer(writer, offsets)
    if below is None or below.op != IOTA.name or below.args[0] != 0 or not isinstance(below.args[1], int):
        return None
    return below.args[1]


def _is_product(writer: GraphWriter, indices: ValueRef, bags: Dim, length: int) -> bool:
    return extent(writer.shape(indices)[0]) == extent(bags).times(extent(length))


def _is_computed(writer: GraphWriter, ref: ValueRef) -> bool:
    """Whether a value is more than a view of an input: loops depend on offsets, so that a launch is timed
    with those that a caller gives."""
    below = producer(writer, ref)
    while below is not None and below.op in SAME_ORDER:
        below = producer(writer, next(iter(below.operands())))
    return below is not None


def _gradient(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """Of a table: the sum of the gradients of all that its rows were read for."""
    given, indices, spec = tensor(node, 0), tensor(node, 1), node.outputs[0]
    if argument(node, 4, "scale_grad_by_freq", False):
        raise PlanError("embedding_dense_backward that divides by how often a row was read is not covered.")
    chosen, padding = writer.shape(indices), literal(argument(node, 3, "padding_idx", -1))
    if padding >= 0:
        column = view(writer, indices, (*chosen, 1))
        kept = writer.call("aten.ne.Scalar", column, padding, shape=(*chosen, 1), dtype="bool")
        whole = writer.shape(given)
        given = writer.call("aten.where.ScalarOther", kept, given, 0.0, shape=whole, dtype=spec.dtype)
    count = times(chosen)
    places, rows = view(writer, indices, (1, count)), view(writer, given, (1, count, spec.shape[1]))
    shape = (1, *spec.shape)
    zeros = writer.call("aten.full.default", tuple(map(as_arg, shape)), 0.0, shape=shape, dtype=spec.dtype)
    return (view(writer, put(writer, zeros, [places], rows, "add", False), spec.shape),)


REWRITES: Mapping[str, Rewrite] = {
    "aten.embedding_dense_backward.default": _gradient,
    "aten._embedding_bag_forward_only.default": _bag,
    "aten._embedding_bag.default": _bag,
}
