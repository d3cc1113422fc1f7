"""The kernels shown in docs are those that the proposer drafts today; they pass the audit and compile."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from evokernel_core.cli.main import cli
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.twin.build import build_kernel

FOLDER = Path(__file__).parent.parent / "docs" / "kernels"


@pytest.fixture(scope="module")
def emit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("emit", FOLDER / "emit.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_kernels_in_docs_are_current(emit: ModuleType) -> None:
    for path, text in emit.texts():
        assert path.read_text() == text, f"run python docs/kernels/emit.py: {path} is not what is emitted"


def test_the_example_of_the_page_is_current(emit: ModuleType) -> None:
    assert emit.PAGE.read_text() == emit.page(), "run python docs/kernels/emit.py"


def test_the_kernels_in_docs_pass_the_audit_and_compile(emit: ModuleType) -> None:
    chip = load_chip("ascend910b1")
    for make in emit.TASKS:
        task = make()
        source = write(task, initial(task, chip), chip)
        assert audit(task, source).status is GateStatus.PASSED
        build_kernel(source)


def test_the_example_of_the_twin_prints_what_its_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (FOLDER.parent / "twin.md").read_text()
    example = page[page.index("## An example") : page.index("## What is covered")]
    source, launch, said = (match[1] for match in re.finditer(r"```\w*\n(.*?)```", example, re.DOTALL))
    monkeypatch.chdir(tmp_path)
    Path("scale.cpp").write_text(source)
    Path("launch.json").write_text(launch)
    command = re.search(r"`evokernel (twin run [^`]*)`", example)
    assert command
    done = CliRunner().invoke(cli, command[1].split())
    assert (done.exit_code, done.stdout.split()) == (1, said.split())
