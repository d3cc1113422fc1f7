"""The status follows the document in front, and says by standard means what a person should know."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from evokernel_server.documents.line_index import Text
from evokernel_server.documents.mode import Progress, mode_of, status_of
from evokernel_server.documents.status_line import Mode
from evokernel_server.documents.workspace import Document, FileProblem
from evokernel_server.jobs.store import Store
from lsprotocol import types

from evokernel_core.domain.errors import StoreError
from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.memory.store import Memory

pytestmark = pytest.mark.usefixtures("scripted")

HEAD = "import torch\n\n\n"
BODIES = {
    "ready": "def f(x):\n    return torch.softmax(x, dim=-1)\n",
    "needs_inputs": "def needy(x):\n    return torch.relu(x)\n",
    "nothing_to_gain": "import hopeless\n\n\ndef f(x):\n    return torch.softmax(x, dim=-1)\n",
    "failed": "import broken\n\n\ndef f(x):\n    return torch.softmax(x, dim=-1)\n",
    "error": "import internal\n\n\ndef f(x):\n    return torch.softmax(x, dim=-1)\n",
}
"""A file for each state."""
SLOW = "import pause\n\n\ndef f(x):\n    return torch.softmax(x, dim=-1)\n"


@pytest.fixture
def files(workspace: Path) -> dict[str, Path]:
    found = {}
    for name, body in {**BODIES, "slow": SLOW}.items():
        found[name] = workspace / f"{name}.py"
        found[name].write_text(HEAD + body)
    (workspace / "plain.py").write_text("torchlight = 1\n")
    return found | {"plain": workspace / "plain.py"}


def mode(editor: Any) -> str:
    return str(editor.statuses[-1].mode) if editor.statuses else ""


def front(editor: Any, uri: str) -> None:
    editor.client.protocol.notify("evokernel/activeDocument", {"uri": uri})


def said(editor: Any, uri: str) -> list[types.Diagnostic]:
    return list(editor.client.diagnostics.get(uri, []))


@pytest.mark.parametrize("state", BODIES)
async def test_each_state_of_a_file(
    state: str, sessions: Any, files: dict[str, Path], eventually: Any
) -> None:
    editor = await sessions.start()
    uri = editor.open(files[state])
    await eventually(lambda: mode(editor) == state and editor.statuses[-1].uri == uri)
    known = state not in ("failed", "error")
    assert editor.statuses[-1].interpreter == ("/usr/bin/python3 (python3 on PATH)" if known else "")
    assert (await editor.command("evokernel.status"))["mode"] == state
    modes = [status.mode for status in editor.statuses if status.uri == uri]
    assert modes[0] == "analysing", "never ready before anything is known"
    assert set(modes) == {"analysing", state}


@pytest.mark.parametrize("tells", [True, False], ids=["client tells", "last touched"])
async def test_the_status_follows_the_document_in_front(
    tells: bool, sessions: Any, files: dict[str, Path], eventually: Any
) -> None:
    editor = await sessions.start()
    uris = {state: editor.open(files[state]) for state in ("error", "needs_inputs", "ready")}
    await eventually(lambda: mode(editor) == "ready")
    for state in ("error", "ready", "needs_inputs"):
        if tells:
            front(editor, uris[state])
        else:
            await editor.actions(uris[state], 3)
            editor.set_text(uris[state], editor.texts[uris[state]] + "\n")
        await eventually(lambda state=state: mode(editor) == state)
    if tells:  # what another window touches changes nothing
        await editor.actions(uris["error"], 3)
        front(editor, editor.open(files["plain"]))
        await eventually(lambda: (mode(editor), editor.statuses[-1].uri) == ("ready", ""))
    else:
        editor.client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uris["needs_inputs"]))
        )
        await eventually(lambda: mode(editor) == "ready")


async def test_it_is_not_ready_while_it_analyses(
    sessions: Any, files: dict[str, Path], eventually: Any
) -> None:
    editor = await sessions.start()
    uri = editor.open(files["slow"])
    await eventually(lambda: mode(editor) == "ready" and editor.statuses[-1].uri == uri)
    words = [status.text for status in editor.statuses if status.mode == "analysing"]
    assert words[0] == "Analysing slow.py."
    assert words[-1].endswith("programs of several follow."), "single kernels come first"
    far = {status.progress: status.mode for status in editor.statuses}
    assert set(far) == {"", "running the file", "regions 0 of 1", "tracing programs"}
    assert [mode for words, mode in far.items() if words] == ["analysing"] * 3


async def test_the_log_tells_what_was_done(sessions: Any, files: dict[str, Path], eventually: Any) -> None:
    editor = await sessions.start(settings={"refineInBackground": False})
    uri = editor.open(files["ready"])
    await eventually(lambda: editor.hints(uri))
    failed = editor.open(files["failed"])
    await eventually(lambda: said(editor, failed))
    await editor.run(await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel"))
    words = "\n".join(item.message for item in editor.client.log_messages)
    for pattern in (
        r"ready.py: 1 region in \d+\.\d s, run by /usr/bin/python3",
        r"failed.py: not analysed after \d+\.\d s \(import_failed\): Importing it failed",
        r"ready.py, softmax in Model.forward: attempt 1/30 \(draft\): feasible",
        r"ready.py, softmax in Model.forward: verified by scripted after 1 attempt, .* µs estimated on",
    ):
        assert re.search(pattern, words), words
    assert "return" not in words and str(files["ready"].parent) not in words, "no code, no folders"


async def test_a_kernel_that_waits_for_review_is_a_state(
    sessions: Any, files: dict[str, Path], eventually: Any
) -> None:
    editor = await sessions.start()
    uri = editor.open(files["ready"])
    await eventually(lambda: editor.hints(uri))
    await editor.run(await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel"))
    await eventually(lambda: mode(editor) == "ready_to_review" and editor.statuses[-1].uri == uri)
    assert editor.statuses[-1].text == "1 kernel is pending review in ready.py."
    await editor.run(
        await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Reject the softmax kernel")
    )
    await eventually(lambda: mode(editor) == "ready")


async def test_what_stopped_a_kernel_is_a_state_until_the_next_edit(
    sessions: Any, files: dict[str, Path], eventually: Any
) -> None:
    words = "The model endpoint cannot be reached; check its address."
    editor = await sessions.start(environment={"SCRIPT_DEAD": words})
    uri = editor.open(files["ready"])
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    assert (await editor.run(action))["message"] == words
    await eventually(lambda: (mode(editor), editor.statuses[-1].text) == ("error", words))
    editor.set_text(uri, editor.texts[uri] + "\n")
    await eventually(lambda: mode(editor) == "ready")


async def test_diagnostics_tell_every_client(
    sessions: Any, files: dict[str, Path], workspace: Path, eventually: Any, capabilities: Any
) -> None:
    plain = capabilities()
    plain.experimental = None
    editor = await sessions.start(client_capabilities=plain)
    two = workspace / "two.py"
    two.write_text(f"{HEAD}def f(x):\n    y = torch.fft.fft(x)\n    return y, torch.fft.fft(x)\n")
    needs, fails, why = editor.open(files["needs_inputs"]), editor.open(files["failed"]), editor.open(two)
    (needed,) = await eventually(lambda: said(editor, needs))
    assert (needed.severity, needed.code) == (types.DiagnosticSeverity.Hint, "needs_shapes")
    assert needed.range.start == types.Position(3, 4)
    (failed,) = await eventually(lambda: said(editor, fails))
    assert (failed.severity, failed.code) == (types.DiagnosticSeverity.Hint, "import_failed")
    assert failed.range.start == types.Position(3, 0), "the line that the sentence names"
    (once,) = await eventually(lambda: said(editor, why))
    assert (once.severity, once.code) == (types.DiagnosticSeverity.Hint, "unsupported")
    assert once.message == "No kernel: Line 5 uses aten.fft. Also on line 6."
    assert {item.source for item in (needed, failed, once)} == {"evokernel"}
    assert not editor.client.messages, "nothing here asks a person to act at once"
    editor.set_text(needs, HEAD + BODIES["ready"])
    await eventually(lambda: [item.code for item in said(editor, needs)] == ["worth_fusing"])
    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(why)))
    await eventually(lambda: not said(editor, why))


async def test_diagnostics_can_be_switched_off(
    sessions: Any, files: dict[str, Path], eventually: Any
) -> None:
    editor = await sessions.start(settings={"diagnostics": False})
    uri = editor.open(files["needs_inputs"])
    await eventually(lambda: mode(editor) == "needs_inputs")
    assert not said(editor, uri)


async def test_a_failure_of_ours_is_a_message_once(
    sessions: Any, files: dict[str, Path], eventually: Any
) -> None:
    editor = await sessions.start()
    uri = editor.open(files["error"])
    await eventually(lambda: editor.client.messages)
    editor.set_text(uri, editor.texts[uri] + "# again\n")
    other = editor.open(files["ready"])
    await eventually(lambda: editor.hints(other))
    (message,) = editor.client.messages
    assert message.type is types.MessageType.Warning
    assert message.message.startswith("EvoKernel: This work met a defect")


async def test_what_gains_too_little_is_offered_only_when_asked_for(
    sessions: Any, files: dict[str, Path], eventually: Any
) -> None:
    editor = await sessions.start()
    uri = editor.open(files["nothing_to_gain"])
    await eventually(lambda: mode(editor) == "nothing_to_gain")
    assert "no estimated gain exceeds the model error" in editor.statuses[-1].text
    assert await editor.hints(uri) == []
    line = editor.line_of(uri, "torch.softmax")
    titles = [action.title for action in await editor.actions(uri, line)]
    assert titles == ["Explain why no kernel is offered here"]
    where = types.Range(types.Position(line, 0), types.Position(line, 0))
    only = types.CodeActionContext([], only=[types.CodeActionKind.RefactorRewrite])
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), where, only)
    (action,) = await editor.client.text_document_code_action_async(params)
    assert action.title == "Generate NPU kernel (softmax: 400 µs est.)"
    place = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, 12))
    hover = await editor.client.text_document_hover_async(place)
    assert "- gain: 3 %, not offered: " in hover.contents.value


@pytest.mark.parametrize(
    ("reason", "mode"),
    [
        ("needs_shapes", Mode.NEEDS_INPUTS),
        ("import_failed", Mode.FAILED),
        ("agent_failed", Mode.FAILED),
        ("no_interpreter", Mode.ERROR),
        ("worker_died", Mode.ERROR),
        ("internal", Mode.ERROR),
        ("store_error", Mode.ERROR),
    ],
)
def test_only_ours_and_the_environments_failures_are_errors(reason: str, mode: Mode) -> None:
    assert mode_of(FileProblem(reason, Sentence("A sentence."))) is mode


def _document() -> Document:
    return Document("file:///w/m.py", Path("/w/m.py"), 1, Text("import torch\n"), captured="yes")


def _job(kind: JobKind, reason: str = "") -> Job:
    return Job("1", kind, JobState.RUNNING, "/w/other.py", "r", "t", "", 1, 0, 0.0, 0.0, reason)


GENERATING, REFINING = _job(JobKind.GENERATE), _job(JobKind.REFINE)
AWAY = [_job(JobKind.GENERATE, "the verifier is away")]


@pytest.mark.parametrize(
    ("state", "expected", "words"),
    [
        ({}, Mode.NOTHING_TO_GAIN, "Nothing to gain in m.py"),
        ({"analysing": True, "to_review": 2, "waiting": AWAY}, Mode.ANALYSING, "Analysing m.py"),
        (
            {"analysing": True, "progress": Progress(12, 20)},
            Mode.ANALYSING,
            "Analysing m.py: regions 12 of 20.",
        ),
        ({"to_review": 2, "running": REFINING}, Mode.READY_TO_REVIEW, "2 kernels are pending review"),
        ({"running": GENERATING, "trouble": "full"}, Mode.BUSY, "Generating a kernel in other.py"),
        ({"running": REFINING, "waiting": AWAY}, Mode.BUSY, "Refining a kernel in other.py"),
        ({"waiting": AWAY}, Mode.QUEUED, "1 waiting: the verifier is away"),
        ({"trouble": "The disk is full.", "to_review": 1}, Mode.ERROR, "The disk is full."),
        ({"document": None}, Mode.READY, "EvoKernel is ready."),
        ({"document": None, "waiting": AWAY}, Mode.QUEUED, "1 waiting"),
    ],
)
def test_what_a_person_waits_for_comes_first(state: dict[str, Any], expected: Mode, words: str) -> None:
    given = {"document": _document(), "running": None, "waiting": [], **state}
    mode, text, _ = status_of(given.pop("document"), given.pop("running"), given.pop("waiting"), **given)
    assert mode is expected and text.startswith(words)


async def test_what_cannot_be_kept_is_shown_until_it_can(tmp_path: Path) -> None:
    seen: list[str] = []
    (tmp_path / "memory.db").write_text("no database " * 100)
    store = Store(tmp_path / "memory.db", changed=lambda: seen.append(store.trouble))
    for _ in range(2):
        with pytest.raises(StoreError):
            await store(lambda memory: memory.counts())
    (tmp_path / "memory.db").unlink()
    await store(lambda memory: memory.counts())
    store.close()
    assert len(seen) == 2 and "move the file aside" in seen[0] and not seen[1]


async def test_a_memory_that_was_deleted_is_opened_anew(tmp_path: Path) -> None:
    store = Store(tmp_path / "memory.db")
    outcome = Outcome(OutcomeKind.NEVER, "place", "", "", 1.0)
    for _ in range(2):
        for file in tmp_path.glob("memory.db*"):
            file.unlink()
        await store(lambda memory: memory.record_outcome(outcome))
        with Memory(tmp_path / "memory.db") as memory:
            assert memory.outcomes("place") == (outcome,)
    store.close()
