"""What a person decided outlives the server and the file: acceptances, their undo and redo, never and ready
kernels, through restarts, branches, deletions and saves."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from evokernel_server.documents.branches import head_of
from evokernel_server.jobs.store import Store
from evokernel_server.offers.outcomes import OutcomeLog
from evokernel_server.offers.placement_state import waiting
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from evokernel_core.domain.outcome import UNDO, Outcome, OutcomeKind
from evokernel_core.domain.placement import Placement, Standing
from evokernel_core.memory.store import Memory
from tests.server.conftest import MODEL, eventually, guarded
from tests.server.regions import captured, found
from tests.server.test_files import close
from tests.server.test_ready import QUIET, act, kill, made_ready, opened, titles
from tests.server.test_undo import packages

scripted = pytest.mark.usefixtures("scripted")


async def accepted(sessions: Any, path: Path) -> tuple[Any, str, str]:
    """An editor in which a kernel was accepted, and the kernel's name; nothing is saved."""
    editor, uri = await opened(sessions, path)
    await made_ready(editor, uri)
    return editor, uri, str((await act(editor, uri, "Accept the softmax kernel"))["name"])


async def started(sessions: Any, path: Path, text: str) -> tuple[Any, str]:
    """A new server for an editor that has ``text`` in its window."""
    editor = await sessions.start(settings=QUIET)
    uri = path.as_uri()
    editor.texts[uri], editor.versions[uri] = text, 1
    item = types.TextDocumentItem(uri, "python", 1, text)
    editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    await eventually(lambda: editor.hints(uri))
    return editor, uri


def last(database: Any) -> tuple[str, str]:
    """The last outcome that is not a matter of time."""
    return [found for found in database.outcomes() if found[0] != "survived"][-1]  # type: ignore[no-any-return]


def waits(editor: Any, uri: str) -> Any:
    return lambda: editor.labels(uri, "⚡ ready ")


@scripted
@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_an_undo_after_a_restart_takes_the_package_along_and_a_redo_brings_it_back(
    end: str, sessions: Any, workspace: Path, database: Any
) -> None:
    path = workspace / "model.py"
    editor, uri, name = await accepted(sessions, path)
    called = editor.texts[uri]
    await (kill(sessions, editor) if end == "kill" else sessions.stop(editor))

    again, uri = await started(sessions, path, called)
    again.set_text(uri, MODEL)
    await eventually(lambda: not packages(workspace))
    await eventually(lambda: last(database) == ("reverted", "undo"))
    await eventually(waits(again, uri))
    await kill(sessions, again)

    third, uri = await started(sessions, path, MODEL)
    await eventually(waits(third, uri))
    third.set_text(uri, called)
    await eventually(lambda: packages(workspace) == {name})
    await eventually(lambda: last(database) == ("accepted", ""))
    await eventually(lambda: _nothing_pends(third))  # what is accepted waits no more
    third.set_text(uri, MODEL)
    await eventually(lambda: not packages(workspace))


async def _nothing_pends(editor: Any) -> bool:
    return (await editor.command("evokernel.status"))["pending"] == []


@scripted
async def test_an_undo_while_no_server_runs_is_one(sessions: Any, workspace: Path, database: Any) -> None:
    path = workspace / "model.py"
    editor, uri, name = await accepted(sessions, path)
    called = editor.texts[uri]
    await sessions.stop(editor)
    again, uri = await started(sessions, path, MODEL)
    await eventually(lambda: last(database) == ("reverted", "undo"))
    await eventually(lambda: not packages(workspace))
    again.set_text(uri, called)
    await eventually(lambda: packages(workspace) == {name})


@scripted
async def test_what_is_undone_and_accepted_again_is_undone_again(
    sessions: Any, workspace: Path, database: Any
) -> None:
    editor, uri, name = await accepted(sessions, workspace / "model.py")
    for turn in (1, 2):
        editor.set_text(uri, MODEL)
        await eventually(lambda: not packages(workspace))
        await eventually(waits(editor, uri))
        assert database.outcomes().count(("reverted", "undo")) == turn
        assert (await act(editor, uri, "Accept the softmax kernel"))["name"] == name
        assert guarded(name, "x") in editor.texts[uri]
        assert packages(workspace) == {name}


