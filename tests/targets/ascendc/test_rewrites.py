"""Rewriting a graph: what a rewrite writes takes the node's place, and what nothing reads goes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
from attrs import evolve

from evokernel_core.compiler import legalise
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.domain.graph import Node, Update, ValueRef
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.target import ASCENDC


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


def _product(graph: Any) -> ValueRef:
    return cast(ValueRef, graph.call("prod.dim_int", graph.input("x", (8, 4)), 1, shape=(8,)))


def _strided_convolution(graph: Any) -> ValueRef:
    """Its images are padded and parted into phases beside the product."""
    x, weight = graph.input("x", (64, 16, 128, 128)), graph.input("w", (64, 16, 4, 4))
    arguments = (None, (2, 2), (1, 1), (1, 1), False, (0, 0), 1)
    return cast(ValueRef, graph.call("convolution.default", x, weight, *arguments, shape=(64, 64, 64, 64)))


def _complex(graph: Any) -> ValueRef:
    x = graph.input("x", (8, 4, 2))
    z = graph.call("view_as_complex.default", x, shape=(8, 4), dtype="complex64")
    product = graph.call("mul.Tensor", z, z, shape=(8, 4), dtype="complex64")
    return cast(ValueRef, graph.call("view_as_real.default", product, shape=(8, 4, 2)))


@pytest.mark.parametrize("made", [_product, _strided_convolution, _complex])
def test_what_a_call_updates_outlives_every_pass(made: Callable[[Any], ValueRef], builder: Any) -> None:
    """A buffer that becomes an output, and one that counts calls."""
    graph = builder()
    result = made(graph)
    task = graph.task(result, graph.call("neg.default", graph.input("mean", (8,)), shape=(8,)))
    updates = (
        Update("mean", TensorSpec((8,), "float32"), "self.mean", output=1),
        Update("calls", TensorSpec((), "int64"), "self.calls", step=1),
    )
    task = evolve(task, graph=evolve(task.graph, updates=updates))
    chip = load_chip()
    first = (*legalise._FIRST, *ASCENDC.passes().dtypes, *legalise._PATTERNS)
    by_node = partial(rewritten, rewrites=legalise.rewrites(ASCENDC), device=chip)
    changed = [task]
    for change in first:
        changed.append(change(changed[-1], chip))
    changed.append(by_node(changed[-1]))
    for change in legalise._LAST:
        changed.append(change(changed[-1], chip))
    assert len({id(entry) for entry in changed}) > 1
    assert {entry.graph.updates for entry in changed} == {updates}
    assert {entry.graph.returned for entry in changed} == {1}
