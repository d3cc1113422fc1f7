"""ATen operations that rewrites and families know by name, and how their arguments are read."""

from __future__ import annotations

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, ValueRef

CONVOLUTION = "aten.convolution.default"
ATTENTION = "aten.scaled_dot_product_attention.default"
BOTTOM_RIGHT = "bottom_right"
"""Keyword of a causal attention of ours: the last query sees all keys, instead of the first one a single
one."""
RELU = "aten.relu.default"
ADD = "aten.add.Tensor"
MAX_POOLS = frozenset({"aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default"})
AVERAGE_POOLS = frozenset(f"aten.avg_pool{rank}d.default" for rank in (1, 2, 3))


def attention_arguments(
    node: Node,
) -> tuple[ValueRef, ValueRef, ValueRef, ValueRef | None, float, bool, float | None]:
    """query, key, value, mask, dropout, whether later keys are hidden, scale. Raises PlanError where an
    operand is no tensor, or the scale is known only when the kernel runs."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given: dict[str, Arg] = {**dict(zip(names, node.args, strict=False)), **dict(node.kwargs)}
    query, key, value, mask = (given.get(name) for name in ("query", "key", "value", "attn_mask"))
    scale = given.get("scale")
    if not (isinstance(query, ValueRef) and isinstance(key, ValueRef) and isinstance(value, ValueRef)):
        raise PlanError("An operand of the attention is no tensor.")
    if not isinstance(scale, float | int | None) or not isinstance(mask, ValueRef | None):
        raise PlanError("The scale of an attention is a number that is known only when it runs.")
    dropout = given.get("dropout_p") or 0.0
    return query, key, value, mask, float(str(dropout)), bool(given.get("is_causal")), scale
