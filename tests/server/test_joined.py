"""What one feature does to another: kernels that wait beside hints, diagnostics, states and renames, and code
that became a kernel's fallback."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from evokernel_server.documents.line_index import Text
from evokernel_server.documents.workspace import Document, Workspace
from evokernel_server.offers.pending import Offer, undecided
from lsprotocol import types

from evokernel_core.domain.verdict import Latency, LatencySource
from tests.server.conftest import eventually
from tests.server.regions import found as regions_of
from tests.server.test_ready import act, made_ready, opened, titles

pytestmark = pytest.mark.usefixtures("scripted")

TWO = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        a = torch.softmax(x, dim=-1)
        b = torch.softmax(y, dim=-1)
        return a, b
"""
FIRST, SECOND = "torch.softmax(x", "torch.softmax(y"
SLOW_TYPIST = {"pauseS": 30.0}
"""No new analysis comes to help within a test."""


def inserts(editor: Any) -> None:
    """From now on the client tells of an edit around code as insertions before and behind it."""

    def edit(uri: str, edits: Any) -> None:
        changes: list[types.TextDocumentContentChangeEvent] = []
        text = editor.texts[uri]
        placed = [(editor.offset(text, e.range.start), editor.offset(text, e.range.end), e) for e in edits]
        for start, end, item in sorted(placed, key=lambda found: found[:2], reverse=True):
            old = text[start:end]
            at = item.new_text.index(old)
            before, behind = item.new_text[:at], item.new_text[at + len(old) :]
            for where, new in ((item.range.end, behind), (item.range.start, before)):
                if new:
                    here = types.Range(where, where)
                    changes.append(types.TextDocumentContentChangePartial(here, new))
            text = text[:start] + item.new_text + text[end:]
        editor.texts[uri] = text
        editor.versions[uri] += 1
        identifier = types.VersionedTextDocumentIdentifier(version=editor.versions[uri], uri=uri)
        editor.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, changes))

    editor._edit = edit


async def close(editor: Any, uri: str) -> None:
    identifier = types.TextDocumentIdentifier(uri)
    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))


async def diagnostics(editor: Any, uri: str) -> list[str]:
    params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
    return [str(item.code) for item in (await editor.client.text_document_diagnostic_async(params)).items]


def written(workspace: Path, text: str = TWO) -> Path:
    path = workspace / "model.py"
    path.write_text(text, "utf-8")
    return path


async def test_code_that_became_a_fallback_is_not_offered_again(sessions: Any, workspace: Path) -> None:
    """Its hint stayed on the line below the call until the next analysis had ended."""
    editor, uri = await opened(sessions, written(workspace), **SLOW_TYPIST)
    await made_ready(editor, uri, FIRST)
    inserts(editor)
    assert (await act(editor, uri, "Accept the softmax kernel", FIRST))["status"] == "applied"
    here = editor.line_of(uri, FIRST)
    found = {hint.position.line: str(hint.label) for hint in await editor.hints(uri)}
    assert found[here] == "⚡ 7.5x  55 µs est.", "the call's own hint is there alone"
    assert sorted(found) == [here, editor.line_of(uri, SECOND)]
    assert not [title for title in await titles(editor, uri, FIRST) if title.startswith("Generate")]


async def test_an_undo_within_the_pause_brings_the_offer_back(sessions: Any, workspace: Path) -> None:
    editor, uri = await opened(sessions, written(workspace))
    await made_ready(editor, uri, FIRST)
    inserts(editor)
    assert (await act(editor, uri, "Accept the softmax kernel", FIRST))["status"] == "applied"
    editor.set_text(uri, TWO)
    await eventually(lambda: _lines(editor, uri, {editor.line_of(uri, FIRST), editor.line_of(uri, SECOND)}))


async def _lines(editor: Any, uri: str, wanted: set[int]) -> bool:
    return {hint.position.line for hint in await editor.hints(uri)} == wanted


def test_a_capture_of_the_text_before_does_not_bring_it_back(home: Path) -> None:
    """An analysis that was under way when the kernel was accepted ends after it."""
    document = Document("file:///m.py", Path("/m.py"), 1, Text(TWO))
    regions = list(regions_of(document.text))
    before, mark = document.text, document.mark()
    document.accept(regions, before, mark)
    document.replace(document.tracked[:1], mark)
    gone = regions[0].region.id
    start = document.text.position(TWO.index(FIRST))
    document.update([types.TextDocumentContentChangePartial(types.Range(start, start), "k.run() or ")], 2)
    document.accept(regions, before, mark)
    assert gone not in {item.region.id for item in document.tracked}
    document.update([types.TextDocumentContentChangeWholeDocument(TWO)], 3)
    document.accept(regions, document.text, document.mark())
    assert gone in {item.region.id for item in document.tracked}, "the code is back, and so is its offer"


async def test_what_waits_inside_an_accepted_block_waits_no_more(sessions: Any, workspace: Path) -> None:
    """A kernel for a line of a block could be put into the fallback of the block's own kernel."""
    editor, uri = await opened(sessions, written(workspace), programs=True)
    await eventually(lambda: titles_of_program(editor, uri))
    await made_ready(editor, uri, SECOND)
    inner = next(o for o in (await editor.command("evokernel.status"))["pending"])
    whole = await program_action(editor, uri)
    assert (await editor.run(whole))["status"] == "ready"
    inserts(editor)
    accept = {"uri": uri, "regionId": "forward/whole"}
    assert (await editor.command("evokernel.apply", accept))["status"] == "applied"
    assert (await editor.command("evokernel.status"))["pending"] == []
    await eventually(lambda: editor.statuses[-1].mode != "ready_to_review")
    answer = await editor.command("evokernel.apply", {"uri": uri, "regionId": inner["regionId"]})
    assert answer["status"] == "refused"
    editor.set_text(uri, TWO)
    await eventually(lambda: editor.labels(uri, "⚡ ready "))


