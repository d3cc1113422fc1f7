"""A workspace wants its code to run because a person opened a file of it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evokernel_server.features import lifecycle

from tests.attacks import Attack, each
from tests.server.conftest import MODEL

pytestmark = [pytest.mark.timeout(120)]

CALLS = "from evokernel_kernels import softmax_1\n"
STOLEN = "stolen"
"""What each attack leaves behind where it succeeds."""


def _touch(workspace: Path) -> str:
    return f"open({str(workspace / STOLEN)!r}, 'w').close()\n"


def in_the_file(workspace: Path) -> None:
    _model(workspace, _touch(workspace))


def in_main(workspace: Path) -> None:
    _model(workspace, f"if __name__ == '__main__':\n    {_touch(workspace)}")


def in_get_inputs(workspace: Path) -> None:
    _model(workspace, f"def get_inputs():\n    {_touch(workspace)}    return []\n")


def in_an_environment(workspace: Path) -> None:
    for name in (".venv", "venv", "env"):
        _program(workspace, workspace / name / "bin" / "python")


def in_a_pixi_environment(workspace: Path) -> None:
    _program(workspace, workspace / ".pixi" / "envs" / "default" / "bin" / "python")


def as_a_conda_prefix(workspace: Path) -> None:
    (workspace / "environment.yml").write_text(f"prefix: {workspace}/conda\n", "utf-8")
    _program(workspace, workspace / "conda" / "bin" / "python")


def as_our_own_module(workspace: Path) -> None:
    for name in ("evokernel_core/__init__.py", "evokernel_core/synthesis/worker.py"):
        _python(workspace, name)


def as_a_library(workspace: Path) -> None:
    for name in ("json.py", "attrs.py", "cattrs.py", "sqlite3.py", "sitecustomize.py", "logging.py"):
        _python(workspace, name)


def as_settings(workspace: Path) -> None:
    _program(workspace, workspace / "python")
    wanted = {"trusted": True, "settings": {"interpreter": str(workspace / "python")}}
    section = {"evokernel.trusted": True, "evokernel.interpreter": str(workspace / "python")}
    for name in (".evokernel/settings.json", ".evokernel.json", "evokernel.json"):
        _write(workspace / name, json.dumps(wanted))
    for name in (".vscode/settings.json", ".zed/settings.json"):
        _write(workspace / name, json.dumps(section))
    _write(
        workspace / "pyproject.toml",
        f"[tool.evokernel]\ntrusted = true\ninterpreter = '{workspace}/python'\n",
    )
    _write(workspace / ".env", f"EVOKERNEL_WORKER_COMMAND={workspace}/python\n")


def as_a_kernel_package(workspace: Path) -> None:
    _model(workspace, CALLS)
    folder = workspace / "evokernel_kernels"
    for name in ("__init__.py", "guards.py", "softmax_1/__init__.py", "softmax_1/call.py"):
        _python(workspace, f"evokernel_kernels/{name}")
    _write(folder / "softmax_1" / "kernel.json", json.dumps({"vendor": True, "task": {}, "region": {}}))


def _model(workspace: Path, code: str) -> None:
    _write(workspace / "model.py", f"import torch\n{code}\n{MODEL}")


def _python(workspace: Path, name: str) -> None:
    _write(workspace / name, _touch(workspace))


def _program(workspace: Path, path: Path) -> None:
    _write(path, f"#!/bin/sh\ntouch '{workspace}/{STOLEN}'\nexit 86\n")
    path.chmod(0o755)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


RUNS = "to run when its file is opened"
PLANTED = [
    Attack("code-of-the-file", f"its own top level {RUNS}", "it is only parsed", in_the_file),
    Attack("main-block", f"the __main__ block {RUNS}", "it is only parsed", in_main),
    Attack("get-inputs", f"get_inputs {RUNS}", "it is only parsed", in_get_inputs),
    Attack("venv", f"a Python beside the file {RUNS}", "no interpreter is looked for", in_an_environment),
    Attack("pixi", f"a Python of pixi's {RUNS}", "no interpreter is looked for", in_a_pixi_environment),
    Attack("conda", f"a Python that environment.yml names {RUNS}", "the file is not read", as_a_conda_prefix),
    Attack(
        "our-module", "a folder evokernel_core to be taken for ours", "ours comes first", as_our_own_module
    ),
    Attack("library", "a json.py to be taken for the library", "the library comes first", as_a_library),
    Attack("settings", "its settings files to trust it", "they are not read", as_settings),
    Attack("package", f"a kernel package {RUNS}", "its manifest alone is read", as_a_kernel_package),
]


@each(PLANTED)
async def test_what_is_planted_does_not_run(
    attack: Attack, sessions: Any, workspace: Path, capabilities: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server runs in the workspace, as Neovim starts it, and everything that can be asked for is."""
    attack.given(workspace)
    monkeypatch.chdir(workspace)
    editor = await sessions.start(trusted=None, client_capabilities=_foreign(capabilities))
    await _ask_for_everything(editor, workspace / "model.py")
    assert not (workspace / STOLEN).exists(), attack.wants


