"""Where a file does not say its inputs: the editor offers to run something, and notes what was seen."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from evokernel_server.features.inputs import parameters_of
from lsprotocol import types

from evokernel_core.capture.observations import Observation, ObservationStore, Observed
from evokernel_core.capture.observed_text import comment_of
from evokernel_core.capture.suggest import command_for, own_program

TEXT = """import torch
from torch import nn


def scaled(x, factor):
    return torch.relu(x) * factor


class Net(nn.Module):
    def __init__(self, config):
        super().__init__()

    def forward(self, x):
        return torch.relu(x) + 1.0
"""
TENSOR = {"tensor": {"shape": [8, 128], "dtype": "float16", "device": "cpu"}}
LARGE = {"tensor": {"shape": [2048, 4096], "dtype": "float16", "device": "cpu"}}
CONFIG = {"object": {"class": {"module": "m", "qualname": "Config", "file": "", "root": ""}, "state": []}}


def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"args": list(args), "kwargs": kwargs}


SCALED = Observation("scaled", None, call(LARGE, 2.5))
NET = Observation("Net", {**call(CONFIG), "class": {}}, call(TENSOR))


async def test_the_editor_never_inserts_a_guess(
    sessions: Any, workspace: Path, eventually: Callable[..., Any]
) -> None:
    path = workspace / "net.py"
    path.write_text(TEXT)
    (workspace / "train.py").write_text("from net import Net\n")
    editor = await sessions.start(settings={"interpreter": sys.executable})
    uri = editor.open(path)

    async def titles(words: str) -> list[str]:
        return [item.title for item in await editor.actions(uri, editor.line_of(uri, words))]

    first = await eventually(lambda: titles("return torch.relu(x) *"))
    assert first == ["Run something that uses this model"]
    answer = await editor.run(await editor.action(uri, editor.line_of(uri, "class Net"), first[0]))
    program, *rest = shlex.split(answer["commandLine"])
    assert Path(program).name == "evokernel"
    assert rest == ["observe", "--", sys.executable, "train.py"]
    assert answer["folder"] == str(workspace)
    refused = await editor.command("evokernel.insertShapes", {"uri": uri, "symbol": "Net"})
    assert refused["status"] == "refused"
    assert "get_inputs()" in refused["message"]

    found = Observed(os.path.realpath(path), "python train.py", (SCALED, NET))
    ObservationStore().add([found])

    async def offers() -> bool:
        return "Insert input shapes for scaled" in await titles("def scaled")

    await eventually(offers)

    async def estimated() -> bool:
        return any("µs" in str(hint.label) for hint in await editor.hints(uri))

    await eventually(estimated)  # the server heard of the observation by itself
    assert not any("Insert input shapes" in title for title in await titles("class Net"))
    action = await editor.action(uri, editor.line_of(uri, "def scaled"), "Insert input shapes for scaled")
    assert isinstance(action.edit, types.WorkspaceEdit)
    (change,) = action.edit.document_changes or ()
    assert isinstance(change, types.TextDocumentEdit)
    assert [edit.new_text for edit in change.edits] == ["# evokernel: x=f16[2048,4096], factor=2.5\n"]


async def test_a_client_without_our_extension_is_told_the_command(
    sessions: Any, workspace: Path, eventually: Callable[..., Any]
) -> None:
    from tests.server.conftest import capabilities

    path = workspace / "net.py"
    path.write_text(TEXT + "\n\nif __name__ == '__main__':\n    open('data')\n")
    plain = capabilities()
    plain.experimental = None
    editor = await sessions.start(client_capabilities=plain)
    uri = editor.open(path)
    action = await eventually(lambda: editor.actions(uri, editor.line_of(uri, "class Net")))
    await editor.run(action[0])
    shown = await eventually(lambda: editor.client.messages)
    assert re.search(r"evokernel observe -- \S*python\S* net\.py", shown[0].message)


@pytest.mark.parametrize(
    ("observation", "init", "names", "comment"),
    [
        (SCALED, (), ("x", "factor"), "x=f16[2048,4096], factor=2.5"),
        (evolve(NET, built=call(64, bias=True)), ("n", "bias"), ("x",), "n=64, bias=True, x=f16[8,128]"),
        (evolve(NET, built=call({"tuple": [1]})), ("n",), ("x",), "n=(1,), x=f16[8,128]"),
        (NET, ("config",), ("x",), None),
        (evolve(SCALED, call=call({"list": [TENSOR]})), (), ("x",), None),
        (evolve(SCALED, call=call(TENSOR, TENSOR)), (), ("x",), None),
        (evolve(NET, built=call(64)), ("x",), ("x",), None),
    ],
)
def test_a_comment_says_what_was_observed_or_nothing(
    observation: Observation, init: tuple[str, ...], names: tuple[str, ...], comment: str | None
) -> None:
    assert comment_of(observation, init, names) == comment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(a, b: int = 3, *args, c=(1, 2), **kw):\n    pass\n", ((), ("a", "b", "c"))),
        ("class A:\n    def __init__(self, n):\n        pass\n\n    def forward(self, x, /, y=[1, 2]): ...",
         (("n",), ("x", "y"))),
        ("    @torch.no_grad()\n    def f(x):\n        return x\n", ((), ("x",))),
        ("class A(", ((), ())),
    ],
)  # fmt: skip
def test_parameters_are_read_from_the_text(text: str, expected: Any) -> None:
    assert parameters_of(text) == expected


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"net.py": "if __name__ == '__main__':\n    pass\n"}, "python net.py"),
        ({"net.py": "", "scripts/train_gpt.py": "from net import Net\n"}, "python scripts/train_gpt.py"),
        ({"net.py": "", "other.py": "import net\nif __name__ == '__main__':\n    pass\n"}, "python other.py"),
        ({"net.py": "", "tests/test_net.py": "import net\n"}, "python -m pytest tests/test_net.py"),
        ({"net.py": "", "tests/test_x.py": "import y\n"}, "python -m pytest"),
        ({"net.py": "", "my net.py": "import nothing\n"}, "python PROGRAM.py"),
    ],
)
def test_the_likeliest_program_is_suggested(tmp_path: Path, files: dict[str, str], line: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert command_for(tmp_path / "net.py", files["net.py"]) == f"evokernel observe -- {line}"


@pytest.mark.parametrize(("on_path", "name"), [(True, "evokernel"), (False, "{bin}/evokernel")])
def test_a_terminal_is_told_where_this_evokernel_is(
    on_path: bool, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "evokernel"
    program.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path) if on_path else "/nowhere")
    assert own_program() == name.format(bin=tmp_path)