def test_what_waits_for_code_that_is_not_in_the_text_cannot_be_decided(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    workspace = Workspace()
    latency = Latency(10.0, LatencySource.MODELLED, "ascend910b1", 0, (), "", 5.0, 20.0)
    document = Document(path.as_uri(), path, 1, Text(TWO))
    first, second = regions_of(document.text)
    offers = [
        Offer(path.as_uri(), path, item.region, "softmax", "s", None, latency, "twin")
        for item in (first, second)
    ]
    assert undecided(offers, workspace) == offers, "of a file that is not open nothing else is known"
    workspace.documents[document.uri] = document
    assert undecided(offers, workspace) == offers, "nor of one that was not analysed yet"
    document.accept([first, second], document.text, document.mark())
    document.replace(document.tracked[1:], document.mark())
    assert undecided(offers, workspace) == offers[:1], "a kernel's fallback by now"
    document.replace(document.tracked, document.mark())
    assert undecided(offers, workspace) == []
    faster = evolve(offers[0], old=latency)
    assert undecided([faster], workspace) == [faster], "its call is in the text"


async def titles_of_program(editor: Any, uri: str) -> list[str]:
    return [title for title in await titles(editor, uri, FIRST) if "(lines" in title]


async def program_action(editor: Any, uri: str) -> Any:
    found = await editor.actions(uri, editor.line_of(uri, FIRST))
    return next(item for item in found if "Generate" in item.title and "(lines" in item.title)


async def test_what_is_ready_is_not_worth_fusing_any_more(sessions: Any, workspace: Path) -> None:
    editor, uri = await opened(sessions, written(workspace))
    assert await diagnostics(editor, uri) == ["worth_fusing", "worth_fusing"]
    await made_ready(editor, uri, FIRST)
    assert await diagnostics(editor, uri) == ["worth_fusing"]


async def test_what_is_ready_is_highlighted_though_it_gains_little(sessions: Any, workspace: Path) -> None:
    editor = await sessions.start(settings={"refineInBackground": False, "programs": False})
    uri = editor.open(written(workspace, "import hopeless\n" + TWO))
    await eventually(lambda: editor.statuses and editor.statuses[-1].mode == "nothing_to_gain")
    line = editor.line_of(uri, FIRST)
    (action, *_) = [
        item for item in await editor.actions(uri, line, ["refactor.rewrite"]) if "Generate" in item.title
    ]
    assert (await editor.run(action))["status"] == "ready"
    at = types.DocumentHighlightParams(types.TextDocumentIdentifier(uri), types.Position(line, 12))
    (found,) = await editor.client.text_document_document_highlight_async(at)
    assert (found.range.start.line, found.range.start.character) == (line, 12)


@pytest.mark.parametrize("reopened_first", [True, False])
@pytest.mark.parametrize("said", ["ready", "never"])
async def test_what_was_said_of_a_file_follows_its_rename(
    said: str, reopened_first: bool, sessions: Any, workspace: Path
) -> None:
    """An editor opens the file under its new name before it tells of the rename."""
    old, new = written(workspace), workspace / "renamed.py"
    editor, uri = await opened(sessions, old)
    await made_ready(editor, uri, FIRST)
    if said == "never":
        assert (await act(editor, uri, "Never offer a kernel", FIRST))["status"] == "never"
    old.rename(new)
    files = types.RenameFilesParams([types.FileRename(old.as_uri(), new.as_uri())])
    if not reopened_first:
        editor.client.workspace_did_rename_files(files)
    await close(editor, uri)
    uri = editor.open(new)
    if reopened_first:
        await eventually(lambda: editor.hints(uri))
        editor.client.workspace_did_rename_files(files)
    second = editor.line_of(uri, SECOND)
    if said == "never":
        await eventually(lambda: _lines(editor, uri, {second}))
    else:
        await eventually(lambda: editor.labels(uri, "⚡ ready "))
        assert (await act(editor, uri, "Accept the softmax kernel", FIRST))["status"] == "applied"


async def test_what_sleeps_or_was_changed_is_not_said_to_wait(sessions: Any, workspace: Path) -> None:
    editor, uri = await opened(sessions, written(workspace), snoozeS=3600.0)
    await made_ready(editor, uri, FIRST)
    await eventually(lambda: editor.statuses[-1].mode == "ready_to_review")
    text = editor.texts[uri]
    editor.set_text(uri, text.replace(FIRST, "torch.sigmoid(x"))
    await eventually(lambda: editor.statuses[-1].mode == "ready")
    editor.set_text(uri, text)
    await eventually(lambda: editor.statuses[-1].mode == "ready_to_review")
    assert (await act(editor, uri, "Snooze the softmax kernel", FIRST))["status"] == "snoozed"
    await eventually(lambda: editor.statuses[-1].mode == "ready")
    await asyncio.sleep(0.3)
    assert editor.statuses[-1].mode == "ready"
