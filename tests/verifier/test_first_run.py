"""``evokernel doctor --npu`` against mocks of CANN's programs: every way a first run can go."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from evokernel_core.cli.first_run_report import cleaner
from evokernel_core.cli.main import cli
from evokernel_core.domain.first_run import StepState
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.backends import cann_tools
from evokernel_core.targets.ascendc.first_run.first_run import first_run, probes
from evokernel_core.targets.ascendc.first_run.first_run_host import parse_npu_smi
from evokernel_core.targets.ascendc.source import KERNEL as KERNEL_FILE
from evokernel_core.targets.ascendc.target import ascendc
from tests.tables import few
from tests.verifier import mock_cann

HOST = ["toolkit", "driver", "torch_npu", "versions"]
KERNEL = ["compile", "run", "compare", "profile", "read profile"]
NAMES = [*HOST, *(f"{word} ({probe})" for probe in ("add", "linear") for word in KERNEL)]
Doctor = Callable[..., dict[str, Any]]


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a machine without CANN."""
    monkeypatch.setattr(cann_tools, "_SYSTEM", tmp_path / "usr-local")
    for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", cann_tools.SWITCH):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "home").mkdir()
    return tmp_path


def asked(folder: Path, *options: str) -> Result:
    report = folder / "report.json"
    return CliRunner().invoke(cli, ["doctor", "--npu", "--report", str(report), *options])


def mocked(folder: Path, monkeypatch: pytest.MonkeyPatch, mock: str, **layout: Any) -> Path:
    """Makes this machine a mock host; returns its Python."""
    for name, value in mock_cann.install(folder / "cann", **layout).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ASCEND_MOCK", mock)
    return mock_cann.python_with_torch_npu(folder)


