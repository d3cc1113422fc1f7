"""Truth values that are all alike: ``ones_like(x, dtype=torch.bool)`` depends on nothing but its shape."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.rewrites.picking import argument, as_arg
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.graph import Node, ValueRef


def _fill(number: bool | None) -> Rewrite:
    """``number`` is None where the node has it as its second argument."""

    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        given = argument(node, 1, "fill_value") if number is None else number
        if node.outputs[0].dtype != "bool" or not isinstance(given, bool | int | float):
            return None
        shape = node.outputs[0].shape
        sizes = tuple(map(as_arg, shape))
        return (writer.call("aten.full.default", sizes, bool(given), shape=shape, dtype="bool"),)

    return rewrite


REWRITES: Mapping[str, Rewrite] = {
    "aten.ones_like.default": _fill(True),
    "aten.zeros_like.default": _fill(False),
    "aten.full_like.default": _fill(None),
}
