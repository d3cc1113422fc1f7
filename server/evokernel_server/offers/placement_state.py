"""What the outcomes of one place, oldest first, come to."""

from __future__ import annotations

from collections.abc import Iterable

from evokernel_core.domain.outcome import UNDO, Outcome, OutcomeKind

_ANSWERS = (
    OutcomeKind.READY,
    OutcomeKind.ACCEPTED,
    OutcomeKind.PARTIALLY_ACCEPTED,
    OutcomeKind.REJECTED,
)


def waiting(outcomes: Iterable[Outcome]) -> Outcome | None:
    """The kernel that waits for review: became ready and was neither accepted nor rejected since, or its
    acceptance was undone."""
    last = None
    for outcome in outcomes:
        if outcome.kind in _ANSWERS or _is_undo(outcome):
            last = outcome
    waits = last is not None and (last.kind is OutcomeKind.READY or _is_undo(last))
    return last if waits else None


def _is_undo(outcome: Outcome) -> bool:
    return outcome.kind is OutcomeKind.REVERTED and outcome.detail == UNDO


def is_never(outcomes: Iterable[Outcome]) -> bool:
    """Whether the person's last word about the place is that no kernel is wanted there."""
    said = [o.kind for o in outcomes if o.kind in (OutcomeKind.NEVER, OutcomeKind.OFFERED_AGAIN)]
    return bool(said) and said[-1] is OutcomeKind.NEVER


def snoozed_until(outcomes: Iterable[Outcome], source_id: str, snooze_s: float) -> float:
    """Until when (seconds since the epoch) a kernel sleeps; 0 where nobody put it off."""
    put_off = [o.at for o in outcomes if o.kind is OutcomeKind.SNOOZED and o.source_id == source_id]
    return put_off[-1] + snooze_s if put_off else 0.0
