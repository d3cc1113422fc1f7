"""MAP-Elites over strategy descriptors: one elite per cell, so that a slower dataflow is refined, too.

Descriptors describe the schedule and not its score: an archive over speedups collapses to few cells
on a single task. A cell is chosen by 0.4 fitness, 0.4 rate of improvement and 0.2 exploration,
KernelFoundry's weights.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from attrs import frozen

from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.synthesis.policies.base import DRAFT, Refinement, SearchState
from evokernel_core.synthesis.proposers.base import Candidate


@frozen
class ArchivePolicy:
    """Refines the elite of a cell drawn by weight."""

    fitness_weight: float = 0.4
    improvement_weight: float = 0.4
    exploration_weight: float = 0.2
    name: str = "archive"

    def choose(self, state: SearchState, rng: random.Random) -> Refinement:
        elites = list(archive(state.starts).values())
        if not elites:
            return DRAFT
        weights = [self._weight(elite, elites, state) for elite in elites]
        return Refinement(rng.choices(elites, weights)[0])

    def _weight(self, elite: Candidate, elites: Sequence[Candidate], state: SearchState) -> float:
        fastest = min(elite.latency_us for elite in elites)
        children = state.children(elite.source.source_id)
        better = sum(child.latency_us < elite.latency_us for child in children)
        return (
            self.fitness_weight * fastest / elite.latency_us
            + self.improvement_weight * (better + 1) / (len(children) + 2)
            + self.exploration_weight / (state.steps_from(elite.source.source_id) + 1)
        )


def archive(candidates: Sequence[Candidate]) -> dict[Descriptor, Candidate]:
    """The fastest kernel of each occupied cell."""
    cells: dict[Descriptor, Candidate] = {}
    for candidate in candidates:
        cell = candidate.source.strategy.descriptor
        if cell not in cells or candidate.latency_us < cells[cell].latency_us:
            cells[cell] = candidate
    return cells
