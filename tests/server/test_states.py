"""The status follows the document in front, and says by standard means what a person should know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evokernel_server.states import mode_of
from evokernel_server.status import Mode
from evokernel_server.workspace import Problem
from lsprotocol import types

from evokernel_core.twin.accuracy import MODEL_ERROR

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
    assert (needed.severity, needed.code) == (types.DiagnosticSeverity.Information, "needs_shapes")
    assert needed.range.start == types.Position(3, 4)
    (failed,) = await eventually(lambda: said(editor, fails))
    assert (failed.severity, failed.code) == (types.DiagnosticSeverity.Information, "import_failed")
    assert failed.range.start == types.Position(3, 0), "the line that the sentence names"
    (once,) = await eventually(lambda: said(editor, why))
    assert (once.severity, once.code) == (types.DiagnosticSeverity.Hint, "unsupported")
    assert once.message == "No kernel: Line 5 uses aten.fft. Also on line 6."
    assert {item.source for item in (needed, failed, once)} == {"evokernel"}
    assert not editor.client.messages, "nothing here asks a person to act at once"
    editor.set_text(needs, HEAD + BODIES["ready"])
    await eventually(lambda: not said(editor, needs))
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
    assert f"more than the model's own error of {MODEL_ERROR:.0%}" in editor.statuses[-1].text
    assert await editor.hints(uri) == []
    line = editor.line_of(uri, "torch.softmax")
    assert await editor.actions(uri, line) == []
    where = types.Range(types.Position(line, 0), types.Position(line, 0))
    only = types.CodeActionContext([], only=[types.CodeActionKind.RefactorRewrite])
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), where, only)
    (action,) = await editor.client.text_document_code_action_async(params)
    assert action.title == "Generate NPU kernel (softmax: 1.03x, 412 → 400 µs modelled)"
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
    assert mode_of(Problem(reason, "A sentence.")) is mode
