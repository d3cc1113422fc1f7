"""Permutations and selections that leave every element where it is are reshapes, which cost nothing."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.rewrites.picking import view
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.boxes import dimension_order
from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.domain.graph import Node, ValueRef, literal


def rewrite_permutation(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """A view where only dimensions of size one change places."""
    operand = next(iter(node.operands()))
    shape = writer.shape(operand)
    moved = [dim for dim in dimension_order(node, len(shape)) if shape[dim] != 1]
    if moved != sorted(moved):
        return None
    return (view(writer, operand, node.outputs[0].shape),)


def rewrite_selection(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """A view where the dimension has one place."""
    operand = next(node.operands())
    shape = writer.shape(operand)
    if shape[literal(node.args[1]) % len(shape)] != 1:
        return None
    return (view(writer, operand, node.outputs[0].shape),)


REWRITES: Mapping[str, Rewrite] = {
    **dict.fromkeys(sorted(PERMUTATIONS), rewrite_permutation),
    "aten.select.int": rewrite_selection,
}
