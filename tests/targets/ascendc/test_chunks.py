"""Programs whose images come in chunks: cube cores have one while vector cores go on with the one before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.fusion.program import plan_program
from evokernel_core.domain.graph import SymbolicInt, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import estimate_us, initial, legalised, moves, write
from evokernel_core.targets.ascendc.fusion.micro_batches import batch_of, chunks_worth
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.targets.ascendc.target import ASCENDC

CHANNELS, OUTPUTS = 5, 12
LARGE = {"n": 40, "h": 258, "w": 258}
"""Sizes of the user's file, for which L2 does not hold what lies between kernels."""


def convolved(graph: Any, *, softmax_dim: int = 1) -> ValueRef:
    """A convolution and a softmax: one kernel on cube cores, one behind."""
    x = graph.input("x", ("n", CHANNELS, "h", "w"))
    weight = graph.input("weight", (OUTPUTS, CHANNELS, 3, 3), parameter=True)
    shape = ("n", OUTPUTS, "h - 2", "w - 2")
    value = graph.call(
        "convolution.default", x, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, shape=shape
    )
    found: ValueRef = graph.call("_softmax.default", value, softmax_dim, False, shape=shape)
    return found


def pooled(graph: Any, value: ValueRef, half: str = "({} - 2) // 2") -> ValueRef:
    shape = ("n", OUTPUTS, half.format("h"), half.format("w"))
    found: ValueRef = graph.call("avg_pool2d.default", value, (2, 2), (2, 2), shape=shape)
    return found


def expected(inputs: dict[str, Any]) -> Any:
    x, weight = inputs["x"], inputs["weight"]
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    value = np.einsum("nchwij,ocij->nohw", windows, weight)
    value = np.exp(value - value.max(1, keepdims=True))
    value /= value.sum(1, keepdims=True)
    return means(value)


