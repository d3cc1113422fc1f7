"""Numbers in equal steps, and what is asked of truth values: whether any or all hold, and how many."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.ops import IOTA
from evokernel_core.compiler.rewrites.picking import argument
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, ValueRef


def _arange(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    start, step = node.args[0], argument(node, 2, "step", 1)
    if not isinstance(start, int) or not isinstance(step, int):
        raise PlanError("arange with a start or a step that is not a whole number is not covered.")
    spec = node.outputs[0]
    return (writer.like(spec, IOTA.name, start, step),)


def _as_numbers(node: Node, writer: GraphWriter) -> ValueRef:
    """The operand as 0 and 1 in float32, 1 where it is not zero."""
    x = node.args[0]
    if not isinstance(x, ValueRef):
        raise PlanError("{op} is called on something that is not a tensor.", op=node.op)
    spec = writer.spec(x)
    if spec.dtype != "bool":
        x = writer.call("aten.ne.Scalar", x, 0.0, shape=spec.shape, dtype="bool")
    return writer.call("aten._to_copy.default", x, shape=spec.shape, dtype="float32")


def _dims(node: Node, rank: int) -> Arg:
    dims = argument(node, 1, "dim")
    if dims is None:
        return tuple(range(rank))
    return dims if isinstance(dims, tuple) else (dims,)


def _reduced(node: Node, writer: GraphWriter, op: str) -> ValueRef:
    numbers = _as_numbers(node, writer)
    rank, shape = len(writer.shape(numbers)), node.outputs[0].shape
    if rank == 0:
        return numbers
    keeps = bool(argument(node, 2, "keepdim", False))
    return writer.call(op, numbers, _dims(node, rank), keeps, shape=shape, dtype="float32")


def _holds(op: str) -> Rewrite:
    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
        result = _reduced(node, writer, op)
        return (writer.call("aten.ne.Scalar", result, 0.0, shape=node.outputs[0].shape, dtype="bool"),)

    return rewrite


def _count(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """How many truth values hold; float32 counts them exactly up to 16 million."""
    x = node.args[0]
    if not isinstance(x, ValueRef) or writer.spec(x).dtype != "bool":
        return None
    result = _reduced(node, writer, "aten.sum.dim_IntList")
    spec = node.outputs[0]
    return (writer.like(spec, "aten._to_copy.default", result),)


REWRITES: Mapping[str, Rewrite] = {
    "aten.all.default": _holds("aten.amin.default"),
    "aten.all.dim": _holds("aten.amin.default"),
    "aten.any.default": _holds("aten.amax.default"),
    "aten.any.dim": _holds("aten.amax.default"),
    "aten.any.dims": _holds("aten.amax.default"),
    "aten.arange.start_step": _arange,
    "aten.sum.default": _count,
    "aten.sum.dim_IntList": _count,
}
