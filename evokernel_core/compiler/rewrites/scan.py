"""Running sums and their like as one operation, with what is usually written around them."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from evokernel_core.compiler.ops import SCAN
from evokernel_core.compiler.rewrites.picking import others_are_read
from evokernel_core.compiler.rewrites.running_places import running_places
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef, literal
from evokernel_core.domain.tensor import TensorSpec

SCANS = {
    "aten.cumsum.default": "sum",
    "aten.cumprod.default": "prod",
    "aten.cummax.default": "max",
    "aten.cummin.default": "min",
    "aten.logcumsumexp.default": "logaddexp",
}
_DTYPES = ("float32", "float16", "bfloat16")


def scan_node(node: Node, spec: Callable[[ValueRef], TensorSpec]) -> Node | None:
    """The scan that a node is, with its first result alone; None where it changes the type or is not
    along one dimension."""
    x, dim, result = node.args[0], node.args[1], node.outputs[0]
    if not isinstance(x, ValueRef) or not isinstance(dim, int) or not result.shape:
        return None
    if result.dtype not in _DTYPES or spec(x).dtype != result.dtype:
        return None
    args = (x, dim, SCANS[node.op], False, False, None)
    return evolve(node, op=SCAN.name, args=args, kwargs=(), outputs=(result,))


def _scan(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """The scan itself, and the indices of a running maximum or minimum where something reads them."""
    x, result = node.args[0], node.outputs[0]
    if result.dtype not in _DTYPES:
        raise PlanError(
            "{op} of {dtype} is not covered; float32, float16 and bfloat16 are.",
            op=node.op,
            dtype=result.dtype,
        )
    if isinstance(x, ValueRef) and writer.spec(x).dtype != result.dtype:
        x = writer.call("aten._to_copy.default", x, shape=writer.shape(x), dtype=result.dtype)
        node = evolve(node, args=(x, *node.args[1:]))
    match = scan_node(node, writer.spec)
    if match is None:
        raise PlanError("{op} is covered along a dimension that is a literal.", op=node.op)
    value = writer.like(result, SCAN.name, *match.args)
    if others_are_read(node, writer):
        return value, running_places(writer, next(node.operands()), value, literal(node.args[1]))
    return (value, *(ValueRef(value.name, place) for place in range(1, len(node.outputs))))


REWRITES: dict[str, Rewrite] = dict.fromkeys(SCANS, _scan)
