"""Means and variances of long rows in one pass, also where a two-line formula loses every digit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial
from evokernel_core.targets.ascendc.kernels.fused.pairs import online_pairs
from evokernel_core.targets.ascendc.lowering.queues import plan


def moments(builder: Any, columns: Any, sizes: dict[str, int]) -> KernelTask:
    """Variance and mean of each row."""
    graph = builder()
    x = graph.input("x", ("n", columns))
    outputs = [TensorSpec(("n", 1), "float32"), TensorSpec(("n", 1), "float32")]
    both = graph.calls("var_mean.correction", x, (1,), outputs=outputs, correction=0, keepdim=True)
    task: KernelTask = graph.task(both, type(both)(both.name, 1), symbols=sizes)
    return task


def _rows(columns: int) -> Any:
    """Rows whose mean is large, whose beginning is unlike the rest, that drift, and that are constant."""
    rng = np.random.default_rng(columns)
    plain = rng.normal(size=columns)
    other = np.where(np.arange(columns) < min(columns // 3, 2000), 0, 100 + 0.1 * plain)
    return np.stack(
        [plain, 1000 + plain, other, np.linspace(-50, 3000, columns), np.full(columns, 12345.678)]
    ).astype("f4")


@pytest.mark.parametrize("columns", [17_000, 70_001])
def test_moments_of_difficult_rows(columns: int, builder: Any, on_twin: Any) -> None:
    task = moments(builder, "p", {"n": 5, "p": 70_001})
    strategy = initial(task, on_twin.chip)
    assert strategy.setting("online") is True
    x = _rows(columns)
    variance, mean = on_twin(task, {"x": x}, strategy, sizes={"n": 5, "p": columns})
    expected = x.astype("f8")
    np.testing.assert_allclose(mean[:, 0], expected.mean(1), rtol=1e-6, atol=1e-6)
    # of the constant row, what the rounding of its numbers makes
    np.testing.assert_allclose(variance[:, 0], expected.var(1), rtol=2e-5, atol=1e-4)


def test_pairs_only_around_the_mean(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", "p"))
    total = graph.call("sum.dim_IntList", x, (1,), True, shape=("n", 1))
    apart = graph.call("sub.Tensor", x, total, shape=("n", "p"))
    square = graph.call("mul.Tensor", apart, apart, shape=("n", "p"))
    squares = graph.call("sum.dim_IntList", square, (1,), True, shape=("n", 1))
    assert online_pairs(plan(graph.task(squares, symbols={"n": 4, "p": 70_000}), load_chip())) == ()
    task = moments(builder, "p", {"n": 4, "p": 70_000})
    assert [pair.is_moments for pair in online_pairs(plan(task, load_chip()))] == [True]
