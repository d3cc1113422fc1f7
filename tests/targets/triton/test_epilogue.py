"""What follows a matrix product in Triton: operands, types and shapes, also behind split sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.kernels.matmul.matmul_family import FAMILY
from tests.targets.ascendc.test_epilogue import STEPS, UNARY, Chain, drawn

SIZES = [(1, 1, 5), (33, 70, 17)]


def _split(strategy: Strategy) -> Strategy:
    return evolve(strategy, settings={**dict(strategy.settings), "split_k": 2})


def _check(
    task: KernelTask, expected: Callable[[Mapping[str, Any]], list[Any]], interpreted: Any, gpu: Any
) -> None:
    """Right at many sizes, with whole and with split sums."""
    start = FAMILY.initial(task, gpu)
    dtype = task.graph.output_specs()[0].dtype
    for strategy in (start, _split(start)):
        for m, n, k in SIZES:
            sizes = {"m": m, "n": n, "k": k}
            inputs = drawn(task, sizes)
            results = interpreted(FAMILY, task, inputs, sizes, strategy)
            numbers = expected({name: value.astype("f8") for name, value in inputs.items()})
            for result, wanted in zip(results, numbers, strict=True):
                loose = 1e-4 if dtype == "float32" else 0.02 * (1 + np.abs(wanted).max())
                np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=loose)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_operands_of_every_shape(dtype: str, builder: Any, interpreted: Any, gpu: Any) -> None:
    chain = Chain(builder(), dtype)
    chain.binary("add.Tensor", "columns")
    chain.binary("mul.Tensor", "rows")
    chain.binary("sub.Tensor", "full")
    chain.binary("maximum.default", "single")
    _check(chain.task(), lambda numbers: chain.expected(numbers)[-1:], interpreted, gpu)


@settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(dtype=st.sampled_from(["float32", "float16"]), steps=st.lists(STEPS, min_size=1, max_size=5))
def test_any_chain(dtype: str, steps: Any, builder: Any, interpreted: Any, gpu: Any) -> None:
    chain = Chain(builder(), dtype)
    for step in steps:
        chain.binary(*step) if len(step) == 2 else chain.unary(*step)
    _check(chain.task(), lambda numbers: chain.expected(numbers)[-1:], interpreted, gpu)


def test_several_results_of_which_one_is_the_product(builder: Any, interpreted: Any, gpu: Any) -> None:
    chain = Chain(builder(), "float32")
    product = chain.value
    chain.binary("add.Tensor", "columns")
    moved = chain.value
    chain.unary("tanh.default")
    _check(chain.task(product, moved, chain.value), chain.expected, interpreted, gpu)


def test_a_batch_whose_operands_lack_some_of_its_dimensions(builder: Any, interpreted: Any, gpu: Any) -> None:
    graph = builder()
    x, y = graph.input("x", (3, "m", 20)), graph.input("y", (3, 20, "n"))
    scale, shift = graph.input("scale", (3, 1, 1)), graph.input("shift", ("m", 1))
    bias = graph.input("bias", (3, 1, "n"))
    value = graph.call("bmm.default", x, y, shape=(3, "m", "n"))
    for other, op in ((scale, "mul.Tensor"), (shift, "add.Tensor"), (bias, "add.Tensor")):
        value = graph.call(op, value, other, shape=(3, "m", "n"))
    task = graph.task(value, symbols={"m": 40, "n": 50})
    start = FAMILY.initial(task, gpu)
    for strategy in (start, _split(start)):
        for m, n in ((1, 1), (40, 50)):
            inputs = drawn(task, {"m": m, "n": n})
            (result,) = interpreted(FAMILY, task, inputs, {"m": m, "n": n}, strategy)
            wanted = inputs["x"] @ inputs["y"] * inputs["scale"] + inputs["shift"] + inputs["bias"]
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("m", "n"), [(1, "n"), ("m", 1), (1, 1)])
def test_products_of_one_row_or_column(m: Any, n: Any, builder: Any, interpreted: Any) -> None:
    graph = builder()
    x, y = graph.input("x", (m, 70)), graph.input("y", (70, n))
    other = graph.input("other", (m, n))
    value = graph.call("mm.default", x, y, shape=(m, n))
    value = graph.call("sigmoid.default", value, shape=(m, n))
    value = graph.call("add.Tensor", value, other, shape=(m, n))
    task = graph.task(value, symbols={"m": 40, "n": 50})
    for size in (1, 37):
        inputs = drawn(task, {"m": size, "n": size})
        (result,) = interpreted(FAMILY, task, inputs, {"m": size, "n": size})
        wanted = UNARY["sigmoid.default"](inputs["x"] @ inputs["y"]) + inputs["other"]
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def test_names_of_the_task_are_not_those_of_the_text(builder: Any, interpreted: Any) -> None:
    """Inputs, and a number of the call, called as the text calls its own."""
    graph = builder()
    x, y = graph.input("rows", ("m", 20)), graph.input("tl", (20, 30))
    value = graph.call("mm.default", x, y, shape=("m", 30))
    value = graph.call("mul.Tensor", value, graph.input("sums", (30,)), shape=("m", 30))
    task = graph.task(value, symbols={"m": 40})
    inputs = drawn(task, {"m": 9})
    (result,) = interpreted(FAMILY, task, inputs, {"m": 9})
    np.testing.assert_allclose(result, inputs["rows"] @ inputs["tl"] * inputs["sums"], rtol=1e-4, atol=1e-4)


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any, gpu: Any) -> None:
    for dtype in ("float32", "bfloat16"):
        chain = Chain(builder(), dtype)
        for shape in ("columns", "rows", "full", "single"):
            chain.binary("add.Tensor", shape)
        chain.unary("tanh.default")
        task = chain.task()
        start = FAMILY.initial(task, gpu)
        for strategy in (start, _split(start)):
            compiles(FAMILY, task, strategy)


@pytest.mark.parametrize("op", ["sigmoid", "silu", "gelu", "tanh"])
def test_a_quotient_by_one_more_than_a_power_is_plain(op: str, builder: Any, gpu: Any) -> None:
    """An exact one branches for each element of a tile in registers."""
    graph = builder()
    a, b = graph.input("a", ("m", "k"), "float16"), graph.input("b", ("k", "n"), "float16")
    product = graph.call("mm.default", a, b, shape=("m", "n"), dtype="float16")
    value = graph.call(f"{op}.default", product, shape=("m", "n"), dtype="float16")
    task = graph.task(value, symbols={"m": 64, "n": 64, "k": 64})
    assert "divided" not in _text(task, gpu)
    exact = graph.call("div.Tensor", value, graph.input("c", ("m", "n"), "float16"), shape=("m", "n"))
    assert "divided" in _text(graph.task(exact, symbols={"m": 64, "n": 64, "k": 64}), gpu)


def _text(task: KernelTask, gpu: Any) -> str:
    kernel = FAMILY.text(task, FAMILY.initial(task, gpu), gpu, "kernel")
    return "".join(function.text for function in kernel.functions)
