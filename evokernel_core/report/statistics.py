"""Means, correlations and their intervals, by the bootstrap: the same numbers give the same intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

RESAMPLES = 1000
_SEED = 20260310
Numbers = npt.NDArray[np.float64]


def geometric_mean(rows: Sequence[Sequence[float]]) -> tuple[Numbers, Numbers, Numbers]:
    """Of each column of positive numbers, over the rows: the mean and its 95 % interval. One row says nothing
    of an interval: then its ends are the mean."""
    logs = np.log(np.asarray(rows, dtype=np.float64))
    low, high = _interval(len(logs), lambda picks: logs[picks].mean(axis=0))
    return np.exp(logs.mean(axis=0)), np.exp(low), np.exp(high)


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> tuple[float, float, float]:
    """Spearman's, and its 95 % interval, for sides that vary; a sample of which one does not counts as 0."""
    one, other = _ranks(left), _ranks(right)
    low, high = _interval(len(one), lambda picks: _correlation(one[picks], other[picks]))
    return _correlation(one, other), float(low), float(high)


def _interval(
    size: int, statistic: Callable[[npt.NDArray[np.int64]], Numbers | float]
) -> tuple[Numbers, Numbers]:
    """The 2.5th and 97.5th percentile of a statistic of samples, each as many places as there are."""
    rng = np.random.default_rng(_SEED)
    result = np.array([statistic(rng.integers(0, size, size)) for _ in range(RESAMPLES)])
    return np.percentile(result, 2.5, axis=0), np.percentile(result, 97.5, axis=0)


def _ranks(numbers: Sequence[float]) -> Numbers:
    """From 0; equal numbers share the mean of their ranks."""
    _, places, counts = np.unique(np.asarray(numbers), return_inverse=True, return_counts=True)
    last = np.cumsum(counts) - 1
    ranks: Numbers = (last - (counts - 1) / 2)[places]
    return ranks


def _correlation(left: Numbers, right: Numbers) -> float:
    """Pearson's."""
    one, other = left - left.mean(), right - right.mean()
    scale = np.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / scale) if scale else 0.0
