"""Half types: where intermediate results are rounded as PyTorch rounds them, and what that may cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.ascendc.author import initial, moves, write
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask

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
    text = write(graph.task(value), initial(graph.task(value), chip), chip).op_kernel_cpp
    assert text.count("RoundMode::CAST_RINT") == 1  # the result's
