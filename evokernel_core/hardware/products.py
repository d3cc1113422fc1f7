"""Multiply-adds of matrix products, convolutions and recurrent layers, each counted once."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.domain.graph import Graph, Node, ValueRef, literal

MATRIX_PRODUCTS = frozenset(("aten.mm.default", "aten.bmm.default"))
_ATTENTION = "aten.scaled_dot_product_attention.default"
_TRIANGLES = frozenset(("aten.triu.default", "aten.tril.default"))
_CONVOLUTION = "aten.convolution.default"
RECURRENT: Mapping[str, int] = {
    "aten.lstm.input": 5,
    "aten.gru.input": 3,
    "aten.rnn_tanh.input": 1,
    "aten.rnn_relu.input": 0,
}
"""Stacks of recurrent layers, and the transcendental functions of one hidden unit in one step."""


def multiply_adds(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """How many a direct computation takes; 0 for any other op. Zeros of padding are not counted."""
    if node.op in MATRIX_PRODUCTS:
        depth = graph.spec(next(iter(node.operands()))).sizes(sizes)[-1]
        return _wanted(node, graph, sizes) * depth
    if node.op == _ATTENTION:
        return _of_attention(node, graph, sizes)
    if node.op in RECURRENT:
        return _of_recurrent(node, graph, sizes)
    return _of_convolution(node, graph, sizes) if node.op == _CONVOLUTION else 0


def scores_of_attention(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """Pairs of a query and a key that it may see, over all heads: each takes one exponential."""
    query, key = (graph.spec(ref).sizes(sizes) for ref in list(node.operands())[:2])
    rows, columns = query[-2], key[-2]
    hidden = bool(dict(node.kwargs).get("is_causal") or (node.args[5] if len(node.args) > 5 else False))
    seen = sum(min(row + 1, columns) for row in range(rows)) if hidden else rows * columns
    return math.prod(query[:-2]) * seen


def units_of_recurrent(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """Hidden units of all layers and directions of a stack, times sequences and steps."""
    steps, batch, _ = graph.spec(next(iter(node.operands()))).sizes(sizes)
    layers, _, hidden = node.outputs[1].sizes(sizes)
    return steps * batch * layers * hidden


def steps_of_recurrent(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """Steps of all layers and directions of a stack."""
    x, _, _, _, _, _, _, _, batch_first = node.args
    assert isinstance(x, ValueRef)
    steps = graph.spec(x).sizes(sizes)[1 if batch_first else 0]
    return steps * node.outputs[1].sizes(sizes)[0]


def _of_recurrent(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """In each step every weight of a matrix meets one element of an input or of a state."""
    x, _, parameters = node.args[:3]
    assert isinstance(x, ValueRef) and isinstance(parameters, tuple)
    steps, batch, _ = graph.spec(x).sizes(sizes)
    shapes = [
        graph.spec(parameter).sizes(sizes) for parameter in parameters if isinstance(parameter, ValueRef)
    ]
    return steps * batch * sum(math.prod(shape) for shape in shapes if len(shape) > 1)


def _of_attention(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """Queries times keys and weights times values, without the pairs that a causal mask hides."""
    depth = graph.spec(next(iter(node.operands()))).sizes(sizes)[-1]
    return scores_of_attention(node, graph, sizes) * (depth + node.outputs[0].sizes(sizes)[-1])


def _wanted(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    """Elements of a product that anything reads: of some only a triangle is kept."""
    *batch, m, n = node.outputs[0].sizes(sizes)
    readers = [other for other in graph.nodes if any(ref.name == node.name for ref in other.operands())]
    returned = any(ref.name == node.name for ref in graph.outputs)
    if returned or len(readers) != 1 or readers[0].op not in _TRIANGLES:
        return math.prod(batch) * m * n
    diagonal = literal(readers[0].args[1]) if len(readers[0].args) > 1 else 0
    below = sum(min(n, max(0, row + diagonal)) for row in range(m))  # columns in front of the diagonal
    if "triu" in readers[0].op:
        return math.prod(batch) * (m * n - below)
    return math.prod(batch) * (below + sum(0 <= row + diagonal < n for row in range(m)))


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
    return [int(element) for element in arg] * (rank if len(arg) == 1 else 1)
