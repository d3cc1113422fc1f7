"""Family columnwise: reductions over leading and middle dimensions, with work before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import strategies as st

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import write
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial, moves
from evokernel_core.targets.ascendc.lowering.queues import plan
from tests.tables import drawn


def _softmax(values: Any, axis: int) -> Any:
    powers = np.exp(values - values.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def _reduction(builder: Any, op: str, dtype: str = "float32") -> KernelTask:
    graph = builder()
    x = graph.input("x", ("b", "r", "d"), dtype)
    result = graph.call(op, x, (1,), shape=("b", "d"), dtype=dtype)
    return graph.task(result, symbols={"b": 3, "r": 37, "d": 1000})


REDUCTIONS = {
    "sum.dim_IntList": np.sum,
    "mean.dim": np.mean,
    "amax.default": np.max,
    "amin.default": np.min,
}


@pytest.mark.parametrize("op", REDUCTIONS)
def test_a_middle_dimension_is_reduced_at_many_sizes(op: str, builder: Any, on_twin: Any, chip: Any) -> None:
    task = _reduction(builder, op)
    assert plan(task, load_chip()).family == "columnwise"
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED
    for seed, (b, r, d) in enumerate([(3, 37, 1000), (1, 1, 1), (2, 5, 7), (1, 64, 20000), (9, 3, 130)]):
        x = np.random.default_rng(seed).normal(size=(b, r, d)).astype("f4")
        (result,) = on_twin(task, {"x": x}, sizes={"b": b, "r": r, "d": d})
        np.testing.assert_allclose(result, REDUCTIONS[op](x.astype("f8"), 1), rtol=1e-4, atol=1e-4)


def test_masks_of_rows_lie_in_whole_blocks(builder: Any, on_twin: Any, chip: Any) -> None:
    """A log-sum-exp has two, of a bit a column: tiles of 320 columns have 40 bytes of them."""
    graph = builder()
    x = graph.input("x", ("b", "r", "d"))
    made = graph.call("logsumexp.default", x, (1,), False, shape=("b", "d"))
    task = graph.task(made, symbols={"b": 2, "r": 37, "d": 1000})
    strategy = initial(task, chip)
    narrow = {**dict(strategy.settings), "form": "lanes", "tile": 320}
    values = np.random.default_rng(3).normal(size=(2, 37, 1000)).astype("f4")
    (result,) = on_twin(task, {"x": values}, strategy=evolve(strategy, settings=tuple(narrow.items())))
    np.testing.assert_allclose(result, np.log(np.exp(values.astype("f8")).sum(1)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_accumulate_in_float32(dtype: str, builder: Any, on_twin: Any) -> None:
    task = _reduction(builder, "sum.dim_IntList", dtype)
    x = np.random.default_rng(1).integers(-4, 5, size=(2, 50, 300)).astype("f4")
    (result,) = on_twin(task, {"x": x}, sizes={"b": 2, "r": 50, "d": 300})
    np.testing.assert_allclose(np.asarray(result, "f8"), x.sum(1), rtol=1e-2, atol=1e-2)


def test_a_softmax_over_the_channels(builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", ("b", 6, "h", "w"))
    task = graph.task(
        graph.call("_softmax.default", x, 1, False, shape=("b", 6, "h", "w")),
        symbols={"b": 2, "h": 9, "w": 31},
    )
    values = np.random.default_rng(3).normal(size=(2, 6, 9, 31)).astype("f4") * 5
    (result,) = on_twin(task, {"x": values})
    np.testing.assert_allclose(result, _softmax(values.astype("f8"), 1), rtol=1e-4, atol=1e-6)


def _rms_norm(builder: Any) -> KernelTask:
    """With a weight for each feature (a number a step), a shift for each pixel (a number a lane) and a
    gain for each image (a number an outer iteration)."""
    graph = builder()
    shape = ("b", "c", "p")
    x = graph.input("x", shape)
    weight = graph.input("weight", ("c", 1), parameter=True)
    shift = graph.input("shift", ("p",), parameter=True)
    gain = graph.input("gain", ("b", 1, 1))
    square = graph.call("pow.Tensor_Scalar", x, 2, shape=shape)
    mean = graph.call("mean.dim", square, (1,), True, shape=("b", 1, "p"))
    root = graph.call(
        "sqrt.default", graph.call("add.Tensor", mean, 1e-5, shape=("b", 1, "p")), shape=("b", 1, "p")
    )
    scaled = graph.call("mul.Tensor", graph.call("div.Tensor", x, root, shape=shape), weight, shape=shape)
    moved = graph.call("add.Tensor", scaled, shift, shape=shape)
    task: KernelTask = graph.task(
        graph.call("mul.Tensor", moved, gain, shape=shape), symbols={"b": 2, "c": 12, "p": 700}
    )
    return task


def test_numbers_for_each_step_lane_and_outer_iteration(builder: Any, on_twin: Any, chip: Any) -> None:
    task = _rms_norm(builder)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(2, 12, 700)).astype("f4")
    weight, shift = rng.normal(size=(12, 1)).astype("f4"), rng.normal(size=700).astype("f4")
    gain = rng.normal(size=(2, 1, 1)).astype("f4")
    expected = (x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5) * weight + shift) * gain
    steps = [initial(task, chip), *(move.strategy for move in moves(task, initial(task, chip), chip))]
    for strategy in steps:
        inputs = {"x": x, "weight": weight, "shift": shift, "gain": gain}
        (result,) = on_twin(task, inputs, strategy=strategy)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_leading_dimensions_and_a_mask(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", "d"))
    clipped = graph.call("clamp.default", x, -1.0, 0.5, shape=("n", "d"))
    positive = graph.call("gt.Scalar", clipped, 0, shape=("n", "d"), dtype="bool")
    chosen = graph.call("where.self", positive, clipped, x, shape=("n", "d"))
    total = graph.call("sum.dim_IntList", chosen, (0,), shape=("d",))
    above = graph.call("gt.Scalar", total, 0, shape=("d",), dtype="bool")
    result = graph.call(
        "where.self", above, total, graph.call("exp.default", total, shape=("d",)), shape=("d",)
    )
    task = graph.task(result, symbols={"n": 21, "d": 333})
    values = np.random.default_rng(5).normal(size=(21, 333)).astype("f4")
    clip = np.clip(values, -1, 0.5)
    sums = np.where(clip > 0, clip, values).sum(0)
    (found,) = on_twin(task, {"x": values})
    np.testing.assert_allclose(found, np.where(sums > 0, sums, np.exp(sums)), rtol=1e-4, atol=1e-5)


def _check_split(builder: Any, on_twin: Any, data: Any) -> None:
    rank = data.draw(st.integers(2, 4))
    shape = data.draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank))
    first = data.draw(st.integers(0, rank - 2))
    last = data.draw(st.integers(first, rank - 2))
    dims = tuple(range(first, last + 1))
    keep = data.draw(st.booleans())
    graph = builder()
    x = graph.input("x", shape)
    kept = [1 if i in dims else n for i, n in enumerate(shape) if keep or i not in dims]
    powers = graph.call("exp.default", x, shape=shape)
    task = graph.task(graph.call("sum.dim_IntList", powers, dims, keep, shape=kept))
    values = np.random.default_rng(6).normal(size=shape).astype("f4")
    (result,) = on_twin(task, {"x": values})
    expected = np.exp(values).sum(dims, keepdims=keep)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


test_any_split_of_the_dimensions, _ = drawn(_check_split, 8, 8, derandomize=True, data=st.data())
_, test_many_splits_of_the_dimensions = drawn(_check_split, 8, 40, data=st.data())


@pytest.mark.parametrize("other", ["amax.default", "logsumexp.default"])
def test_a_variance_beside_another_reduction(other: str, builder: Any, on_twin: Any) -> None:
    """Nothing but the variance reads the sum that it takes."""
    graph = builder()
    x = graph.input("x", ("b", "c", "p"))
    spread = graph.call("var.correction", x, (1,), shape=("b", "p"))
    beside = graph.call(other, x, (1,), shape=("b", "p"))
    task = graph.task(spread, beside, symbols={"b": 2, "c": 3, "p": 5})
    for sizes in ((2, 3, 5), (3, 40, 70)):
        values = np.random.default_rng(3).normal(size=sizes).astype("f4")
        found = on_twin(task, {"x": values}, sizes=dict(zip("bcp", sizes, strict=True)))
        whole = values.max(1) if other.startswith("amax") else np.log(np.exp(values.astype("f8")).sum(1))
        np.testing.assert_allclose(found[0], values.astype("f8").var(1, ddof=1), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found[1], whole, rtol=1e-4, atol=1e-6)
