"""What an editor feels while something is broken: the slowest answer of all, and the state that is shown.

``healthy`` is the same without a fault, in the same run: on a busy machine its figure is the machine's share.
A dead endpoint and a killed agent are tried with the real worker, the rest with one that follows a script.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any

import psutil
from lsprotocol import types

from enduring.disks import fill, small_disk
from enduring.editors import REAL_MODEL, SCRIPTED, Place, eventually, offered, sessions
from tests.server.conftest import Editor

_SECONDS = 6.0
"""How long each fault is looked at."""
_LIMIT_MS = 100.0
SOFTMAX_MODEL = "import torch\n\n\ndef f(x):\n    y = x\n\n    return torch.softmax(y, dim=-1)\n"
_SCRIPT = {**SCRIPTED, "SCRIPT_PAUSE_S": "0.02", "SCRIPT_AWAY": ""}
_NO_ENDPOINT = {"proposer": "llm", "modelUrl": "http://127.0.0.1:9/v1", "model": "none", "budget": 1}


async def _watch(editor: Editor, uri: str, modes: frozenset[str]) -> dict[str, Any]:
    """Asks everything again and again, until one of the modes was shown and the time is over."""
    taken: dict[str, list[tuple[float, float]]] = defaultdict(list)
    shown, server = [""], psutil.Process(editor.client._server.pid)  # type: ignore[union-attr]
    began, used = time.monotonic(), _used(server)
    while time.monotonic() - began < _SECONDS or (
        shown[-1] not in modes and time.monotonic() - began < 15 * _SECONDS
    ):
        for name, request in _requests(editor, uri).items():
            start = time.perf_counter()
            await request()
            taken[name].append((1000 * (time.perf_counter() - start), time.monotonic() - began))
        mode = str((await editor.command("evokernel.status"))["mode"])
        if mode != shown[-1]:
            shown.append(mode)
        await asyncio.sleep(0.02)
    told = [item.message for item in editor.client.messages]
    share = (_used(server) - used) / (time.monotonic() - began)
    return {
        "state": shown[-1], "state_is_shown": bool(modes & set(shown)), **_times(taken),
        "core_percent": round(100 * share, 1), "told": told[-1] if told else "",
        "alive": editor.client._server.returncode is None,  # type: ignore[union-attr]
    }  # fmt: skip


def _times(taken: Mapping[str, list[tuple[float, float]]]) -> dict[str, Any]:
    """Milliseconds of all answers; which question had the slowest, and after how many seconds."""
    every = [(*item, name) for name, items in taken.items() for item in items]
    milliseconds = [item[0] for item in every]
    twentieths = statistics.quantiles(milliseconds, n=20)
    slowest, at, question = max(every)
    return {
        "requests": len(every), "p50_ms": round(twentieths[9], 1), "p95_ms": round(twentieths[18], 1),
        "slowest_ms": round(slowest, 1), "slowest": f"{question} at {at:.1f} s",
        "over_100_ms": sum(item > _LIMIT_MS for item in milliseconds),
    }  # fmt: skip


def _used(server: psutil.Process) -> float:
    """Seconds of processor time."""
    times = server.cpu_times()
    return float(times.user + times.system)


def _requests(editor: Editor, uri: str) -> dict[str, Callable[[], Awaitable[Any]]]:
    client, identifier = editor.client, types.TextDocumentIdentifier(uri)
    place = types.HoverParams(identifier, types.Position(6, 12))
    diagnostic = types.DocumentDiagnosticParams(identifier)
    return {
        "hints": lambda: editor.hints(uri),
        "actions": lambda: editor.actions(uri, 6),
        "hover": lambda: client.text_document_hover_async(place),
        "diagnostics": lambda: client.text_document_diagnostic_async(diagnostic),
        "links": lambda: client.text_document_document_link_async(types.DocumentLinkParams(identifier)),
        "symbols": lambda: client.workspace_symbol_async(types.WorkspaceSymbolParams("")),
        "status": lambda: editor.command("evokernel.status"),
    }


@asynccontextmanager
async def _opened(
    place: Place,
    environment: Mapping[str, str],
    text: str,
    settings: Mapping[str, Any] | None = None,
    *,
    killing: str = "",
) -> AsyncIterator[tuple[Editor, str]]:
    """A file in a new editor; ``killing``: from before it is opened, processes of these words are killed."""
    async with sessions(place, environment) as made:
        calm = {"refineInBackground": False, "retryS": [0.5, 2.0]}
        editor = await made.start(settings={**calm, **(settings or {})})
        with _killing(editor, killing) if killing else nullcontext():
            yield editor, editor.open(place.model("model.py", text))


async def _generate(editor: Editor, uri: str) -> asyncio.Task[Any]:
    """A kernel is asked for; the answer is not waited for."""
    await eventually(lambda: offered(editor, uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    return asyncio.ensure_future(editor.run(action))


async def _asking(place: Place, environment: Mapping[str, str], modes: str, **rest: Any) -> dict[str, Any]:
    """A kernel is asked for in a world of this environment."""
    text = rest.pop("text", SOFTMAX_MODEL)
    async with _opened(place, {**_SCRIPT, **environment}, text, rest) as (editor, uri):
        task = await _generate(editor, uri)
        seen = await _watch(editor, uri, frozenset(modes.split()))
        await editor.command("evokernel.cancel")
        await asyncio.wait({task}, timeout=30.0)
    return seen


async def _healthy(place: Place) -> dict[str, Any]:
    return await _asking(place, {}, "ready_to_review")


async def _verifier_hung(place: Place) -> dict[str, Any]:
    return await _asking(place, {"SCRIPT_PAUSE_S": "3600"}, "busy")


async def _verifier_away(place: Place) -> dict[str, Any]:
    away = place.home.parent / "away"
    away.touch()
    return await _asking(place, {"SCRIPT_AWAY": str(away)}, "queued")


async def _database_locked(place: Place) -> dict[str, Any]:
    async with _opened(place, _SCRIPT, SOFTMAX_MODEL) as (editor, uri):
        await (await _generate(editor, uri))
        lock = sqlite3.connect(place.database.path, isolation_level=None, timeout=30)
        lock.execute("BEGIN EXCLUSIVE")
        second = editor.open(place.model("second.py", SOFTMAX_MODEL))
        task = await _generate(editor, second)
        seen = await _watch(editor, second, frozenset({"error"}))
        lock.execute("ROLLBACK")
        lock.close()
        seen["after"] = (await asyncio.wait_for(task, 60.0)).get("status", "none")
    return seen


async def _worker_killed(place: Place) -> dict[str, Any]:
    async with _opened(place, _SCRIPT, SOFTMAX_MODEL, killing="scripted_worker") as (editor, uri):
        return await _watch(editor, uri, frozenset({"error"}))


async def _agent_killed(place: Place) -> dict[str, Any]:
    async with _opened(place, {}, REAL_MODEL, killing="capture/agent") as (editor, uri):
        return await _watch(editor, uri, frozenset({"failed", "error"}))


_KILLER = """
import psutil, sys, time
print("ready", flush=True)
server, words = psutil.Process(int(sys.argv[1])), sys.argv[2]
while server.is_running():
    for child in server.children(recursive=True):
        try:
            if any(words in part for part in child.cmdline()):
                child.kill()
        except psutil.Error:
            pass
    time.sleep(0.01)
