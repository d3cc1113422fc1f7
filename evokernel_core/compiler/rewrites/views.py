"""Permutations that leave every element where it is are reshapes, which cost nothing anywhere."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.boxes import dimension_order
from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.domain.graph import Arg, Node, SymbolicInt, ValueRef


def rewrite_permutation(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """A view where only dimensions of size one change places."""
    operand = next(iter(node.operands()))
    shape = writer.shape(operand)
    moved = [dim for dim in dimension_order(node, len(shape)) if shape[dim] != 1]
    if moved != sorted(moved):
        return None
    spec = node.outputs[0]
    sizes: tuple[Arg, ...] = tuple(SymbolicInt(dim) if isinstance(dim, str) else dim for dim in spec.shape)
    return (writer.call("aten.view.default", operand, sizes, shape=spec.shape, dtype=spec.dtype),)


REWRITES: Mapping[str, Rewrite] = dict.fromkeys(sorted(PERMUTATIONS), rewrite_permutation)
