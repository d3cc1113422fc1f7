"""The rewards of the two stages (EvoKernel, section 3), before standardising."""

from __future__ import annotations

import math

from evokernel_core.domain.verdict import Verdict


def draft_reward(verdict: Verdict) -> float:
    """Stage 1: +1 for a feasible kernel, -1 for any other."""
    return 1.0 if verdict.feasible else -1.0


def refine_reward(verdict: Verdict, best_us: float) -> float:
    """Stage 2: -1 where infeasible, else tanh(log b - log l), in (-1, 1).

    ``best_us`` is the best latency *before* this attempt, from the same chip and source: with the
    value after it, no new best could ever be rewarded.
    """
    if not verdict.feasible or verdict.latency is None:
        return -1.0
    return math.tanh(math.log(best_us) - math.log(verdict.latency.us))


def at_bound(latency_us: float, roofline_us: float, within: float = 0.03) -> bool:
    """Whether a latency is so close to the speed-of-light bound that refining cannot pay."""
    return latency_us <= roofline_us * (1.0 + within)