"""


@contextmanager
def _killing(editor: Editor, words: str) -> Iterator[None]:
    """Ends every process below the server whose command line holds these words, as soon as it is there.
    Looking for them is another process's work, which does not slow what is measured here."""
    number = str(editor.client._server.pid)  # type: ignore[union-attr]
    command = [sys.executable, "-c", _KILLER, number, words]
    killer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert killer.stdout is not None and killer.stdout.readline()
        yield
    finally:
        killer.kill()
        killer.wait()


async def _endpoint_dead(place: Place) -> dict[str, Any]:
    async with _opened(place, {}, REAL_MODEL, _NO_ENDPOINT) as (editor, uri):
        task = await _generate(editor, uri)
        seen = await _watch(editor, uri, frozenset({"error"}))
        seen["told"] = (await asyncio.wait_for(task, 240.0)).get("message", "")
    return seen


async def _disk_full(place: Place) -> dict[str, Any]:
    with small_disk(place.home.parent / "disk") as why:
        if why:
            return {"skipped": why}
        small = Place(place.home.parent / "disk" / "work", place.home.parent / "disk" / "home")
        small.work.mkdir()
        small.model("model.py", SOFTMAX_MODEL)
        filler = fill(place.home.parent / "disk")
        async with sessions(small, _SCRIPT) as made:
            editor = await made.start(settings={"refineInBackground": False})
            uri = editor.open(small.work / "model.py")
            task = await _generate(editor, uri)
            seen = await _watch(editor, uri, frozenset({"error"}))
            seen["told"] = (await asyncio.wait_for(task, 60.0)).get("message", "")
            filler.unlink()
    return seen


FAULTS: dict[str, Callable[[Place], Awaitable[dict[str, Any]]]] = {
    "healthy": _healthy,
    "verifier_hung": _verifier_hung,
    "verifier_away": _verifier_away,
    "endpoint_dead": _endpoint_dead,
    "disk_full": _disk_full,
    "database_locked": _database_locked,
    "worker_killed": _worker_killed,
    "agent_killed": _agent_killed,
}


def fault(name: str, place: Place) -> Awaitable[dict[str, Any]]:
    """One fault in a place of its own."""
    return FAULTS[name](place)


def not_borne(seen: Mapping[str, Any]) -> bool:
    """Whether a fault ended the server or was not shown."""
    return not (seen["alive"] and seen["state_is_shown"])