def means(value: Any) -> Any:
    """Of windows of 2 x 2."""
    rows, columns = (size // 2 * 2 for size in value.shape[2:])
    value = value[:, :, :rows, :columns].reshape(*value.shape[:2], rows // 2, 2, columns // 2, 2)
    return value.mean((3, 5))


def task_of(builder: Any, *, sums: bool) -> KernelTask:
    """With ``sums`` the last kernel takes all images: it sums them up."""
    graph = builder()
    value = pooled(graph, convolved(graph))
    if sums:
        value = graph.call("sum.dim_IntList", value, (0,), shape=(OUTPUTS, "(h - 2) // 2", "(w - 2) // 2"))
    task: KernelTask = graph.task(value, symbols=LARGE)
    return task


@pytest.mark.parametrize("sums", [False, True])
def test_images_come_in_chunks(sums: bool, builder: Any, on_twin: Any, chip: Any) -> None:
    task = task_of(builder, sums=sums)
    strategy = initial(task, chip)
    assert strategy.setting("chunks") > 1
    source = write(task, strategy, chip)
    assert audit(task, source).status is GateStatus.PASSED
    assert source.files[KERNEL].count("<<<") == 1
    rng = np.random.default_rng(0)
    weight = (rng.integers(-4, 5, size=(OUTPUTS, CHANNELS, 3, 3)) / 4).astype("f4")
    chunks = int(strategy.setting("chunks"))
    for images, height, width in ((1, 4, 5), (chunks - 1, 6, 7), (chunks + 3, 9, 20), (2 * chunks, 5, 4)):
        x = (rng.integers(-4, 5, size=(images, CHANNELS, height, width)) / 4).astype("f4")
        inputs = {"x": x, "weight": weight}
        (found,) = on_twin(task, inputs, strategy, {"n": images, "h": height, "w": width})
        wanted = expected(inputs)
        np.testing.assert_allclose(found, wanted.sum(0) if sums else wanted, rtol=1e-4, atol=1e-4)


TURNED_CHANNELS = 3


def transposed_task(builder: Any, *steps: str) -> KernelTask:
    """A transposed convolution in steps, element-wise ones, and a softmax over rows, whose images come in
    chunks."""
    graph = builder()
    x = graph.input("x", ("n", TURNED_CHANNELS, "h", "w"))
    weight = graph.input("weight", (TURNED_CHANNELS, OUTPUTS, 3, 3), parameter=True)
    bias = graph.input("bias", (OUTPUTS,), parameter=True)
    shape = ("n", OUTPUTS, "2*h - 1", "2*w - 1")
    value = graph.call(
        *("convolution.default", x, weight, bias, (2, 2), (1, 1), (1, 1), True, (0, 0), 1), shape=shape
    )
    for step in steps:
        value = graph.call(f"{step}.default", value, shape=shape)
    value = graph.call("_softmax.default", value, 2, False, shape=shape)
    task: KernelTask = graph.task(value, symbols={"n": 64, "h": 130, "w": 130})
    return task


def transposed_softmax(inputs: dict[str, Any]) -> Any:
    x, weight = inputs["x"], inputs["weight"]
    images, _, height, width = x.shape
    whole = np.zeros((images, OUTPUTS, 2 * height + 1, 2 * width + 1), "f4")
    for row in range(3):
        for column in range(3):
            product = np.einsum("nchw,co->nohw", x, weight[:, :, row, column])
            whole[:, :, row : row + 2 * height : 2, column : column + 2 * width : 2] += product
    value = whole[:, :, 1:-1, 1:-1] + inputs["bias"].reshape(-1, 1, 1)
    value = np.exp(value - value.max(2, keepdims=True))
    return value / value.sum(2, keepdims=True)


def test_transposed_convolutions_come_in_chunks(builder: Any, on_twin: Any, chip: Any) -> None:
    """Their cores do not wait for all others, and lay their weights out anew for each chunk."""
    task = transposed_task(builder)
    strategy = initial(task, chip)
    chunks = int(strategy.setting("chunks"))
    assert chunks > 1
    source = write(task, strategy, chip)
    assert audit(task, source).status is GateStatus.PASSED
    rng = np.random.default_rng(3)
    for images, height, width in ((1, 1, 1), (chunks + 2, 5, 9), (2 * chunks, 3, 20)):
        inputs = {
            "x": rng.normal(size=(images, TURNED_CHANNELS, height, width)).astype("f4"),
            "weight": rng.normal(size=(TURNED_CHANNELS, OUTPUTS, 3, 3)).astype("f4"),
            "bias": rng.normal(size=OUTPUTS).astype("f4"),
        }
        (found,) = on_twin(task, inputs, strategy, {"n": images, "h": height, "w": width})
        np.testing.assert_allclose(found, transposed_softmax(inputs), rtol=1e-4, atol=1e-4)


def test_chunk_after_chunk_gives_its_events_back(builder: Any, on_twin: Any, chip: Any) -> None:
    """Steps behind a transposed convolution take events beside those of queues, anew for each chunk."""
    task = transposed_task(builder, "relu")
    start = initial(task, chip)
    found = (move.strategy for move in moves(task, start, chip))
    strategy = next(item for item in (start, *found) if item.setting("chunks", 0))
    images = 3 * int(strategy.setting("chunks"))
    rng = np.random.default_rng(3)
    inputs = {
        "x": rng.normal(size=(images, TURNED_CHANNELS, 3, 4)).astype("f4"),
        "weight": rng.normal(size=(TURNED_CHANNELS, OUTPUTS, 3, 3)).astype("f4"),
        "bias": rng.normal(size=OUTPUTS).astype("f4"),
    }
    (found_values,) = on_twin(task, inputs, strategy, {"n": images, "h": 3, "w": 4})
    assert np.isfinite(found_values).all() and np.allclose(found_values.sum(2), 1, atol=1e-5)


def test_fewer_and_longer_chunks_are_drafts_too(builder: Any, chip: Any) -> None:
    task = legalised(task_of(builder, sums=False), load_chip())
    program = plan_program(task, chip, ASCENDC)
    batch = batch_of(task, program, 2)
    assert batch is not None
    found = chunks_worth(task, program, batch, load_chip())
    assert len(found) == len({-(-batch.images // chunks) for chunks in found}) > 1


def test_several_kernels_behind_take_all_images(builder: Any, on_twin: Any, chip: Any) -> None:
    """A softmax over images, of which windows are averaged again."""
    graph = builder()
    value = pooled(graph, convolved(graph))
    shape = ("n", OUTPUTS, "(h - 2) // 2", "(w - 2) // 2")
    value = graph.call("_softmax.default", value, 0, False, shape=shape)
    task = graph.task(pooled(graph, value, "({} - 2) // 4"), symbols=LARGE)
    strategy = initial(task, chip)
    assert strategy.setting("chunks") > 1
    rng = np.random.default_rng(2)
    for images in (1, 3, 2 * int(strategy.setting("chunks")) + 1):
        inputs = {
            "x": rng.normal(size=(images, CHANNELS, 12, 15)).astype("f4"),
            "weight": rng.normal(size=(OUTPUTS, CHANNELS, 3, 3)).astype("f4"),
        }
        (found,) = on_twin(task, inputs, strategy, {"n": images, "h": 12, "w": 15})
        wanted = np.exp(expected(inputs))
        np.testing.assert_allclose(found, means(wanted / wanted.sum(0)), rtol=1e-4, atol=1e-4)


def test_other_chunks_are_moves(builder: Any, on_twin: Any, chip: Any) -> None:
    task = task_of(builder, sums=False)
    start = initial(task, chip)
    found = {move.name: move.strategy for move in moves(task, start, chip)}
    assert {"more images in a chunk", "all images at once"} <= set(found)
    whole = found["all images at once"]
    assert estimate_us(task, whole, chip) > estimate_us(task, start, chip)
    back = [move for move in moves(task, whole, chip) if "in chunks" in move.name]
    assert back
    for strategy in found.values():
        assert write(task, strategy, chip).files[KERNEL]
    rng = np.random.default_rng(1)
    inputs = {
        "x": rng.normal(size=(7, CHANNELS, 6, 9)).astype("f4"),
        "weight": rng.normal(size=(OUTPUTS, CHANNELS, 3, 3)).astype("f4"),
    }
    for strategy in (found["more images in a chunk"], back[0].strategy):
        (result,) = on_twin(task, inputs, strategy, {"n": 7, "h": 6, "w": 9})
        np.testing.assert_allclose(result, expected(inputs), rtol=1e-4, atol=1e-4)


def test_the_number_of_images_is_that_of_all(builder: Any, on_twin: Any, chip: Any) -> None:
    """A kernel that divides a value without images by their number does not get them in chunks: there it
    would divide by those of a chunk."""
    graph = builder()
    value = pooled(graph, convolved(graph))
    scale = graph.input("scale", (OUTPUTS, 1, 1), parameter=True)
    share = graph.call("div.Tensor", scale, SymbolicInt("n"), shape=(OUTPUTS, 1, 1))
    shape = ("n", OUTPUTS, "(h - 2) // 2", "(w - 2) // 2")
    task = graph.task(graph.call("mul.Tensor", value, share, shape=shape), symbols=LARGE)
    rng = np.random.default_rng(0)
    inputs = {
        "x": rng.normal(size=(11, CHANNELS, 6, 9)).astype("f4"),
        "weight": rng.normal(size=(OUTPUTS, CHANNELS, 3, 3)).astype("f4"),
        "scale": rng.normal(size=(OUTPUTS, 1, 1)).astype("f4"),
    }
    (found,) = on_twin(task, inputs, initial(task, chip), {"n": 11, "h": 6, "w": 9})
    np.testing.assert_allclose(found, expected(inputs) * inputs["scale"] / 11, rtol=1e-4, atol=1e-4)


def test_images_that_meet_are_not_cut(builder: Any, chip: Any) -> None:
    """A softmax over images mixes them, and so does a sum of them."""
    graph = builder()
    task = legalised(graph.task(pooled(graph, convolved(graph, softmax_dim=0)), symbols=LARGE), load_chip())
    assert batch_of(task, plan_program(task, chip, ASCENDC), 2) is None
    task = legalised(task_of(builder, sums=True), load_chip())
    program = plan_program(task, chip, ASCENDC)
    assert batch_of(task, program, 2) is not None
    assert batch_of(task, program, len(program.stages)) is None
