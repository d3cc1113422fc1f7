"""A search that no job asked for is kept as one: the report says where its kernels belong."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from evokernel_core.domain.eager import EagerComparison
from evokernel_core.domain.job import JobState
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import loads
from evokernel_core.domain.settings import Settings
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import Status, SynthesisResult
from evokernel_core.synthesis.session import Session
from tests.synthesis.conftest import make_task, memory

__all__ = ["memory"]

TASK = make_task(1)
REGION = Region(
    "r", "/m.py", "Block.forward", Span(12, 4, 12, 9), "x + 1", "hash", "other", RegionStatus.CANDIDATE,
    task=TASK,
)  # fmt: skip


@pytest.fixture
def session(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Session:
    made = Session(Settings(), None, memory)
    monkeypatch.setattr(made, "comparisons", SimpleNamespace(of=lambda _: EagerComparison()))
    monkeypatch.setattr(made, "_rank", lambda _: None)
    return made


def ends(session: Session, status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    result = SynthesisResult(status, Sentence("Why."), None, 3, None, 0)

    monkeypatch.setattr(session, "engine", lambda _: SimpleNamespace(run=lambda *_, **__: result))


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (Status.VERIFIED, JobState.DONE),
        (Status.INFEASIBLE, JobState.FAILED),
        (Status.CANCELLED, JobState.CANCELLED),
    ],
)
def test_it_is_a_job_that_is_done(
    session: Session, memory: Memory, monkeypatch: pytest.MonkeyPatch, status: Status, state: JobState
) -> None:
    ends(session, status, monkeypatch)
    session.synthesise(REGION, 5)
    (job,) = memory.jobs()
    assert (job.state, job.file, job.task_id, job.budget, job.spent) == (state, "/m.py", TASK.task_id, 5, 3)
    assert loads(job.region, Region) == REGION and job.reason == "Why."


def test_one_that_a_job_asked_for_is_that_job(
    session: Session, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends(session, Status.VERIFIED, monkeypatch)
    session.synthesise(REGION, 5, job_id="theirs")
    assert not memory.jobs()
