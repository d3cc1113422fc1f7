"""Fused Triton kernels: each form of a tile beside NumPy, with infinities and NaN where passes are joined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.lowering.plan import plan
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.triton.kernels.fused.accumulating import count
from evokernel_core.targets.triton.kernels.fused.fused_family import FusedFamily
from evokernel_core.targets.triton.kernels.fused.fused_schedule import (
    MOST_TILE,
    TileSchedule,
    first_schedules,
)

FAMILY = FusedFamily()
ROWS, COLUMNS = 5, 300
KEPT = {"rows": 1, "columns": 512, "warps": 4, "looped": False}
PACKED = {"rows": 4, "columns": 512, "warps": 4, "looped": False}
LOOPED = {"rows": 1, "columns": 64, "warps": 2, "looped": True}
PACKED_LOOP = {"rows": 4, "columns": 64, "warps": 2, "looped": True}


def softmax(b: Any, x: Any, shape: Any) -> Any:
    return b.call("_softmax.default", x, -1, False, shape=shape)


def logsumexp(b: Any, x: Any, shape: Any) -> Any:
    return b.call("logsumexp.default", x, (-1,), False, shape=shape[:-1])


def normed(b: Any, x: Any, shape: Any) -> Any:
    kept = TensorSpec([*shape[:-1], 1], "float32")
    outputs = [TensorSpec(shape, "float32"), kept, kept]
    weight = b.input("weight", [shape[-1]], parameter=True)
    return b.calls("native_layer_norm.default", x, (shape[-1],), weight, None, 1e-5, outputs=outputs)


def numpy_softmax(x: Any) -> Any:
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def numpy_logsumexp(x: Any) -> Any:
    top = x.max(-1, keepdims=True)
    shift = np.where(np.isinf(top), 0.0, top)
    return np.log(np.exp(x - shift).sum(-1)) + shift[..., 0]


def _strategy(task: KernelTask, gpu: Any, settings: dict[str, Any]) -> Strategy:
    strategy = FAMILY.initial(task, gpu)
    strategy = evolve(strategy, settings=settings)
    assert FAMILY.why_illegal(task, strategy, gpu) is None
    return strategy


def _odd() -> Any:
    """Rows with an infinity, with nothing else than -inf in a step, with NaN, and ordinary ones."""
    x = np.random.default_rng(1).normal(size=(ROWS, COLUMNS))
    x[1, 64:128] = -np.inf
    x[2, 7] = np.nan
    x[3] += 300.0
    return x


@pytest.mark.parametrize("settings", [KEPT, PACKED, LOOPED, PACKED_LOOP], ids=str)
@pytest.mark.parametrize(("make", "expected"), [(softmax, numpy_softmax), (logsumexp, numpy_logsumexp)])
def test_rows(make: Any, expected: Any, settings: Any, builder: Any, interpreted: Any, gpu: Any) -> None:
    b = builder()
    task = b.task(make(b, b.input("x", ("n", "m")), ("n", "m")), symbols={"n": ROWS, "m": COLUMNS})
    x = _odd()
    (result,) = interpreted(FAMILY, task, {"x": x}, strategy=_strategy(task, gpu, settings))
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(result, expected(x.astype(np.float32).astype(np.float64)), 2e-5, 1e-7)


@pytest.mark.parametrize("settings", [KEPT, LOOPED, PACKED_LOOP], ids=str)
def test_moments_beside_a_large_mean(settings: Any, builder: Any, interpreted: Any, gpu: Any) -> None:
    """Squares about the mean, as a sum of squares less the square of the mean loses them."""
    b = builder()
    task = b.task(normed(b, b.input("x", (ROWS, COLUMNS)), (ROWS, COLUMNS)))
    rng = np.random.default_rng(2)
    x = (rng.normal(size=(ROWS, COLUMNS)) + 1000.0).astype(np.float32)
    weight = rng.normal(size=COLUMNS).astype(np.float32)
    (result,) = interpreted(FAMILY, task, {"x": x, "weight": weight}, strategy=_strategy(task, gpu, settings))
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) * weight
    np.testing.assert_allclose(result, expected, 1e-3, 1e-3)


@pytest.mark.parametrize(
    "case",
    [
        ((3, 70, 50), (1,), {"rows": 128, "columns": 64, "warps": 4, "looped": False}),
        ((3, 70, 50), (1,), {"rows": 16, "columns": 32, "warps": 1, "looped": True}),
        ((4, 3, 70), (0, 2), {"rows": 2, "columns": 32, "warps": 1, "looped": True}),
    ],
)
@pytest.mark.parametrize(("op", "numpy"), [("sum.dim_IntList", np.sum), ("amax.default", np.max)])
def test_other_dimensions(op: str, numpy: Any, case: Any, builder: Any, interpreted: Any, gpu: Any) -> None:
    (shape, dims, settings), b = case, builder()
    kept = tuple(size for dim, size in enumerate(shape) if dim not in dims)
    task = b.task(b.call(op, b.input("x", shape), dims, False, shape=kept))
    x = np.random.default_rng(3).normal(size=shape)
    if gpu.backend == "npu":  # its buffer holds no more elements beside those of results
        settings = {**settings, "columns": 32}
    strategy = _strategy(task, gpu, settings)
    (result,) = interpreted(FAMILY, task, {"x": x}, strategy=strategy)
    np.testing.assert_allclose(result, numpy(x, axis=dims), 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_broadcasts(dtype: str, builder: Any, interpreted: Any, gpu: Any) -> None:
    b = builder()
    shape = (3, 7, 40)
    x, scale = b.input("x", shape, dtype), b.input("scale", (7, 1), dtype)
    task = b.task(b.call("mul.Tensor", x, scale, shape=shape, dtype=dtype))
    given = np.round(np.random.default_rng(4).normal(size=shape) * 8) / 8
    factors = np.arange(7.0).reshape(7, 1)
    (result,) = interpreted(FAMILY, task, {"x": given, "scale": factors})
    np.testing.assert_allclose(result, given * factors, 1e-2 if dtype == "bfloat16" else 1e-3)


def test_drafts_keep_rows_within_half_of_the_registers(builder: Any, gpu: Any) -> None:
    for columns in (100, 5_000, 40_000, 400_000):
        b = builder()
        task = b.task(softmax(b, b.input("x", (512, columns)), (512, columns)))
        drafts = first_schedules(plan(task, gpu), {}, gpu)
        assert drafts and all(isinstance(draft, TileSchedule) for draft in drafts)
        assert all(draft.looped or draft.tile <= MOST_TILE for draft in drafts)


def test_passes_are_counted(builder: Any, gpu: Any) -> None:
    """A softmax goes over its rows twice, a sum of exponentials once, a layer norm twice."""
    for make, passes in ((softmax, 2), (logsumexp, 1), (normed, 2)):
        b = builder()
        assert count(plan(b.task(make(b, b.input("x", (8, 100)), (8, 100))), gpu)) == passes
