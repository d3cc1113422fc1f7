"""AdaExplore's policy: a tree over kernels, UCB down it, small steps and large ones.

A small step is one move from a kernel, a large one a draft in another cell than all that was tried.
Constants are those of its public configuration: exploration 0.3, mean backup, a large step with
probability 0.2 or after two small ones from the same node.
"""

from __future__ import annotations

import math
import random

from attrs import frozen

from evokernel_core.domain.verdict import GateName
from evokernel_core.synthesis.policies.base import DRAFT, Refinement, SearchState, draft_elsewhere
from evokernel_core.synthesis.proposers.base import Candidate

MAX_SPEEDUP = 10.0
MIN_SPEEDUP = 0.1


def node_reward(candidate: Candidate) -> float:
    """0 not compiled, 0.05 compiled and wrong, 0.4 to 1.6 correct, linear in the clipped speedup; so too
    where it was timed only, since nothing is known to be wrong with it."""
    verdict = candidate.verdict
    failed = None if verdict.is_slower else verdict.failed_gate
    if failed is not None or verdict.latency is None:
        early = failed is None or failed.gate in (GateName.AUDIT, GateName.COMPILE)
        return 0.0 if early else 0.05
    speedup = verdict.latency.baseline_us / verdict.latency.us
    clipped = min(MAX_SPEEDUP, max(MIN_SPEEDUP, speedup))
    return 0.4 + 1.2 * (clipped - MIN_SPEEDUP) / (MAX_SPEEDUP - MIN_SPEEDUP)


@frozen
class TreePolicy:
    """Descends from the root while the best child promises at least as much as a new one."""

    exploration: float = 0.3
    large_step: float = 0.2
    small_steps: int = 2
    name: str = "tree"

    def choose(self, state: SearchState, rng: random.Random) -> Refinement:
        if not state.starts:
            return DRAFT
        node = self._descend(state)
        if node is None:
            return draft_elsewhere(state) if state.can_draft else Refinement(state.fastest)
        steps = state.steps_from(node.source.source_id)
        large = state.can_draft and (steps >= self.small_steps or rng.random() < self.large_step)
        return draft_elsewhere(state) if large else Refinement(node)

    def _descend(self, state: SearchState) -> Candidate | None:
        """The node to expand, None for the root; only nodes that can still be refined are passed."""
        open_ids = {start.source.source_id for start in state.starts}
        rewards = _subtree_rewards(state)
        node: Candidate | None = None
        visits = len(state.candidates)
        while True:
            children = state.children(node.source.source_id if node else "")
            arms = [child for child in children if child.source.source_id in open_ids]
            if not arms:
                return node
            scores = {arm.source.source_id: self._ucb(rewards[arm.source.source_id], visits) for arm in arms}
            best = max(arms, key=lambda arm: scores[arm.source.source_id])
            backed = rewards[best.source.source_id]
            expand = _mean(backed) + self._bonus(visits, len(children) ** 2)
            can_expand = node is not None or state.can_draft
            if can_expand and expand > scores[best.source.source_id]:
                return node
            node, visits = best, len(backed)

    def _ucb(self, rewards: list[float], parent_visits: int) -> float:
        return _mean(rewards) + self._bonus(parent_visits, len(rewards))

    def _bonus(self, parent_visits: int, visits: int) -> float:
        return self.exploration * math.sqrt(math.log(max(parent_visits, 1)) / max(visits, 1))


def _mean(numbers: list[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def _subtree_rewards(state: SearchState) -> dict[str, list[float]]:
    """The rewards of each kernel and of everything below it, by source_id."""
    parents = {candidate.source.source_id: candidate.parent for candidate in state.candidates}
    result: dict[str, list[float]] = {id: [] for id in parents}
    for candidate in state.candidates:
        reward = node_reward(candidate)
        id, seen = candidate.source.source_id, set[str]()
        while id in result and id not in seen:
            result[id].append(reward)
            seen.add(id)
            id = parents[id]
    return result
