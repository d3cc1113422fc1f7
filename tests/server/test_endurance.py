"""What benchmarks/endurance.py tries at length: memory, a home that cannot be made, a clock set back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest
from evokernel_server.app import EvoKernelServer
from evokernel_server.documents.capture import Capture
from evokernel_server.jobs.store import Store
from evokernel_server.jobs.tasks import Latest
from evokernel_server.offers.outcomes import HORIZONS, OutcomeLog
from evokernel_server.offers.undo import MOST_REMEMBERED, Undo
from lsprotocol import types

from evokernel_core.domain.errors import StoreError
from evokernel_core.domain.placement import Placement, Standing
from evokernel_core.domain.settings import Settings
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.session import Session
from tests.server.regions import document

NOWHERE = Path("/proc/evokernel-has-no-home-here")


@pytest.mark.usefixtures("scripted")
async def test_edits_leave_nothing_in_memory(sessions: Any, workspace: Path) -> None:
    """Each edit's handler was kept for good: 2 KB, 8 MB for as many as these."""
    editor = await sessions.start(settings={"pauseS": 3600.0})
    uri = editor.open(workspace / "model.py")
    server = psutil.Process(editor.client._server.pid)

    async def type_signs(count: int) -> int:
        for number in range(count):
            end = types.Position(1, number % 2)
            where = types.Range(types.Position(1, 0), end)
            change = types.TextDocumentContentChangePartial(where, "" if number % 2 else "#")
            identifier = types.VersionedTextDocumentIdentifier(version=number + 2, uri=uri)
            params = types.DidChangeTextDocumentParams(identifier, [change])
            editor.client.text_document_did_change(params)
            if number % 500 == 0:
                await editor.hints(uri)
        await editor.hints(uri)
        return int(server.memory_info().rss)

    before = await type_signs(2_000)
    assert await type_signs(4_000) - before < 2 * 1024**2


@pytest.mark.usefixtures("scripted")
async def test_a_home_that_cannot_be_made_is_told_once(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start(environment={"EVOKERNEL_HOME": str(NOWHERE)})
    uri = editor.open(workspace / "model.py")
    assert await eventually(lambda: _offered(editor, uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    answer = await editor.run(action)
    assert answer["status"] == "refused"
    assert str(NOWHERE) in answer["message"] and "StoreError" not in answer["message"]
    said = [item.message for item in editor.client.messages if str(NOWHERE) in item.message]
    assert 1 <= len(said) <= 3, "once for the memory, once for what was asked"


async def _offered(editor: Any, uri: str) -> bool:
    return any("µs est." in str(hint.label) for hint in await editor.hints(uri))


def test_a_session_opens_its_memory_when_it_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(NOWHERE))
    with Session(Settings(), tmp_path) as session, pytest.raises(StoreError, match="cannot be opened"):
        _ = session.memory
    with Memory(tmp_path / "given.db") as given, Session(Settings(), tmp_path, given) as session:
        assert session.memory is given


async def test_a_clock_that_was_set_back_delays_no_survival(tmp_path: Path, eventually: Any) -> None:
    store = Store(tmp_path / "memory.db")
    log = OutcomeLog(store, lambda: 0.1, lambda: (0.05, 0.1, 0.15), clock=lambda: -1e9)
    log.watch(Placement(tmp_path / "model.py", "softmax_1", "r", "t", "s", 1e9))

    async def survived() -> bool:
        outcomes = await store(lambda memory: memory.outcomes())
        return [item.detail for item in outcomes] == list(HORIZONS)

    assert await eventually(survived)
    assert await eventually(lambda: not log._watches), "a watch that is over was kept"
    store.close()


async def test_undo_remembers_no_more_than_it_says(tmp_path: Path) -> None:
    """Each acceptance was kept with its region for as long as the server lived."""
    undo = Undo(*[None] * 6)  # type: ignore[arg-type]
    made = [Placement(tmp_path / "model.py", "softmax_1", f"r{n}", "t", "s", 0.0) for n in range(250)]
    for placement in made:
        await undo.gone(placement, Standing.REVERTED, with_package=False)
    assert [item.region_id for item in undo._gone] == [f"r{n}" for n in range(250)][-MOST_REMEMBERED:]


@pytest.mark.usefixtures("home")
async def test_a_closed_document_leaves_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document's lock was kept for as long as the server lived."""
    server = EvoKernelServer()
    server.capture.programs = lambda: True

    async def nothing(*arguments: Any, **options: Any) -> tuple[()]:
        return ()

    monkeypatch.setattr(Capture, "_ask", nothing)
    now = document("import torch\n")
    await server.capture._follow(now, now.text, now.mark(), ())
    assert not server.capture._tracing


@pytest.mark.usefixtures("home")
async def test_pauses_during_a_capture_ask_for_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pause in typing left a capture of its own behind the one that ran."""
    server, began, gate = EvoKernelServer(), [], asyncio.Event()
    server.capture.enabled = lambda now: True

    async def capture(self: Any, now: Any) -> None:
        began.append(now)
        await gate.wait()

    monkeypatch.setattr(Capture, "_capture", capture)
    monkeypatch.setattr(server.capture, "progressed", lambda now: None)
    now = document("import torch\n")
    for _ in range(10):
        server.capture._begin(now)
        await asyncio.sleep(0)
    gate.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert began == [now, now] and not server.capture._tasks


async def test_a_store_that_fails_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "memory.db").write_text("no database " * 100)
    store = Store(tmp_path / "memory.db", said.append)
    with pytest.raises(StoreError):
        await store(lambda memory: memory.counts())
    store.close()
    assert len(said) == 1 and "move the file aside" in said[0]


async def test_what_is_asked_for_on_and_on_is_done_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    rests: list[float] = []

    async def work(key: str) -> None:
        done.append(key)

    async def rest(seconds: float) -> None:
        rests.append(seconds)
        if len(rests) < 6:
            latest.ask("a")

    wait = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", rest)
    latest = Latest(work, "work", rest_s=0.1)
    latest.ask("a")
    while len(rests) < 6:
        await wait(0)
    await wait(0)
    assert len(done) == 6
    assert rests == [0.1, 0.2, 0.4, 0.8, 0.8, 0.8]
    latest.ask("a")
    await wait(0)
    await wait(0)
    assert len(done) == 7 and rests[6] == 0.1, "at once again where nothing was asked for meanwhile"


async def test_what_is_asked_for_meanwhile_is_done_once_more() -> None:
    done: list[str] = []
    gate = asyncio.Event()

    async def work(key: str) -> None:
        done.append(key)
        await gate.wait()

    latest = Latest(work, "work")
    latest.ask("a")
    latest.ask("b")
    await asyncio.sleep(0)
    for _ in range(10):
        latest.ask("a")
    gate.set()
    await asyncio.sleep(0.05)
    assert sorted(done) == ["a", "a", "b"]
    latest.ask("a")
    await asyncio.sleep(0.05)
    assert done.count("a") == 3
