"""Matrices of a graph that say for each pair of positions whether one is behind the other."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.compiler.shapes.views import BROADCASTS, SAME_ORDER
from evokernel_core.domain.graph import Arg, Graph, Node, ValueRef, literal
from evokernel_core.domain.tensor import Dim

_ONES = frozenset({"aten.ones.default", "aten.ones_like.default"})
_FILLS = {"aten.full.default": 1, "aten.full_like.default": 1, "aten.scalar_tensor.default": 0}
"""Operations that repeat a number, and which argument it is."""
_TRIANGLES = {"aten.tril.default": {0: True}, "aten.triu.default": {1: False}}
"""The kind of a triangle of ones by its diagonal."""
_NOT = frozenset({"aten.logical_not.default", "aten.bitwise_not.default"})
_SAME_TRUTH = frozenset({*SAME_ORDER, *BROADCASTS, "aten._to_copy.default"})


class Triangles:
    """Reads the triangles of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._nodes = graph.nodes_by_name

    def kind(self, mask: Arg, shape: Sequence[Dim]) -> bool | None:
        """Whether truth values hold for the columns up to that of the row, True, or behind it, False; None
        where they are another matrix than that of the last two of ``shape``."""
        node = self._node(mask)
        if node is None:
            return None
        if node.op in _NOT or _compares(node, "eq"):
            inner = self.kind(node.args[0], shape)
            return None if inner is None else not inner
        if node.op in _SAME_TRUTH or _compares(node, "ne"):
            return self.kind(node.args[0], shape)
        if node.op not in _TRIANGLES or not self.number(node.args[0]) or not _is_square_of(node, shape):
            return None
        return _TRIANGLES[node.op].get(_diagonal(node))

    def filled_above(self, ref: Arg, shape: Sequence[Dim]) -> float | None:
        """The number behind the column of each row, where the others are 0; None of other matrices."""
        node = self._node(ref)
        if node is None:
            return None
        if node.op in _SAME_TRUTH:
            return self.filled_above(node.args[0], shape)
        if node.op != "aten.triu.default" or _diagonal(node) != 1 or not _is_square_of(node, shape):
            return None
        return self.number(node.args[0])

    def number(self, arg: Arg) -> float | None:
        """The number that an argument is, or that all of its elements are."""
        if isinstance(arg, bool | int | float):
            return float(arg)
        node = self._node(arg)
        if node is None:
            return None
        if node.op in _ONES:
            return 1.0
        if node.op in _SAME_TRUTH:
            return self.number(node.args[0])
        return self.number(node.args[_FILLS[node.op]]) if node.op in _FILLS else None

    def _node(self, arg: Arg) -> Node | None:
        return self._nodes.get(arg.name) if isinstance(arg, ValueRef) else None


def _compares(node: Node, relation: str) -> bool:
    return node.op == f"aten.{relation}.Scalar" and node.args[1] in (0, False)


def _diagonal(node: Node) -> int:
    given = dict(node.kwargs).get("diagonal", node.args[1] if len(node.args) > 1 else 0)
    return int(literal(given))


def _is_square_of(node: Node, shape: Sequence[Dim]) -> bool:
    own = [extent(size) for size in node.outputs[0].shape]
    of_shape = [extent(size) for size in shape[-2:]]
    return len(own) > 1 and own[-2:] == of_shape and all(size.is_one for size in own[:-2])
