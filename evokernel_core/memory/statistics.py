"""Running mean and standard deviation of the refinement rewards (EvoKernel, appendix A)."""

from __future__ import annotations

import math

from attrs import frozen

SIGMA_FLOOR = 0.1
"""Least standard deviation to divide by. Appendix A requires a floor or a clip for bounded values
and states no number; rewards lie in [-1, 1], so 0.1 is a twentieth of their range."""
CLIP = 3.0
"""Bound of a standardised reward: MemRL's public code clips its z-scores at 3."""


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

    def push(self, value: float) -> RunningStatistics:
        count = self.count + 1
        delta = value - self.mean
        mean = self.mean + delta / count
        return RunningStatistics(count, mean, self.m2 + delta * (value - mean))

    def standardise(self, value: float) -> float:
        """``value`` against the values seen *before* it, floored and clipped.

        Before the second value there is no spread to measure, so the value passes unchanged.
        """
        if self.count < 2:
            return max(-CLIP, min(CLIP, value))
        scaled = (value - self.mean) / max(self.deviation, SIGMA_FLOOR)
        return max(-CLIP, min(CLIP, scaled))
