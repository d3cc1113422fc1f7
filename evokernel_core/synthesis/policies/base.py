"""What a search policy decides: which kernel the next attempt starts from."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Protocol

from attrs import frozen

from evokernel_core.synthesis.proposers.base import Candidate


@frozen
class SearchState:
    """The search on one task so far.

    ``candidates`` are all verified kernels, oldest first. ``starts`` are the feasible ones that may
    still be refined and ``values`` their Q2 by source_id. ``can_draft`` says whether the proposer
    may have a draft left.
    """

    candidates: tuple[Candidate, ...]
    starts: tuple[Candidate, ...]
    values: Mapping[str, float]
    can_draft: bool

    def children(self, source_id: str) -> tuple[Candidate, ...]:
        """The attempts made from a kernel; the drafts for ``""``."""
        return tuple(item for item in self.candidates if item.parent == source_id)


@frozen
class Step:
    """Refine ``start``, or draft anew where it is None."""

    start: Candidate | None


DRAFT = Step(None)


class Policy(Protocol):
    """Chooses the next step; called only while something can still be done."""

    @property
    def name(self) -> str: ...

    def choose(self, state: SearchState, rng: random.Random) -> Step: ...
