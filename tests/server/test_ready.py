"""A kernel that is ready: it waits through crashes, and is accepted, turned down or put off."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evokernel_server.offers.placement_state import is_never, snoozed_until, waiting
from lsprotocol import types

from evokernel_core.domain.outcome import Outcome, OutcomeKind
from tests.server.conftest import eventually, guarded

pytestmark = pytest.mark.usefixtures("scripted")

QUIET = {"refineInBackground": False, "programs": False}
LINE = "torch.softmax(x"


async def opened(sessions: Any, path: Path, text: str = "", **settings: Any) -> tuple[Any, str]:
    """An editor with the model open and its hints there."""
    editor = await sessions.start(settings={**QUIET, **settings})
    uri = editor.open(path)
    if text:
        editor.set_text(uri, text)
    await eventually(lambda: editor.hints(uri))
    return editor, uri


async def act(editor: Any, uri: str, title: str, words: str = LINE) -> dict[str, Any]:
    return dict(await editor.run(await editor.action(uri, editor.line_of(uri, words), title)))


async def made_ready(editor: Any, uri: str, words: str = LINE) -> dict[str, Any]:
    answer = await act(editor, uri, "Generate NPU kernel", words)
    assert answer["status"] == "ready", answer
    await eventually(lambda: editor.labels(uri, "⚡ ready "))
    return answer


async def kill(sessions: Any, editor: Any) -> None:
    os.kill(editor.client._server.pid, signal.SIGKILL)
    await editor.client._server.wait()
    await sessions.stop(editor)


async def titles(editor: Any, uri: str, words: str = LINE, only: list[str] | None = None) -> list[str]:
    return [item.title for item in await editor.actions(uri, editor.line_of(uri, words), only)]


async def test_it_outlives_a_killed_server(sessions: Any, workspace: Path, database: Any) -> None:
    path = workspace / "model.py"
    editor, uri = await opened(sessions, path)
    await made_ready(editor, uri)
    await kill(sessions, editor)

    again, uri = await opened(sessions, path)
    await eventually(lambda: again.labels(uri, "⚡ ready 7.5x  55 µs est."))
    await eventually(lambda: again.statuses[-1].mode == "ready_to_review")
    assert (await again.command("evokernel.status"))["pending"][0]["ready"] is True
    answer = await act(again, uri, "Accept the softmax kernel")
    assert guarded(answer["name"], "x") in again.texts[uri]
    assert (workspace / "evokernel_kernels" / answer["name"] / "kernel.json").exists()
    assert [kind for kind, _ in database.outcomes()] == ["ready", "accepted"]
    assert [state for _, state in database.jobs()] == ["done"]


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_one_that_was_rejected_never_comes_back(
    end: str, sessions: Any, workspace: Path, database: Any
) -> None:
    path = workspace / "model.py"
    editor, uri = await opened(sessions, path)
    place = {"uri": uri, "regionId": (await made_ready(editor, uri))["regionId"]}
    answer = await editor.command("evokernel.reject", {**place, "reason": "hard to read"})
    assert (answer["status"], answer["message"][:22]) == ("rejected", "Your code is unchanged")
    await eventually(lambda: editor.labels(uri, "⚡ 12x  35 µs"))
    assert ("rejected", "hard to read") in database.outcomes()
    await (kill(sessions, editor) if end == "kill" else sessions.stop(editor))

    again, uri = await opened(sessions, path)
    await eventually(lambda: titles(again, uri))
    assert not await again.labels(uri, "ready")
    assert (await again.command("evokernel.apply", place))["status"] == "refused"
    answer = await act(again, uri, "Generate NPU kernel")
    assert answer["status"] == "infeasible", "the same kernel is not offered a second time"
    assert not await again.labels(uri, "ready")


async def test_never_here_holds_through_edits_elsewhere_and_restarts(
    sessions: Any, workspace: Path, database: Any
) -> None:
    path = workspace / "model.py"
    editor, uri = await opened(sessions, path, codeLens=True)
    place = {"uri": uri, "regionId": (await made_ready(editor, uri))["regionId"]}
    assert (await act(editor, uri, "Never offer a kernel"))["status"] == "never"
    assert ("never", "") in database.outcomes()

    async def silent(editor: Any) -> bool:
        lenses = types.CodeLensParams(types.TextDocumentIdentifier(uri))
        return not (
            await editor.hints(uri)
            or await titles(editor, uri)
            or await editor.client.text_document_code_lens_async(lenses)
        )

    assert await silent(editor)
    path.write_text("# one line more\n" + editor.texts[uri], "utf-8")
    editor.set_text(uri, path.read_text("utf-8"))
    await eventually(lambda: editor.statuses[-1].mode == "nothing_to_gain")
    assert await silent(editor)
    await kill(sessions, editor)

    again = await sessions.start(settings={**QUIET, "codeLens": True})
    again.open(path)
    await eventually(lambda: again.statuses and again.statuses[-1].mode == "nothing_to_gain")
    assert await silent(again)
    refused = await again.command("evokernel.generate", place)
    assert (refused["status"], "never" in refused["message"]) == ("refused", True)
    assert (await again.command("evokernel.apply", place))["status"] == "refused"
    (title,) = await titles(again, uri, only=["refactor.rewrite"])
    assert title == "Offer kernels again where you said never"
    assert (await again.command("evokernel.offerAgain", {"uri": uri}))["status"] == "offered_again"
    await eventually(lambda: again.labels(uri, "⚡ ready "))
    assert (await act(again, uri, "Accept the softmax kernel"))["status"] == "applied"


async def test_never_here_ends_the_work_that_waits(
    sessions: Any, workspace: Path, database: Any, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    away.touch()
    editor = await sessions.start(settings=QUIET, environment={"SCRIPT_AWAY": str(away)})
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    assert (await act(editor, uri, "Generate NPU kernel"))["status"] == "queued"
    assert (await act(editor, uri, "Never offer a kernel"))["status"] == "never"
    assert database.jobs() == [("generate", "cancelled")]
    await eventually(lambda: editor.statuses[-1].mode != "queued")


async def test_a_kernel_that_is_put_off_is_quiet_until_it_wakes(sessions: Any, workspace: Path) -> None:
    path = workspace / "model.py"
    editor, uri = await opened(sessions, path, snoozeS=3600.0)
    await made_ready(editor, uri)
    assert (await act(editor, uri, "Snooze the softmax kernel"))["status"] == "snoozed"
    await eventually(lambda: editor.labels(uri, "⚡ 12x  35 µs"))
    assert "Accept the softmax kernel that is ready" in await titles(editor, uri)
    await sessions.stop(editor)

    again, uri = await opened(sessions, path, snoozeS=3600.0)
    await eventually(lambda: titles(again, uri))
    assert not await again.labels(uri, "ready"), "it sleeps through a restart"
    assert not again.asked
    await sessions.stop(again)
    awake, uri = await opened(sessions, path, snoozeS=0.1)
    await eventually(lambda: awake.labels(uri, "⚡ ready "))


async def test_two_windows_accept_once(sessions: Any, workspace: Path, database: Any) -> None:
    path = workspace / "model.py"
    first, uri = await opened(sessions, path)
    place = {"uri": uri, "regionId": (await made_ready(first, uri))["regionId"]}
    second, _ = await opened(sessions, path)
    await eventually(lambda: second.labels(uri, "⚡ ready "))
    answers = await asyncio.gather(*(e.command("evokernel.apply", place) for e in (first, second)))
    assert sorted(answer["status"] for answer in answers) == ["applied", "refused"]
    assert "window" in next(answer["message"] for answer in answers if answer["status"] == "refused")
    assert sum(".run(" in editor.texts[uri] for editor in (first, second)) == 1
    assert [kind for kind, _ in database.outcomes()].count("accepted") == 1
    loser = second if ".run(" in first.texts[uri] else first
    await refused_for_another_window(loser, place)
    loser.set_text(uri, loser.texts[uri] + "\n")

    async def heard() -> bool:
        return not await loser.labels(uri, "⚡ ready ")

    await eventually(heard)
    await refused_for_another_window(loser, place)


async def test_a_file_that_is_open_under_two_names_is_one_file(
    sessions: Any, workspace: Path, database: Any
) -> None:
    editor, uri = await opened(sessions, workspace / "model.py")
    (workspace / "link").symlink_to(workspace)
    other = editor.open(workspace / "link" / "model.py")
    assert other != uri
    await eventually(lambda: editor.hints(other))
    place = {"uri": uri, "regionId": (await made_ready(editor, uri))["regionId"]}
    await eventually(lambda: editor.labels(other, "⚡ ready "))
    assert not [title for title in await titles(editor, other) if title.startswith("Generate")]
    assert (await editor.command("evokernel.reject", {**place, "uri": other, "reason": "precision"}))[
        "status"
    ]
    await eventually(lambda: _none(editor, uri))
    assert [kind for kind, _ in database.outcomes()] == ["ready", "rejected"]


async def test_a_call_stays_while_one_name_of_its_file_has_it(
    sessions: Any, workspace: Path, database: Any
) -> None:
    (workspace / "link").symlink_to(workspace)
    editor, uri = await opened(
        sessions, workspace / "link" / "model.py", revertGraceS=0.1, survivalS=[1, 60, 60]
    )
    other = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(other))
    place = {"uri": uri, "regionId": (await made_ready(editor, uri))["regionId"]}
    assert (await editor.command("evokernel.apply", place))["status"] == "applied"
    editor.set_text(other, editor.texts[other] + "\n# more\n")
    await eventually(lambda: ("survived", "30s") in database.outcomes())
    assert "reverted" not in dict(database.outcomes())
    editor.set_text(uri, editor.texts[other])
    await eventually(lambda: "reverted" in dict(database.outcomes()))


async def _none(editor: Any, uri: str) -> bool:
    return not await editor.labels(uri, "⚡ ready ")


DECIDED = "No kernel is pending here any more: you or another window decided about it."


@pytest.mark.parametrize(
    ("command", "extra"), [("apply", {}), ("reject", {"reason": "hard to read"}), ("never", {})]
)
async def test_an_open_review_is_stale_where_another_window_decided(
    command: str, extra: dict[str, str], sessions: Any, workspace: Path, database: Any
) -> None:
    path = workspace / "model.py"
    first, uri = await opened(sessions, path)
    place = {"uri": uri, "regionId": (await made_ready(first, uri))["regionId"]}
    again = await open_review(first, place)
    seen = database.outcomes()
    assert (await first.command("evokernel.review", again))["status"] == "shown"
    assert database.outcomes() == seen, "it was opened once"
    second, _ = await opened(sessions, path)
    await eventually(lambda: second.labels(uri, "⚡ ready "))
    await second.command(f"evokernel.{command}", {**place, **extra})
    answer = await first.command("evokernel.review", again)
    assert (answer["status"], answer["message"]) == ("stale", DECIDED)
    assert not [said for said in first.client.messages if DECIDED in said.message]


async def test_an_open_review_follows_the_file(sessions: Any, workspace: Path, database: Any) -> None:
    editor, uri = await opened(sessions, workspace / "model.py")
    place = {"uri": uri, "regionId": (await made_ready(editor, uri))["regionId"]}
    again = await open_review(editor, place)
    text = editor.texts[uri]
    editor.set_text(uri, f"# one line more\n{text}")
    assert (await editor.command("evokernel.review", again))["review"]["before"] == editor.texts[uri]
    editor.set_text(uri, text.replace("dim=-1", "dim=0"))
    answer = await editor.command("evokernel.review", again)
    assert answer["status"] == "stale" and answer["message"].startswith("The code of this region changed")
    editor.set_text(uri, text)
    await eventually(lambda: editor.labels(uri, "⚡ ready "))
    assert (await editor.command("evokernel.review", again))["status"] == "shown"
    await editor.command("evokernel.apply", place)
    review = (await editor.command("evokernel.review", again))["review"]
    assert review["installed"]["sourceId"] == review["kernel"]["sourceId"]


async def open_review(editor: Any, place: dict[str, str]) -> dict[str, Any]:
    """What the client of a review that was opened asks for again."""
    review = (await editor.command("evokernel.review", place))["review"]
    return {**place, "sourceId": review["kernel"]["sourceId"], "again": True}


async def refused_for_another_window(editor: Any, place: dict[str, str]) -> None:
    late = await editor.command("evokernel.apply", place)
    assert (late["status"], "nother window" in late["message"]) == ("refused", True), late


async def test_changed_code_is_refused_and_nothing_is_lost(
    sessions: Any, workspace: Path, database: Any
) -> None:
    editor, uri = await opened(sessions, workspace / "model.py")
    place = {"uri": uri, "regionId": (await made_ready(editor, uri))["regionId"]}
    text = editor.texts[uri]
    editor.set_text(uri, text.replace("dim=-1", "dim=0"))
    answer = await editor.command("evokernel.apply", place)
    assert answer["status"] == "refused"
    assert answer["message"].startswith("The code of this region changed since its kernel was made")
    assert not editor.edits and not (workspace / "evokernel_kernels").exists()
    assert database.outcomes() == [("ready", "")]
    editor.set_text(uri, text)
    await eventually(lambda: editor.labels(uri, "⚡ ready "))
    assert (await editor.command("evokernel.apply", place))["status"] == "applied"


async def test_a_closed_file_is_no_reason_to_lose_a_kernel(
    sessions: Any, workspace: Path, database: Any
) -> None:
    editor = await sessions.start(settings=QUIET, environment={"SCRIPT_PAUSE_S": "0.5"})
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    running = asyncio.ensure_future(act(editor, uri, "Generate NPU kernel"))
    await eventually(lambda: ("generate", "running") in database.jobs())
    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    assert (await running)["status"] == "ready"
    editor.open(workspace / "model.py")
    await eventually(lambda: editor.labels(uri, "⚡ ready "))


@pytest.mark.parametrize(
    ("confirm", "client", "asked"),
    [
        ("auto", {"ours": True, "annotations": True}, False),
        ("auto", {"ours": False, "annotations": True}, True),
        ("auto", {"ours": False, "annotations": False}, False),
        ("always", {"ours": True, "annotations": True}, True),
        ("never", {"ours": False, "annotations": True}, False),
    ],
)
async def test_who_is_asked_to_confirm_the_edit(
    confirm: str,
    client: dict[str, bool],
    asked: bool,
    sessions: Any,
    workspace: Path,
    database: Any,
    capabilities: Callable[..., types.ClientCapabilities],
) -> None:
    editor = await sessions.start(
        settings={**QUIET, "confirmEdits": confirm},
        client_capabilities=capabilities(**client),
    )
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    await made_ready(editor, uri)
    said = [message.message for message in editor.client.messages]
    assert any("is ready: 55.0 µs estimated (was 412 µs)" in words for words in said) is not client["ours"]
    editor.declines = True
    answer = await act(editor, uri, "Accept the softmax kernel")
    if asked:
        assert (answer["status"], "not confirmed" in answer["message"]) == ("refused", True)
        assert not list(workspace.glob("evokernel_kernels/softmax*"))
        assert database.outcomes() == [("ready", "")]
        editor.declines = False
        answer = await act(editor, uri, "Accept the softmax kernel")
        assert "55.0 µs estimated" in editor.confirmed[-1].description
    assert answer["status"] == "applied"
    assert bool(editor.confirmed) is asked
    assert guarded(answer["name"], "x") in editor.texts[uri]


async def test_any_verified_kernel_can_be_chosen(sessions: Any, workspace: Path, database: Any) -> None:
    editor = await sessions.start(settings={"programs": False, "toastsPerSession": 0})
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    await made_ready(editor, uri)
    name = (await act(editor, uri, "Accept the softmax kernel"))["name"]
    await eventually(lambda: editor.statuses[-1].offers == 1)
    sources = database.rows("SELECT source_id FROM verdicts ORDER BY latency_us")
    assert len(sources) == 6
    place = {"uri": uri, "name": name}
    for (source_id,) in (sources[2], sources[-1]):
        answer = await editor.command("evokernel.apply", {**place, "sourceId": source_id})
        assert (answer["status"], answer["sourceId"]) == ("applied", source_id)
        us = 60.0 - 5.0 * (6 - sources.index((source_id,)))
        await eventually(lambda us=us: editor.labels(uri, f"  {us:.0f} µs est."))
    refused = await editor.command("evokernel.apply", {**place, "sourceId": "no-such-kernel"})
    assert refused["status"] == "refused"


@pytest.mark.parametrize(
    ("only", "found"),
    [
        (None, True),
        (["refactor"], True),
        (["refactor.rewrite"], True),
        (["refactor.rewrite.evokernel"], True),
        (["refactor.rewrite.evo"], False),
        (["refactor.extract"], False),
        (["quickfix"], False),
        ([""], True),
    ],
)
async def test_actions_have_a_kind_of_their_own(
    only: list[str] | None, found: bool, sessions: Any, workspace: Path
) -> None:
    editor, uri = await opened(sessions, workspace / "model.py")
    await made_ready(editor, uri)
    expected = ["Review", "Accept", "Reject", "Snooze", "Never"]
    words = [title.split()[0] for title in await titles(editor, uri, only=only)]
    assert words == (expected if found else [])


async def test_lenses_lead_to_review_and_acceptance(sessions: Any, workspace: Path) -> None:
    editor, uri = await opened(sessions, workspace / "model.py", codeLens=True)
    await made_ready(editor, uri)
    params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
    lenses = await editor.client.text_document_code_lens_async(params)
    assert [(lens.command.title, lens.command.command) for lens in lenses] == [
        ("⚡ ready 7.5x  55 µs est., review", "evokernel.review"),
        ("accept", "evokernel.apply"),
    ]


def said(*words: str) -> list[Outcome]:
    made = []
    for number, word in enumerate(words):
        kind, _, source = word.partition(" ")
        made.append(Outcome(OutcomeKind(kind), "r", "t", source, float(number)))
    return made


@pytest.mark.parametrize(
    ("words", "source_id"),
    [
        ([], None),
        (["ready a"], "a"),
        (["ready a", "shown a", "expired a", "snoozed a"], "a"),
        (["ready a", "ready b"], "b"),
        (["ready a", "accepted a"], None),
        (["ready a", "partially_accepted a"], None),
        (["ready a", "rejected a"], None),
        (["ready a", "accepted a", "reverted a"], None),
        (["ready a", "accepted a", "reverted a", "ready a"], "a"),
        (["rejected a", "ready b"], "b"),
    ],
)
def test_which_kernel_waits(words: list[str], source_id: str | None) -> None:
    found = waiting(said(*words))
    assert (found.source_id if found else None) == source_id


@pytest.mark.parametrize(
    ("words", "never"),
    [
        ([], False),
        (["never"], True),
        (["never", "offered_again"], False),
        (["never", "offered_again", "ready a", "never"], True),
        (["never", "accepted a"], True),
    ],
)
def test_whether_a_place_is_left_alone(words: list[str], never: bool) -> None:
    assert is_never(said(*words)) is never


def test_a_kernel_sleeps_from_its_last_snooze() -> None:
    outcomes = said("snoozed a", "snoozed b", "snoozed a")
    assert snoozed_until(outcomes, "a", 10.0) == 12.0
    assert snoozed_until(outcomes, "c", 10.0) == 0.0
