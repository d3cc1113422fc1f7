"""Rewriting a graph: what a rewrite writes takes the node's place, and what nothing reads goes."""

from __future__ import annotations

from typing import Any

from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.hardware.ascend.chip import load_chip


def _square(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """x ** 2 as x * x; other exponents stay."""
    base, exponent = node.args
    if exponent != 2:
        return None
    spec = node.outputs[0]
    return (writer.call("aten.mul.Tensor", base, base, shape=spec.shape, dtype=spec.dtype),)


def test_a_node_is_replaced_and_its_readers_follow(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", 4))
    wide = graph.call("exp.default", x, shape=("n", 4))
    square = graph.call("pow.Tensor_Scalar", wide, 2, shape=("n", 4))
    cube = graph.call("pow.Tensor_Scalar", square, 3, shape=("n", 4))
    task = graph.task(graph.call("add.Tensor", cube, square, shape=("n", 4)), symbols={"n": 3})
    found = rewritten(task, {"aten.pow.Tensor_Scalar": _square}, load_chip()).graph
    exp, product, power, total = found.nodes
    assert [node.op for node in found.nodes] == [
        "aten.exp.default", "aten.mul.Tensor", "aten.pow.Tensor_Scalar", "aten.add.Tensor",
    ]  # fmt: skip
    assert product.args == (ValueRef(exp.name), ValueRef(exp.name))
    assert next(power.operands()) == ValueRef(product.name)
    assert total.args == (ValueRef(power.name), ValueRef(product.name))
    assert found.outputs == (ValueRef(total.name),)
    assert len({node.name for node in found.nodes}) == 4


def test_written_nodes_are_rewritten_too_and_dead_ones_go(builder: Any) -> None:
    def twice(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
        spec = node.outputs[0]
        writer.call("aten.exp.default", node.args[0], shape=spec.shape, dtype=spec.dtype)  # read by nothing
        squared = writer.call("aten.pow.Tensor_Scalar", node.args[0], 2, shape=spec.shape, dtype=spec.dtype)
        return (squared,)

    graph = builder()
    x = graph.input("x", (8,))
    task = graph.task(graph.call("square.default", x, shape=(8,)))
    table = {"aten.square.default": twice, "aten.pow.Tensor_Scalar": _square}
    assert [node.op for node in rewritten(task, table, load_chip()).graph.nodes] == ["aten.mul.Tensor"]
