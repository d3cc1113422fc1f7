"""Clients that ask wrongly, go away or are killed: each is answered or let go, and nothing goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from tests import warm
from tests.mcp.conftest import KERNEL, agent_of, command, processes_below, servers

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("warm_torch")]

ENDLESS = KERNEL.replace(
    "    TPipe pipe;\n",
    "    volatile uint32_t turns = 0;\n    while (turns < 9) { turns = turns % 7; }\n    TPipe pipe;\n",
)
LAUNCH = {
    "block_dim": 1,
    "args": [
        {"in": {"fill": "zeros", "shape": [64], "dtype": "float32"}},
        {"out": "z.npy", "shape": [64], "dtype": "float32"},
        {"scalar": "uint32", "value": 64},
        {"scalar": "float32", "value": 3},
        {"bytes": "tiling.bin"},
        {"workspace": 0},
    ],
}


@pytest.fixture
def endless(project: Path) -> Path:
    (project / "tiling.bin").write_bytes(bytes(8))
    (project / "endless.cpp").write_text(ENDLESS)
    return project


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("plan", {}),
    ("plan", {"path": 3}),
    ("plan", {"path": "model.py", "limit": 0}),
    ("plan", {"path": "model.py", "limit": 10**9}),
    ("plan", {"path": "model.py", "offset": -1}),
    ("plan", {"path": ["model.py"]}),
    ("generate", {"path": "model.py", "region": "0", "budget": 10**6}),
    ("generate", {"path": "model.py", "region": "x" * 1000}),
    ("generate", {"path": "model.py", "region": "0", "until": "never"}),
    ("verify_kernel", {"path": "model.py", "region": "0"}),
    ("verify_kernel", {"path": "model.py", "region": "0", "files": {"tiling.h": "x" * 10**6}}),
    ("verify_kernel", {"path": "model.py", "region": "0", "tiling_h": "x", "op_kernel_cpp": "y"}),
    ("verify_kernel", {"path": "model.py", "region": "0", "files": {"tiling.h": "x", "../x": "y"}}),
    ("verify_kernel", {"path": "model.py", "region": "0", "target": "cuda", "folder": "."}),
    ("verify_kernel", {"path": "model.py", "region": "0", "folder": ".", "files": {"tiling.h": "x"}}),
    ("verify_package", {"path": "."}),
    ("verify_package", {"path": "/"}),
    ("verdict", {"source_id": "../../etc"}),
    ("verdict", {"source_id": "0" * 64}),
    ("run", {"entry": "scale", "launch": {"args": []}}),
    ("run", {"entry": "scale", "launch": {"args": []}, "path": "scale.cpp", "text": "x"}),
    ("run", {"entry": "scale", "launch": {"args": [{"in": 3}]}, "path": "scale.cpp"}),
    ("run", {"entry": "scale", "launch": {"args": [{"shell": "ls"}]}, "path": "scale.cpp"}),
    ("run", {"entry": "scale", "launch": {"args": [], "block_dim": 10**9}, "path": "scale.cpp"}),
    ("run", {"entry": "none", "launch": {"args": []}, "path": "scale.cpp"}),
    ("run", {"entry": "scale", "launch": {"args": []}, "path": "scale.cpp", "defines": ["-fplugin=x"]}),
    ("run", {"entry": "scale", "launch": {"args": []}, "path": "scale.cpp", "limit_s": 1e9}),
    (
        "run",
        {"entry": "scale", "launch": {"args": [], "reference": {"z.npy": "open('x')"}}, "path": "scale.cpp"},
    ),
    ("run_op", {"path": "model.py"}),
    ("run_op", {"path": ".", "case": "../case.json"}),
    ("explain", {"code": "no-such-code"}),
    ("search_memory", {"query": "x"}),
    ("search_memory", {"query": "words", "kinds": ["secret"]}),
    ("read", {"uri": "file:///etc/passwd"}),
    ("read", {"uri": "evokernel://kernel/../../etc/passwd"}),
    ("read", {"uri": "evokernel://guide/00"}),
    ("no_such_tool", {}),
]


async def test_what_is_asked_wrongly_is_refused_in_words(project: Path) -> None:
    async with agent_of("--root", str(project), "--trust", str(project)) as agent:
        for tool, arguments in WRONG:
            said = await agent.refusal(tool, **arguments)
            assert len(said) < 4_000, (tool, arguments)
            assert not any(words in said for words in ("\n", "Error executing", "https://")), said
        assert (await agent.call("explain", code="deadlock"))["code"] == "deadlock"


async def test_a_cancelled_call_ends_its_processes_and_no_other(endless: Path) -> None:
    async with agent_of("--root", str(endless), "--trust", str(endless), own_workers=True) as agent:
        (server,) = servers()
        async with anyio.create_task_group() as group:
            group.start_soon(_run_endless, agent)
            running = await _started(server)
            group.cancel_scope.cancel()
        await _gone(running)
        assert server.is_running()
        assert (await agent.call("plan", path="model.py"))["total"] == 1


async def test_two_calls_work_side_by_side(endless: Path) -> None:
    async with agent_of("--root", str(endless), "--trust", str(endless), own_workers=True) as agent:
        (server,) = servers()
        async with anyio.create_task_group() as group:
            group.start_soon(_run_endless, agent)
            running = await _started(server)
            assert (await agent.call("plan", path="model.py"))["total"] == 1
            assert all(item.is_running() for item in running)
            group.cancel_scope.cancel()
        await _gone(running)


@pytest.mark.parametrize("how", ["disconnect", "terminate", "kill"])
async def test_nothing_is_left_of_a_server_that_ends_in_mid_call(endless: Path, how: str) -> None:
    with _Raw("--root", str(endless), "--trust", str(endless)) as raw:
        raw.initialize()
        arguments = {"path": "endless.cpp", "entry": "scale", "launch": LAUNCH, "limit_s": 600}
        raw.send({"id": 7, "method": "tools/call", "params": {"name": "run", "arguments": arguments}})
        (server,) = servers()
        running = await _started(server)
        ends: dict[str, Callable[[], None]] = {
            "disconnect": raw.hang_up,
            "terminate": server.terminate,
            "kill": server.kill,
        }
        ends[how]()
        await _gone([server, *running])


def test_lines_that_are_no_messages_are_survived(project: Path) -> None:
    with _Raw("--root", str(project)) as raw:
        raw.initialize()
        for line in ("", "{", "[]", "null", '{"jsonrpc": "2.0"}', '{"id": 1}', "\x00", "x" * 100_000):
            raw.write(line)
        raw.send(
            {"id": 8, "method": "tools/call", "params": {"name": "explain", "arguments": {"code": "crash"}}}
        )
        answers = [raw.read() for _ in range(1)]
        while answers[-1].get("id") != 8:
            answers.append(raw.read())
        assert answers[-1]["result"]["structuredContent"]["code"] == "crash"
        raw.hang_up()
        assert raw.process.wait(timeout=60) == 0
        rest = raw.process.stdout.read() if raw.process.stdout else ""
        assert all(json.loads(line) for line in rest.splitlines()), "standard output holds messages alone"


def test_the_server_imports_neither_torch_nor_numpy() -> None:
    code = "import sys, evokernel_mcp.app; print([n for n in ('torch', 'numpy') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_sdk_is_said_in_a_sentence(tmp_path: Path) -> None:
    code = f"""
