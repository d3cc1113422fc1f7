"""When a hybrid asks its model: early enough that an answer may be repaired, and not for all of a budget.

The author goes first. Once it gains too little, or a third of the attempts is used, the model has the
attempts that are kept for it; beyond those it is asked where it is valued, for half of the budget unless it
gained.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from attrs import frozen

from evokernel_core.synthesis.privacy import MODEL
from evokernel_core.synthesis.proposers.base import Candidate, Context

LEAST_GAIN = 0.02
"""The share that a refinement must save for the author to go on alone, and the model to go beyond half."""
MOST_KEPT = 2
"""Attempts that are kept for the model: an answer, and its repair or refinement."""


@frozen
class Asking:
    """Where a run stands: ``used`` attempts of ``budget``, ``asked`` of them the model's; ``history`` is the
    best latency after each attempt, None before the first; ``has_gained``: the model's best is faster than
    the others'."""

    budget: int
    used: int
    asked: int
    history: Sequence[float | None] = ()
    has_gained: bool = False

    @property
    def kept(self) -> int:
        """Attempts that the model has before all others; none in a budget of one."""
        return min(MOST_KEPT, self.budget - 1)

    @property
    def is_due(self) -> bool:
        """Whether the next attempt is the model's, whatever it is valued."""
        if self.asked >= self.kept:
            return False
        few_left = self.budget - self.used <= self.kept - self.asked
        return self.asked > 0 or few_left or self.used >= math.ceil(self.budget / 3) or self._is_stuck

    @property
    def is_open(self) -> bool:
        """Whether the model may have the next attempt."""
        return self.kept > 0 and (self.has_gained or self.asked < math.ceil(self.budget / 2))

    @property
    def _is_stuck(self) -> bool:
        """Whether a refinement gained too little; the first kernel is none."""
        known = [us for us in self.history if us is not None]
        return any(after > (1 - LEAST_GAIN) * before for before, after in pairwise(known))


def asking(context: Context, asked: int) -> Asking | None:
    """Where the run of a context stands, None where it has no budget of attempts."""
    if not context.budget:
        return None
    used = context.budget - context.attempts_left
    return Asking(context.budget, used, asked, context.history, has_gained(context.candidates))


def has_gained(candidates: Iterable[Candidate]) -> bool:
    """Whether the best kernel of a model is faster than all others by more than the least gain."""
    best = {True: math.inf, False: math.inf}
    for candidate in candidates:
        is_models = candidate.source.strategy.family == MODEL
        best[is_models] = min(best[is_models], candidate.latency_us)
    return best[True] <= (1 - LEAST_GAIN) * best[False] and best[True] < math.inf
