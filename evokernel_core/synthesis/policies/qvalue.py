"""EvoKernel's policy: draft until feasible, then choose the start point by epsilon-greedy on Q2."""

from __future__ import annotations

import random

from attrs import frozen

from evokernel_core.memory.retrieval import EPSILON, epsilon_greedy
from evokernel_core.synthesis.policies.base import DRAFT, SearchState, Step


@frozen
class QValuePolicy:
    """Equal values go to the faster kernel."""

    epsilon: float = EPSILON
    name: str = "qvalue"

    def choose(self, state: SearchState, rng: random.Random) -> Step:
        if not state.starts:
            return DRAFT
        starts = {item.source.source_id: item for item in state.starts}
        fastest_first = sorted(starts, key=lambda id: starts[id].latency_us)
        chosen = epsilon_greedy(fastest_first, state.values, 1, self.epsilon, rng)
        return Step(starts[chosen[0]])
