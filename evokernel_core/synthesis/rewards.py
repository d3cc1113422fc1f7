"""The rewards of the two stages (EvoKernel, section 3), before standardising."""

from __future__ import annotations

import math

from evokernel_core.domain.verdict import Latency, LatencySource, Verdict


def draft_reward(verdict: Verdict) -> float:
    """Stage 1: +1 for a feasible kernel, -1 for any other."""
    return 1.0 if verdict.feasible else -1.0


def refine_reward(verdict: Verdict, best_us: float) -> float:
    """Stage 2: -1 where infeasible, else tanh(log b - log l), in (-1, 1), as of a kernel that was timed only.

    ``best_us`` is the best latency *before* this attempt, from the same chip and source: with the
    value after it, no new best could ever be rewarded.
    """
    if not (verdict.feasible or verdict.is_slower) or verdict.latency is None:
        return -1.0
    return math.tanh(math.log(best_us) - math.log(verdict.latency.us))


def at_bound(latency: Latency, reachable_us: float = 0.0) -> bool:
    """Whether a latency is so close to a bound that refining cannot pay: within 3 % of the speed of
    light, or, where it is modelled, within 2 % of what the model itself can reach."""
    if latency.us <= 1.03 * latency.roofline_us:
        return True
    return latency.source is LatencySource.MODELLED and latency.us <= 1.02 * reachable_us
