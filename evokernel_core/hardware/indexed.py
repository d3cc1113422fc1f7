"""How much of a tensor operations read that choose elements: by index, of a triangle, or of planes that they
make smaller."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from evokernel_core.domain.graph import Graph, Node, ValueRef, literal
from evokernel_core.domain.tensor import ITEM_SIZE, TensorSpec

_FIRST_OPERAND = frozenset(
    """gather index_select embedding index _unsafe_index take nll_loss_forward nll_loss2d_forward
    _embedding_bag _embedding_bag_forward_only""".split()  # noqa: SIM905
)
"""Operations that read of their first operand what indices in another one say."""

_TAPS = {"nearest": 1, "nearest_exact": 1, "bilinear": 2, "trilinear": 2, "bicubic": 4}
"""Rows that one row of a resized plane is made of."""


def chosen_bytes(
    node: Node, ref: ValueRef, graph: Graph, sizes: Mapping[str, int], unit: int = 1
) -> int | None:
    """Bytes of an operand that the node reads because indices choose them, because they lie in the triangle
    that it keeps, or in rows that smaller planes are made of; None for any other operand. ``unit``: bytes
    that are read at least of what lies side by side.

    Indices are taken as evenly spread: of E elements n choices then reach E (1 - exp(-n / E)).
    """
    if node.op in ("aten.triu.default", "aten.tril.default"):
        return _triangle_bytes(node, sizes)
    taps = _TAPS.get(re.sub(r"^_?upsample_|[23]d$", "", node.op.split(".")[1]))
    if taps is not None and ref == node.args[0]:
        return _resized_bytes(node, ref, graph, sizes, taps)
    if node.op.split(".")[1] not in _FIRST_OPERAND or ref != node.args[0]:
        return None
    spec = graph.spec(ref)
    width, elements = ITEM_SIZE[spec.dtype], math.prod(spec.sizes(sizes))
    choices, run = _choices(node, graph, sizes), _run(node, spec, sizes)
    if run * width >= unit:
        return math.ceil(elements * -math.expm1(-choices / max(elements, 1))) * width
    units = math.ceil(elements * width / unit)
    reached = math.ceil(units * -math.expm1(-choices / run / max(units, 1)))
    return min(reached * unit, elements * width)


def _resized_bytes(node: Node, ref: ValueRef, graph: Graph, sizes: Mapping[str, int], taps: int) -> int:
    """Bytes of the rows, and of the planes of a volume, that are among the ``taps`` of some result; columns
    lie too close to each other to be left out."""
    spec = graph.spec(ref)
    *outer, columns = spec.sizes(sizes)
    batch, made = outer[:2], node.outputs[0].sizes(sizes)[2:-1]
    read = (min(have, taps * results) for have, results in zip(outer[2:], made, strict=True))
    return math.prod((*batch, *read, columns)) * ITEM_SIZE[spec.dtype]


def _triangle_bytes(node: Node, sizes: Mapping[str, int]) -> int:
    """Bytes of the elements at or above (``triu``), at or below (``tril``) a diagonal of matrices."""
    *batch, rows, columns = node.outputs[0].sizes(sizes)
    shift = node.args[1] if len(node.args) > 1 else dict(node.kwargs).get("diagonal", 0)
    first = literal(shift) + (node.op == "aten.tril.default")
    above = sum(min(max(columns - row - first, 0), columns) for row in range(rows))
    kept = above if node.op == "aten.triu.default" else rows * columns - above
    return math.prod(batch) * kept * ITEM_SIZE[node.outputs[0].dtype]


def _run(node: Node, spec: TensorSpec, sizes: Mapping[str, int]) -> int:
    """Elements that each choice reads side by side."""
    name, shape = node.op.split(".")[1], spec.sizes(sizes)
    if name == "index_select":
        return math.prod(shape[literal(node.args[1]) % max(len(shape), 1) + 1 :])
    if name in ("index", "_unsafe_index") and isinstance(node.args[1], tuple):
        return math.prod(shape[len(node.args[1]) :])
    if name.startswith(("embedding", "_embedding_bag")):
        return math.prod(shape[1:])
    return 1


def _choices(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """Elements of the results; of a loss those of its target, which are reduced afterwards; of bags all rows
    that they take."""
    if node.op.split(".")[1].startswith("_embedding_bag") and isinstance(node.args[1], ValueRef):
        return math.prod((*graph.spec(node.args[1]).sizes(sizes), node.outputs[0].sizes(sizes)[-1]))
    if node.op.split(".")[1].startswith("nll_loss") and isinstance(node.args[1], ValueRef):
        return math.prod(graph.spec(node.args[1]).sizes(sizes))
    return math.prod(node.outputs[0].sizes(sizes))
