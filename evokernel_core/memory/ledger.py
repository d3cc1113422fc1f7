"""Values and statistics as a fold over rewards: pure, so that a log of rewards gives them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from attrs import define, field, frozen

from evokernel_core.domain.experience import Stage
from evokernel_core.memory.statistics import CLIP, RunningStatistics

ALPHA = 0.3
"""Step size of Q; the paper states none, MemRL's configurations use 0.3."""
INITIAL_Q = 0.0
"""Value of what was never tried: between a success and a failure, so it is optimistic after one."""
ANY_CATEGORY = ""
"""The op category under which the back-off value over all categories is kept."""
Key = tuple[Stage, str, str]
"""A value's place: stage, op category, item."""


class Effect(StrEnum):
    PAY = "pay"
    """Each item steps towards the reward."""
    SEED = "seed"
    """Each item that has no value yet begins at the reward, as one of ``trials`` updates."""
    MERGE = "merge"
    """Each item takes, in this category alone, the mean of its value and the reward, weighted by updates:
    what another memory learned, or this one before it had a log."""


@frozen
class Reward:
    """One event of the log. ``raw`` is the reward, in [-1, 1], before it is standardised by earlier ones of
    its ``scale``; "" for one that counts as it is. ``used`` are the items that it goes to, ``shown`` all that
    the proposer was shown. ``cause`` says what happened: a stage, an outcome, a pack."""

    stage: Stage
    op_category: str
    used: tuple[str, ...]
    raw: float
    scale: str = ""
    effect: Effect = Effect.PAY
    cause: str = ""
    trials: int = 0
    task_id: str = ""
    source_id: str = ""
    shown: tuple[str, ...] = ()
    at: float = 0.0

    def places(self) -> Iterator[Key]:
        """The values that it moves: each item's in its category, and over all categories."""
        above = () if self.effect is Effect.MERGE else (ANY_CATEGORY,)
        for item in dict.fromkeys(self.used):
            for category in dict.fromkeys((self.op_category, *above)):
                yield self.stage, category, item


def gain_scale(stage: Stage, source: str, op_category: str) -> str:
    """The scale of gains in a stage, by the source of latencies and by category: a percent of a matrix
    product says more than one of a chain of small kernels."""
    return f"{stage.value}/{source}/{op_category}"


@frozen
class Worth:
    """A Q-value and the number of updates behind it."""

    q: float = INITIAL_Q
    n: int = 0


@define
class Ledger:
    """Values and statistics that rewards move. Mutable, owned by one fold."""

    alpha: float = ALPHA
    worths: dict[Key, Worth] = field(factory=dict)
    scales: dict[str, RunningStatistics] = field(factory=dict)

    def take(self, event: Reward) -> float:
        """Moves what an event moves; returns the reward that was paid."""
        reward = self._standardised(event)
        for key in event.places():
            self.worths[key] = self._moved(self.worths.get(key), event, reward)
        return reward

    def take_all(self, events: Iterable[Reward]) -> int:
        """The same for many; returns their number."""
        taken = [self.take(event) for event in events]
        return len(taken)

    def _standardised(self, event: Reward) -> float:
        if not event.scale:
            return max(-CLIP, min(CLIP, event.raw))
        before = self.scales.get(event.scale, RunningStatistics())
        self.scales[event.scale] = before.push(event.raw)
        return before.standardise(event.raw)

    def _moved(self, before: Worth | None, event: Reward, reward: float) -> Worth:
        match event.effect:
            case Effect.PAY:
                known = before or Worth()
                return Worth(step(known.q, reward, self.alpha), known.n + 1)
            case Effect.SEED:
                return before or Worth(reward, event.trials)
            case Effect.MERGE:
                return merged(before, Worth(reward, event.trials))


def step(q: float, reward: float, alpha: float = ALPHA) -> float:
    """Q <- Q + alpha (r - Q). Stays between the least and the greatest reward."""
    return q + alpha * (reward - q)


def merged(one: Worth | None, other: Worth) -> Worth:
    """The mean of two values, weighted by their updates; where neither has any, the first stays."""
    if one is None:
        return other
    n = one.n + other.n
    return Worth((one.q * one.n + other.q * other.n) / n, n) if n else one
