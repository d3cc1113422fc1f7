"""The story against a scripted worker: the server's own part, fast and in every variation."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.server.conftest import guarded

pytestmark = pytest.mark.usefixtures("scripted")

BROKEN = """\
import torch
import broken

class A(torch.nn.Module):
    def forward(self, x):
        return x
"""
NO_REFINING = {"refineInBackground": False}


async def generated(editor: Any, eventually: Any, path: Path) -> tuple[str, Any]:
    """Opens the model, generates its kernel and accepts it where it is ready."""
    uri = editor.open(path)
    await eventually(lambda: editor.hints(uri))
    line = editor.line_of(uri, "torch.softmax")
    answer = await editor.run(await editor.action(uri, line, "Generate NPU kernel"))
    if answer["status"] != "ready":
        return uri, answer
    return uri, await editor.run(await editor.action(uri, line, "Accept the softmax kernel"))


async def test_the_whole_story(sessions: Any, workspace: Path, database: Any, eventually: Any) -> None:
    editor = await sessions.start()
    uri = editor.open(workspace / "model.py")
    (hint,) = await eventually(lambda: editor.hints(uri))
    assert hint.label == "⚡ 12x  35 µs est."

    editor.answers = ["Accept"]
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    assert action.command is None
    answer = await editor.run(action)
    assert (answer["status"], set(answer)) == ("ready", {"status", "message", "regionId", "sourceId"})
    assert not editor.edits and not (workspace / "evokernel_kernels").exists()
    assert await eventually(lambda: editor.labels(uri, "⚡ ready 7.5x  55 µs est."))
    await eventually(lambda: editor.statuses[-1].mode == "ready_to_review")
    accept = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Accept the softmax kernel")
    answer = await editor.run(accept)
    assert answer["status"] == "applied"
    name = answer["name"]
    assert guarded(name, "x") in editor.texts[uri]
    assert f"from evokernel_kernels import {name}\n" in editor.texts[uri]
    assert editor.edits[0].edit.document_changes[0].text_document.version == 1

    (reports,) = editor.client.progress_reports.values()
    assert type(reports[0]).__name__ == "WorkDoneProgressBegin"
    assert any("attempt 1/30" in (report.message or "") for report in reports)

    await eventually(lambda: database.outcomes().count(("accepted", "")) == 2)
    kinds = [kind for kind, _ in database.outcomes()]
    assert kinds[:2] == ["ready", "accepted"]
    assert any(method == "evokernel/refined" for method, _ in editor.custom)
    assert database.values()["item-1"] > 0
    await eventually(lambda: ("survived", "15m") in database.outcomes())
    titles = [item.title for item in await editor.actions(uri, editor.line_of(uri, ".run("))]
    assert not any(title.startswith("Generate") for title in titles)

    revert = await editor.action(uri, editor.line_of(uri, ".run("), "Revert kernel")
    before = database.values()
    assert (await editor.run(revert))["status"] == "reverted"
    assert "evokernel" not in editor.texts[uri]
    assert ("reverted", "command") in database.outcomes()
    assert any(q < before[item] for item, q in database.values().items())


async def test_a_rejected_kernel_is_not_offered_again(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start()
    editor.answers = ["Reject"]
    await generated(editor, eventually, workspace / "model.py")
    await eventually(lambda: "rejected" in dict(database.outcomes()))
    assert min(database.values().values()) < 0
    await sessions.stop(editor)

    again = await sessions.start()
    uri = again.open(workspace / "model.py")
    again.set_text(uri, editor.texts[uri])
    await eventually(lambda: again.hints(uri))
    assert not again.asked


async def test_the_reason_of_a_rejection_is_asked_for_and_kept(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start()
    editor.answers = ["Reject", "Hard to read"]
    await generated(editor, eventually, workspace / "model.py")
    await eventually(lambda: ("explained", "hard to read") in database.outcomes())
    titles = [[action.title for action in asked.actions or ()] for asked in editor.asked]
    assert titles[-1] == ["Slower than wanted", "Hard to read", "Precision", "Other"]


@pytest.mark.parametrize("way", ["undo", "manual"])
async def test_a_persons_own_revert_is_noticed(
    way: str, sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start(settings=NO_REFINING)
    uri, _ = await generated(editor, eventually, workspace / "model.py")
    original = (workspace / "model.py").read_text("utf-8")
    editor.set_text(uri, original if way == "undo" else original.replace("😀", "moved on"))
    await eventually(lambda: ("reverted", way) in database.outcomes())


@pytest.mark.parametrize("way", ["command", "undo"])
async def test_a_kernel_that_was_taken_out_is_refined_no_further(
    way: str, sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start(environment={"SCRIPT_PAUSE_S": "2"})
    original = (workspace / "model.py").read_text("utf-8")
    uri, answer = await generated(editor, eventually, workspace / "model.py")
    await eventually(lambda: ("refine", "running") in database.jobs())
    if way == "command":
        await editor.command("evokernel.revert", {"uri": uri, "name": answer["name"]})
    else:
        editor.set_text(uri, original)
    await eventually(lambda: ("refine", "cancelled") in database.jobs())


async def test_cut_and_paste_is_no_revert(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start(settings=NO_REFINING)
    uri, answer = await generated(editor, eventually, workspace / "model.py")
    text = editor.texts[uri]
    editor.set_text(uri, text.replace(f"{answer['name']}.run", "nothing"))
    editor.set_text(uri, "# moved\n" + text)
    await eventually(lambda: ("survived", "15m") in database.outcomes())
    assert "reverted" not in dict(database.outcomes())


async def test_a_refused_edit_leaves_no_package(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start()
    editor.refuse_edits = True
    _, answer = await generated(editor, eventually, workspace / "model.py")
    assert answer["status"] == "refused"
    assert "read-only" in answer["message"]
    assert not list(workspace.glob("evokernel_kernels/softmax*"))
    assert database.outcomes() == [("ready", "")], "it still waits"


@pytest.mark.parametrize(
    ("settings", "status", "outcomes"),
    [
        ({}, "ready", [("ready", "")]),
        ({"editAtOnce": False}, "ready", [("ready", "")]),
        ({"editAtOnce": True}, "applied", [("ready", ""), ("accepted", "")]),
    ],
)
async def test_the_file_is_edited_at_once_only_where_that_is_set(
    settings: dict[str, Any],
    status: str,
    outcomes: list[tuple[str, str]],
    sessions: Any,
    workspace: Path,
    database: Any,
    eventually: Any,
) -> None:
    editor = await sessions.start(settings={**NO_REFINING, **settings})
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    assert (await editor.run(action))["status"] == status
    assert database.outcomes() == outcomes
    assert bool(editor.edits) == (workspace / "evokernel_kernels").exists() == (status == "applied")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("document_changes", [True, False])
async def test_every_kind_of_client_gets_its_edit(
    encoding: str,
    document_changes: bool,
    sessions: Any,
    workspace: Path,
    eventually: Any,
    capabilities: Any,
) -> None:
    editor = await sessions.start(
        settings=NO_REFINING,
        client_capabilities=capabilities(encoding, document_changes=document_changes),
    )
    uri, answer = await generated(editor, eventually, workspace / "model.py")
    assert guarded(answer["name"], "x") in editor.texts[uri]


TWO = """\
import torch