@scripted
async def test_a_package_that_the_saved_file_calls_goes_with_the_next_save(
    sessions: Any, workspace: Path, database: Any
) -> None:
    path = workspace / "model.py"
    editor, uri, name = await accepted(sessions, path)
    path.write_text(editor.texts[uri], "utf-8")
    editor.save(uri)
    editor.set_text(uri, MODEL)
    await eventually(waits(editor, uri))
    assert packages(workspace) == {name}, "a program that runs from the disk needs it"
    path.write_text(MODEL, "utf-8")
    editor.save(uri)
    await eventually(lambda: not packages(workspace))


@scripted
async def test_a_call_of_another_branch_is_left_alone_and_watched_when_it_is_back(
    sessions: Any, workspace: Path, database: Any
) -> None:
    head = workspace / ".git" / "HEAD"
    head.parent.mkdir()
    head.write_text("ref: refs/heads/kernels\n")
    path = workspace / "model.py"
    editor, uri, name = await accepted(sessions, path)
    called = editor.texts[uri]
    await sessions.stop(editor)

    head.write_text("ref: refs/heads/main\n")
    editor, uri = await started(sessions, path, MODEL)
    await eventually(lambda: last(database) == ("expired", "branch"))
    assert packages(workspace) == {name}
    path.write_text(called, "utf-8")
    head.write_text("ref: refs/heads/kernels\n")
    editor.set_text(uri, called)
    await eventually(lambda: editor.called(uri))
    await asyncio.sleep(1.0)  # the switch was heard of
    assert not {"reverted", "rejected"} & {kind for kind, _ in database.outcomes()}
    path.write_text(MODEL, "utf-8")
    editor.set_text(uri, MODEL)
    await eventually(lambda: last(database) == ("reverted", "undo"))
    await eventually(lambda: not packages(workspace))


async def delete(editor: Any, uri: str, path: Path) -> None:
    path.unlink()
    close(editor, uri)
    editor.client.workspace_did_delete_files(types.DeleteFilesParams([types.FileDelete(uri)]))


@scripted
async def test_decisions_hold_for_a_file_that_is_deleted_and_there_again(
    sessions: Any, workspace: Path, database: Any
) -> None:
    path = workspace / "model.py"
    text = MODEL.replace("get_inputs", "torch.softmax(y, dim=-1)\n\n\ndef get_inputs")
    text = MODEL.replace(
        "        return names[1]", "        both = torch.softmax(y, dim=-1)\n        return names[1], both"
    )
    path.write_text(text, "utf-8")
    editor, uri = await opened(sessions, path)
    await made_ready(editor, uri)
    assert (await act(editor, uri, "Never offer a kernel", "torch.softmax(y"))["status"] == "never"
    await delete(editor, uri, path)
    await eventually(lambda: ("expired", "deleted") in database.outcomes())

    path.write_text(text, "utf-8")
    editor.open(path)
    await eventually(waits(editor, uri))
    assert await titles(editor, uri, "torch.softmax(y") == []
    answer = await act(editor, uri, "Accept the softmax kernel")
    called = editor.texts[uri]
    path.write_text(called, "utf-8")
    await delete(editor, uri, path)
    await eventually(lambda: last(database) == ("expired", "deleted"))
    path.write_text(text, "utf-8")
    editor.open(path)
    await eventually(lambda: editor.command("evokernel.status"))
    await asyncio.sleep(0.5)  # more than the moment after which a call that is gone was reverted
    assert "reverted" not in {kind for kind, _ in database.outcomes()}, "nobody took it out"
    assert packages(workspace) == {answer["name"]}


