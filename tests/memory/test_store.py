"""Kernels, outcomes and jobs are kept; outcomes pay once; forgetting removes what it says."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from evokernel_core.domain.errors import StoreError
from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import SLOWER, GateName, GateResult, GateStatus, LatencySource, Verdict
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.ledger import Reward
from evokernel_core.memory.outcomes import REWARDS, SURVIVAL, outcome_reward
from evokernel_core.memory.store import TABLES, Memory
from evokernel_core.memory.values import ALPHA

MakeTask = Callable[..., KernelTask]
MakeSource = Callable[..., KernelSource]
MakeVerdict = Callable[..., Verdict]


def keep(
    memory: Memory, task: KernelTask, source: KernelSource, verdict: Verdict, used: tuple[str, ...], n: int
) -> None:
    memory.record_task(task, {"rows": 1.0})
    memory.record_candidate(source)
    memory.record_verdict(verdict, "chip")
    attempt = Attempt(
        job_id="job",
        n=n,
        task_id=task.task_id,
        source_id=source.source_id,
        parent="",
        stage=Stage.DRAFT,
        proposer="schedule",
        verifier=verdict.verifier,
        chip="chip",
        feasible=verdict.feasible,
        created=1.0,
    )
    memory.record_attempt(attempt, used)


@pytest.fixture
def filled(memory: Memory, make_task: MakeTask, make_source: MakeSource, make_verdict: MakeVerdict) -> Memory:
    for n, (text, us) in enumerate((("slow", 30.0), ("fast", 10.0), ("wrong", None)), 1):
        task, source = make_task(), make_source(text)
        keep(memory, task, source, make_verdict(task, source, us), (f"item-{text}", "shared"), n)
    return memory


def test_a_second_opening_keeps_everything(filled: Memory) -> None:
    with Memory(filled.path) as again:
        assert again.counts() == filled.counts()
        assert again.query("PRAGMA journal_mode") == [{"journal_mode": "wal"}]


@pytest.mark.parametrize("said", [Sentence("Text of {before}"), Sentence("{a} failed", a="x")])
def test_a_failure_is_kept_with_what_it_is_made_of(
    said: Sentence, memory: Memory, make_task: MakeTask, make_source: MakeSource, make_verdict: MakeVerdict
) -> None:
    task, source = make_task(), make_source("wrong")
    keep(memory, task, source, make_verdict(task, source, None), (), 1)
    (attempt,) = memory.attempts()
    memory.record_attempt(evolve(attempt, n=2, feedback=said), ())
    kept = memory.attempts()[-1].feedback
    assert (kept, kept.data()) == (said, said.data())


def test_candidates_come_back_whole(filled: Memory, make_task: MakeTask, make_source: MakeSource) -> None:
    task = make_task()
    stored = filled.candidates(task.task_id)
    assert [item.source for item in stored] == [make_source(text) for text in ("slow", "fast", "wrong")]
    assert filled.task(task.task_id) == task
    assert filled.tasks() == (task,)
    assert filled.source(make_source("fast").source_id) == make_source("fast")
    assert filled.candidates(task.task_id, verifier="twin 2") == ()
    assert [attempt.n for attempt in filled.attempts(job_id="job")] == [1, 2, 3]


def test_the_best_is_of_one_source(
    filled: Memory, make_task: MakeTask, make_source: MakeSource, make_verdict: MakeVerdict
) -> None:
    task, slow = make_task(), make_source("slow")
    best = filled.best(task.task_id, "chip", LatencySource.MODELLED)
    assert best is not None
    assert best.source == make_source("fast")
    assert filled.best(task.task_id, "chip", LatencySource.MEASURED) is None
    filled.record_verdict(make_verdict(task, slow, 99.0, "cann", LatencySource.MEASURED), "chip")
    measured = filled.best(task.task_id, "chip", LatencySource.MEASURED)
    assert measured is not None
    assert measured.source == slow
    assert filled.best(task.task_id, "another chip", LatencySource.MODELLED) is None


def test_a_kernel_that_was_compared_stays_so_where_another_search_only_times_it(
    filled: Memory, make_task: MakeTask, make_source: MakeSource, make_verdict: MakeVerdict
) -> None:
    """Two searches of one task at a time: what one has verified, and offered, is no gain to the other."""
    task, slow = make_task(), make_source("slow")
    whole = filled.verdict(task.task_id, slow.source_id, "twin 1", "chip")
    assert whole is not None and whole.feasible
    gate = GateResult(GateName.LATENCY, GateStatus.FAILED, SLOWER)
    timed = evolve(make_verdict(task, slow, 30.0), gates=(gate,))
    filled.record_verdict(timed, "chip")
    assert filled.verdict(task.task_id, slow.source_id, "twin 1", "chip") == whole
    filled.record_verdict(evolve(timed, verifier="twin 2"), "chip")
    filled.record_verdict(evolve(whole, verifier="twin 2"), "chip")
    assert filled.verdict(task.task_id, slow.source_id, "twin 2", "chip") == evolve(whole, verifier="twin 2")


def outcome(
    kind: OutcomeKind, task: KernelTask, source: KernelSource, at: float = 1.0, detail: str = ""
) -> Outcome:
    return Outcome(kind, "region", task.task_id, source.source_id, at, detail)


@pytest.mark.parametrize(
    ("end", "moved"),
    [("@aa", ["r/1@bb", "r/1@aax", "x@aaz"]), ("@a_", ["r/1@aa", "r/1@aax", "x@aaz"]), ("%", None)],
)
def test_outcomes_of_a_renamed_file_move(end: str, moved: list[str] | None, tmp_path: Path) -> None:
    regions = ["r/1@aa", "r/1@aax", "x@aaz"]
    with Memory(tmp_path / "memory.db") as memory:
        for number, region in enumerate(regions):
            memory.record_outcome(Outcome(OutcomeKind.SHOWN, region, "task", "source", float(number)))
        memory.move_outcomes(end, "@bb")
        assert [item.region_id for item in memory.outcomes()] == (moved or regions)
    with Memory(tmp_path / "memory.db") as memory:
        assert [item.region_id for item in memory.outcomes()] == (moved or regions), "it is kept"


def test_a_move_says_nothing_twice(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        for region in ("r@old", "r@new"):
            memory.record_outcome(Outcome(OutcomeKind.SHOWN, region, "task", "source", 1.0))
        memory.move_outcomes("@old", "@new")
        assert [item.region_id for item in memory.outcomes("r@new")] == ["r@new"]


@pytest.mark.parametrize("kind", [kind for kind in OutcomeKind if kind is not OutcomeKind.SURVIVED])
def test_an_outcome_pays_once(
    kind: OutcomeKind, filled: Memory, make_task: MakeTask, make_source: MakeSource
) -> None:
    given = outcome(kind, make_task(), make_source("fast"))
    assert filled.record_outcome(given)
    assert not filled.record_outcome(given)
    assert filled.outcomes() == (given,)
    assert filled.q(Stage.DRAFT, "activation", "item-fast") == pytest.approx(ALPHA * REWARDS[kind])
    assert filled.q(Stage.DRAFT, "activation", "item-slow") == 0.0


def test_rewards_are_graded(make_task: MakeTask, make_source: MakeSource) -> None:
    assert set(REWARDS) == set(OutcomeKind) - {OutcomeKind.SURVIVED}
    survived = [
        outcome_reward(outcome(OutcomeKind.SURVIVED, make_task(), make_source(), detail=horizon))
        for horizon in SURVIVAL
    ]
    assert survived == sorted(survived)
    assert survived[-1] == 1.0


def test_an_outcome_and_its_payment_are_one(
    filled: Memory, make_task: MakeTask, make_source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(filled, "pay", fail)
    with pytest.raises(RuntimeError):
        filled.record_outcome(outcome(OutcomeKind.ACCEPTED, make_task(), make_source("fast")))
    assert filled.outcomes() == ()


def job(id: str, state: JobState = JobState.QUEUED, created: float = 1.0) -> Job:
    return Job(id, JobKind.GENERATE, state, "model.py", "region", "task", "{}", 30, 0, created, created)


def test_jobs(memory: Memory) -> None:
    assert memory.put_job(job("b", created=2.0))
    assert memory.put_job(job("a"))
    assert not memory.put_job(job("a", JobState.DONE)), "a job is asked for once"
    changed = memory.update_job("a", state=JobState.RUNNING, spent=3, reason="going")
    assert (changed.state, changed.spent, changed.reason) == (JobState.RUNNING, 3, "going")
    assert changed.updated > 1.0
    assert [item.id for item in memory.jobs()] == ["a", "b"]
    assert [item.id for item in memory.jobs([JobState.QUEUED])] == ["b"]
    with pytest.raises(StoreError, match="not in the memory"):
        memory.update_job("none", spent=1)
    with pytest.raises(TypeError):
        memory.update_job("a", colour="red")


def test_forgetting(filled: Memory, make_task: MakeTask, make_source: MakeSource) -> None:
    task = make_task()
    lesson = make_experience(ExperienceKind.SUCCESS, "it", "works", task_id=task.task_id)
    filled.add_experience(lesson)
    filled.pay(Reward(Stage.DRAFT, "activation", (lesson.id, "shared"), 1.0))
    assert filled.forget_task(task.task_id)
    assert not filled.forget_task(task.task_id)
    assert [value.item for value in filled.values()] == ["shared", "shared"]
    assert {item for event in filled.rewards() for item in event.used} == {"shared"}
    assert filled.candidates(task.task_id) == ()
    assert filled.source(make_source("fast").source_id) is None
    filled.forget_everything()
    assert {filled.counts()[table] for table in TABLES} == {0}


def test_every_table_is_listed(memory: Memory) -> None:
    names = {row["name"] for row in memory.query("SELECT name FROM sqlite_master WHERE type = 'table'")}
    own = {name for name in names if not name.startswith(("sqlite_", "_sqlite_", "experiences_fts"))}
    assert own == {*TABLES, "revision"}


def test_rules_need_two_tasks(memory: Memory) -> None:
    rule = make_experience(ExperienceKind.RULE, "You cannot fly.", "You cannot fly.")
    assert [memory.add_evidence(rule, task) for task in ("a", "a", "b")] == [False, False, True]
    assert memory.experience(rule.id) == rule


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_text("this is not a database, but it is long enough to look like one" * 20)
    with pytest.raises(StoreError, match="move the file aside"):
        Memory(path)


def test_a_lock_that_stays_is_one_sentence(memory: Memory) -> None:
    other = sqlite3.connect(memory.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    memory.query("PRAGMA busy_timeout = 50")
    with pytest.raises(StoreError, match="locked by another process"):
        memory.pay(Reward(Stage.DRAFT, "", ("a",), 1.0))
    other.execute("ROLLBACK")
    memory.pay(Reward(Stage.DRAFT, "", ("a",), 1.0))


def test_an_inner_failure_undoes_the_whole(memory: Memory, make_source: MakeSource) -> None:
    with pytest.raises(ValueError, match="stop"), memory.transaction():
        memory.record_candidate(make_source("kept?"))
        with memory.transaction():
            raise ValueError("stop")
    assert memory.counts()["sources"] == 0


def test_an_outcome_of_an_unknown_kernel_moves_nothing(
    filled: Memory, make_task: MakeTask, make_source: MakeSource
) -> None:
    assert filled.record_outcome(outcome(OutcomeKind.ACCEPTED, make_task(), make_source("never seen")))
    assert filled.values() == ()


def test_a_full_disk_is_one_sentence_and_loses_nothing(memory: Memory, make_source: MakeSource) -> None:
    memory.record_candidate(make_source("before"))
    pages = memory.query("PRAGMA page_count")[0]["page_count"]
    memory.query(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="database or disk is full; check the disk"), memory.transaction():
        for number in range(500):
            memory.record_candidate(make_source(f"{number} " + "x" * number))
    assert memory.counts()["sources"] == 1
    memory.query("PRAGMA max_page_count = 100000")
    memory.record_candidate(make_source("after"))
    assert memory.source(make_source("before").source_id) and memory.source(make_source("after").source_id)


def test_what_cannot_be_written_is_read(filled: Memory, make_source: MakeSource) -> None:
    filled._db.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match=r"readonly.*check the disk and its rights"):
        filled.record_candidate(make_source("new"))
    assert filled.source(make_source("fast").source_id) == make_source("fast")
    assert len(filled.attempts(job_id="job")) == 3
