"""Intervals of ratios: how often they hold the ratio where the pairs are what pairs on a device are."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evokernel_core.targets.triton.backends.intervals import (
    BLOCK,
    RESOLUTION,
    Ratio,
    bootstrapped,
    ratio_of,
    resolved,
)

RECORDED = Path(__file__).parents[3] / "docs" / "results" / "gpu_truth.json"
PAIRS, NOISE = 200, 0.006
Numbers = np.random.Generator


def independent(numbers: Numbers) -> np.ndarray:
    return numbers.normal(0, NOISE, (2, PAIRS))


def drifting(numbers: Numbers) -> np.ndarray:
    """Clocks and temperature change both alike."""
    shared = np.cumsum(numbers.normal(0, 0.002, PAIRS))
    return independent(numbers) + shared


def neighbouring(numbers: Numbers) -> np.ndarray:
    """Each pair's difference is like the one before it."""
    times, before = independent(numbers), 0.0
    for place in range(PAIRS):
        before = 0.5 * before + numbers.normal(0, 0.003)
        times[1, place] += before
    return times


def in_order(numbers: Numbers) -> np.ndarray:
    """The second run of a pair is slower, whichever kernel it is."""
    times = independent(numbers)
    times[1, ::2] += 0.003
    times[0, 1::2] += 0.003
    return times


def disturbed(numbers: Numbers) -> np.ndarray:
    """Something else ran beside some of the runs."""
    times = independent(numbers)
    return times + 0.5 * (numbers.random(times.shape) < 0.02)


def placed(numbers: Numbers) -> np.ndarray:
    """Each kernel's memory lies elsewhere on the device, for all of a session."""
    return independent(numbers) + numbers.normal(0, RESOLUTION / math.sqrt(2), (2, 1))


KINDS = (independent, drifting, neighbouring, in_order, disturbed, placed)


def held(kind: Callable[[Numbers], np.ndarray], sessions: int, way: Callable[..., Ratio]) -> list[Ratio]:
    """The intervals of so many sessions that hold the ratio."""
    numbers, ratios = np.random.default_rng(7), []
    for _ in range(sessions):
        first, second = 100 * np.exp(kind(numbers))
        ratios.append(way(first, 1.03 * second, int(numbers.integers(1 << 30))))
    return [ratio for ratio in ratios if ratio.holds(1.03)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("sessions", "least"), [(40, 36), pytest.param(400, 372, marks=pytest.mark.thorough)]
)
def test_an_interval_holds_the_ratio_as_often_as_it_says(
    kind: Callable[[Numbers], np.ndarray], sessions: int, least: int
) -> None:
    holding = held(kind, sessions, ratio_of)
    assert len(holding) >= least
    assert np.median([ratio.half_width for ratio in holding]) < 0.005


def far_apart(numbers: Numbers) -> np.ndarray:
    return independent(numbers) + numbers.normal(0, 1.5 * RESOLUTION, (2, 1))


def test_pairs_do_not_tell_what_all_of_them_share() -> None:
    assert len(held(far_apart, 40, bootstrapped)) < 28


def test_squares_of_both_errors_are_added() -> None:
    narrow, wide = resolved(Ratio(1.0, 1.0, 1.0)), resolved(Ratio(2.0, 1.0, 4.0))
    assert narrow.half_width == pytest.approx(1.96 * RESOLUTION, rel=1e-3)
    assert (wide.low, wide.high) == pytest.approx((1.0, 4.0), rel=1e-5)


@pytest.mark.parametrize("times", [[1.0] * (2 * BLOCK - 1), [1.0] * 30 + [0.0]])
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_too_few_pairs_and_times_of_nothing_give_no_interval(times: list[float]) -> None:
    with pytest.raises(ValueError, match="give no interval"):
        ratio_of([1.0] * len(times), times)


def _recorded(part: str) -> list[dict[str, float]]:
    return list(json.loads(RECORDED.read_text())[part])


@pytest.mark.parametrize("us", [10, 100, 1000])
def test_recorded_sessions_of_a_kernel_beside_itself(us: int) -> None:
    ratios = [
        resolved(Ratio(row["ratio"], *row["bootstrap"])) for row in _recorded("self") if row["us"] == us
    ]
    assert len(ratios) >= 40
    assert sum(ratio.holds(1.0) for ratio in ratios) >= 0.9 * len(ratios)
    assert np.median([ratio.half_width for ratio in ratios]) <= (0.015 if us == 10 else 0.005)


@pytest.mark.parametrize("us", [100, 1000])
def test_recorded_sessions_of_a_kernel_that_is_slower(us: int) -> None:
    ratios = [
        resolved(Ratio(row["ratio"], *row["bootstrap"])) for row in _recorded("planted") if row["us"] == us
    ]
    assert sum(ratio.low > 1.0 for ratio in ratios) >= 0.95 * len(ratios)
