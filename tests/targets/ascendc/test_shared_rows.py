"""Rows shared by several cores: normalisations, a softmax and plain reductions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.fusion.program import plan_program
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import legalised
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial, refusal, strategy_of
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.lowering.queues import plan
from evokernel_core.targets.ascendc.target import ASCENDC


def shared(task: KernelTask, chip: Any, **settings: Any) -> Strategy:
    """The task's schedule of shared rows, with tiles so small that short rows have many."""
    planned = plan(task, load_chip())
    schedule = evolve(Schedule(Form.SHARED, 256, at_once=2**14), **settings)
    assert refusal(planned, schedule, task, chip) is None
    return strategy_of(planned, schedule, "")


def channels_normalised(builder: Any, dtype: str = "float32") -> KernelTask:
    """Batch norm in training mode: over images and pixels of each channel; the means are a result too."""
    graph = builder()
    shape, one = ("n", "c", "p"), (1, "c", 1)
    x = graph.input("x", shape, dtype)
    weight = graph.input("weight", ("c", 1), dtype, parameter=True)

    def call(op: str, *args: Any, to: Any = shape) -> Any:
        return graph.call(op, *args, shape=to, dtype=dtype)

    mean = call("mean.dim", x, (0, 2), True, to=one)
    centred = call("sub.Tensor", x, mean)
    variance = call("mean.dim", call("mul.Tensor", centred, centred), (0, 2), True, to=one)
    scale = call("rsqrt.default", call("add.Tensor", variance, 1e-5, to=one), to=one)
    result = call("mul.Tensor", call("mul.Tensor", centred, scale), weight)
    task: KernelTask = graph.task(result, mean, symbols={"n": 4, "c": 6, "p": 35})
    return task


def layers_normalised(builder: Any) -> KernelTask:
    graph = builder()
    x = graph.input("x", ("n", "p"))
    weight = graph.input("weight", ("p",), parameter=True)
    mean = graph.call("mean.dim", x, (1,), True, shape=("n", 1))
    centred = graph.call("sub.Tensor", x, mean, shape=("n", "p"))
    variance = graph.call(
        "mean.dim", graph.call("mul.Tensor", centred, centred, shape=("n", "p")), (1,), True, shape=("n", 1)
    )
    scale = graph.call("rsqrt.default", variance, shape=("n", 1))
    scaled = graph.call("mul.Tensor", centred, scale, shape=("n", "p"))
    task: KernelTask = graph.task(
        graph.call("mul.Tensor", scaled, weight, shape=("n", "p")), symbols={"n": 3, "p": 5000}
    )
    return task


@pytest.mark.parametrize("online", [True, False])
def test_channels_at_many_sizes(online: bool, builder: Any, on_twin: Any) -> None:
    task = channels_normalised(builder)
    strategy = shared(task, on_twin.chip, online=online)
    rng = np.random.default_rng(3)
    for n, c, p in [(4, 6, 35), (1, 1, 9000), (3, 100, 300), (70, 2, 1), (2, 7, 1025)]:
        x = rng.normal(20, 3, size=(n, c, p)).astype("f4")
        weight = rng.normal(size=(c, 1)).astype("f4")
        sizes = {"n": n, "c": c, "p": p}
        result, mean = on_twin(task, {"x": x, "weight": weight}, strategy, sizes=sizes)
        wide = x.astype("f8")
        expected = (wide - wide.mean((0, 2), keepdims=True)) / np.sqrt(wide.var((0, 2), keepdims=True) + 1e-5)
        np.testing.assert_allclose(result, expected * weight, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(mean, wide.mean((0, 2), keepdims=True), rtol=1e-5, atol=1e-5)


def test_rows_of_one_piece(builder: Any, on_twin: Any) -> None:
    task = layers_normalised(builder)
    strategy = shared(task, on_twin.chip, online=True)
    rng = np.random.default_rng(4)
    for n, p in [(3, 5000), (200, 600), (1, 257), (50, 256)]:
        x = rng.normal(-9, 2, size=(n, p)).astype("f4")
        weight = rng.normal(size=p).astype("f4")
        (result,) = on_twin(task, {"x": x, "weight": weight}, strategy, sizes={"n": n, "p": p})
        wide = x.astype("f8")
        expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True) * weight
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("online", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_softmax_and_extremes(online: bool, dtype: str, builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", "p"), dtype)
    soft = graph.call("_softmax.default", x, 1, False, shape=("n", "p"), dtype=dtype)
    least = graph.call("amin.default", x, (1,), True, shape=("n", 1), dtype=dtype)
    task = graph.task(soft, least, symbols={"n": 2, "p": 3000})
    strategy = shared(task, on_twin.chip, online=online, buffers=1)
    values = np.random.default_rng(5).normal(0, 4, size=(5, 3001)).astype(dtype)
    result, smallest = on_twin(task, {"x": values}, strategy, sizes={"n": 5, "p": 3001})
    wide = np.exp(values.astype("f8") - values.max(1, keepdims=True))
    tolerance = 1e-5 if dtype == "float32" else 2e-3
    np.testing.assert_allclose(result, wide / wide.sum(1, keepdims=True), rtol=tolerance, atol=1e-7)
    np.testing.assert_array_equal(smallest, values.min(1, keepdims=True))


def test_few_long_rows_are_shared_first(builder: Any, chip: Any) -> None:
    task = layers_normalised(builder)
    long = evolve(task, symbols=tuple(evolve(s, size=2**22) if s.name == "p" else s for s in task.symbols))
    assert initial(long, chip).setting("form") == "shared"


def test_a_second_variance_reads_nothing(builder: Any, on_twin: Any) -> None:
    graph = builder()
    shape, one = ("n", 3, "p"), (1, 3, 1)
    x = graph.input("x", shape)
    outputs = [TensorSpec(one, "float32"), TensorSpec(one, "float32")]
    both = graph.calls("var_mean.correction", x, (0, 2), outputs=outputs, correction=0, keepdim=True)
    unbiased = graph.call("var.correction", x, (0, 2), shape=one, correction=1, keepdim=True)
    scale = graph.call("rsqrt.default", both, shape=one)
    centred = graph.call("sub.Tensor", x, type(both)(both.name, 1), shape=shape)
    result = graph.call("mul.Tensor", centred, scale, shape=shape)
    task = graph.task(result, unbiased, symbols={"n": 8, "p": 2**20})
    ops = [node.op for node in legalised(task, load_chip()).graph.nodes]
    assert "aten.var.correction" not in ops and ops.count("aten.var_mean.correction") == 1
    assert len(plan_program(legalised(task, load_chip()), on_twin.chip, ASCENDC).stages) == 1
    values = np.random.default_rng(6).normal(5, 2, size=(2, 3, 700)).astype("f4")
    normal, variance = on_twin(task, {"x": values}, sizes={"n": 2, "p": 700})
    wide = values.astype("f8")
    np.testing.assert_allclose(variance, wide.var((0, 2), keepdims=True, ddof=1), rtol=1e-5)
    expected = (wide - wide.mean((0, 2), keepdims=True)) / wide.std((0, 2), keepdims=True)
    np.testing.assert_allclose(normal, expected, rtol=1e-3, atol=1e-3)
