"""Multiply-adds of products, convolutions, attention and recurrent layers, against a count one by one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.ascend.eager import eager_us
from evokernel_core.hardware.products import multiply_adds, steps_of_recurrent, units_of_recurrent


def convolution(
    taken: int, made: int, kernel: int, stride: int, padding: int, dilation: int, transposed: bool
) -> tuple[Node, Graph]:
    """One dimension, 3 to 5 channels (or back), 2 images."""
    channels = (5, 3) if transposed else (3, 5)
    x = GraphInput("x", TensorSpec((2, channels[0], taken), "float32"))
    weight = GraphInput("w", TensorSpec((5, 3, kernel), "float32"))
    args = (ValueRef("x"), ValueRef("w"), None, (stride,), (padding,), (dilation,), transposed, (0,), 1)
    spec = TensorSpec((2, channels[1], made), "float32")
    node = Node("conv", "aten.convolution.default", args, (), (spec,))
    return node, Graph((x, weight), (node,), (ValueRef("conv"),))


def met(taken: int, made: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    places = (i * stride + t * dilation - padding for i in range(made) for t in range(kernel))
    return sum(0 <= place < taken for place in places)


@pytest.mark.parametrize(
    ("taken", "kernel", "stride", "padding", "dilation"),
    [(9, 3, 1, 0, 1), (9, 3, 1, 1, 1), (20, 5, 3, 4, 2), (1, 3, 2, 1, 1), (7, 7, 1, 3, 1)],
)
def test_zeros_of_padding_are_not_counted(
    taken: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    made = (taken + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    pairs = met(taken, made, kernel, stride, padding, dilation)
    forward = convolution(taken, made, kernel, stride, padding, dilation, False)
    assert multiply_adds(*forward, {}) == 2 * 15 * pairs
    backward = convolution(made, taken, kernel, stride, padding, dilation, True)
    assert multiply_adds(*backward, {}) == 2 * 15 * pairs


def test_products_of_matrices() -> None:
    x = GraphInput("x", TensorSpec(("b", 4, 6), "float32"))
    y = GraphInput("y", TensorSpec(("b", 6, 5), "float32"))
    node = Node(
        "p", "aten.bmm.default", (ValueRef("x"), ValueRef("y")), (), (TensorSpec(("b", 4, 5), "float32"),)
    )
    graph = Graph((x, y), (node,), (ValueRef("p"),))
    assert multiply_adds(node, graph, {"b": 3}) == math.prod((3, 4, 5, 6))


def attention_of(heads: int, queries: int, keys: int, depth: int, causal: bool, dtype: str) -> Graph:
    shapes = {"q": (2, heads, queries, depth), "k": (2, heads, keys, depth), "v": (2, heads, keys, depth + 1)}
    inputs = tuple(GraphInput(name, TensorSpec(shape, dtype)) for name, shape in shapes.items())
    spec = TensorSpec((2, heads, queries, depth + 1), dtype)
    node = Node(
        "attention",
        "aten.scaled_dot_product_attention.default",
        tuple(map(ValueRef, shapes)),
        (("is_causal", causal),),
        (spec,),
    )
    return Graph(inputs, (node,), (ValueRef("attention"),))


@given(st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_attention_counts_what_a_mask_leaves(queries: int, keys: int, causal: bool) -> None:
    graph = attention_of(3, queries, keys, 4, causal, "float32")
    pairs = sum(not causal or key <= query for query in range(queries) for key in range(keys))
    assert multiply_adds(graph.nodes[0], graph, {}) == 6 * pairs * (4 + 5)


def test_a_recurrent_layer_counts_every_weight_once_a_step() -> None:
    shapes = {
        "x": (7, 2, 3),
        "h": (2, 2, 5),
        "a": (15, 3),
        "b": (15, 5),
        "c": (15,),
        "d": (15, 5),
        "e": (15, 5),
    }
    inputs = tuple(GraphInput(name, TensorSpec(shape, "float32")) for name, shape in shapes.items())
    refs = dict(zip(shapes, map(ValueRef, shapes), strict=True))
    args = (refs["x"], refs["h"], tuple(refs[name] for name in "abcde"), True, 2, 0.0, False, False, False)
    outputs = (TensorSpec((7, 2, 5), "float32"), TensorSpec((2, 2, 5), "float32"))
    node = Node("gru", "aten.gru.input", args, (), outputs)
    graph = Graph(inputs, (node,), (ValueRef("gru"),))
    assert multiply_adds(node, graph, {}) == 7 * 2 * 15 * (3 + 5 + 5 + 5)
    assert units_of_recurrent(node, graph, {}) == 7 * 2 * 2 * 5
    assert steps_of_recurrent(node, graph, {}) == 7 * 2
    chip = load_chip()
    hand_over_us = 2 * chip.sync.cross_core_cycles / chip.mhz
    assert (
        eager_us(KernelTask("gru", graph, (), TOLERANCES["float32"], "recurrent"), chip) > 14 * hand_over_us
    )


@given(
    st.integers(1, 7), st.integers(1, 7), st.integers(-8, 8), st.sampled_from(["triu", "tril"]), st.booleans()
)
def test_a_kept_triangle_of_a_product(m: int, n: int, diagonal: int, op: str, returned: bool) -> None:
    inputs = (GraphInput("x", TensorSpec((m, 3), "float32")), GraphInput("y", TensorSpec((3, n), "float32")))
    spec = TensorSpec((m, n), "float32")
    product = Node("mm", "aten.mm.default", (ValueRef("x"), ValueRef("y")), (), (spec,))
    kept = Node("kept", f"aten.{op}.default", (ValueRef("mm"), diagonal), (), (spec,))
    outputs = (ValueRef("kept"), ValueRef("mm")) if returned else (ValueRef("kept"),)
    across = [column - row - diagonal for row in range(m) for column in range(n)]
    count = m * n if returned else sum(place >= 0 if op == "triu" else place <= 0 for place in across)
    assert multiply_adds(product, Graph(inputs, (product, kept), outputs), {}) == 3 * count
