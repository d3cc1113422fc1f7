"""What a dashboard shows of the memory: newest first, bounded, and true to what was recorded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource, Verdict
from evokernel_core.memory.activity import decisions, lessons, progress, trajectory
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.ledger import ALPHA, Reward
from evokernel_core.memory.store import Memory

Make = Callable[..., KernelTask]
TITLE = "Tiles of whole rows"
ITEM = make_experience(ExperienceKind.PRACTICE, TITLE, "They need one pass.")


@pytest.fixture
def tried(
    memory: Memory,
    make_task: Make,
    make_source: Callable[..., KernelSource],
    make_verdict: Callable[..., Verdict],
) -> Memory:
    """Five attempts at one task: slow, failed, faster, the same by another verifier, measured."""
    task = make_task()
    memory.record_task(task, {})
    memory.add_experience(ITEM)
    latencies = [30.0, None, 20.0, 25.0, 12.0]
    for n, us in enumerate(latencies, 1):
        source = make_source(f"kernel {n}")
        spoke = LatencySource.MEASURED if n == 5 else LatencySource.MODELLED
        verdict = make_verdict(task, source, us, "twin 2" if n == 4 else "twin 1", spoke)
        memory.record_candidate(source)
        memory.record_verdict(verdict, "chip")
        stage = Stage.DRAFT if n == 1 else Stage.REFINE
        memory.record_attempt(
            Attempt(
                "job", n, task.task_id, source.source_id, "", stage, "p", verdict.verifier, "chip", bool(us)
            ),
            [ITEM.id],
        )
    return memory


def kernel(memory: Memory, n: int) -> tuple[str, str]:
    attempt = memory.attempts()[n - 1]
    return attempt.task_id, attempt.source_id


def decide(memory: Memory, kind: OutcomeKind, n: int, at: float, detail: str = "") -> None:
    memory.record_outcome(Outcome(kind, "region", *kernel(memory, n), at, detail))


def test_progress_is_of_the_last_attempt_and_the_best_kernel(tried: Memory) -> None:
    found = progress(tried, "job")
    assert found is not None
    assert (found.attempt, found.stage, found.best_us) == (5, Stage.REFINE, 12.0)
    assert progress(tried, "another") is None


def test_a_trajectory_is_of_one_source_and_keeps_the_numbers_of_attempts(tried: Memory) -> None:
    task_id, _ = kernel(tried, 1)
    modelled = trajectory(tried, task_id, "chip", LatencySource.MODELLED, 10)
    assert [(item.attempt, item.us) for item in modelled] == [(1, 30.0), (3, 20.0), (4, 25.0)]
    assert [item.us for item in trajectory(tried, task_id, "chip", LatencySource.MEASURED, 10)] == [12.0]
    assert [item.attempt for item in trajectory(tried, task_id, "chip", LatencySource.MODELLED, 2)] == [3, 4]
    assert not trajectory(tried, task_id, "another chip", LatencySource.MODELLED, 10)


def test_decisions_come_newest_first_and_none_that_nobody_took(tried: Memory) -> None:
    decide(tried, OutcomeKind.SHOWN, 1, 1.0)
    decide(tried, OutcomeKind.ACCEPTED, 1, 2.0)
    decide(tried, OutcomeKind.EXPIRED, 3, 3.0)
    decide(tried, OutcomeKind.REJECTED, 3, 4.0, "hard to read")
    assert [(item.kind, item.name, item.detail) for item in decisions(tried, 10)] == [
        (OutcomeKind.REJECTED, "relu", "hard to read"),
        (OutcomeKind.ACCEPTED, "relu", ""),
    ]
    assert [item.at for item in decisions(tried, 1)] == [4.0]


def test_a_lesson_says_what_moved_and_why(tried: Memory) -> None:
    decide(tried, OutcomeKind.ACCEPTED, 3, 1.0)
    decide(tried, OutcomeKind.REJECTED, 4, 2.0)
    decide(tried, OutcomeKind.EXPLAINED, 4, 3.0, "hard to read")
    last, first = lessons(tried, 10)
    assert (first.kind, first.reward, first.name) == (OutcomeKind.ACCEPTED, 1.0, "relu")
    assert (last.kind, last.reward, last.detail) == (OutcomeKind.REJECTED, -1.0, "hard to read")
    now = ALPHA + ALPHA * (-1.0 - ALPHA)
    assert last.items == ((TITLE, pytest.approx(now)),)
    assert len(lessons(tried, 1)) == 1


def test_forgetting_decisions_leaves_what_the_verifier_said(tried: Memory) -> None:
    task_id, _ = kernel(tried, 1)
    tried.pay(Reward(Stage.REFINE, "activation", (ITEM.id,), 0.5, cause="refine", task_id=task_id))
    before = tried.values()
    decide(tried, OutcomeKind.REJECTED, 3, 1.0)
    assert tried.values() != before
    tried.forget_decisions()
    assert tried.values() == before
    assert not tried.outcomes() and not lessons(tried, 10) and not tried.rejections(task_id)
    assert len(tried.attempts()) == 5


def test_what_was_forgotten_is_not_in_the_file(tried: Memory) -> None:
    words = "one of a kind 48151623"
    decide(tried, OutcomeKind.REJECTED, 3, 1.0, words)
    tried.forget_decisions()
    files = [tried.path, tried.path.with_name(tried.path.name + "-wal")]
    assert all(words.encode() not in file.read_bytes() for file in files if file.exists())


def test_recent_jobs_begin_with_what_is_not_done(memory: Memory) -> None:
    for n, state in enumerate(JobState):
        memory.put_job(
            Job(state.value, JobKind.GENERATE, state, "f", "r", "t", "{}", 30, 0, float(n), float(n))
        )
    unfinished = ["waiting", "running", "queued"]
    assert [job.id for job in memory.recent_jobs(9)] == [*unfinished, "cancelled", "failed", "done"]
    assert [job.id for job in memory.recent_jobs(2)] == unfinished[:2]


def test_an_item_that_was_rewarded_keeps_what_its_title_is_made_of(tried: Memory) -> None:
    title = Sentence(
        "{step} for {pipe}-bound {family}", step=Sentence("double tile"), pipe="V", family="rows"
    )
    item = make_experience(ExperienceKind.PRACTICE, title, "It moves more at once.")
    tried.add_experience(item)
    task_id, source_id = kernel(tried, 1)
    tried.pay(
        Reward(
            Stage.DRAFT, "activation", (item.id,), 0.5, cause="accepted", task_id=task_id, source_id=source_id
        )
    )
    ((told, _),) = lessons(tried, 1)[0].items
    assert (told, told.data()) == (title, title.data())
