"""Job: a durable piece of work, one region's synthesis or refinement."""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from evokernel_core.domain.sentence import Sentence


class JobKind(StrEnum):
    GENERATE = "generate"
    REFINE = "refine"


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@frozen
class Job:
    """``region`` is the region's JSON at the time of asking; ``reason`` explains waiting, failed."""

    id: str
    kind: JobKind
    state: JobState
    file: str
    region_id: str
    task_id: str
    region: str
    budget: int
    spent: int
    created: float
    updated: float
    reason: Sentence = field(default=Sentence(), converter=Sentence)
