"""Family piecewise: rows whose columns lie in pieces, as in batch and group normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import write
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial, moves
from evokernel_core.targets.ascendc.lowering.queues import plan
from tests.tables import few


def batch_norm(builder: Any, dtype: str = "float32") -> KernelTask:
    """Over images and pixels of each channel, with the channel's weight and bias."""
    graph = builder()
    shape, one = ("n", 6, "p"), (1, 6, 1)
    x = graph.input("x", shape, dtype)
    weight = graph.input("weight", (6, 1), dtype, parameter=True)
    bias = graph.input("bias", (6, 1), dtype, parameter=True)

    def call(op: str, *args: Any, to: Any = shape) -> Any:
        return graph.call(op, *args, shape=to, dtype=dtype)

    mean = call("mean.dim", x, (0, 2), True, to=one)
    centred = call("sub.Tensor", x, mean)
    variance = call("mean.dim", call("mul.Tensor", centred, centred), (0, 2), True, to=one)
    scale = call("rsqrt.default", call("add.Tensor", variance, 1e-5, to=one), to=one)
    scaled = call("mul.Tensor", call("mul.Tensor", centred, scale), weight)
    task: KernelTask = graph.task(call("add.Tensor", scaled, bias), symbols={"n": 4, "p": 35})
    return task


def group_norm(builder: Any) -> KernelTask:
    """Over the channels of a group and their pixels, with a weight and a bias for each channel."""
    graph = builder()
    shape, grouped, one = ("n", 12, "p"), ("n", 3, "4*p"), ("n", 3, 1)
    x = graph.input("x", shape)
    weight = graph.input("weight", (12, 1), parameter=True)
    bias = graph.input("bias", (12, 1), parameter=True)
    view = graph.call("view.default", x, (-1, 3, 4), shape=grouped)
    mean = graph.call("mean.dim", view, (2,), True, shape=one)
    centred = graph.call("sub.Tensor", view, mean, shape=grouped)
    square = graph.call("mul.Tensor", centred, centred, shape=grouped)
    variance = graph.call("mean.dim", square, (2,), True, shape=one)
    scale = graph.call("rsqrt.default", graph.call("add.Tensor", variance, 1e-5, shape=one), shape=one)
    scaled = graph.call("mul.Tensor", centred, scale, shape=grouped)
    back = graph.call("view.default", scaled, (-1, 12, 1), shape=shape)
    weighted = graph.call("mul.Tensor", back, weight, shape=shape)
    task: KernelTask = graph.task(
        graph.call("add.Tensor", weighted, bias, shape=shape), symbols={"n": 2, "p": 50}
    )
    return task


def _normalised(values: Any, axes: Any) -> Any:
    mean = values.mean(axes, keepdims=True)
    return (values - mean) / np.sqrt(values.var(axes, keepdims=True) + 1e-5)


@pytest.mark.parametrize(("n", "p"), [(4, 35), (1, 1000), (3, 1), (2, 20000)])
def test_batch_norm_at_many_sizes(n: int, p: int, builder: Any, on_twin: Any) -> None:
    task = batch_norm(builder)
    assert plan(task, load_chip()).family == "piecewise"
    rng = np.random.default_rng(n)
    x = rng.normal(2, 3, size=(n, 6, p)).astype("f4")
    weight, bias = rng.normal(size=(6, 1)).astype("f4"), rng.normal(size=(6, 1)).astype("f4")
    (result,) = on_twin(task, {"x": x, "weight": weight, "bias": bias}, sizes={"n": n, "p": p})
    expected = _normalised(x.astype("f8"), (0, 2)) * weight + bias
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_batch_norm_of_half_types(builder: Any, on_twin: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 6, 35)).astype("f2")
    weight, bias = rng.normal(size=(6, 1)).astype("f2"), rng.normal(size=(6, 1)).astype("f2")
    (result,) = on_twin(batch_norm(builder, "float16"), {"x": x, "weight": weight, "bias": bias})
    expected = _normalised(x.astype("f8"), (0, 2)) * weight + bias
    np.testing.assert_allclose(np.asarray(result, "f8"), expected, rtol=2e-2, atol=2e-2)


@few("part", range(3), keep=(0,))
def test_group_norm_and_every_move_of_it(part: int, builder: Any, on_twin: Any, chip: Any) -> None:
    task = group_norm(builder)
    assert plan(task, load_chip()).family == "piecewise"
    rng = np.random.default_rng(1)
    x = rng.normal(1, 2, size=(2, 12, 50)).astype("f4")
    weight, bias = rng.normal(size=(12, 1)).astype("f4"), rng.normal(size=(12, 1)).astype("f4")
    expected = _normalised(x.reshape(2, 3, 200).astype("f8"), 2).reshape(2, 12, 50) * weight + bias
    start = initial(task, chip)
    if part == 0:
        assert audit(task, write(task, start, chip)).status is GateStatus.PASSED
    for strategy in (start, *(move.strategy for move in moves(task, start, chip)))[part::3]:
        (result,) = on_twin(task, {"x": x, "weight": weight, "bias": bias}, strategy=strategy)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_sums_over_the_outermost_and_innermost_dimensions(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", (5, 3, 2, 17))
    powers = graph.call("exp.default", x, shape=(5, 3, 2, 17))
    task = graph.task(graph.call("sum.dim_IntList", powers, (0, 3), shape=(3, 2)))
    values = np.random.default_rng(2).normal(size=(5, 3, 2, 17)).astype("f4")
    (result,) = on_twin(task, {"x": values})
    np.testing.assert_allclose(result, np.exp(values).sum((0, 3)), rtol=1e-4, atol=1e-5)
