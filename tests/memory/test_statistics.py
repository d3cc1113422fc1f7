"""Running statistics equal those of the standard library; standardised rewards are bounded."""

from __future__ import annotations

import statistics
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.memory.statistics import CLIP, SPREAD_FLOOR, RunningStatistics

rewards = st.floats(-1.0, 1.0)


def after(values: list[float]) -> RunningStatistics:
    return reduce(RunningStatistics.push, values, RunningStatistics())


@given(st.lists(rewards, min_size=2))
def test_they_equal_the_definition(values: list[float]) -> None:
    found = after(values)
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert found.deviation == pytest.approx(statistics.pstdev(values), abs=1e-6)


@given(st.lists(rewards), rewards)
def test_standardised_rewards_are_bounded(values: list[float], reward: float) -> None:
    assert abs(after(values).standardise(reward)) <= CLIP


@given(st.lists(rewards, min_size=2), rewards)
def test_no_gain_is_worth_nothing_and_a_gain_something(values: list[float], reward: float) -> None:
    found = after(values)
    assert found.standardise(0.0) == 0.0
    assert found.standardise(reward) * reward >= 0.0
    assert found.spread == pytest.approx(statistics.fmean(value**2 for value in values) ** 0.5, abs=1e-6)


def test_the_value_itself_is_not_in_its_own_statistics() -> None:
    before = after([0.0, -0.5, 1.0])
    assert before.standardise(0.3) == pytest.approx(0.3 / (1.25 / 3) ** 0.5)


def test_a_small_spread_is_floored() -> None:
    assert after([0.02, 0.02, 0.02]).standardise(0.05) == pytest.approx(0.05 / SPREAD_FLOOR)
