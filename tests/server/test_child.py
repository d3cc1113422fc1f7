"""The worker's process: nothing on the loop waits for it, and what it says is heard before its end."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from evokernel_server.jobs import child as module
from evokernel_server.jobs import worker as worker_module
from evokernel_server.jobs.child import Child
from evokernel_server.jobs.worker import COMMAND_VARIABLE, Worker, WorkerDied

from evokernel_core.domain.settings import Settings


async def run(code: str, *told: bytes) -> tuple[list[bytes], int]:
    """The lines that a program says, and its exit status."""
    heard: list[bytes] = []
    ended = asyncio.get_running_loop().create_future()
    child = await Child.start(
        [sys.executable, "-c", code], heard.append, lambda _, status: ended.set_result(status)
    )
    for line in told:
        child.tell(line)
    child.listen()
    return heard, await asyncio.wait_for(ended, 60.0)


@pytest.mark.parametrize(
    ("code", "told", "expected"),
    [
        ("print(1); print(2)", (), ([b"1\n", b"2\n"], 0)),
        ("print(input() * 3)", (b"ab\n",), ([b"ababab\n"], 0)),
        ("print(len(input()))", (b"x" * 10**6 + b"\n",), ([b"1000000\n"], 0)),
        ("print('y' * 10**6)", (), ([b"y" * 10**6 + b"\n"], 0)),
        ("import os; os._exit(7)", (b"nobody reads this\n",), ([], 7)),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", (), ([], -9)),
    ],
)
async def test_what_is_said_and_how_it_ends(code: str, told: Any, expected: Any) -> None:
    assert await run(code, *told) == expected


async def test_telling_a_process_that_does_not_read_does_not_wait() -> None:
    child = await Child.start([sys.executable, "-c", "import time; time.sleep(600)"], print, lambda *_: None)
    child.tell(b"x" * 10**7)  # far more than a pipe holds
    child.listen()
    child.kill()
    await asyncio.wait_for(child.gone(), 60.0)


async def test_what_a_process_left_running_ends_with_it() -> None:
    code = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid)"
    (line,), _ = await run(code)
    end = asyncio.get_running_loop().time() + 30.0
    while psutil.pid_exists(int(line)) and psutil.Process(int(line)).status() != psutil.STATUS_ZOMBIE:
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.05)


async def test_threads_end_with_their_process() -> None:
    before = threading.active_count()
    for _ in range(4):
        await run("print(1)")
    await asyncio.sleep(0.5)
    assert threading.active_count() <= before + 1  # the one on which processes are started


@pytest.fixture
def slow_start(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Processes that run only once the event is set, as on a machine with more work than cores."""
    released, real = threading.Event(), module.subprocess.Popen

    def start(*arguments: Any, **options: Any) -> Any:
        released.wait(60.0)
        return real(*arguments, **options)

    monkeypatch.setattr(module.subprocess, "Popen", start)
    yield released
    released.set()


async def test_the_loop_goes_on_while_a_worker_starts(
    slow_start: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, f"'{sys.executable}' -c 'import sys; sys.stdin.read(1)'")
    worker = Worker(Settings)
    asking = asyncio.ensure_future(worker.request("regions", {}))
    await asyncio.sleep(0.1)  # would not return where the loop waited
    assert not asking.done()
    slow_start.set()
    with pytest.raises(WorkerDied):
        await asyncio.wait_for(asking, 60.0)


ANSWERING = (
    'import sys, json; [print(json.dumps(dict(id=json.loads(line)["id"])), flush=True) for line in sys.stdin]'
)


async def test_an_idle_worker_ends_by_itself_and_another_starts_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, f"'{sys.executable}' -c '{ANSWERING}'")
    monkeypatch.setattr(worker_module, "IDLE_S", 0.2)
    worker = Worker(Settings)
    assert await worker.request("regions", {}) == {}
    first = worker._process
    assert first is not None
    await asyncio.wait_for(first.gone(), 60.0)
    assert first._process.returncode == 0, "its input ended: it was not killed"
    assert await worker.request("regions", {}) == {}
    assert worker._not_before == 0.0 and not caplog.records
    worker.kill()


async def test_a_worker_with_a_request_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, f"'{sys.executable}' -c '{ANSWERING}'")
    worker = Worker(Settings)
    assert await worker.request("regions", {}) == {}
    process = worker._process
    worker._calls[99] = worker_module._Call(asyncio.get_running_loop().create_future(), None)
    worker._end_idle()
    assert worker._process is process is not None
    worker._calls.clear()
    worker._end_idle()
    await asyncio.wait_for(process.gone(), 60.0)


async def test_a_worker_that_dies_at_once_leaves_no_request_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, f"'{sys.executable}' -c 'pass'")
    worker = Worker(Settings)
    asked = [worker.request("regions", {}) for _ in range(3)]
    answers = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 60.0)
    assert all(isinstance(answer, WorkerDied) for answer in answers)