@scripted
async def test_decisions_hold_where_a_checkout_replaces_the_file(
    sessions: Any, workspace: Path, database: Any
) -> None:
    path = workspace / "model.py"
    other = "import torch\n\n\ndef f(z):\n    return torch.softmax(z, dim=-1)\n"
    both = MODEL.replace("        return names[1]", "        return names[1], torch.softmax(y, dim=-1)")
    editor, uri = await opened(sessions, path, both)
    await made_ready(editor, uri)
    await act(editor, uri, "Never offer a kernel", "torch.softmax(y")
    for _turn in range(2):
        editor.set_text(uri, other)
        await eventually(lambda: titles(editor, uri, "torch.softmax(z"))
        assert not await editor.labels(uri, "ready")
        await eventually(lambda: editor.statuses[-1].mode != "ready_to_review")
        editor.set_text(uri, both)
        await eventually(waits(editor, uri))
        assert [t for t in await titles(editor, uri, "return names[1], ") if "softmax" in t] == []


def outcome(kind: OutcomeKind, detail: str = "") -> Outcome:
    return Outcome(kind, "r@f", "t", "s", 1.0, detail)


READY, ACCEPTED = outcome(OutcomeKind.READY), outcome(OutcomeKind.ACCEPTED)
REJECTED, UNDONE = outcome(OutcomeKind.REJECTED), outcome(OutcomeKind.REVERTED, UNDO)


@pytest.mark.parametrize(
    ("outcomes", "last"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([READY], READY, id="ready"),
        pytest.param([READY, ACCEPTED], None, id="accepted"),
        pytest.param([READY, ACCEPTED, UNDONE], UNDONE, id="undone"),
        pytest.param([READY, ACCEPTED, UNDONE, ACCEPTED], None, id="redone"),
        pytest.param([READY, ACCEPTED, UNDONE, REJECTED], None, id="undone, then rejected"),
        pytest.param([READY, ACCEPTED, outcome(OutcomeKind.REVERTED, "command")], None, id="reverted"),
        pytest.param([READY, ACCEPTED, outcome(OutcomeKind.REVERTED, "manual")], None, id="deleted by hand"),
        pytest.param([READY, ACCEPTED, REJECTED, UNDONE], UNDONE, id="a refined one was rejected meanwhile"),
    ],
)
def test_what_waits_for_review(outcomes: Sequence[Outcome], last: Outcome | None) -> None:
    assert waiting(outcomes) is last


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
PLACEMENTS = st.builds(
    Placement,
    file=st.sampled_from([Path("/a/m.py"), Path("/ü b/m.py")]),
    name=NAMES,
    region_id=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12),
    task_id=NAMES,
    source_id=NAMES,
    at=st.floats(0, 1e10),
    before=st.sampled_from(["", "0f" * 32]),
    created=st.booleans(),
    head=st.sampled_from(["", "ref: refs/heads/main"]),
    region=st.one_of(st.none(), st.just(found(captured("y = torch.softmax(x)\n").text)[0].region)),
    standing=st.sampled_from(Standing),
)  # fmt: skip


def told(placement: Placement) -> tuple[object, ...]:
    region = placement.region.source if placement.region else ""
    return placement, placement.before, placement.created, placement.head, placement.standing, region


@settings(deadline=None, max_examples=25)
@given(st.lists(PLACEMENTS, max_size=6), st.booleans())
def test_the_memory_keeps_the_latest_acceptance_of_each_place(
    tmp_path_factory: pytest.TempPathFactory, placements: list[Placement], moved: bool
) -> None:
    with Memory(tmp_path_factory.mktemp("kept") / "memory.db") as memory:
        for placement in placements:
            memory.put_placement(placement)
        for file in {placement.file for placement in placements}:
            latest = {item.region_id: told(item) for item in placements if item.file == file}
            assert {item.region_id: told(item) for item in memory.placements(file)} == latest
            if moved:
                new = file.with_name("other.py")
                memory.move_placements(file, new)
                assert not memory.placements(file)
                assert {p.region_id for p in memory.placements(new)} == latest.keys()
                assert all(p.region is None or p.region.file == str(new) for p in memory.placements(new))
        memory.forget_decisions()
        assert memory.counts()["placements"] == 0


