"""What people see of a kernel is named after what it computes."""

from __future__ import annotations

import pytest

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.title import title_of

SPEC = TensorSpec((8, 64), "float32")


def task(category: str, *ops: str) -> KernelTask:
    nodes = tuple(
        Node(f"n{n}", f"aten.{op}.default", (ValueRef(f"n{n - 1}" if n else "x"),), (), (SPEC,))
        for n, op in enumerate(ops)
    )
    graph = Graph((GraphInput("x", SPEC),), nodes, (ValueRef(nodes[-1].name),))
    return KernelTask("x", graph, (), TOLERANCES["float32"], category)


@pytest.mark.parametrize(
    ("category", "ops", "title"),
    [
        ("normalization", ("pow", "mean", "add", "rsqrt", "mul"), "rms_norm"),
        ("normalization", ("var_mean", "sub", "rsqrt", "mul"), "normalization"),
        ("normalization", ("mean", "sub", "pow", "mean", "rsqrt"), "normalization"),
        ("normalization", ("native_layer_norm", "mul"), "layer_norm"),
        ("attention", ("_scaled_dot_product_attention",), "attention"),
        ("attention", ("scaled_dot_product_attention",), "attention"),
        ("matmul", ("bmm", "div", "_softmax", "expand", "bmm"), "attention"),
        ("matmul", ("bmm", "_softmax"), "Block.forward"),
        ("matmul", ("native_layer_norm", "mm", "gelu", "mm"), "Block.forward"),
        ("matmul", ("mm", "add", "gelu"), "matmul"),
        ("softmax", ("mul", "add", "_softmax"), "softmax"),
        ("loss", ("_log_softmax", "mul", "sum", "neg"), "log_softmax"),
        ("activation", ("silu",), "silu"),
        ("activation", ("view", "gelu", "_to_copy"), "gelu"),
        ("activation", ("mul", "tanh", "add", "mul"), "Block.forward"),
        ("elementwise", ("sub", "mul", "add", "sqrt"), "Block.forward"),
        ("scan", ("cumsum", "mul"), "cumsum"),
        ("layout", ("view", "permute"), "Block.forward"),
    ],
)
def test_a_title_says_what_is_computed(category: str, ops: tuple[str, ...], title: str) -> None:
    assert title_of(task(category, *ops), "Block.forward") == title