import importlib.util as u
find = u.find_spec
u.find_spec = lambda name, *more: None if name == "mcp" else find(name, *more)
import sys; sys.argv = ["evokernel", "mcp"]
{warm.MAIN}
"""
    environment = {**os.environ, "EVOKERNEL_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "pip install" in done.stderr


async def _run_endless(agent: Any) -> None:
    await agent.client.call_tool(
        "run", {"path": "endless.cpp", "entry": "scale", "launch": LAUNCH, "limit_s": 600}
    )


async def _started(server: psutil.Process) -> list[psutil.Process]:
    """The server's processes once the kernel runs."""
    with anyio.fail_after(240):
        while True:
            found = processes_below(server)
            if any("twin-runner" in " ".join(_words(item)) for item in found):
                return found
            await anyio.sleep(0.1)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def _gone(processes: list[psutil.Process]) -> None:
    with anyio.fail_after(60):
        while any(_lives(item) for item in processes):
            await anyio.sleep(0.1)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class _Raw:
    """A server spoken to by lines, as a client that keeps to no rule."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            command(*options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd="/",
        )

    def __enter__(self) -> _Raw:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def initialize(self) -> None:
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        self.send({"id": 0, "method": "initialize", "params": params})
        assert self.read()["result"]["serverInfo"]["name"] == "evokernel"
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        return message

    def hang_up(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