def test_an_undo_ends_the_acceptance_that_it_is_of(tmp_path: Path) -> None:
    old, new = (Placement(tmp_path / "m.py", "k", "r", "t", "s", at) for at in (1.0, 2.0))
    with Memory(tmp_path / "memory.db") as memory:
        memory.put_placement(new)
        memory.end_placement(old, Standing.UNDONE)
        assert memory.placements(new.file)[0].standing is Standing.CALLED
        memory.end_placement(new, Standing.UNDONE)
        assert memory.placements(new.file)[0].standing is Standing.UNDONE


def test_what_a_repository_has_checked_out(tmp_path: Path) -> None:
    file = tmp_path / "work" / "models" / "m.py"
    assert head_of(file) == ""
    git = tmp_path / "work" / ".git"
    git.mkdir(parents=True)
    assert head_of(file) == "", "a repository that is being made"
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert head_of(file) == "ref: refs/heads/main"
    inner = git / "worktrees" / "w"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("0123\n")
    (tmp_path / "w").mkdir()
    for pointer in (str(inner), "../work/.git/worktrees/w"):
        (tmp_path / "w" / ".git").write_text(f"gitdir: {pointer}\n")
        assert head_of(tmp_path / "w" / "m.py") == "0123"


def test_an_undo_that_overtakes_an_analysis_is_analysed() -> None:
    """An edit inside a region that was undone before its analysis ended left the region without a hint."""
    document = captured("y = torch.softmax(x)\n")
    regions, text, mark = found(document.text), document.text, document.mark()
    inside = document.text.position(12)
    document.update([types.TextDocumentContentChangePartial(types.Range(inside, inside), "_")], 2)
    document.accept(regions, text, mark)
    assert not document.tracked
    document.update([types.TextDocumentContentChangeWholeDocument(text.content)], 3)
    assert document.captured != document.hash


@scripted
async def test_what_one_window_decides_holds_in_the_other(
    sessions: Any, workspace: Path, database: Any
) -> None:
    path = workspace / "model.py"
    both = MODEL.replace("        return names[1]", "        return names[1], torch.softmax(y, dim=-1)")
    path.write_text(both, "utf-8")
    one, uri = await opened(sessions, path)
    two, _ = await opened(sessions, path)
    await made_ready(one, uri)
    await act(one, uri, "Never offer a kernel", "torch.softmax(y")

    def look() -> None:
        two.client.protocol.notify("evokernel/activeDocument", {"uri": uri})

    look()
    await eventually(waits(two, uri))
    assert await titles(two, uri, "torch.softmax(y") == []
    await act(two, uri, "Reject the softmax kernel")
    one.set_text(uri, both + "# typed\n")
    await eventually(lambda: _none_waits(one, uri))
    await one.command("evokernel.offerAgain", {"uri": uri})
    look()
    await eventually(lambda: titles(two, uri, "torch.softmax(y"))


async def _none_waits(editor: Any, uri: str) -> bool:
    return not await editor.labels(uri, "⚡ ready")


async def test_a_call_that_a_command_takes_out_ends_once(tmp_path: Path) -> None:
    """The text goes before the memory hears of it: who took up the file in between watched a call that was
    gone, and counted a second revert. Another window that sees the file change does so, too."""
    placement = Placement(tmp_path / "m.py", "softmax_1", "r", "t", "s", time.time())
    document = SimpleNamespace(path=placement.file, hash="", counts=lambda: Counter(["softmax_1"]))
    store = Store(tmp_path / "memory.db")
    log, other = (OutcomeLog(store, lambda: 0.0, lambda: (9.0, 9.0, 9.0)) for _window in range(2))
    await log.accept(placement)
    other.watch(placement)
    with log.leaving(placement.file, placement.name) as leaving:
        assert leaving == placement
        await log.restore(document)  # type: ignore[arg-type]
        assert not log.placements
        await log.record(OutcomeKind.REVERTED, placement, "command")
    other.observe_text(placement.file, "y = x\n", "manual")
    await eventually(lambda: not other.placements and not other._doubts)
    await asyncio.sleep(0.05)
    kinds = [item.kind for item in await store(lambda memory: memory.outcomes())]
    assert kinds == [OutcomeKind.ACCEPTED, OutcomeKind.REVERTED]
    store.close()
