"""Targets are chosen by name: on the command line, by agents and in an editor's settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner

from evokernel_core import targets
from evokernel_core.cli.main import cli
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.settings import Settings

OTHER = evolve(targets.TRITON, target="other", names=("kernel.py",), devices=lambda: ("h200",), title="Other")


MANIFEST = Path(__file__).parent.parent / "vscode-extension" / "package.json"
KNOWN = (targets.AUTO, *targets.TARGETS)


def test_the_editor_lists_the_targets() -> None:
    properties = json.loads(MANIFEST.read_text())["contributes"]["configuration"]["properties"]
    assert tuple(properties["evokernel.target"]["enum"]) == KNOWN
    assert properties["evokernel.target"]["default"] == Settings().target == targets.AUTO


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {**targets.KERNEL_FILES, OTHER.target: OTHER}
    monkeypatch.setattr(targets, "KERNEL_FILES", files)
    monkeypatch.setattr(targets, "TARGETS", tuple(files))


@pytest.mark.parametrize(
    ("device", "asked", "name"),
    [
        ("ascend910b1", "auto", "ascendc"),
        ("ascend910b4", "ascendc", "ascendc"),
        ("ascend910b1", "triton", "triton"),
        ("h200", "auto", "other"),
        ("h200", "other", "other"),
    ],
)
def test_a_target_is_named_or_the_one_of_the_device(device: str, asked: str, name: str) -> None:
    assert targets.target_for(device, asked) == name


@pytest.mark.parametrize(
    ("device", "asked", "words"),
    [
        ("h200", "cuda", r"no target called 'cuda'; choose one of: auto, ascendc, triton, other\."),
        ("h300", "ascendc", r"no chip called 'h300'; choose one of: ascend910b1, "),
        ("h200", "ascendc", r"h200 in AscendC are not supported yet; .*910b4, or the target other"),
        ("h300", "auto", r"no chip called 'h300'; choose one of: ascend910b1, .*, h200\."),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(device: str, asked: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        targets.author_for(device, asked)


@pytest.mark.parametrize("command", [("synth", "model.py"), ("mcp",), ("doctor",), ("bench", ".")])
def test_commands_take_a_target(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("")
    done = CliRunner().invoke(
        cli, [command[0], "--target", "cuda", *(str(tmp_path / p) for p in command[1:])]
    )
    assert "There is no target called 'cuda'; choose one of: auto, ascendc" in str(done.exception)
