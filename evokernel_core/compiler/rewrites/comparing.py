"""Comparisons of integers of which one side is known to be small: float32 then compares them exactly."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.lowering.integers import INTEGERS
from evokernel_core.compiler.ops import IOTA
from evokernel_core.compiler.rewrites.elementwise import cast
from evokernel_core.compiler.rewrites.picking import producer
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.graph import Node, ValueRef

_POSITIONS = frozenset(
    {IOTA.name, "aten.argmax.default", "aten.argmin.default", "aten.max.dim", "aten.min.dim"}
)
"""Operations whose integers count the elements of a dimension: far fewer than 2^24 or refused there."""
_VIEWS = frozenset(
    {"aten.view.default", "aten.unsqueeze.default", "aten.expand.default", "aten.squeeze.dims"}
)


def _compare(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    operands = list(node.operands())
    if len(operands) != 2 or any(writer.spec(ref).dtype not in INTEGERS for ref in operands):
        return None
    if not any(_is_small(writer, ref) for ref in operands):
        return None
    wide = (cast(writer, ref, "float32") for ref in operands)
    return (writer.call(node.op, *wide, shape=node.outputs[0].shape, dtype="bool"),)


def _is_small(writer: GraphWriter, ref: ValueRef) -> bool:
    below = producer(writer, ref)
    while below is not None and below.op in _VIEWS:
        below = producer(writer, next(iter(below.operands())))
    if below is None:
        return False
    counts = below.op == "aten._to_copy.default" and writer.spec(next(iter(below.operands()))).dtype == "bool"
    return counts or below.op in _POSITIONS


REWRITES: Mapping[str, Rewrite] = {
    f"aten.{name}.Tensor": _compare for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
