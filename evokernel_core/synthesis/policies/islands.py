"""Islands: populations that begin with drafts of different cells, take turns, and send each other their best.

The island with the fewest steps is next, and refines its fastest kernel; after every few attempts each island
takes in the best kernel of the one before it, in a ring, as OpenEvolve's do. Who belongs where follows from
parents and order alone, so that a job that goes on has the islands that it had.

Their number and the interval are ours, for budgets of about 30 attempts, in which OpenEvolve's five islands
would hardly take a step each: three take three steps of their own before the first migration.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from attrs import define, field, frozen

from evokernel_core.memory.retrieval import EPSILON
from evokernel_core.synthesis.policies.base import DRAFT, Refinement, SearchState, draft_elsewhere
from evokernel_core.synthesis.proposers.base import Begun, Candidate

ISLANDS = 3
MIGRATION_INTERVAL = 12
"""Attempts between two migrations."""
DRAFTS_AN_ISLAND = 2
"""Drafts that may be spent on the beginning of an island, as some are not feasible."""


@define(eq=False)
class Island:
    """Feasible kernels by source_id, oldest first, those that came from elsewhere included, and the attempts
    that it has made."""

    members: dict[str, Candidate] = field(factory=dict)
    made: int = 0

    def add(self, candidate: Candidate) -> None:
        self.members.setdefault(candidate.source.source_id, candidate)

    @property
    def best(self) -> Candidate:
        return min(self.members.values(), key=lambda member: member.latency_us)


@frozen
class IslandsPolicy:
    """``epsilon``: how often an island refines any of its kernels instead of the fastest."""

    number: int = ISLANDS
    interval: int = MIGRATION_INTERVAL
    epsilon: float = EPSILON
    name: str = "islands"

    def choose(self, state: SearchState, rng: random.Random) -> Refinement:
        if not state.starts:
            return DRAFT
        result = islands(state, self.number, self.interval)
        awaited = sum(not start.parent for start in state.begun)
        may_begin = state.steps_from("") < self.number * DRAFTS_AN_ISLAND
        if state.can_draft and may_begin and len(result) + awaited < self.number:
            return draft_elsewhere(state)
        open_ids = {start.source.source_id for start in state.starts}
        island = _least(island for island in result if island.members.keys() & open_ids)
        mine = [value for id, value in island.members.items() if id in open_ids]
        if rng.random() < self.epsilon:
            return Refinement(rng.choice(mine))
        return Refinement(min(mine, key=lambda candidate: candidate.latency_us))


def islands(state: SearchState, number: int, interval: int) -> list[Island]:
    """The islands that the attempts so far have made, oldest first, at most ``number``."""
    islands: list[Island] = []
    for n, candidate in enumerate(state.candidates, 1):
        home = _home(islands, candidate)
        if home is not None:
            home.made += 1
        elif candidate.verdict.feasible:
            home = Island() if len(islands) < number else _least(islands)
            islands += [] if home in islands else [home]
        if home is not None and candidate.verdict.feasible:
            home.add(candidate)
        if n % interval == 0:
            _migrate(islands)
    for awaited in state.begun:
        home = _home(islands, awaited)
        if home is not None:
            home.made += 1
    return islands


def _home(islands: Iterable[Island], member: Candidate | Begun) -> Island | None:
    """The island that made an attempt: one that has its parent; of several the one whose turn it was."""
    homes = [island for island in islands if member.parent in island.members]
    return _least(homes) if homes else None


def _least(islands: Iterable[Island]) -> Island:
    return min(islands, key=lambda island: island.made)


def _migrate(islands: list[Island]) -> None:
    """Each island takes in the best of the one before it."""
    leaving = [island.best for island in islands]
    for island, migrant in zip(islands, leaving[-1:] + leaving[:-1], strict=True):
        island.add(migrant)
