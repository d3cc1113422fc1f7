"""Half types: where intermediate results are rounded as PyTorch rounds them, and what that may cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.fusion.program import plan_program
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.author import initial, moves, write
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.targets.ascendc.target import ASCENDC

SHAPE = (4096, 8192)


def _chain(builder: Any, steps: int, dtype: str, shape: tuple[int, ...] = SHAPE) -> KernelTask:
    """exp(x) times itself and x in turn, which PyTorch rounds after each of ``steps`` products."""
    graph = builder()
    x = graph.input("x", shape, dtype)
    value: ValueRef = graph.call("exp.default", x, shape=shape, dtype=dtype)
    for step in range(steps):
        value = graph.call("mul.Tensor", value, x if step % 2 else value, shape=shape, dtype=dtype)
    return graph.task(value)


@pytest.mark.parametrize("rounding", [False, True])
def test_either_way_is_right(rounding: bool, builder: Any, chip: Any, on_twin: Any) -> None:
    steps = 6
    task = _chain(builder, steps, "float16", (33, 70))
    strategy = initial(task, chip)
    if rounding:
        strategy = next(m.strategy for m in moves(task, strategy, chip) if "rounded" in m.name)
    x = np.random.default_rng(0).uniform(-0.05, 0.05, (33, 70)).astype(np.float16)
    expected = np.exp(x.astype(np.float64))
    for step in range(steps):
        expected = expected * (x if step % 2 else expected)
    (found,) = on_twin(task, {"x": x}, strategy)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-2, atol=1e-3)


def test_steps_behind_a_product_are_not_rounded_one_by_one(builder: Any, chip: Any) -> None:
    graph = builder()
    x, weight = graph.input("x", (512, 256), "float16"), graph.input("weight", (256, 384), "float16")
    shape = (512, 384)
    value = graph.call("mm.default", x, weight, shape=shape, dtype="float16")
    for op in ("sigmoid", "tanh", "exp"):
        value = graph.call(f"{op}.default", value, shape=shape, dtype="float16")
    text = write(graph.task(value), initial(graph.task(value), chip), chip).files[KERNEL]
    assert text.count("RoundMode::CAST_RINT") == 2  # the result's, as one run or row by row


def _normalised_product(builder: Any, dtype: str, copies_read: int) -> KernelTask:
    """A product whose float32 copy is divided by its sums over the rows; the copy may be a result too."""
    graph = builder()
    rows, columns = "m", 96
    x, weight = graph.input("x", (rows, 64), dtype), graph.input("weight", (64, columns), dtype)
    product = graph.call("mm.default", x, weight, shape=(rows, columns), dtype=dtype)
    wide = graph.call("_to_copy.default", product, shape=(rows, columns), dtype="float32")
    total = graph.call("sum.dim_IntList", wide, (0,), True, shape=(1, columns))
    result = graph.call("div.Tensor", wide, total, shape=(rows, columns))
    return graph.task(result, *([wide] if copies_read > 1 else []), symbols={"m": 512})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_values_between_kernels_stay_narrow_until_they_are_read(
    dtype: str, builder: Any, chip: Any, on_twin: Any
) -> None:
    task = _normalised_product(builder, dtype, 1)
    first = plan_program(task, chip, ASCENDC).kinds[0][0].graph
    assert [spec.dtype for spec in first.output_specs()] == [dtype]
    rng = np.random.default_rng(1)
    x, weight = rng.uniform(0.5, 1, (40, 64)), rng.uniform(0.5, 1, (64, 96))
    inputs = {"x": x.astype("f2"), "weight": weight.astype("f2")}
    if dtype == "bfloat16":
        inputs = {"x": np.round(x * 64) / 64, "weight": np.round(weight * 64) / 64}  # exact in its 8 bits
    (found,) = on_twin(task, inputs, sizes={"m": 40})
    product = inputs["x"].astype("f8") @ inputs["weight"].astype("f8")
    np.testing.assert_allclose(found, product / product.sum(0), rtol=1e-2)


def test_a_copy_that_is_a_result_stays_where_it_is_made(builder: Any, chip: Any) -> None:
    first = plan_program(_normalised_product(builder, "float16", 2), chip, ASCENDC).kinds[0][0].graph
    assert "float32" in [spec.dtype for spec in first.output_specs()]


@pytest.mark.parametrize(("dims", "columns"), [((1,), "n"), ((0,), "n"), ((0, 1), "n")])
def test_a_log_sum_of_infinite_elements_is_infinite(
    dims: tuple[int, ...], columns: str, builder: Any, on_twin: Any
) -> None:
    graph = builder()
    x = graph.input("x", ("m", columns), "float16")
    shape = tuple(size for dim, size in enumerate(("m", columns)) if dim not in dims)
    result = graph.call("logsumexp.default", x, dims, shape=shape, dtype="float16")
    task = graph.task(result, symbols={"m": 64, "n": 300})
    values = np.random.default_rng(0).normal(size=(9, 40)).astype("f2")
    for kind in (-np.inf, np.inf):
        values[3, :], values[:, 5] = kind, kind
        (found,) = on_twin(task, {"x": values}, sizes={"m": 9, "n": 40})
        with np.errstate(divide="ignore"):
            expected = np.logaddexp.reduce(values.astype("f8"), axis=dims if len(dims) > 1 else dims[0])
        np.testing.assert_allclose(found.astype("f8"), expected, rtol=1e-2, atol=1e-2)
