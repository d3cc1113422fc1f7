"""The seats' work at the edges that a running service shows only now and then."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.verifier import workers
from evokernel_core.verifier.queue import Claim, JobQueue, QueueState
from evokernel_core.verifier.workers import Died, HostLost, JobEnd, Serve, Workers

VERDICT = {"verdict": {"gates": []}, "cpu_s": 0.5}


class OneSeat:
    """A pool of one seat, which does what the test says."""

    place = "there"

    def __init__(self, ask: Any) -> None:
        self._ask = ask
        self.kills = 0

    async def run(self, serve: Serve) -> None:
        while True:
            await serve(self)

    async def ask(self, claim: Claim) -> dict[str, Any]:
        answer: dict[str, Any] = await self._ask(claim)
        return answer

    def kill(self) -> None:
        self.kills += 1


def make(queue: JobQueue, ask: Any) -> tuple[Workers, list[JobEnd]]:
    outcomes: list[JobEnd] = []
    seat = OneSeat(ask)
    return Workers(queue, seat, job_timeout_s=5, on_done=lambda _: None, on_outcome=outcomes.append), outcomes


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


def done(queue: JobQueue, job: str) -> bool:
    found = queue.get(job)
    return found is not None and found.state is QueueState.DONE


async def test_an_answer_in_hand_waits_for_a_disk_with_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = JobQueue(tmp_path)
    queue.put("a", "T", "S")
    monkeypatch.setattr(workers, "TRY_AGAIN_S", 0.01)
    tries: list[int] = []
    finish = queue.finish

    def full(claim: Claim, **result: Any) -> bool:
        tries.append(1)
        if len(tries) < 4:
            raise sqlite3.OperationalError("database or disk is full")
        return finish(claim, **result)

    monkeypatch.setattr(queue, "finish", full)

    async def ask(_: Claim) -> dict[str, Any]:
        return VERDICT

    working, outcomes = make(queue, ask)
    async with working.running():
        await until(lambda: outcomes)
    assert done(queue, "a")
    assert len(tries) == 4 and [outcome.job for outcome in outcomes] == ["a"]


async def test_a_claim_that_comes_after_its_seat_went_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that claims cannot be cancelled: without care the job would run for ever, nowhere."""
    queue = JobQueue(tmp_path)
    queue.put("a", "T", "S")
    claiming, go_on = threading.Event(), threading.Event()
    claim = queue.claim

    def slowly() -> Claim | None:
        claiming.set()
        go_on.wait(5)
        return claim()

    monkeypatch.setattr(queue, "claim", slowly)

    async def ask(_: Claim) -> dict[str, Any]:
        raise AssertionError("nobody is there to judge")

    working, _ = make(queue, ask)
    async with working.running():
        await until(claiming.is_set)
        asyncio.get_running_loop().call_later(0.1, go_on.set)
    found = queue.get("a")
    assert found and found.state is QueueState.QUEUED


async def test_a_death_on_a_full_disk_is_recorded_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = JobQueue(tmp_path)
    queue.put("a", "T", "S")
    monkeypatch.setattr(workers, "TRY_AGAIN_S", 0.01)
    give_back, tries = queue.give_back, []

    def full(claim: Claim, **facts: Any) -> bool:
        tries.append(1)
        if len(tries) == 1:
            raise sqlite3.OperationalError("database or disk is full")
        return give_back(claim, **facts)

    monkeypatch.setattr(queue, "give_back", full)
    asked: list[int] = []

    async def ask(_: Claim) -> dict[str, Any]:
        asked.append(1)
        if len(asked) == 1:
            raise Died
        return VERDICT

    working, _ = make(queue, ask)
    async with working.running():
        await until(lambda: done(queue, "a"))
    assert len(asked) == 2
    assert len(tries) >= 2  # one more where the database was locked by who looked at it


async def test_a_lost_host_gives_its_job_to_the_next(tmp_path: Path) -> None:
    queue = JobQueue(tmp_path)
    queue.put("a", "T", "S")
    asked: list[str] = []

    async def ask(claim: Claim) -> dict[str, Any]:
        asked.append(claim.lease)
        if len(asked) < 6:  # more often than a worker may die
            raise HostLost
        return VERDICT

    working, outcomes = make(queue, ask)
    async with working.running():
        await until(lambda: outcomes)
    assert done(queue, "a")
    found = queue.get("a")
    assert found and found.verdict and len(set(asked)) == 6
    assert [(outcome.place, outcome.cpu_s) for outcome in outcomes] == [("there", 0.5)]
    assert queue.used("owner") == (1, 0.5)
