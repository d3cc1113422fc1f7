"""Running sums and their like as one operation, with what is usually written around them."""

from __future__ import annotations

from evokernel_core.ascendc.families.scan_problem import SCAN
from evokernel_core.ascendc.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef

_SCANS = {
    "aten.cumsum.default": "sum",
    "aten.cumprod.default": "prod",
    "aten.cummax.default": "max",
    "aten.cummin.default": "min",
    "aten.logcumsumexp.default": "logaddexp",
}
_INDICES = "evokernel.scan_indices.default"


def _scan(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """The scan itself. Where a running maximum is, no kernel says: its indices stay without one."""
    x, dim = node.args[0], node.args[1]
    if not isinstance(x, ValueRef) or not isinstance(dim, int):
        raise PlanError(f"{node.op} has a dimension that is not a literal.")
    result, shape = node.outputs[0], writer.shape(x)
    if result.dtype not in ("float32", "float16", "bfloat16"):
        raise PlanError(f"{node.op} of {result.dtype} is not covered; float32, float16 and bfloat16 are.")
    if writer.spec(x).dtype != result.dtype:
        x = writer.call("aten._to_copy.default", x, shape=shape, dtype=result.dtype)
    found = writer.call(SCAN, x, dim, _SCANS[node.op], False, False, None, shape=shape, dtype=result.dtype)
    places = (writer.call(_INDICES, found, shape=shape, dtype="int64") for _ in node.outputs[1:])
    return (found, *places)


REWRITES: dict[str, Rewrite] = dict.fromkeys(_SCANS, _scan)
