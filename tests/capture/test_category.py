"""The category of a graph is that of the operation that weighs most."""

from __future__ import annotations

import pytest

from evokernel_core.capture.category import op_category
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.tensor import TensorSpec


@pytest.mark.parametrize(
    ("ops", "category"),
    [
        ("mm add relu", "matmul"),
        ("bmm mul _softmax bmm", "matmul"),
        ("scaled_dot_product_attention mm", "attention"),
        ("convolution native_batch_norm relu max_pool2d_with_indices", "convolution"),
        ("convolution view mm", "convolution"),
        ("max_pool2d_with_indices relu", "pooling"),
        ("flip cumsum flip", "scan"),
        ("embedding add", "index"),
        ("permute clone", "layout"),
        ("permute exp", "activation"),
        ("native_batch_norm relu", "normalization"),
    ],
)
def test_category(ops: str, category: str) -> None:
    spec = TensorSpec((4, 8), "float32")
    names = ["x", *(f"n{index}" for index, _ in enumerate(ops.split()))]
    nodes = tuple(
        Node(names[index + 1], f"aten.{op}.default", (ValueRef(names[index]),), (), (spec,))
        for index, op in enumerate(ops.split())
    )
    graph = Graph((GraphInput("x", spec),), nodes, (ValueRef(names[-1]),))
    assert op_category(graph) == category
