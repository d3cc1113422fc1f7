"""Nothing of a person's file runs before somebody says that it may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evokernel_server.options import read_options, update_options
from evokernel_server.trust import Trust, read_trust
from lsprotocol import types

from evokernel_core.domain.errors import UsageError

OTHER = "https://example.org"


@pytest.mark.parametrize(
    ("given", "inside", "outside"),
    [
        (None, False, False),
        (False, False, False),
        (True, True, True),
        ([], False, False),
        (["{home}/models"], True, False),
        (["~/models"], True, False),
        (["{home}/models/deep"], False, False),
        (["{home}/mod"], False, False),
    ],
)
def test_who_is_trusted(
    given: Any, inside: bool, outside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folders = [item.format(home=tmp_path) for item in given] if isinstance(given, list) else given
    trust = read_trust(folders)
    assert trust.covers(tmp_path / "models" / "net.py") is inside
    assert trust.covers(tmp_path / "other" / "net.py") is outside
    assert not trust.covers(Path("net.py")), "a relative path is in no folder"


@pytest.mark.parametrize(
    "given", ["true", 1, 0, {"a": 1}, ["models"], [3], [None], ["~nobody-of-that-name/x"]]
)
def test_what_is_no_answer_trusts_nothing(given: Any) -> None:
    with pytest.raises(UsageError, match="nothing is trusted"):
        read_trust(given)


def test_a_link_does_not_carry_trust_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "mine" / "link").symlink_to(tmp_path / "theirs")
    (tmp_path / "way").symlink_to(tmp_path / "mine")
    trust = read_trust([str(tmp_path / "way")])
    assert trust.covers(tmp_path / "mine" / "net.py")
    assert not trust.covers(tmp_path / "mine" / "link" / "net.py")
    assert not trust.covers(tmp_path / "mine" / ".." / "theirs" / "net.py")


def test_a_configuration_section_cannot_trust() -> None:
    before = read_options(None, {})
    assert update_options(before, {"trusted": True, "trust": {"everywhere": True}}) == before


def test_a_wrong_setting_does_not_trust(tmp_path: Path) -> None:
    from evokernel_server.features.lifecycle import _trust_alone

    options = {"settings": {"budget": "many"}}
    assert _trust_alone({**options, "trusted": True}) == Trust(everywhere=True)
    assert _trust_alone({**options, "trusted": "yes"}) == Trust()
    assert _trust_alone({**options}) == _trust_alone(7) == Trust()


def as_another_editor(capabilities: Any) -> types.ClientCapabilities:
    made: types.ClientCapabilities = capabilities()
    made.experimental = None
    return made


TELLTALE = """\
import pathlib
import torch

pathlib.Path(__file__).with_name("ran").touch()


# evokernel: x=f32[64,64]
def attend(x):
    return torch.softmax(x * 0.125, dim=-1) + 1.0
"""


def hostile_environment(workspace: Path) -> Path:
    """A Python in the workspace that notes that it was started."""
    python = workspace / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch '{workspace}/started'\nexit 1\n", "utf-8")
    python.chmod(0o755)
    return workspace / "started"


@pytest.mark.timeout(120)
async def test_opening_a_file_runs_neither_it_nor_the_python_beside_it(
    sessions: Any, workspace: Path, capabilities: Any, eventually: Any
) -> None:
    """With the real worker: nothing is configured, as in an editor that knows nothing of trust."""
    started = hostile_environment(workspace)
    path = workspace / "telltale.py"
    path.write_text(TELLTALE, "utf-8")
    editor = await sessions.start(trusted=None, client_capabilities=as_another_editor(capabilities))
    uri = editor.open(path)
    (hint,) = await eventually(lambda: editor.hints(uri))
    assert hint.label == "⚡ not trusted"
    editor.set_text(uri, TELLTALE + "# typed\n")
    editor.save(uri)
    status = await editor.command("evokernel.status")
    assert status["mode"] == "offline"
    assert "open the file's code actions, or set trusted" in status["text"]
    assert await editor.command("evokernel.observe", {"uri": uri})
    refused = await editor.command("evokernel.refineNow", {"uri": uri, "name": "softmax_0"})
    assert refused["status"] == "refused"
    assert not started.exists() and not (workspace / "ran").exists()


async def test_a_person_trusts_a_folder_by_a_code_action(
    sessions: Any, scripted: None, workspace: Path, capabilities: Any, eventually: Any
) -> None:
    editor = await sessions.start(trusted=None, client_capabilities=as_another_editor(capabilities))
    uri = editor.open(workspace / "model.py")
    action = await editor.action(uri, 0, f"Trust {workspace} and run its code")
    answer = await editor.run(action)
    assert answer["status"] == "trusted"
    assert await eventually(lambda: _offers(editor, uri))
    assert not [a for a in await editor.actions(uri, 0) if a.title.startswith("Trust ")]


async def _offers(editor: Any, uri: str) -> bool:
    return any("µs est." in str(hint.label) for hint in await editor.hints(uri))


async def test_only_the_listed_folders_run(
    sessions: Any, scripted: None, workspace: Path, tmp_path: Path, eventually: Any
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "model.py").write_text((workspace / "model.py").read_text("utf-8"), "utf-8")
    editor = await sessions.start(trusted=[str(workspace)])
    mine, theirs = editor.open(workspace / "model.py"), editor.open(other / "model.py")
    assert await eventually(lambda: _offers(editor, mine))
    assert [hint.label for hint in await editor.hints(theirs)] == ["⚡ not trusted"]


async def test_our_own_client_has_the_editors_trust(
    sessions: Any, scripted: None, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start(trusted=False)
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    assert not [a for a in await editor.actions(uri, 0) if a.title.startswith("Trust ")]
    answer = await editor.command("evokernel.trust", {"uri": uri})
    assert answer["status"] == "refused"
    assert [hint.label for hint in await editor.hints(uri)] == ["⚡ not trusted"]
