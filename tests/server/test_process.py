"""The server as a process: quick, small, guarded, and gone when its editor is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from evokernel_server.features import show
from evokernel_server.jobs.child import Child
from evokernel_server.jobs.worker import Worker
from evokernel_server.texts import command_names

from evokernel_core.domain.settings import Settings

EVOKERNEL = str(Path(sys.executable).with_name("evokernel"))
HEAVY = {"torch", "numpy", "fastapi", "openai", "pandas", "sqlite_utils", "uvicorn"}
LATER = {
    "sqlite3", "logging.handlers", "evokernel_core.memory", "evokernel_core.hardware.ascend.chip",
    "evokernel_core.hardware.roofline", "evokernel_server.review.dashboard",
    "evokernel_server.offers.notices", "evokernel_server.review.contents", "evokernel_server.review.gather",
    "evokernel_server.features.show",
}  # fmt: skip
"""What only a package, a command or the memory's own thread needs."""


def message(method: str, params: Any, number: int | None = None) -> bytes:
    data = {"jsonrpc": "2.0", "method": method, "params": params}
    body = json.dumps(data if number is None else data | {"id": number}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def start(home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [EVOKERNEL, "lsp", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "EVOKERNEL_HOME": str(home)},
    )


def initialize(server: subprocess.Popen[bytes], process_id: int | None = None) -> dict[str, Any]:
    assert server.stdin is not None
    params = {"processId": process_id, "rootUri": None, "capabilities": {}}
    server.stdin.write(message("initialize", params, 1))
    server.stdin.flush()
    answer = read(server)
    server.stdin.write(message("initialized", {}))
    server.stdin.flush()
    return answer


def read(server: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert server.stdout is not None
    length = 0
    while (line := server.stdout.readline()).strip():
        if line.lower().startswith(b"content-length"):
            length = int(line.split(b":")[1])
    return dict(json.loads(server.stdout.read(length)))


def end(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        server.kill()
    server.wait()
    for pipe in (server.stdin, server.stdout):
        assert pipe is not None
        pipe.close()


def test_the_server_imports_nothing_heavy() -> None:
    code = (
        "import sys, evokernel_server.app, evokernel_core.cli.lsp, evokernel_core.memory.store;"
        f"sys.exit(', '.join(sorted({HEAVY!r} & set(sys.modules))) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_what_a_start_does_not_need_is_imported_later() -> None:
    code = (
        "import sys; from evokernel_core.cli import lsp, main; from evokernel_server import serve;"
        f"sys.exit(', '.join(sorted({LATER!r} & set(sys.modules))) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_commands_that_are_imported_later_are_all_there() -> None:
    assert tuple(show.COMMANDS) == command_names.OF_REVIEWING


def test_it_ends_with_its_input(home: Path) -> None:
    server = start(home)
    initialize(server)
    assert server.stdin is not None
    server.stdin.close()
    assert server.wait(timeout=10) is not None
    server.stdin = None
    assert server.stdout is not None
    server.stdout.close()


def test_it_ends_with_its_editor(home: Path) -> None:
    editor = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    server = start(home)
    try:
        initialize(server, editor.pid)
        editor.kill()
        editor.wait()
        assert server.wait(timeout=10) == 1
    finally:
        end(server)


def test_prints_do_not_reach_the_channel(home: Path) -> None:
    code = (
        "import os, sys; from evokernel_server.transport import stdio;"
        "out = stdio.guard_stdout(); print('noise'); os.system('echo noise');"
        "stream = stdio.QueuedStream(out); stream.write(b'message'); stream.close()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"message"
    assert done.stderr.count(b"noise") == 2


@pytest.mark.usefixtures("scripted_alone")
async def test_the_worker_and_its_children_end_with_a_killed_server(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start()
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    server = psutil.Process(editor.client._server.pid)
    children = server.children(recursive=True)
    assert children
    os.kill(server.pid, signal.SIGKILL)
    await eventually(lambda: not any(child.is_running() for child in children))


@pytest.mark.usefixtures("scripted_alone")
async def test_a_worker_that_dies_is_started_again(sessions: Any, workspace: Path, eventually: Any) -> None:
    editor = await sessions.start()
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    for child in psutil.Process(editor.client._server.pid).children(recursive=True):
        child.kill()
    other = workspace / "other.py"
    other.write_text((workspace / "model.py").read_text("utf-8"), "utf-8")
    second = editor.open(other)
    assert await eventually(lambda: editor.hints(second))


async def test_a_worker_that_is_being_started_ends_with_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked is cancelled while the process is being started: it stayed for good."""
    monkeypatch.setenv("EVOKERNEL_WORKER_COMMAND", f"'{sys.executable}' -c 'import time; time.sleep(600)'")
    starts, made, go_on = 0, Child.start, asyncio.Event()

    async def slowly(*given: Any) -> Child:
        nonlocal starts
        starts += 1
        await go_on.wait()
        return await made(*given)

    monkeypatch.setattr(Child, "start", slowly)
    worker = Worker(Settings)
    asking = asyncio.create_task(worker.request("regions", {}))
    while not starts:
        await asyncio.sleep(0.01)
    ending = asyncio.create_task(worker.start_no_more())
    await asyncio.sleep(0.01)
    asking.cancel()
    go_on.set()
    async with asyncio.timeout(20):
        await ending
        started = worker._process
        assert worker.kill() and started is not None
        await started.gone()
        while worker._process is not None:
            await asyncio.sleep(0.01)
    late = asyncio.create_task(worker.request("regions", {}))
    await asyncio.sleep(1.0)
    assert starts == 1 and not late.done()
    late.cancel()


@pytest.mark.usefixtures("scripted")
async def test_typing_is_answered_while_a_capture_runs(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start()
    uri = editor.open(workspace / "model.py")
    slowest = 0.0
    for number in range(30):
        editor.set_text(uri, f"# {number}\n" + editor.texts[uri])
        began = time.monotonic()
        await editor.hints(uri)
        slowest = max(slowest, time.monotonic() - began)
        await asyncio.sleep(0.01)
    assert slowest < 0.5


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1", "127.0.0.1:99999"])
def test_a_wrong_address_is_wrong_usage(address: str, home: Path) -> None:
    done = subprocess.run([EVOKERNEL, "lsp", "--tcp", address], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"HOST:PORT" in done.stderr
