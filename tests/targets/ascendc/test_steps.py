"""Reductions over leading or middle dimensions with several steps a tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import write
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import forms, initial, moves
from evokernel_core.targets.ascendc.kernels.fused.settings import Form
from evokernel_core.targets.ascendc.lowering.queues import plan
from tests.tables import few

SIZES = [
    (1, 900, 70),
    (3, 37, 1000),
    (1, 1, 1),
    (2, 5, 7),
    (1, 64, 5000),
    (9, 3, 130),
    (1, 4097, 8),
    (4, 300, 33),
]


def _in_steps(task: KernelTask, chip: Any) -> Strategy:
    """The first strategy with several steps a tile."""
    start = initial(task, chip)
    found = [start, *(move.strategy for move in moves(task, start, chip))]
    return next(item for item in found if dict(item.settings)["form"] == "steps")


def _normalised(builder: Any, dtype: str = "float32") -> KernelTask:
    """Each lane around its mean over the steps, by its deviation, its weight and its bias; and its mean."""
    graph = builder()
    shape, row, lane = ("b", "r", "d"), ("b", 1, "d"), ("d",)
    x = graph.input("x", shape, dtype)
    weight = graph.input("weight", lane, dtype, parameter=True)
    bias = graph.input("bias", lane, dtype, parameter=True)
    mean = graph.call("mean.dim", x, (1,), True, shape=row, dtype=dtype)
    apart = graph.call("sub.Tensor", x, mean, shape=shape, dtype=dtype)
    square = graph.call("mul.Tensor", apart, apart, shape=shape, dtype=dtype)
    variance = graph.call("mean.dim", square, (1,), True, shape=row, dtype=dtype)
    moved = graph.call("add.Tensor", variance, 1e-3, shape=row, dtype=dtype)
    root = graph.call("sqrt.default", moved, shape=row, dtype=dtype)
    scaled = graph.call("div.Tensor", apart, root, shape=shape, dtype=dtype)
    weighted = graph.call("mul.Tensor", scaled, weight, shape=shape, dtype=dtype)
    result = graph.call("add.Tensor", weighted, bias, shape=shape, dtype=dtype)
    task: KernelTask = graph.task(result, mean, symbols={"b": 1, "r": 900, "d": 70})
    return task


def _expected(x: Any, weight: Any, bias: Any) -> tuple[Any, Any]:
    x = x.astype("f8")
    mean = x.mean(1, keepdims=True)
    root = np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-3)
    return (x - mean) / root * weight + bias, mean


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_lanes_are_normalised_at_many_sizes(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    task = _normalised(builder, dtype)
    strategy = _in_steps(task, chip)
    exact = 2e-4 if dtype == "float32" else 4e-2
    for seed, (b, r, d) in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        x = (rng.integers(-8, 9, size=(b, r, d)) / 4).astype("f4")
        weight, bias = ((rng.integers(-8, 9, size=d) / 4).astype("f4") for _ in range(2))
        inputs = {"x": x, "weight": weight, "bias": bias}
        found = on_twin(task, inputs, strategy=strategy, sizes={"b": b, "r": r, "d": d})
        for value, wanted in zip(found, _expected(x, weight, bias), strict=True):
            np.testing.assert_allclose(np.asarray(value, "f8"), wanted, rtol=exact, atol=exact)


@few("dtype", ["float32", "float16", "bfloat16"], keep=(1,))
def test_normalising_passes_the_audit(dtype: str, builder: Any, chip: Any) -> None:
    task = _normalised(builder, dtype)
    assert audit(task, write(task, _in_steps(task, chip), chip)).status is GateStatus.PASSED


def test_every_schedule_of_steps_gives_the_same(builder: Any, on_twin: Any, chip: Any) -> None:
    task = _normalised(builder)
    rng = np.random.default_rng(1)
    x, weight, bias = (rng.normal(size=size).astype("f4") for size in ((1, 900, 70), 70, 70))
    inputs = {"x": x, "weight": weight, "bias": bias}
    for move in moves(task, _in_steps(task, chip), chip):
        found = on_twin(task, inputs, strategy=move.strategy)
        for value, wanted in zip(found, _expected(x, weight, bias), strict=True):
            np.testing.assert_allclose(value, wanted, rtol=2e-4, atol=2e-4)


def test_a_variance_far_from_zero_takes_one_pass(builder: Any, on_twin: Any, chip: Any) -> None:
    """Lanes whose first steps lie elsewhere, and whose mean is a thousand deviations from zero."""
    task = _normalised(builder)
    strategy = _in_steps(task, chip)
    assert dict(strategy.settings)["online"]
    for seed, (b, r, d) in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        x = (1000 + rng.normal(size=(b, r, d))).astype("f4")
        x[:, :3] -= 20
        weight, bias = (rng.normal(size=d).astype("f4") for _ in range(2))
        inputs = {"x": x, "weight": weight, "bias": bias}
        found = on_twin(task, inputs, strategy=strategy, sizes={"b": b, "r": r, "d": d})
        for value, wanted in zip(found, _expected(x, weight, bias), strict=True):
            np.testing.assert_allclose(value, wanted, rtol=2e-3, atol=5e-3)


def test_a_softmax_over_the_steps(builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", ("b", "r", "d"))
    result = graph.call("_softmax.default", x, 1, False, shape=("b", "r", "d"))
    task = graph.task(result, symbols={"b": 1, "r": 900, "d": 70})
    strategy = _in_steps(task, chip)
    assert dict(strategy.settings)["online"]
    for seed, (b, r, d) in enumerate(SIZES):
        values = np.random.default_rng(seed).normal(size=(b, r, d)).astype("f4") * 20
        (found,) = on_twin(task, {"x": values}, strategy=strategy, sizes={"b": b, "r": r, "d": d})
        powers = np.exp(values - values.max(1, keepdims=True), dtype="f8")
        np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)


DENSE = [
    ("sum.dim_IntList", np.sum, "float32"),
    ("amin.default", np.min, "float16"),
    ("prod.dim_int", np.prod, "float32"),
    ("mean.dim", np.mean, "bfloat16"),
]


def _dense(task: KernelTask, chip: Any) -> Strategy:
    start = _in_steps(task, chip)
    found = [start, *(move.strategy for move in moves(task, start, chip))]
    return next(item for item in found if dict(item.settings)["dense"])


@few(("op", "reduce", "dtype"), DENSE, keep=(0, 3))
def test_steps_in_one_run_of_memory(
    op: str, reduce: Any, dtype: str, builder: Any, on_twin: Any, chip: Any
) -> None:
    """Steps begin inside blocks: those that end with one are folded first, and then those of a group."""
    graph = builder()
    shape, row = ("b", "r", "d"), ("b", 1, "d")
    x, weight = graph.input("x", shape, dtype), graph.input("weight", ("d",), dtype)
    axes = 1 if op == "prod.dim_int" else (1,)
    found = graph.call(
        op, graph.call("abs.default", x, shape=shape, dtype=dtype), axes, True, shape=row, dtype=dtype
    )
    result = graph.call("mul.Tensor", found, weight, shape=row, dtype=dtype)
    task = graph.task(result, symbols={"b": 64, "r": 900, "d": 300})
    strategy = _dense(task, chip)
    for seed, (b, r, d) in enumerate([*SIZES[:4], *SIZES[5:], (70, 65, 301), (2, 700, 996)]):
        rng = np.random.default_rng(seed)
        signs, ones = rng.choice([-1, 1], size=(b, r, d)), rng.random((b, r, d)) < 0.99
        values = np.where(ones, 1, 2) * signs if "prod" in op else rng.integers(-8, 9, size=(b, r, d)) / 4
        weights = (rng.integers(-8, 9, size=d) / 4).astype("f4")
        expected = reduce(np.abs(values).astype("f8"), 1, keepdims=True) * weights
        inputs = {"x": values.astype("f4"), "weight": weights}
        (value,) = on_twin(task, inputs, strategy=strategy, sizes={"b": b, "r": r, "d": d})
        exact = 1e-5 if dtype == "float32" else 1e-2
        np.testing.assert_allclose(np.asarray(value, "f8"), expected, rtol=exact, atol=exact)
    assert audit(task, write(task, strategy, chip)).status is GateStatus.PASSED


WHOLE = [(2, "float32"), (3, "bfloat16"), (7, "float32"), (64, "float16"), (121, "float32")]
"""How many steps a tile holds, all of them."""


def _weighted(builder: Any, steps: int, dtype: str) -> KernelTask:
    """A weighted softmax of every lane, its sum of squares, and a shift for each lane and outer iteration."""
    graph = builder()
    shape, row = ("b", steps, "d"), ("b", 1, "d")
    x, gain = graph.input("x", shape, dtype), graph.input("gain", ("b", 1, 1), dtype)
    shift = graph.input("shift", ("d",), dtype)
    powers = graph.call("_softmax.default", x, 1, False, shape=shape, dtype=dtype)
    moved = graph.call("add.Tensor", powers, shift, shape=shape, dtype=dtype)
    result = graph.call("mul.Tensor", moved, gain, shape=shape, dtype=dtype)
    square = graph.call("mul.Tensor", x, x, shape=shape, dtype=dtype)
    total = graph.call("sum.dim_IntList", square, (1,), True, shape=row, dtype=dtype)
    task: KernelTask = graph.task(result, total, symbols={"b": 3, "d": 700})
    return task


def _whole(task: KernelTask, chip: Any) -> Strategy:
    """The first strategy with all steps in a tile."""
    start = _in_steps(task, chip)
    found = [start, *(move.strategy for move in moves(task, start, chip))]
    return next(item for item in found if dict(item.settings)["whole"])


@few(("steps", "dtype"), WHOLE, keep=(1,))
def test_whole_tiles_pass_the_audit(steps: int, dtype: str, builder: Any, chip: Any) -> None:
    task = _weighted(builder, steps, dtype)
    assert audit(task, write(task, _whole(task, chip), chip)).status is GateStatus.PASSED


@few(("steps", "dtype"), WHOLE, keep=(1, 4))
def test_all_steps_in_a_tile(steps: int, dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    task = _weighted(builder, steps, dtype)
    strategy = _whole(task, chip)
    exact = 1e-4 if dtype == "float32" else 2e-2
    for seed, (b, _, d) in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        values = {"x": (b, steps, d), "gain": (b, 1, 1), "shift": (d,)}
        inputs = {name: (rng.integers(-8, 9, size=size) / 4).astype("f4") for name, size in values.items()}
        wide = inputs["x"].astype("f8")
        exponents = np.exp(wide - wide.max(1, keepdims=True))
        right = (exponents / exponents.sum(1, keepdims=True) + inputs["shift"]) * inputs["gain"]
        results = on_twin(task, inputs, strategy=strategy, sizes={"b": b, "d": d})
        for value, wanted in zip(results, (right, (wide**2).sum(1, keepdims=True)), strict=True):
            np.testing.assert_allclose(np.asarray(value, "f8"), wanted, rtol=exact, atol=exact)


@pytest.mark.parametrize(
    ("op", "reduce"),
    [("amax.default", np.max), ("amin.default", np.min), ("sum.dim_IntList", np.sum)],
)
def test_masks_and_extremes_of_lanes(op: str, reduce: Any, builder: Any, on_twin: Any, chip: Any) -> None:
    """Elements above half of their lane's result, else a lane's offset less them."""
    graph = builder()
    shape = ("r", "d")
    x, offset = graph.input("x", shape), graph.input("offset", ("d",))
    found = graph.call(op, x, (0,), True, shape=(1, "d"))
    half = graph.call("mul.Tensor", found, 0.5, shape=(1, "d"))
    above = graph.call("gt.Tensor", x, half, shape=shape, dtype="bool")
    far = graph.call("gt.Scalar", found, 2.0, shape=(1, "d"), dtype="bool")
    both = graph.call("logical_and.default", above, far, shape=shape, dtype="bool")
    less = graph.call("sub.Tensor", offset, x, shape=shape)
    task = graph.task(graph.call("where.self", both, x, less, shape=shape), symbols={"r": 700, "d": 40})
    strategy = _in_steps(task, chip)
    for seed, (_, r, d) in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        x_values = rng.integers(-9, 10, size=(r, d)).astype("f4")
        offsets = rng.normal(size=d).astype("f4")
        whole = reduce(x_values, 0, keepdims=True)
        expected = np.where((x_values > whole / 2) & (whole > 2), x_values, offsets - x_values)
        inputs = {"x": x_values, "offset": offsets}
        (result,) = on_twin(task, inputs, strategy=strategy, sizes={"r": r, "d": d})
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_short_lanes_start_in_steps_and_long_ones_do_not(builder: Any, chip: Any) -> None:
    def form(r: int, d: int) -> str:
        graph = builder()
        x = graph.input("x", ("r", "d"))
        total = graph.call("sum.dim_IntList", x, (0,), shape=("d",))
        task = graph.task(total, symbols={"r": r, "d": d})
        return str(dict(initial(task, chip).settings)["form"])

    assert form(16384, 4096) == "steps"
    assert form(4096, 4095 * 128 - 1) == "lanes"


def test_numbers_of_steps_and_mixed_widths_keep_one_step_a_tile(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", ("r", "d"))
    weight = graph.input("weight", ("r", 1))
    product = graph.call("mul.Tensor", x, weight, shape=("r", "d"))
    task = graph.task(graph.call("sum.dim_IntList", product, (0,), shape=("d",)), symbols={"r": 9, "d": 70})
    assert forms(plan(task, load_chip()), 70) == (Form.LANES,)
    graph = builder()
    narrow, wide = graph.input("narrow", ("r", "d"), "float16"), graph.input("wide", ("r", "d"))
    both = graph.call("add.Tensor", narrow, wide, shape=("r", "d"))
    task = graph.task(graph.call("sum.dim_IntList", both, (0,), shape=("d",)), symbols={"r": 9, "d": 70})
    assert forms(plan(task, load_chip()), 70) == (Form.LANES,)
