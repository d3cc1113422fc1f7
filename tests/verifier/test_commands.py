"""``evokernel verify`` on a real package with a real PyTorch, and ``evokernel doctor``."""

from __future__ import annotations

import json
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner

from evokernel_core.capture import interpreter
from evokernel_core.cli import doctor
from evokernel_core.cli.main import cli
from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.errors import (
    InterpreterUnavailable,
    PackageChanged,
    UsageError,
    VerifierUnavailable,
)
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.package.write import Placed
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.targets.packages import write_package
from evokernel_core.twin import compiler
from evokernel_core.verifier.local import LocalVerifier

pytestmark = pytest.mark.usefixtures("kernel_home")

Tasks = Callable[[str], KernelTask]
Sources = Callable[[str], KernelSource]


@pytest.fixture
def package(tmp_path: Path, task_of: Tasks, source_of: Sources, numpy_reference: Any) -> Path:
    task, source = task_of("relu"), source_of("relu")
    verdict = LocalVerifier(numpy_reference, TwinBackend(ascendc(load_chip()))).verify(task, source)
    return write_package(
        tmp_path, task, Placed("m.py", "f", CallSite("", "torch.relu(x)", parameters=("x",))), source, verdict
    )


def test_a_package_is_verified_again(package: Path) -> None:
    done = CliRunner().invoke(cli, ["verify", str(package), "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    verdict = json.loads(done.output)
    assert [gate["status"] for gate in verdict["gates"]] == ["passed"] * 4
    assert verdict["latency"]["source"] == "modelled"


def test_a_package_that_someone_broke_fails(package: Path) -> None:
    kernel = package / "op_kernel.cpp"
    kernel.write_text(
        kernel.read_text().replace("AscendC::Relu(y, x, length);", "AscendC::Abs(y, x, length);")
    )
    done = CliRunner().invoke(cli, ["verify", str(package)])
    assert isinstance(done.exception, PackageChanged)
    assert "op_kernel.cpp was changed after it was verified" in str(done.exception)
    assert "verify --changed" in str(done.exception)
    done = CliRunner().invoke(cli, ["verify", "--changed", str(package)])
    assert done.exit_code == 1
    assert "correctness: failed" in done.output
    assert "differs from PyTorch" in done.output


def test_a_verdict_is_replayed(package: Path) -> None:
    first = json.loads(CliRunner().invoke(cli, ["verify", str(package), "--json"]).output)
    again = CliRunner().invoke(cli, ["verify", str(package), "--json", "--trust", "--replay", first["draw"]])
    second = json.loads(again.output)
    assert (second["draw"], second["shapes"], second["replayed"]) == (first["draw"], first["shapes"], True)
    assert not first["replayed"]


def test_a_folder_that_is_no_package(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["verify", str(tmp_path)])
    assert isinstance(done.exception, UsageError)


def test_cann_without_cann(package: Path) -> None:
    done = CliRunner().invoke(cli, ["verify", str(package), "--backend", "cann"])
    assert isinstance(done.exception, VerifierUnavailable)


def test_doctor_finds_everything_here() -> None:
    done = CliRunner().invoke(cli, ["doctor", "--prepare", "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert [check["name"] for check in report["checks"]] == [
        "compiler",
        "interpreter",
        "twin",
        "memory",
        "verifier",
        "sandbox",
        "triton",
        "cuda",
        "extras",
    ]
    assert all(check["ok"] for check in report["checks"])


def test_doctor_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_choices", lambda: iter(()))
    compiler.detect_compiler.cache_clear()
    try:
        done = CliRunner().invoke(cli, ["doctor"])
    finally:
        monkeypatch.undo()
        compiler.detect_compiler.cache_clear()
    assert done.exit_code == 1
    assert "failed" in done.output
    assert "install g++ 11" in done.output


def test_an_interpreter_without_torch(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["doctor", "--interpreter", "/usr/bin/false", "--json"])
    checks = {check["name"]: check for check in json.loads(done.output)["checks"]}
    assert done.exit_code == 1
    assert not checks["interpreter"]["ok"]
    assert checks["interpreter"]["advice"]


@pytest.mark.parametrize(
    ("named", "asked"),
    [("/usr/bin/false", "/usr/bin/false"), ("", sys.executable)],
    ids=["named", "not named"],
)
def test_the_python_of_the_npu_is_the_named_one_or_this_one(
    named: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no Python with torch is known: the one that is named is asked, and says itself what it lacks."""

    def unknown(*_: object) -> NoReturn:
        raise InterpreterUnavailable("There is none: name one.")

    monkeypatch.setattr(interpreter, "find_interpreter", unknown)
    assert doctor.npu_python(named) == asked


def test_a_torch_that_is_too_old_is_one_sentence_everywhere(tmp_path: Path) -> None:
    venv.create(tmp_path / "old", with_pip=False)
    (packages,) = (tmp_path / "old").glob("lib/python*/site-packages")
    (packages / "torch.py").write_text("__version__ = '2.4.1'")
    interpreter = str(tmp_path / "old" / "bin" / "python")
    done = CliRunner().invoke(cli, ["doctor", "--interpreter", interpreter, "--json"])
    checks = {check["name"]: check for check in json.loads(done.output)["checks"]}
    assert done.exit_code == 1
    assert "torch 2.4.1" in checks["interpreter"]["found"]
    assert checks["interpreter"]["advice"] == "install a newer torch or set another interpreter."
    model = tmp_path / "model.py"
    model.write_text("import torch\n\n# evokernel: x=f32[4]\ndef f(x):\n    return x.exp()\n")
    done = CliRunner().invoke(cli, ["synth", str(model), "--interpreter", interpreter])
    assert done.exit_code == 1
    assert "torch 2.4.1" in str(done.exception) + done.output
    assert "Traceback" not in done.output


def test_a_verifier_that_is_away() -> None:
    done = CliRunner().invoke(cli, ["doctor", "--verifier-url", "http://127.0.0.1:9", "--json"])
    checks = {check["name"]: check for check in json.loads(done.output)["checks"]}
    assert done.exit_code == 1
    assert not checks["verifier"]["ok"]
    assert checks["verifier"]["advice"]


def test_a_memory_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.db").mkdir()
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path))
    check = doctor.check_memory()
    assert not check.ok
    assert "EVOKERNEL_HOME" in check.advice


def test_the_memory_check_leaves_no_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path))
    assert doctor.check_memory().ok
    assert list(tmp_path.iterdir()) == []