@pytest.fixture
def doctor(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Runs ``doctor --npu`` on a mock host; ``mock`` says what is wrong with it."""

    def run(mock: str = "", **layout: Any) -> dict[str, Any]:
        python = mocked(nothing, monkeypatch, mock, **layout)
        done = asked(nothing, "--interpreter", str(python), "--json")
        report: dict[str, Any] = json.loads(done.output)
        assert json.loads((nothing / "report.json").read_text()) == report
        assert [step["name"] for step in report["steps"]] == NAMES
        assert done.exit_code == (0 if report["ok"] else 1)
        return report

    return run


def states(report: dict[str, Any], state: str) -> list[str]:
    return [step["name"] for step in report["steps"] if step["state"] == state]


def step_of(report: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(step for step in report["steps"] if step["name"] == name)
    return found


@pytest.mark.usefixtures("warm_torch")
def test_a_machine_without_anything_says_what_was_looked_for(nothing: Path) -> None:
    done = asked(nothing)
    assert done.exit_code == 1
    text = (nothing / "report.txt").read_text()
    for words in (
        "no bisheng in the PATH",
        "usr-local/Ascend/cann",
        "~/Ascend/cann",
        "npu-smi is not on the PATH",
    ):
        assert words in text
        assert words in done.output
    assert "3 failed, 11 skipped" in text
    assert json.loads((nothing / "report.json").read_text())["ok"] is False


@pytest.mark.usefixtures("warm_torch")
@pytest.mark.parametrize("value", ["off", "/no/such/bisheng"])
def test_a_switch_that_is_set_is_named(value: str, nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cann_tools.SWITCH, value)
    asked(nothing)
    step = step_of(json.loads((nothing / "report.json").read_text()), "toolkit")
    assert step["found"] == f"no bisheng in {cann_tools.SWITCH}={value}"
    assert step["advice"] == f"Unset {cann_tools.SWITCH}, or let it name a bisheng."


def test_a_whole_host(doctor: Doctor) -> None:
    report = doctor()
    assert states(report, "ok") == NAMES
    assert step_of(report, "toolkit")["found"].startswith("CANN 9.0.0, ")
    assert step_of(report, "driver")["found"] == "2 x 910B3, npu-smi 25.2.0"
    assert step_of(report, "versions")["found"] == "torch_npu 2.9.0.post2 goes with CANN 9.0.0"
    add, linear = (step_of(report, f"read profile ({probe})") for probe in ("add", "linear"))
    assert add["details"]["pipes"] == pytest.approx({"V": 1.0, "S": 0.4, "MTE2": 2.5, "MTE3": 1.2})
    assert linear["details"]["pipes"]["M"] == pytest.approx(3.0)
    assert linear["details"]["cores"] == 20
    assert linear["details"]["own_rows"] == 3
    assert linear["details"]["kernel_details.csv"][0]["Mix Block Num"] == "40"


def test_an_older_host(doctor: Doctor) -> None:
    report = doctor("npu=2.8.0.post2 old-columns", version="8.5.0")
    assert states(report, "ok") == NAMES
    assert step_of(report, "versions")["details"] == {"cores_column": "Block Dim"}


WITHOUT_NPU = [f"{word} ({probe})" for probe in ("add", "linear") for word in KERNEL[1:]]
CASES = {
    "no-driver": (["driver"], [], "may open /dev/davinci0"),
    "ill": (["driver"], [], "NPU 0 (Alarm)"),
    "no-device": (["torch_npu"], WITHOUT_NPU, "ASCEND_RT_VISIBLE_DEVICES"),
    "no-torch_npu": (["torch_npu"], ["versions", *WITHOUT_NPU], "--interpreter"),
    "npu=2.11.0": (["versions"], [], "made for CANN 9.1.0, not 9.0.0"),
    "torch=2.8.0": (["versions"], [], "not made for torch 2.8.0+cpu"),
    "npu=2.5.1": (["versions"], [], "in no table of ours"),
    "npu=2.13.0": ([], ["versions"], "no CANN is published for torch_npu 2.13.0"),
    "unknown-chip": (["compile (add)", "compile (linear)"], WITHOUT_NPU, "Ascend910Z9 is not one"),
    "broken-compiler": (["compile (add)", "compile (linear)"], WITHOUT_NPU, "libascend_hal.so"),
    "crash": (
        ["run (add)", "run (linear)"],
        [name for name in WITHOUT_NPU if not name.startswith("run")],
        "error code:507015",
    ),
    "wrong": (["compare (add)", "compare (linear)"], [], "1 of 33280 elements differ, the first at [3, 232]"),
    "foreign": (["read profile (add)", "read profile (linear)"], [], "aclnnAdd_AddAiCore_Add besides"),
    "no-tables": (["read profile (add)", "read profile (linear)"], [], "left no step_trace_time.csv"),
}


OF_THE_HOST = ("ill", "torch=2.8.0", "npu=2.5.1", "npu=2.13.0")
"""After these the kernels' steps go as after others that are no reason to stop."""


@pytest.mark.parametrize("mock", OF_THE_HOST)
def test_what_is_wrong_with_the_host_is_said(
    mock: str, nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, skipped, words = CASES[mock]
    steps = list(islice(first_run(str(mocked(nothing, monkeypatch, mock))), len(HOST)))
    assert [step.name for step in steps] == HOST
    assert [step.name for step in steps if step.state is StepState.FAILED] == failed
    assert [step.name for step in steps if step.state is StepState.SKIPPED] == skipped
    assert words in " ".join(step.found for step in steps)
    assert all(step.state is StepState.OK or step.advice.endswith(".") for step in steps)


@few("mock", CASES, keep=tuple(place for place, mock in enumerate(CASES) if mock not in OF_THE_HOST))
def test_what_is_wrong_is_said_and_costs_what_needs_it(mock: str, doctor: Doctor, nothing: Path) -> None:
    failed, skipped, words = CASES[mock]
    report = doctor(mock)
    assert states(report, "failed") == failed
    assert states(report, "skipped") == skipped
    assert words in (nothing / "report.txt").read_text()
    for step in report["steps"]:
        assert (step["state"] == "ok") or step["advice"].endswith("."), step
    if mock == "foreign":  # what is not understood goes into the report
        rows = step_of(report, "read profile (add)")["details"]["kernel_details.csv"]
        assert rows[-1]["Name"] == "aclnnAdd_AddAiCore_Add"


def test_a_host_with_cann_and_no_npu_still_compiles(doctor: Doctor) -> None:
    report = doctor("no-torch_npu", driver=False)
    assert states(report, "ok") == ["toolkit", "compile (add)", "compile (linear)"]
    assert states(report, "failed") == ["driver", "torch_npu"]


def test_the_report_holds_nothing_private(
    doctor: Doctor, nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOKERNEL_API_KEY", "sk-very-secret")
    monkeypatch.setenv("HOME", str(nothing))  # where the toolkit and the interpreter are
    monkeypatch.setenv("SOME_TOKEN", "ACL stream synchronize")
    report = doctor("crash")
    for path in (nothing / "report.json", nothing / "report.txt"):
        text = path.read_text()
        assert str(nothing) not in text
        assert "sk-very-secret" not in text
        assert "ACL stream synchronize" not in text
    assert step_of(report, "toolkit")["details"]["bisheng"].startswith("~/cann/")


@pytest.mark.parametrize(
    ("words", "cleaned"),
    [
        ("/home/ann/x and /home/ann", "~/x and ~"),
        ("/home/anna/x", "/home/anna/x"),
        ("by ann", "by ***"),
        ("token=abcdefgh.", "token=***."),
        ("nothing", "nothing"),
    ],
)
def test_private_words(words: str, cleaned: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    clean = cleaner({"HOME": "/home/ann", "MY_TOKEN": "abcdefgh", "SHORT_KEY": "off"})
    assert clean(words) == cleaned


def test_the_table_of_npu_smi(nothing: Path) -> None:
    program = mock_cann.install(nothing / "cann")
    text = os.popen(f"{program['ASCEND_HOME_PATH']}/tools/npu-smi info").read()
    assert parse_npu_smi(text) == (("910B3", "910B3"), "25.2.0", ())
    assert parse_npu_smi("") == ((), "of unknown version", ())


def test_the_kernels_start_both_kinds_of_cores() -> None:
    sources = {probe.name: probe.source(ascendc(load_chip())).files[KERNEL_FILE] for probe in probes()}
    assert "__global__ __vector__ void first_add_kernel" in sources["add"]
    assert "__mix__(1, 2) void first_linear_kernel" in sources["linear"]
