"""Rows of a packed tile are reduced alike by every method, at sizes other than those of the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.lowering.plan import plan
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial, refusal
from evokernel_core.targets.ascendc.kernels.fused.settings import METHODS, Schedule

COLUMNS = (1, 8, 63, 64, 65, 448, 512, 520, 1000, 1024, 1536, 2047, 3072)
"""Less than a repeat, whole repeats, whole repeats of blocks, and others."""


def extremes_and_sum(builder: Any) -> Any:
    """The largest, the least and the sum of each row of a softmax, which is returned too."""
    graph, shape = builder(), ("r", "c")
    soft = graph.call("_softmax.default", graph.input("x", shape), -1, False, shape=shape)
    least = graph.call("amin.default", soft, (1,), True, shape=("r", 1))
    total = graph.call("sum.dim_IntList", soft, (1,), True, shape=("r", 1))
    scaled = graph.call("mul.Tensor", graph.call("sub.Tensor", soft, least, shape=shape), total, shape=shape)
    return graph.task(scaled, least, symbols={"r": 300, "c": 3072})


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_reduces_rows_of_every_length(
    method: str, builder: Any, chip: Any, on_twin: Any
) -> None:
    task = extremes_and_sum(builder)
    draft, planned = initial(task, chip), plan(task, chip)
    settings = {**dict(draft.settings), "form": "packed", "reduction": method, "tile": 4096, "spread": "rows"}
    strategy = evolve(draft, settings=tuple(sorted(settings.items())))
    if method == "fold":  # rows this long are further apart than a repeat stride reaches
        assert refusal(planned, Schedule.of(strategy), task, chip)
        task = evolve(task, symbols=(task.symbols[0], evolve(task.symbols[1], size=1536)))
        planned = plan(task, chip)
    assert refusal(planned, Schedule.of(strategy), task, chip) is None
    rng = np.random.default_rng(3)
    for columns in (size for size in COLUMNS if size <= task.sizes["c"]):
        x = rng.normal(scale=4.0, size=(7, columns)).astype("f4")
        scaled, least = on_twin(task, {"x": x}, strategy, {"r": 7, "c": columns})
        powers = np.exp(x.astype("f8") - x.max(-1, keepdims=True))
        soft = powers / powers.sum(-1, keepdims=True)
        np.testing.assert_allclose(least, soft.min(-1, keepdims=True), rtol=2e-5)
        np.testing.assert_allclose(scaled, soft - soft.min(-1, keepdims=True), rtol=1e-4, atol=1e-6)


def sum_of_log_softmax(builder: Any) -> Any:
    graph, shape = builder(), ("r", "c")
    logs = graph.call("_log_softmax.default", graph.input("x", shape), -1, False, shape=shape)
    return graph.task(graph.call("sum.dim_IntList", logs, (1,), shape=("r",)), symbols={"r": 300, "c": 1000})


def test_the_sum_of_a_log_softmax_spares_a_pass_over_rows(builder: Any, chip: Any, on_twin: Any) -> None:
    task = sum_of_log_softmax(builder)
    full = [value for value in plan(task, chip).values() if value.op == "sub" and value.domain is Domain.FULL]
    assert len(full) == 1
    rng = np.random.default_rng(4)
    x = rng.normal(scale=4.0, size=(9, 130)).astype("f4")
    x[1, 5], x[2, :], x[3, 7] = -np.inf, 8.0, 80.0
    (result,) = on_twin(task, {"x": x}, sizes={"r": 9, "c": 130})
    wide = x.astype("f8")
    below = wide - wide.max(-1, keepdims=True)
    expected = (below - np.log(np.exp(below).sum(-1, keepdims=True))).sum(-1)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