ASKED = (
    "generate", "useVendor", "preview", "apply", "revert", "refineNow", "restorePackage", "observe", "status",
    "insertShapes", "reject", "snooze", "showDiff", "cancel", "review", "variants",
    "compare", "whyNot", "timeline",
)  # fmt: skip


async def _ask_for_everything(editor: Any, path: Path) -> None:
    uri = editor.open(path)
    editor.set_text(uri, editor.texts[uri] + "# typed\n")
    editor.save(uri)
    await editor.hints(uri)
    await editor.actions(uri, 0)
    known = {"uri": uri, "regionId": "r", "name": "softmax_1", "symbol": ""}
    for name in ASKED:
        with contextlib.suppress(Exception):
            await editor.command(f"evokernel.{name}", known)
    await editor.hints(uri)


def _foreign(capabilities: Callable[..., Any]) -> Any:
    made = capabilities()
    made.experimental = None
    return made


SAYS_IT_IS_TRUSTED = [
    Attack("pushed", "a pushed configuration to trust it", "trust comes with initialize alone",
           {"evokernel": {"trusted": True, "trust": True}}),
    Attack("pushed-flat", "flat settings to trust it", "trust comes with initialize alone",
           {"evokernel": {"evokernel.trusted": True}, "trusted": True}),
    Attack("pushed-options", "a whole options object to be taken over", "only settings are taken over",
           {"evokernel": {"settings": {"interpreter": "/bin/sh"}, "trusted": ["/"], "everywhere": True}}),
]  # fmt: skip


@each(SAYS_IT_IS_TRUSTED)
async def test_a_configuration_does_not_trust(attack: Attack, sessions: Any, workspace: Path) -> None:
    from lsprotocol import types

    in_the_file(workspace)
    editor = await sessions.start(trusted=None)
    uri = editor.open(workspace / "model.py")
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(attack.given))
    editor.save(uri)
    assert [hint.label for hint in await editor.hints(uri)] == ["⚡ not trusted"]
    assert not (workspace / STOLEN).exists()


def test_a_bad_option_does_not_open_the_door() -> None:
    """Wants an error in another option to leave trust at its default; the default is none."""
    assert not lifecycle._trust_alone({"trusted": "true", "settings": {"budget": []}})


async def test_a_link_into_a_trusted_folder(sessions: Any, workspace: Path, tmp_path: Path) -> None:
    """Wants a file outside to run by a link inside a trusted folder; its real place decides."""
    outside = tmp_path / "outside"
    outside.mkdir()
    in_the_file(outside)
    (workspace / "linked").symlink_to(outside)
    editor = await sessions.start(trusted=[str(workspace)])
    uri = editor.open(workspace / "linked" / "model.py")
    editor.save(uri)
    assert [hint.label for hint in await editor.hints(uri)] == ["⚡ not trusted"]
    assert not (outside / STOLEN).exists()


async def test_a_path_that_climbs_out_of_a_trusted_folder(
    sessions: Any, workspace: Path, tmp_path: Path
) -> None:
    """Wants ``trusted/../outside/model.py`` to count as trusted; the path is resolved first."""
    from lsprotocol import types

    outside = tmp_path / "outside"
    outside.mkdir()
    in_the_file(outside)
    editor = await sessions.start(trusted=[str(workspace)])
    for way in ("/../outside/model.py", "/%2e%2e/outside/model.py", "/.%2E%2Foutside/model.py"):
        uri = workspace.as_uri() + way
        item = types.TextDocumentItem(uri, "python", 1, (outside / "model.py").read_text("utf-8"))
        editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        assert [hint.label for hint in await editor.hints(uri)] == ["⚡ not trusted"]
    assert not (outside / STOLEN).exists()


@pytest.mark.thorough
async def test_a_python_of_another_folder_for_a_trusted_file(
    sessions: Any, workspace: Path, tmp_path: Path, eventually: Any
) -> None:
    """Wants a Python in an untrusted workspace to run a trusted file; nobody looks for it."""
    hostile, mine = tmp_path / "hostile", tmp_path / "mine"
    hostile.mkdir()
    mine.mkdir()
    in_an_environment(hostile)
    _write(mine / "model.py", MODEL)
    sessions.workspace = hostile
    editor = await sessions.start(trusted=[str(mine)])
    uri = editor.open(mine / "model.py")
    assert await eventually(lambda: _answered(editor, uri))
    assert not (hostile / STOLEN).exists()


async def _answered(editor: Any, uri: str) -> bool:
    status = await editor.command("evokernel.status")
    return bool(status["interpreter"]) and status["mode"] not in ("offline", "analysing")


def test_the_worker_takes_no_module_of_the_folder_it_starts_in(tmp_path: Path) -> None:
    """Wants ``python -m`` to find the workspace's modules first; ``-P`` keeps the folder off the path."""
    from evokernel_server.jobs.worker import worker_command

    os.environ.pop("EVOKERNEL_WORKER_COMMAND", None)
    assert "-P" in worker_command()
