"""The queue alone: what each step does to a job, and that no order of steps loses or doubles one."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from evokernel_core.domain.errors import StoreError
from evokernel_core.verifier.queue import (
    MAX_DEATHS,
    MAX_MOVES,
    Asker,
    Claim,
    JobQueue,
    QueueFull,
    QueueLock,
    QueueState,
    QuotaUsed,
    m001_jobs,
)
from evokernel_core.verifier.serving.users import Priority, Quota

VERDICT = '{"gates": []}'


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[JobQueue]:
    queue = JobQueue(tmp_path)
    yield queue
    queue.close()


def claimed(queue: JobQueue) -> Claim:
    claim = queue.claim()
    assert claim
    return claim


def state(queue: JobQueue, job: str) -> QueueState | None:
    found = queue.get(job)
    return found.state if found else None


def test_a_job_is_claimed_once_and_finished_once(queue: JobQueue) -> None:
    assert queue.put("a", "T", "S").state is QueueState.QUEUED
    claim = claimed(queue)
    assert (claim.id, claim.task, claim.source) == ("a", "T", "S")
    assert queue.claim() is None
    assert queue.finish(claim, verdict=VERDICT)
    assert not queue.finish(claim, verdict='{"other": 1}')
    assert queue.put("a", "T", "S").verdict == VERDICT
    assert queue.claim() is None


def test_the_oldest_goes_first(queue: JobQueue) -> None:
    for job in ("c", "a", "b"):
        queue.put(job, "", "")
    assert [claimed(queue).id for _ in range(3)] == ["c", "a", "b"]


def test_a_new_owner_takes_up_what_was_running(tmp_path: Path) -> None:
    first = JobQueue(tmp_path)
    first.put("a", "T", "S")
    old = claimed(first)
    second = JobQueue(tmp_path)
    assert second.recover() == 1
    new = claimed(second)
    assert not first.holds(old)
    assert not first.finish(old, verdict='{"late": 1}')
    assert second.finish(new, verdict=VERDICT)
    found = first.get("a")
    assert found and found.verdict == VERDICT


def test_a_job_that_kills_its_workers_is_given_up(queue: JobQueue) -> None:
    queue.put("a", "", "")
    for _ in range(MAX_DEATHS - 1):
        assert queue.give_back(claimed(queue), died=True)
    assert not queue.give_back(claimed(queue), died=True)
    found = queue.get("a")
    assert found and found.state is QueueState.DONE and "died" in found.error


def test_an_error_is_tried_again_when_asked_again(queue: JobQueue) -> None:
    queue.put("a", "T", "S")
    queue.finish(claimed(queue), error="away")
    assert queue.put("a", "T", "S").state is QueueState.QUEUED
    assert claimed(queue).task == "T"


def test_a_job_goes_when_nobody_wants_it(queue: JobQueue) -> None:
    queue.put("a", "", "", "one")
    queue.put("a", "", "", "two")
    claim = claimed(queue)
    assert queue.withdraw("a", "one") is False
    assert queue.withdraw("a", "two") is True
    assert queue.withdraw("a", "two") is None
    assert not queue.finish(claim, verdict=VERDICT)
    assert queue.get("a") is None


def test_a_full_queue_takes_only_what_it_knows(tmp_path: Path) -> None:
    queue = JobQueue(tmp_path, limit=1)
    queue.put("a", "", "")
    queue.put("a", "", "")
    with pytest.raises(QueueFull):
        queue.put("b", "", "")
    claimed(queue)
    queue.put("b", "", "")


def test_one_service_owns_a_folder(tmp_path: Path) -> None:
    lock = QueueLock(tmp_path)
    with pytest.raises(StoreError, match="Another verifier service"):
        QueueLock(tmp_path)
    lock.release()
    QueueLock(tmp_path).release()


def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "queue.db").write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError, match="cannot be opened"):
        JobQueue(tmp_path)


def test_threads_never_claim_the_same_job(queue: JobQueue) -> None:
    for number in range(60):
        queue.put(f"{number}", "", "")
    taken: list[str] = []

    def work() -> None:
        while claim := queue.claim():
            taken.append(claim.id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 60


class QueueMachine(RuleBasedStateMachine):
    """Any order of steps against a dict that says what each job should be."""

    claims: Bundle[Claim] = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.queue = JobQueue(Path(self.folder.name))
        self.model: dict[str, QueueState] = {}
        self.verdicts: dict[str, str] = {}

    def teardown(self) -> None:
        self.queue.close()
        self.folder.cleanup()

    @rule(job=st.sampled_from("abc"))
    def put(self, job: str) -> None:
        self.queue.put(job, "T", "S")
        self.model.setdefault(job, QueueState.QUEUED)

    @rule(target=claims)
    def claim(self) -> Claim:
        claim = self.queue.claim()
        if claim is None:
            assert QueueState.QUEUED not in self.model.values()
            return Claim("", "", "", "")
        assert self.model[claim.id] is QueueState.QUEUED
        self.model[claim.id] = QueueState.RUNNING
        return claim

    @rule(claim=consumes(claims), verdict=st.integers(0, 9).map(lambda n: f'{{"n": {n}}}'))
    def finish(self, claim: Claim, verdict: str) -> None:
        held = self.queue.holds(claim)
        assert self.queue.finish(claim, verdict=verdict) == held
        if held:
            self.model[claim.id] = QueueState.DONE
            self.verdicts[claim.id] = verdict

    @rule(claim=consumes(claims))
    def give_back(self, claim: Claim) -> None:
        if self.queue.give_back(claim, died=False):
            self.model[claim.id] = QueueState.QUEUED

    @rule(job=st.sampled_from("abc"))
    def withdraw(self, job: str) -> None:
        if self.queue.withdraw(job):
            assert self.model.pop(job) is not QueueState.DONE

    @rule()
    def restart(self) -> None:
        self.queue.close()
        self.queue = JobQueue(Path(self.folder.name))
        self.queue.recover()
        running = [job for job, state in self.model.items() if state is QueueState.RUNNING]
        self.model.update(dict.fromkeys(running, QueueState.QUEUED))

    @invariant()
    def is_as_modelled(self) -> None:
        for job in "abc":
            assert state(self.queue, job) is self.model.get(job)
        for job, verdict in self.verdicts.items():
            found = self.queue.get(job)
            assert found and found.verdict == verdict


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def asker(user: str, priority: Priority = Priority.INTERACTIVE, **quota: int) -> Asker:
    return Asker(user, "", priority, Quota(**quota))


def test_users_and_classes_take_turns(queue: JobQueue) -> None:
    for number in range(5):
        queue.put(f"b{number}", "", "", asker=asker("back", Priority.BACKGROUND))
    for number in range(4):
        queue.put(f"x{number}", "", "", asker=asker("x"))
        queue.put(f"y{number}", "", "", asker=asker("y"))
    order = [claimed(queue).id for _ in range(13)]
    assert [job for job in order if job[0] != "b"] == ["x0", "y0", "x1", "y1", "x2", "y2", "x3", "y3"]
    assert [order.index(f"b{number}") for number in range(2)] == [0, 5], "one turn in five"


def test_a_day_is_over_at_midnight(queue: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    midnight = 20_000 * 86_400.0
    monkeypatch.setattr("evokernel_core.verifier.queue.time.time", lambda: midnight - 100)
    queue.put("a", "", "", asker=asker("u", jobs_a_day=1))
    with pytest.raises(QuotaUsed, match="1 jobs today") as raised:
        queue.put("b", "", "", asker=asker("u", jobs_a_day=1))
    assert raised.value.retry_after_s == 101
    monkeypatch.setattr("evokernel_core.verifier.queue.time.time", lambda: midnight + 1)
    queue.put("b", "", "", asker=asker("u", jobs_a_day=1))
    assert queue.used("u") == (1, 0.0)


def test_cpu_seconds_are_counted_whoever_holds_the_job(queue: JobQueue) -> None:
    queue.put("a", "", "", asker=asker("u", cpu_s_a_day=10))
    claim = claimed(queue)
    queue.give_back(claim, died=True, cpu_s=4.0)
    late, claim = claim, claimed(queue)
    assert not queue.finish(late, verdict=VERDICT, cpu_s=3.0)
    queue.finish(claim, verdict=VERDICT, cpu_s=3.5)
    assert queue.used("u") == (1, 10.5)
    queue.put("other", "", "", asker=asker("other"))
    with pytest.raises(QuotaUsed, match="CPU seconds"):
        queue.put("b", "", "", asker=asker("u", cpu_s_a_day=10))
    assert claimed(queue).user == "other"


def test_a_host_that_is_lost_is_not_the_jobs_fault_for_long(queue: JobQueue) -> None:
    queue.put("a", "", "")
    for _ in range(MAX_MOVES - 1):
        assert queue.give_back(claimed(queue), died=False, host_lost=True)
    assert not queue.give_back(claimed(queue), died=False, host_lost=True)
    found = queue.get("a")
    assert found and "host was lost 20 times" in found.error


def test_a_job_passes_on_to_who_still_wants_it(queue: JobQueue) -> None:
    queue.put("a", "", "", asker=asker("back", Priority.BACKGROUND))
    queue.put("a", "", "", asker=asker("front"))
    assert queue.withdraw("a", user="stranger") is None
    assert queue.withdraw("a", user="front") is False
    claim = claimed(queue)
    assert claim.user == "back"
    assert queue.withdraw("a", user="back") is True
    assert not queue.holds(claim)


def test_jobs_of_before_there_were_users_are_the_owners(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "queue.db") as old:
        old.row_factory = sqlite3.Row
        db = Database(old)
        m001_jobs(db)
        Migrations("evokernel.verifier.queue").ensure_migrations_table(db)
        db["_sqlite_migrations"].insert(
            {"migration_set": "evokernel.verifier.queue", "name": "m001_jobs", "applied_at": "2026"}
        )
        for name, state in (("a", "queued"), ("b", "done")):
            row = {"id": name, "state": state, "task": "T", "source": "S", "verdict": VERDICT, "error": ""}
            db["jobs"].insert(row | {"lease": "", "deaths": 0, "created": 1.0, "updated": 1.0})
            db["interests"].insert({"job": name, "client": "c"})
    queue = JobQueue(tmp_path)
    assert claimed(queue).user == "owner"
    assert queue.wanted_by("b", "owner") and not queue.wanted_by("b", "alice")
    queue.close()
