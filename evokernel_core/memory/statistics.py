"""Running statistics of the refinement rewards (EvoKernel, appendix A), about zero."""

from __future__ import annotations

import math

from attrs import frozen

SPREAD_FLOOR = 0.1
"""Least spread to divide by. Appendix A requires a floor or a clip for bounded values and states no number;
rewards lie in [-1, 1], so 0.1 is a twentieth of their range."""
CLIP = 1.0
"""Bound of a standardised reward: that of every other reward, so that none outweighs a person's word."""


@frozen
class RunningStatistics:
    """Cumulative count, mean and sum of squared deviations (Welford's recurrence)."""

    count: int = 0
    mean: float = 0.0
    m2: float = 0.0

    @property
    def deviation(self) -> float:
        """Population standard deviation, 0 before the second value."""
        return math.sqrt(self.m2 / self.count) if self.count > 1 else 0.0

    @property
    def spread(self) -> float:
        """Root mean square: the deviation from zero, 0 before the first value."""
        return math.sqrt(self.m2 / self.count + self.mean**2) if self.count else 0.0

    def push(self, value: float) -> RunningStatistics:
        count = self.count + 1
        delta = value - self.mean
        mean = self.mean + delta / count
        return RunningStatistics(count, mean, self.m2 + delta * (value - mean))

    def standardise(self, value: float) -> float:
        """``value`` in spreads of the values seen *before* it, floored and clipped.

        The paper subtracts their mean. Most refinements lose, so that a mean below zero would make a kernel
        that changes nothing look like a gain: here no gain is worth nothing. Before the second value
        there is no spread to measure, so the value passes unchanged.
        """
        scaled = value / max(self.spread, SPREAD_FLOOR) if self.count > 1 else value
        return max(-CLIP, min(CLIP, scaled))
