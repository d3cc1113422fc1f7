"""Outcome: what the person did with an offered kernel."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class OutcomeKind(StrEnum):
    READY = "ready"
    SHOWN = "shown"
    OPENED_DIFF = "opened_diff"
    ACCEPTED = "accepted"
    PARTIALLY_ACCEPTED = "partially_accepted"
    REJECTED = "rejected"
    EXPLAINED = "explained"
    REVERTED = "reverted"
    SURVIVED = "survived"
    EXPIRED = "expired"
    SNOOZED = "snoozed"
    NEVER = "never"
    OFFERED_AGAIN = "offered_again"


class Objection(StrEnum):
    """What a person has against a kernel; a rejection's detail may be any other words too."""

    SLOW = "slower than wanted"
    UNREADABLE = "hard to read"
    PRECISION = "precision"
    OTHER = "other"


UNDO = "undo"
"""The detail of a revert that an editor's undo of the acceptance made: the kernel waits for review again."""


@frozen
class Outcome:
    """``detail`` is the reason of a rejection or what explains it later, the way of a revert (undo, manual,
    git) or the horizon of a survival (30s, 5m, 15m, commit). ``at`` is seconds since the epoch. ``READY`` is
    a verified kernel that waits for review; ``NEVER`` and ``OFFERED_AGAIN`` are about the place, whatever
    kernel it has."""

    kind: OutcomeKind
    region_id: str
    task_id: str
    source_id: str
    at: float
    detail: str = ""
