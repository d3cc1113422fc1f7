"""Means and correlations against those of others, and intervals that behave."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evokernel_core.report.gather import geometric_mean, rank_correlation

positive = st.floats(0.01, 100)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=8))
def test_the_geometric_mean_lies_in_its_interval(rows: list[tuple[float, float]]) -> None:
    mean, low, high = geometric_mean(rows)
    for column in range(2):
        numbers = [row[column] for row in rows]
        assert mean[column] == pytest.approx(statistics.geometric_mean(numbers))
        assert min(numbers) * 0.999 <= low[column] <= high[column] <= max(numbers) * 1.001
        assert (low[column] <= mean[column] * 1.001 and mean[column] <= high[column] * 1.001) or len(rows) < 4


def test_one_row_has_no_interval() -> None:
    mean, low, high = geometric_mean([[1.0, 2.0]])
    assert list(low) == list(mean) == list(high)


def test_more_rows_narrow_the_interval() -> None:
    few, many = ([[1.0 + n % 4] for n in range(size)] for size in (8, 200))
    (_, low, high), (_, lower, higher) = geometric_mean(few), geometric_mean(many)
    assert high[0] / low[0] > 2 * higher[0] / lower[0] - 1


def ranks(numbers: list[float]) -> list[float]:
    """How many are smaller, and half of the others that are equal."""
    return [sum(other < item for other in numbers) + (numbers.count(item) - 1) / 2 for item in numbers]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=30))
def test_the_rank_correlation_is_spearman_s(pairs: list[tuple[int, int]]) -> None:
    left, right = ([float(item) for item in side] for side in zip(*pairs, strict=True))
    assume(len(set(left)) > 1 and len(set(right)) > 1)
    rho, low, high = rank_correlation(left, right)
    assert rho == pytest.approx(statistics.correlation(ranks(left), ranks(right)))
    assert -1.0001 <= low <= high <= 1.0001


def test_ranks_know_nothing_of_distances() -> None:
    numbers = [float(n) for n in range(1, 30)]
    rho, low, high = rank_correlation(numbers, [math.exp(number) for number in numbers])
    assert (rho, low, high) == (pytest.approx(1), pytest.approx(1, abs=0.02), pytest.approx(1))
