"""What was tried, what the memory believed of it, and what came: read from attempts, verdicts and the log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from evokernel_core.domain.experience import Stage
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.verdict import Latency, Verdict
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.ledger import ANY_CATEGORY, Effect, Ledger, Reward
from evokernel_core.memory.store import Memory

STAGES = frozenset(stage.value for stage in Stage)
"""Causes of rewards that verifiers paid, not people or packs."""


@frozen
class Tried:
    """An attempt with its kernel and verdict; both are None where the attempt gave no kernel, or where they
    are not in the memory any more."""

    attempt: Attempt
    source: KernelSource | None
    verdict: Verdict | None

    @property
    def latency(self) -> Latency | None:
        """That of a verified kernel."""
        return self.verdict.latency if self.verdict and self.verdict.feasible else None


@frozen
class Payment:
    """An event of the log. ``paid`` is the reward as it moved values, in [-1, 1]; ``believed`` the mean value
    of the items that it went to, just before: None where none of them had been tried."""

    event: Reward
    paid: float
    believed: float | None


def tried(memory: Memory, task_id: str) -> tuple[Tried, ...]:
    """The attempts on a task, in order, each with the verdict of the verifier and chip that judged it."""
    attempts = memory.attempts(task_id=task_id)
    judged = {
        (verifier, chip, candidate.source.source_id): candidate
        for verifier, chip in dict.fromkeys((attempt.verifier, attempt.chip) for attempt in attempts)
        for candidate in memory.candidates(task_id, verifier, chip)
    }
    result = (
        (attempt, judged.get((attempt.verifier, attempt.chip, attempt.source_id))) for attempt in attempts
    )
    return tuple(
        Tried(attempt, at.source if at else None, at.verdict if at else None) for attempt, at in result
    )


def payments(events: Iterable[Reward], alpha: float) -> Iterator[Payment]:
    """Every event of a log, oldest first, with what the values that it moved were before it, for a step
    size of ``alpha``."""
    ledger = Ledger(alpha)
    for event in events:
        believed = _believed(ledger, event)
        yield Payment(event, ledger.take(event), believed)


def _believed(ledger: Ledger, event: Reward) -> float | None:
    """An item's value is that of its category, else that over all of them, as retrieval reads it."""
    values, trials = [], 0
    for used in dict.fromkeys(event.used):
        known = ledger.worths.get((event.stage, event.op_category, used))
        known = known or ledger.worths.get((event.stage, ANY_CATEGORY, used))
        values.append(known.q if known else 0.0)
        trials += known.n if known else 0
    return math.fsum(values) / len(values) if trials else None


def verifiers_payments(memory: Memory) -> Mapping[str, tuple[Payment, ...]]:
    """By task, the events that pay for judged kernels, oldest first."""
    result: dict[str, list[Payment]] = {}
    for payment in payments(memory.rewards(), memory.alpha):
        event = payment.event
        if event.effect is Effect.PAY and event.cause in STAGES and event.source_id:
            result.setdefault(event.task_id, []).append(payment)
    return {task_id: tuple(items) for task_id, items in result.items()}


def paid_for(attempts: Sequence[Attempt], given: Iterable[Payment]) -> Mapping[tuple[str, int], Payment]:
    """The payment of each attempt, by its job and number: an event is written behind its attempt, in one
    transaction, so it belongs to the last attempt of its kernel and stage that began before it. Attempts
    that took up a kernel of an earlier run have none."""
    result: dict[tuple[str, int], Payment] = {}
    for payment in given:
        event = payment.event
        same = (
            attempt
            for attempt in attempts
            if (attempt.source_id, attempt.stage) == (event.source_id, event.stage)
            and attempt.created <= event.at
        )
        last = max(same, key=lambda attempt: attempt.created, default=None)
        if last is not None:
            result[last.job_id, last.n] = payment
    return result
