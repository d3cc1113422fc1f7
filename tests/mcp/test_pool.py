"""Workers are lent to one call each, kept while they may be needed, and killed with the call that gave up."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any, cast

import anyio
import psutil
import pytest
from evokernel_mcp import calls
from evokernel_mcp.pool import Pool
from evokernel_server.jobs import worker
from evokernel_server.jobs.worker import COMMAND_VARIABLE, WorkerError
from mcp.server.mcpserver import Context

from evokernel_core.domain.settings import Settings

WORKER = """
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "sleep": continue
        case "fail": answer = {"error": {"reason": "no", "message": "It failed."}}
        case _: answer = {"result": {"pid": __import__("os").getpid()}}
    print(json.dumps({"id": message["id"], **answer}), flush=True)
"""
"""Stands in for the worker: it answers at once, fails, or never answers."""


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pool:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    monkeypatch.setenv(COMMAND_VARIABLE, shlex.join([sys.executable, str(script)]))
    return Pool(Settings())


async def ended(pid: int) -> None:
    with anyio.fail_after(30):
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.02)


async def test_a_worker_is_used_again_also_after_an_error(workers: Pool) -> None:
    first = await workers.request("answer", {})
    with pytest.raises(WorkerError, match="It failed"):
        await workers.request("fail", {})
    assert await workers.request("answer", {}) == first
    workers.close()
    await ended(first["pid"])


async def test_a_call_that_gives_up_ends_its_worker_alone(workers: Pool) -> None:
    kept = (await workers.request("answer", {}))["pid"]
    waiting = asyncio.create_task(workers.request("sleep", {}))
    await asyncio.sleep(0.1)
    other = (await workers.request("answer", {}))["pid"]
    assert other != kept
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await ended(kept)
    assert (await workers.request("answer", {}))["pid"] == other
    workers.close()


async def test_an_idle_worker_is_ended(workers: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "IDLE_S", 0.05)
    pid = (await workers.request("answer", {}))["pid"]
    await ended(pid)
    assert (await workers.request("answer", {}))["pid"] != pid
    workers.close()


class _Heard:
    """A call's context that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[float, float | None, str | None]] = []

    async def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.said.append((progress, total, message))


def attempt(n: int) -> dict[str, Any]:
    return {"n": n, "budget": 3, "best_us": None, "best_source": "", "verdict_summary": "Failed."}


@pytest.mark.parametrize("pause", [0, 1, 2, 3])
async def test_the_last_attempt_and_the_answer_may_come_together(pause: int) -> None:
    heard = _Heard()
    calls._told.set([0.0])
    with anyio.fail_after(10):
        async with calls.telling(cast("Context", heard), "Works.") as hear:
            for _ in range(pause):
                await asyncio.sleep(0)
            hear(attempt(1))
    assert [item[0] for item in heard.said] == [1.0]


async def test_progress_only_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "BEAT_S", 0.01)
    heard = _Heard()
    calls._told.set([0.0])
    for n in (2, 1):
        async with calls.telling(cast("Context", heard), "Works.") as hear:
            await asyncio.sleep(0.05)
            hear(attempt(n))
    told = [item[0] for item in heard.said]
    assert len(told) > 3 and told == sorted(set(told))
