"""Kernels with reductions on the twin against float64, without a hazard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial, moves
from evokernel_core.targets.ascendc.lowering.queues import plan
from tests.tables import drawn, few

Shape = tuple[int, ...]


def softmax(b: Any, x: Any, shape: Shape, dtype: str) -> Any:
    return b.call("_softmax.default", x, -1, False, shape=shape, dtype=dtype)


def log_softmax(b: Any, x: Any, shape: Shape, dtype: str) -> Any:
    return b.call("_log_softmax.default", x, -1, False, shape=shape, dtype=dtype)


def layer_norm(b: Any, x: Any, shape: Shape, dtype: str) -> Any:
    weight = b.input("weight", [shape[-1]], dtype, parameter=True)
    bias = b.input("bias", [shape[-1]], dtype, parameter=True)
    kept = TensorSpec([*shape[:-1], 1], "float32")
    outputs = [TensorSpec(shape, dtype), kept, kept]
    return b.calls("native_layer_norm.default", x, (shape[-1],), weight, bias, 1e-5, outputs=outputs)


def rms_norm(b: Any, x: Any, shape: Shape, dtype: str) -> Any:
    kept = (*shape[:-1], 1)
    wide = b.call("_to_copy.default", x, shape=shape)
    square = b.call("pow.Tensor_Scalar", wide, 2, shape=shape)
    mean = b.call("mean.dim", square, (-1,), True, shape=kept)
    root = b.call("rsqrt.default", b.call("add.Tensor", mean, 1e-5, shape=kept), shape=kept)
    normal = b.call("mul.Tensor", wide, root, shape=shape)
    return b.call("_to_copy.default", normal, shape=shape, dtype=dtype)


def l2_normalise(b: Any, x: Any, shape: Shape, dtype: str) -> Any:
    norm = b.call("linalg_vector_norm.default", x, 2, (-1,), True, shape=(*shape[:-1], 1), dtype=dtype)
    return b.call("div.Tensor", x, norm, shape=shape, dtype=dtype)


def logsumexp(b: Any, x: Any, shape: Shape, dtype: str) -> Any:
    return b.call("logsumexp.default", x, (-1,), False, shape=shape[:-1], dtype=dtype)


def variance(b: Any, x: Any, shape: Shape, dtype: str) -> Any:
    return b.call("var.correction", x, (-1,), shape=shape[:-1], dtype=dtype, correction=0, keepdim=False)


def largest(b: Any, x: Any, shape: Shape, dtype: str) -> Any:
    return b.call("amax.default", x, (-1,), True, shape=(*shape[:-1], 1), dtype=dtype)


def smallest(b: Any, x: Any, shape: Shape, dtype: str) -> Any:
    outputs = [TensorSpec(shape[:-1], dtype), TensorSpec(shape[:-1], "int64")]
    return b.calls("min.dim", x, -1, outputs=outputs)


def total(b: Any, x: Any, shape: Shape, dtype: str) -> Any:
    return b.call("sum.dim_IntList", x, (-1,), shape=shape[:-1], dtype=dtype)


def _exp(x: Any) -> Any:
    return np.exp(x - x.max(-1, keepdims=True))


EXPECTED: dict[Any, Any] = {
    softmax: lambda x, _: _exp(x) / _exp(x).sum(-1, keepdims=True),
    log_softmax: lambda x, _: x - x.max(-1, keepdims=True) - np.log(_exp(x).sum(-1, keepdims=True)),
    layer_norm: lambda x, w: (
        (x - x.mean(-1, keepdims=True))
        / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        * w["weight"].astype(np.float64)
        + w["bias"].astype(np.float64)
    ),
    rms_norm: lambda x, _: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5),
    l2_normalise: lambda x, _: x / np.sqrt((x * x).sum(-1, keepdims=True)),
    logsumexp: lambda x, _: np.log(_exp(x).sum(-1)) + x.max(-1),
    variance: lambda x, _: x.var(-1),
    largest: lambda x, _: x.max(-1, keepdims=True),
    smallest: lambda x, _: x.min(-1),
    total: lambda x, _: x.sum(-1),
}


def check(
    make: Any, shape: Shape, dtype: str, builder: Any, on_twin: Any, strategy: Any = None, shift: float = 0.0
) -> None:
    b = builder()
    task = b.task(make(b, b.input("x", shape, dtype), shape, dtype))
    rng = np.random.default_rng(math.prod(shape))
    arrays = {
        item.name: (rng.normal(size=item.spec.sizes({})) * 2 + shift * (item.name == "x")).astype(dtype)
        for item in task.graph.inputs
    }
    (result,) = on_twin(task, arrays, strategy(task) if strategy else None)
    expected = EXPECTED[make](arrays["x"].astype(np.float64), arrays)
    relative, absolute = (2e-5, 2e-5) if dtype == "float32" else (1e-2, 1e-2)
    np.testing.assert_allclose(result.astype(np.float64), expected, relative, absolute)


@few("make", EXPECTED, keep=(0, 2, 4, 7, 9), ids=lambda make: make.__name__)
@pytest.mark.parametrize("shape", [(37, 101), (3, 20011)], ids=["short", "long"])
def test_reductions_of_short_and_long_rows(make: Any, shape: Shape, builder: Any, on_twin: Any) -> None:
    check(make, shape, "float32", builder, on_twin)


def any_rows(make: Any, rows: Shape, columns: int, dtype: str, data: Any, builder: Any, on_twin: Any) -> None:
    def pick(task: Any) -> Any:
        start = on_twin.initial(task)
        return data.draw(st.sampled_from([start, *(m.strategy for m in on_twin.moves(task, start))]))

    check(make, (*rows, columns), dtype, builder, on_twin, pick)


test_any_rows_under_any_schedule, test_many_rows_under_any_schedule = drawn(
    any_rows,
    6,
    20,
    derandomize=True,
    make=st.sampled_from(sorted(EXPECTED, key=lambda make: make.__name__)),
    rows=st.sampled_from([(1,), (5,), (49,), (2, 70), (200,)]),
    columns=st.sampled_from([1, 2, 7, 8, 31, 64, 65, 128, 200, 777, 1024, 2100]),
    dtype=st.sampled_from(["float32", "float16"]),
    data=st.data(),
)


@few("part", range(3), keep=(0,))
def test_every_move_from_a_streamed_softmax_is_right(part: int, builder: Any, on_twin: Any) -> None:
    b = builder()
    task = b.task(softmax(b, b.input("x", (3, 17_000)), (3, 17_000), "float32"))
    start = initial(task, on_twin.chip)
    names = {move.name for move in moves(task, start, on_twin.chip)}
    assert "a pass for each reduction" in names
    for move in moves(task, start, on_twin.chip)[part::3]:
        check(softmax, (3, 17_000), "float32", builder, on_twin, lambda _, m=move: m.strategy)


def test_a_large_mean_does_not_spoil_the_variance(builder: Any, on_twin: Any) -> None:
    check(layer_norm, (4, 300), "float32", builder, on_twin, shift=100.0)


def test_a_kernel_is_right_for_every_size_of_its_symbols(builder: Any, on_twin: Any) -> None:
    b = builder()
    shape = ("s0", "s1")
    task = b.task(
        b.call("_softmax.default", b.input("x", shape), 1, False, shape=shape),
        symbols={"s0": 64, "s1": 512},
    )
    for sizes in ({"s0": 1, "s1": 1}, {"s0": 5, "s1": 33}, {"s0": 64, "s1": 512}, {"s0": 50, "s1": 65}):
        x = np.random.default_rng(0).normal(size=tuple(sizes.values())).astype(np.float32)
        (result,) = on_twin(task, {"x": x}, sizes=sizes)
        np.testing.assert_allclose(result, _exp(x) / _exp(x).sum(-1, keepdims=True), 1e-5, 1e-6)


def test_a_loss_reduces_everything_to_one_number(builder: Any, on_twin: Any) -> None:
    b = builder()
    a, c = b.input("prediction", [50, 100]), b.input("target", [50, 100])
    difference = b.call("sub.Tensor", a, c, shape=[50, 100])
    square = b.call("pow.Tensor_Scalar", difference, 2, shape=[50, 100])
    task = b.task(b.call("mean.default", square, shape=[]))
    rng = np.random.default_rng(7)
    arrays = {name: rng.normal(size=(50, 100)).astype(np.float32) for name in ("prediction", "target")}
    (result,) = on_twin(task, arrays)
    np.testing.assert_allclose(result, ((arrays["prediction"] - arrays["target"]) ** 2).mean(), 1e-5)


def test_row_conditions_and_masks_per_batch(builder: Any, on_twin: Any) -> None:
    b = builder()
    shape = [4, 6, 50]
    x, mask = b.input("x", shape), b.input("mask", [4, 1, 50], "bool")
    low = b.call("full.default", (), -1e9, shape=[])
    masked = b.call("where.self", mask, low, x, shape=shape)
    soft = b.call("_softmax.default", masked, -1, False, shape=shape)
    sums = b.call("sum.dim_IntList", x, (-1,), True, shape=[4, 6, 1])
    positive = b.call("gt.Scalar", sums, 0.0, shape=[4, 6, 1], dtype="bool")
    out = b.call("where.self", positive, soft, x, shape=shape)
    rng = np.random.default_rng(8)
    arrays = {"x": rng.normal(size=shape).astype(np.float32), "mask": rng.random((4, 1, 50)) < 0.4}
    (result,) = on_twin(b.task(out), arrays)
    e = _exp(np.where(arrays["mask"], -1e9, arrays["x"].astype(np.float64)))
    expected = np.where(arrays["x"].sum(-1, keepdims=True) > 0, e / e.sum(-1, keepdims=True), arrays["x"])
    np.testing.assert_allclose(result, expected, 1e-5, 1e-6)


def test_two_outputs_of_different_rank(builder: Any, on_twin: Any) -> None:
    b = builder()
    x = b.input("x", [50, 100])
    mean = b.call("mean.dim", x, (1,), True, shape=[50, 1])
    centred = b.call("sub.Tensor", x, mean, shape=[50, 100])
    array = np.random.default_rng(9).normal(size=(50, 100)).astype(np.float32)
    task = b.task(centred, mean)
    assert plan(task, load_chip()).family == "rowwise"
    got_centred, got_mean = on_twin(task, {"x": array})
    np.testing.assert_allclose(got_mean, array.mean(1, keepdims=True), 1e-5, 1e-6)
    np.testing.assert_allclose(got_centred, array - array.mean(1, keepdims=True), 1e-5, 1e-6)


def test_rows_of_small_sizes_have_room_to_grow(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", 9, "c"))
    result = graph.call("sum.dim_IntList", x, (1, 2), False, shape=("n",))
    task = graph.task(result, symbols={"n": 7, "c": 13})
    for size in (1, 13, 17, 32):
        values = np.random.default_rng(size).standard_normal((3, 9, size)).astype("f4")
        (found,) = on_twin(task, {"x": values}, sizes={"n": 3, "c": size})
        np.testing.assert_allclose(found, values.sum((1, 2)), rtol=1e-4, atol=1e-4)