class A(torch.nn.Module):
    def forward(self, x, y):
        x = torch.softmax(x, dim=-1)
        return torch.softmax(y, dim=-1)
"""


@pytest.mark.parametrize("programs", [True, False])
async def test_programs_are_offered_beside_single_kernels(
    programs: bool, sessions: Any, workspace: Path, eventually: Any
) -> None:
    (workspace / "model.py").write_text(TWO)
    editor = await sessions.start(settings={**NO_REFINING, "programs": programs})
    uri = editor.open(workspace / "model.py")
    expected = ["⚡ 12x", "⚡ 12x"] + ["⚡ 12x, lines 5-6"] * programs

    async def all_shown() -> bool:
        labels = sorted(hint.label.partition("  ")[0] for hint in await editor.hints(uri))
        return labels == sorted(expected)

    await eventually(all_shown)
    titles = [item.title for item in await editor.actions(uri, 5)]
    words = [title.partition("(")[2].partition(":")[0] for title in titles if "Generate" in title]
    assert words == ["softmax", "lines 5-6"][: 1 + programs]


async def test_an_edit_does_not_wait_for_a_trace_of_the_text_before(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    (workspace / "model.py").write_text("import slow\n" + TWO)
    editor = await sessions.start(settings=NO_REFINING)
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    editor.set_text(uri, TWO.replace("x = torch.softmax(x, dim=-1)", "z = torch.softmax(z, dim=-1)"))

    async def both_shown() -> bool:
        return len(await editor.hints(uri)) == 2

    await eventually(both_shown)


async def test_hints_move_with_the_text_before_the_next_capture(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start(settings={"pauseS": 30.0})
    uri = editor.open(workspace / "model.py")
    (before,) = await eventually(lambda: editor.hints(uri))
    editor.set_text(uri, "# one more line\n" + editor.texts[uri])
    (after,) = await editor.hints(uri)
    assert after.position.line == before.position.line + 1
    editor.set_text(uri, editor.texts[uri].replace("softmax", "relu"))
    assert await editor.hints(uri) == []


async def test_a_client_that_resolves_hints_gets_the_rest_when_it_asks(
    sessions: Any, workspace: Path, eventually: Any, capabilities: Any
) -> None:
    asked = capabilities()
    asked.text_document.inlay_hint = types.InlayHintClientCapabilities(
        resolve_support=types.ClientInlayHintResolveOptions(properties=["tooltip", "label.command"])
    )
    editor = await sessions.start(settings={"pauseS": 30.0}, client_capabilities=asked)
    uri = editor.open(workspace / "model.py")
    (hint,) = await eventually(lambda: editor.hints(uri))
    assert [part.value for part in hint.label] == ["⚡ 12x  35 µs est."]
    assert hint.tooltip is None and hint.label[0].command is None
    resolved = await editor.client.inlay_hint_resolve_async(hint)
    assert "eager: 412 µs" in resolved.tooltip.value
    command = resolved.label[0].command
    assert command.command == "evokernel.generate"
    place = types.DocumentHighlightParams(types.TextDocumentIdentifier(uri), hint.position)
    (lines,) = await editor.client.text_document_document_highlight_async(place)
    assert lines.range.start.line == lines.range.end.line == hint.position.line
    editor.set_text(uri, "# one more line\n" + editor.texts[uri])
    stale = await editor.client.inlay_hint_resolve_async(hint)
    assert stale.tooltip is None and stale.label[0].command is None
    assert await editor.client.text_document_document_highlight_async(place) is None


async def test_a_file_that_does_not_import_says_so_once(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    (workspace / "model.py").write_text(BROKEN)
    editor = await sessions.start()
    uri = editor.open(workspace / "model.py")
    (hint,) = await eventually(lambda: editor.hints(uri))
    assert hint.label == "⚡ file does not import"
    assert hint.position.line == 3
    await eventually(lambda: editor.statuses[-1].mode == "failed")
    assert not editor.client.messages


async def test_an_untrusted_workspace_runs_nothing(
    sessions: Any, workspace: Path, eventually: Any, home: Path
) -> None:
    editor = await sessions.start(trusted=False)
    uri = editor.open(workspace / "model.py")
    status = await editor.command("evokernel.status")
    assert "not trusted" in status["text"]
    assert [hint.label for hint in await editor.hints(uri)] == ["⚡ not trusted"]


async def test_a_file_without_torch_costs_nothing(sessions: Any, workspace: Path) -> None:
    (workspace / "plain.py").write_text("torchlight = 1\n")
    editor = await sessions.start()
    uri = editor.open(workspace / "plain.py")
    assert await editor.hints(uri) == []
    assert await editor.actions(uri, 0) == []


async def test_cancelling_ends_the_job(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start(environment={"SCRIPT_PAUSE_S": "1.5"})
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    running = asyncio.ensure_future(editor.run(action))
    await eventually(lambda: ("generate", "running") in database.jobs())
    await editor.command("evokernel.cancel", {})
    assert (await running)["status"] == "cancelled"
    assert database.jobs() == [("generate", "cancelled")]


@pytest.mark.parametrize("reason", ["verifier_unavailable", "compiler_missing"])
async def test_work_waits_while_nobody_can_judge(
    reason: str, sessions: Any, workspace: Path, database: Any, eventually: Any, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    away.write_text(reason)
    editor = await sessions.start(environment={"SCRIPT_AWAY": str(away)})
    editor.answers = ["Accept", "Accept"]
    uri, answer = await generated(editor, eventually, workspace / "model.py")
    assert answer["status"] == "queued"
    assert "written by itself" in answer["message"]
    assert database.jobs() == [("generate", "waiting")]
    await eventually(lambda: editor.statuses[-1].mode == "queued")
    assert not editor.client.messages, "it needs nobody: the status says that it waits"
    away.unlink()
    await eventually(lambda: ".run(" in editor.texts[uri])
    await eventually(lambda: database.jobs()[0] == ("generate", "done"))
    await eventually(lambda: editor.statuses[-1].mode == "ready")


async def test_a_snoozed_kernel_comes_back(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start()
    editor.answers = ["Snooze"]
    uri, _ = await generated(editor, eventually, workspace / "model.py")
    await eventually(lambda: "snoozed" in dict(database.outcomes()))
    titles = [a.title for a in await editor.actions(uri, editor.line_of(uri, ".run("))]
    assert any(title.startswith("Accept the faster kernel") for title in titles)


async def test_an_offer_that_was_shown_comes_back_in_the_next_session(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    path = workspace / "model.py"
    editor = await sessions.start()
    uri, _ = await generated(editor, eventually, path)
    await eventually(lambda: editor.asked)
    path.write_text(editor.texts[uri], "utf-8")
    await sessions.stop(editor)
    assert ("expired", "") in database.outcomes()
    again = await sessions.start()
    again.open(path)
    await eventually(lambda: again.statuses and again.statuses[-1].offers == 1)


async def test_limits_on_messages_leave_a_count_in_the_status(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start(settings={"toastsPerSession": 0})
    await generated(editor, eventually, workspace / "model.py")
    await eventually(lambda: editor.statuses[-1].offers == 1)
    assert not editor.asked


async def test_a_deleted_package_is_seen_and_restored(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start(settings=NO_REFINING)
    uri, answer = await generated(editor, eventually, workspace / "model.py")
    await eventually(lambda: editor.called(uri))
    shutil.rmtree(workspace / "evokernel_kernels" / answer["name"])
    await eventually(lambda: _labels(editor, uri, "package missing"))
    restore = await editor.action(uri, editor.line_of(uri, ".run("), "Restore the package")
    assert (await editor.run(restore))["status"] == "applied"
    await eventually(lambda: editor.called(uri))


async def _labels(editor: Any, uri: str, words: str) -> list[str]:
    return [hint.label for hint in await editor.hints(uri) if words in hint.label]
