"""The ratio of two kernels' times from pairs of runs, with an interval that holds it.

Neighbouring pairs share what the device does of itself (clocks, temperature), so pairs are drawn in blocks.
What all pairs of a session share (where each system's memory lies on the device) no pair tells: a resolution,
measured with a kernel beside itself, is added to each interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

BLOCK = 10
"""Pairs of a block; even, so that a block has both orders alike."""
DRAWS = 2000
LEVEL = 0.95
TRIMMED = 0.1
"""The share of the lowest and of the highest ratios that counts for nothing: runs beside which something
else ran."""
RESOLUTION = 0.00065
"""The standard deviation of what a session's pairs share, of a ratio: the root mean square, over three sizes,
of the mean difference of a kernel from itself in 40 sessions on an H200 (docs/results/gpu_truth.md)."""
NORMAL = 1.959964
"""Standard deviations on either side in which 95 % lie."""


@frozen
class Ratio:
    """How many times as long the second takes as the first, and the interval of it."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def holds(self, ratio: float) -> bool:
        """Whether the interval has this ratio."""
        return self.low <= ratio <= self.high


def ratio_of(first_us: Sequence[float], second_us: Sequence[float], seed: int = 0) -> Ratio:
    """The ratio second / first of times in pairs, with a 95 % interval of what its pairs and the resolution
    leave open. Raises ValueError as ``bootstrapped`` does."""
    return resolved(bootstrapped(first_us, second_us, seed))


def bootstrapped(first_us: Sequence[float], second_us: Sequence[float], seed: int = 0) -> Ratio:
    """The ratio second / first of times in pairs, at least two blocks of them, by a trimmed mean of
    logarithms; its 95 % interval is bootstrapped over moving blocks. Raises ValueError for fewer pairs or
    times of 0."""
    logs = np.log(np.asarray(second_us, float)) - np.log(np.asarray(first_us, float))
    if len(logs) < 2 * BLOCK or not np.isfinite(logs).all():
        raise ValueError(f"{len(logs)} pairs give no interval")
    centre = _trimmed_mean(logs[None, :])[0]
    spread = _drawn_means(logs, np.random.default_rng(seed)) - centre
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(spread, [tail, 1 - tail]) * _few(len(logs) // BLOCK)
    return Ratio(math.exp(centre), math.exp(centre + low), math.exp(centre + high))


def resolved(ratio: Ratio) -> Ratio:
    """The interval widened by what pairs do not tell: both errors are independent, so squares are added."""
    shared = NORMAL * RESOLUTION
    below = math.hypot(max(0.0, math.log(ratio.value / ratio.low)), shared)
    above = math.hypot(max(0.0, math.log(ratio.high / ratio.value)), shared)
    return Ratio(ratio.value, ratio.value * math.exp(-below), ratio.value * math.exp(above))


def _drawn_means(logs: np.ndarray, numbers: np.random.Generator) -> np.ndarray:
    """Trimmed means of samples of the same length, made of blocks that begin anywhere (around the end)."""
    blocks = -(-len(logs) // BLOCK)
    starts = numbers.integers(0, len(logs), (DRAWS, blocks, 1))
    places = (starts + np.arange(BLOCK)) % len(logs)
    return _trimmed_mean(logs[places.reshape(DRAWS, -1)[:, : len(logs)]])


def _trimmed_mean(rows: np.ndarray) -> np.ndarray:
    cut = int(TRIMMED * rows.shape[1])
    ordered = np.sort(rows, axis=1)
    return np.asarray(ordered[:, cut : rows.shape[1] - cut].mean(axis=1))


def _few(blocks: int) -> float:
    """By how much wider an interval from few blocks must be than the bootstrap has it: the variance that
    it loses, and Student's tail for so many blocks over the normal one (to its second term)."""
    freedom = blocks - 1
    tail = NORMAL + (NORMAL**3 + NORMAL) / (4 * freedom) + (
        5 * NORMAL**5 + 16 * NORMAL**3 + 3 * NORMAL
    ) / (96 * freedom**2)  # fmt: skip
    return tail / NORMAL * math.sqrt(blocks / freedom)
