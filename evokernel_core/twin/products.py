"""Multiply-adds of matrix products and convolutions, each counted once."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.domain.graph import Graph, Node, ValueRef

_MATRIX_PRODUCTS = frozenset(("aten.mm.default", "aten.bmm.default"))
_CONVOLUTION = "aten.convolution.default"


def multiply_adds(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """How many a direct computation takes; 0 for any other op. Zeros of padding are not counted."""
    if node.op in _MATRIX_PRODUCTS:
        depth = graph.spec(next(iter(node.operands()))).sizes(sizes)[-1]
        return math.prod(node.outputs[0].sizes(sizes)) * depth
    return _of_convolution(node, graph, sizes) if node.op == _CONVOLUTION else 0


def _of_convolution(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """Each weight meets the elements that it reaches. A transposed convolution spreads what a plain one
    gathers: the sizes of its input and result change places."""
    x, weight = (ref for ref in node.args[:2] if isinstance(ref, ValueRef))
    taken, made = graph.spec(x).sizes(sizes), node.outputs[0].sizes(sizes)
    kernel = graph.spec(weight).sizes(sizes)
    if node.args[6]:
        taken, made = made, taken
    rank = len(kernel) - 2
    steps, before, gaps = (_each(node.args[place], rank) for place in (3, 4, 5))
    met = (
        _meetings(size, results, taps, step, pad, gap)
        for size, results, taps, step, pad, gap in zip(
            taken[2:], made[2:], kernel[2:], steps, before, gaps, strict=True
        )
    )
    return made[0] * kernel[0] * kernel[1] * math.prod(met)


def _meetings(size: int, results: int, taps: int, step: int, pad: int, gap: int) -> int:
    """Pairs of a result and a tap along one dimension whose element is inside of the input."""
    total = 0
    for tap in range(taps):
        first = max(0, -((tap * gap - pad) // step))
        last = min(results - 1, (size - 1 + pad - tap * gap) // step)
        total += max(0, last - first + 1)
    return total


def _each(arg: object, rank: int) -> list[int]:
    assert isinstance(arg, tuple)
    return [int(item) for item in arg] * (rank if len(arg) == 1 else 1)
