"""What a search policy decides: which kernel the next attempt starts from."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Protocol

from attrs import frozen

from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.synthesis.proposers.base import Begun, Candidate


@frozen
class SearchState:
    """The search on one task so far.

    ``candidates`` are all verified kernels, oldest first. ``starts`` are the feasible ones that may
    still be refined and ``values`` their Q2 by source_id. ``can_draft`` says whether the proposer
    may have a draft left. ``begun`` are kernels whose verdicts are awaited.
    """

    candidates: tuple[Candidate, ...]
    starts: tuple[Candidate, ...]
    values: Mapping[str, float]
    can_draft: bool
    begun: tuple[Begun, ...] = ()

    def children(self, source_id: str) -> tuple[Candidate, ...]:
        """The attempts made from a kernel; the drafts for ``""``."""
        return tuple(candidate for candidate in self.candidates if candidate.parent == source_id)

    def steps_from(self, source_id: str) -> int:
        """The number of attempts made from a kernel, those included that are awaited."""
        return len(self.children(source_id)) + sum(start.parent == source_id for start in self.begun)

    @property
    def cells(self) -> tuple[Descriptor, ...]:
        """The cells in which something was tried, in that order."""
        sources = [candidate.source for candidate in self.candidates] + [start.source for start in self.begun]
        return tuple(dict.fromkeys(source.strategy.descriptor for source in sources))

    @property
    def fastest(self) -> Candidate:
        """Of the starts. Raises ValueError where there is none."""
        return min(self.starts, key=lambda start: start.latency_us)


@frozen
class Refinement:
    """Refine ``start``, or draft anew where it is None: in another cell than those that it keeps
    ``away_from``, where there is one."""

    start: Candidate | None
    away_from: tuple[Descriptor, ...] = ()


DRAFT = Refinement(None)


def draft_elsewhere(state: SearchState) -> Refinement:
    """A draft that differs from all that was tried."""
    return Refinement(None, state.cells)


class Policy(Protocol):
    """Chooses the next step; called only while something can still be done."""

    @property
    def name(self) -> str: ...

    def choose(self, state: SearchState, rng: random.Random) -> Refinement: ...
