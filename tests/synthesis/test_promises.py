"""How much of what estimates promise is believed, from verdicts on the same task and on others."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.synthesis.proposers.gains import Promise, expected_gain, promise_of


def record(task: str, estimate_us: float, latency_us: float) -> TuningRecord:
    return TuningRecord(
        task, f"{task}{estimate_us}", "chip", "twin", "rowwise", estimate_us, latency_us,
        source=LatencySource.MODELLED,
    )  # fmt: skip


def drawn(task: str, count: int, slope: float, noise: float, seed: int) -> list[TuningRecord]:
    """Schedules of one task whose estimates are off by a factor of the task's own."""
    rng = random.Random(seed)
    off = math.exp(rng.uniform(-1, 1))
    said = [rng.gauss(3, 0.3) for _ in range(count)]
    return [record(task, math.exp(x), off * math.exp(slope * x + rng.gauss(0, noise))) for x in said]


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_slope_and_spread_are_found_from_many_verdicts(slope: float, noise: float) -> None:
    records = [item for n in range(12) for item in drawn(f"t{n}", 10, slope, noise, n)]
    found = promise_of(records, "another")
    assert found.slope == pytest.approx(slope, abs=0.1)
    assert 0.75 * noise < found.spread < 2 * noise


def test_nothing_known_believes_estimates() -> None:
    assert promise_of((), "t") == Promise()
    assert promise_of([record("t", 3.0, 40.0)], "t").slope == 1.0, "a task's own factor says nothing of steps"


def test_promises_that_do_not_come_true_weigh_on_their_own_task_at_once() -> None:
    elsewhere = [item for n in range(12) for item in drawn(f"t{n}", 10, 1.0, 0.02, n)]
    broken = [record("t", 10.0, 10.0), record("t", 8.0, 10.0), record("t", 7.9, 10.1), record("t", 8.1, 10.0)]
    assert promise_of(elsewhere, "t").slope > 0.9
    assert promise_of([*elsewhere, *broken], "t").slope < 0.75
    assert promise_of([*elsewhere, *broken], "t0").slope > 0.9


def test_believed_is_never_more_than_said_nor_the_contrary() -> None:
    for slope in (-2.0, 3.0):
        assert 0.0 <= promise_of(drawn("t", 40, slope, 0.01, 1), "t").slope <= 1.0


@given(st.floats(-2, 2), st.floats(0, 1), st.integers(0, 2**32))
def test_the_expected_gain_is_the_mean_of_gains(mean: float, deviation: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = np.maximum(rng.normal(mean, deviation, 20_000), 0.0)
    error = 6 * deviation / math.sqrt(len(drawn)) + 1e-12
    assert expected_gain(mean, deviation) == pytest.approx(float(drawn.mean()), abs=error)
    assert expected_gain(mean, deviation) >= max(mean, 0.0) - 1e-12
