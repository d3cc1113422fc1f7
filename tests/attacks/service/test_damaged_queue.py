"""One damaged row of the service's queue wants all jobs to stop, or a worker to judge something else."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.verifier.queue import Asker, JobQueue, QueueState
from evokernel_core.verifier.serving.users import Priority, Quota
from evokernel_core.verifier.workers import Child
from tests.attacks import Attack, each
from tests.attacks.editor.test_damaged_rows import HOSTILE

TABLES = {
    "jobs": ("id", "state", "task", "source", "verdict", "error", "lease", "deaths", "created", "updated",
             "user", "priority", "moves", "cpu_s_a_day"),
    "interests": ("job", "client", "user", "priority", "cpu_s_a_day"),
    "usage": ("user", "day", "jobs", "cpu_s"),
}  # fmt: skip
ASKER = Asker("ann", "c", Priority.INTERACTIVE, Quota(cpu_s_a_day=100, jobs_a_day=100))


def fill(folder: Path) -> None:
    queue = JobQueue(folder)
    for name in ("first", "done", "second"):
        queue.put(name, '{"task": 1}', '{"source": 1}', asker=ASKER)
    claim = queue.claim()
    assert claim and queue.finish(claim, verdict="{}", cpu_s=1.0)
    queue.put("third", '{"task": 1}', "{}", asker=Asker("bob"))
    queue.close()


def use(folder: Path) -> None:
    """What a service does from its start on: the sound jobs are all claimed and finished."""
    queue = JobQueue(folder)
    try:
        queue.recover()
        queue.counts()
        for user in ("ann", "bob"):
            queue.used(user)
        claimed = []
        while claim := queue.claim():
            assert isinstance(claim.task, str) and isinstance(claim.source, str) and claim.user is not None
            claimed.append(claim.id)
            assert queue.finish(claim, verdict="{}", cpu_s=1.0)
        assert "second" in claimed and "third" in claimed
        for name in ("first", "done", "second", "third"):
            job = queue.get(name)
            if job is not None and job.verdict:
                assert isinstance(json.loads(job.verdict), dict)
            again = queue.put(name, "{}", "{}", asker=ASKER)
            assert again.state in QueueState
            queue.withdraw(name, "c", user="ann")
    finally:
        queue.close()


def check(table: str, chosen: list[tuple[str, str]], folder: Path) -> None:
    fill(folder / "sound")
    sound = (folder / "sound" / "queue.db").read_bytes()
    for column, name in chosen:
        copy = folder / f"{column}-{name}"
        copy.mkdir(mode=0o700)
        (copy / "queue.db").write_bytes(sound)
        if not damage(copy / "queue.db", table, column, HOSTILE[name]):
            continue
        try:
            use(copy)
        except Exception as error:
            pytest.fail(f"{table}.{column} = {name}: {error!r}")


def damage(path: Path, table: str, column: str, value: str) -> bool:
    row = {"jobs": "id IN ('first', 'done')", "interests": "job = 'first'", "usage": "user = 'ann'"}[table]
    if (table, column) == ("jobs", "id"):
        row = "id = 'first'"
    database = sqlite3.connect(path)
    try:
        assert database.execute(f'UPDATE {table} SET "{column}" = {value} WHERE {row}').rowcount
    except sqlite3.IntegrityError:
        return False
    finally:
        database.commit()
        database.close()
    return True


ATTACKS = [
    Attack(table, "nothing to be judged any more", "the row is set aside, the rest goes on", table)
    for table in TABLES
]


@each(ATTACKS)
def test_a_value_that_is_none(attack: Attack, tmp_path: Path) -> None:
    """Three values in each column, others in the next."""
    names = list(HOSTILE)
    chosen = [
        (column, names[(3 * place + step) % len(names)])
        for place, column in enumerate(TABLES[attack.given])
        for step in range(3)
    ]
    check(attack.given, chosen, tmp_path)


@pytest.mark.thorough
@each(ATTACKS)
def test_every_value_in_every_column(attack: Attack, tmp_path: Path) -> None:
    check(attack.given, list(product(TABLES[attack.given], HOSTILE)), tmp_path)


def test_the_asker_of_a_damaged_job_is_told(tmp_path: Path) -> None:
    """Wants the client to wait for ever; asking again must queue a sound job."""
    fill(tmp_path)
    damage(tmp_path / "queue.db", "jobs", "deaths", "'many'")
    queue = JobQueue(tmp_path)
    found = queue.get("first")
    assert found and found.state is QueueState.DONE and "ask for it again" in found.error
    assert queue.wanted_by("first", "ann")
    assert queue.put("first", "{}", "{}", asker=ASKER).state is QueueState.QUEUED
    queue.close()


def test_a_row_that_becomes_damaged_while_the_service_runs(tmp_path: Path) -> None:
    """Wants to come after the look at the start; must end with a sentence when its turn comes."""
    fill(tmp_path)
    queue = JobQueue(tmp_path)
    damage(tmp_path / "queue.db", "jobs", "task", HOSTILE["no-utf8"])
    claimed = []
    while claim := queue.claim():
        claimed.append(claim.id)
    assert sorted(claimed) == ["second", "third"]
    found = queue.get("done")
    assert found and "ask for it again" in found.error
    queue.close()


def test_a_task_that_is_two_requests(tmp_path: Path) -> None:
    """Wants a line's end in its text to be a second question, whose answer the next job would get."""
    lines: list[bytes] = []

    class Pipe:
        def write(self, data: bytes) -> None:
            lines.append(data)

        async def drain(self) -> None:
            return None

        async def readline(self) -> bytes:
            return b'{"error": "no JSON"}\n'

    class Process:
        stdin = stdout = Pipe()
        returncode = None

    child = Child(())
    child._process = Process()  # type: ignore[assignment]
    task: Any = '1, "source": 1}\n{"task": 2\r'
    assert asyncio.run(child.judge(task, "{}")) == {"error": "no JSON"}
    assert b"".join(lines).count(b"\n") == 1 and b"\r" not in b"".join(lines)
