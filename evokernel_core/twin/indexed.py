"""How much of a tensor operations read that choose elements by index."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.domain.graph import Graph, Node, ValueRef
from evokernel_core.domain.tensor import ITEM_SIZE

_FIRST_OPERAND = frozenset(
    """gather index_select embedding index _unsafe_index take nll_loss_forward nll_loss2d_forward""".split()  # noqa: SIM905
)
"""Operations that read of their first operand what indices in another one say."""


def chosen_bytes(node: Node, ref: ValueRef, graph: Graph, sizes: Mapping[str, int]) -> int | None:
    """Bytes of an operand that the node reads because indices choose them; None for any other operand.

    Indices are taken as evenly spread: of E elements n choices then reach E (1 - exp(-n / E)).
    """
    if node.op.split(".")[1] not in _FIRST_OPERAND or ref != node.args[0]:
        return None
    spec = graph.spec(ref)
    elements = math.prod(spec.sizes(sizes))
    choices = _choices(node, graph, sizes)
    return math.ceil(elements * -math.expm1(-choices / max(elements, 1))) * ITEM_SIZE[spec.dtype]


def _choices(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """Elements of the results; of a loss those of its target, which are reduced afterwards."""
    if node.op.split(".")[1].startswith("nll_loss") and isinstance(node.args[1], ValueRef):
        return math.prod(graph.spec(node.args[1]).sizes(sizes))
    return math.prod(node.outputs[0].sizes(sizes))
