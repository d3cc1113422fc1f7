"""bisheng as a second compile gate, found on the machine; the compiler is a mock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evokernel_core import __version__
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.verdict import GateName, LatencySource
from evokernel_core.targets.ascendc.backends import bisheng, cann_tools
from evokernel_core.targets.ascendc.backends.bisheng import WithBisheng, find_gate
from evokernel_core.targets.ascendc.backends.cann_tools import find_toolkit
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import KERNEL, TILING, ascendc_source
from evokernel_core.verifier.factory import name_of, open_backend
from evokernel_core.verifier.local import LocalVerifier
from tests.verifier import mock_cann

pytestmark = pytest.mark.usefixtures("kernel_home")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine without CANN below this folder."""
    monkeypatch.setattr(cann_tools, "_SYSTEM", tmp_path / "usr-local")
    for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", cann_tools.SWITCH):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    find_gate.cache_clear()
    yield tmp_path
    find_gate.cache_clear()


@pytest.fixture
def toolkit(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toolkit whose set_env.sh was called."""
    root = machine / "cann"
    environment = mock_cann.install(root)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(root))
    monkeypatch.setenv("PATH", environment["PATH"] + os.pathsep + os.environ["PATH"])
    return root


def test_without_cann_there_is_no_gate(machine: Path) -> None:
    assert find_toolkit() is None
    assert isinstance(open_backend("twin", "ascend910b1"), TwinBackend)
    assert name_of("twin") == f"twin {__version__}"


@pytest.mark.parametrize(
    "place",
    [
        "usr-local/Ascend/cann",
        "usr-local/Ascend/ascend-toolkit/latest",
        "home/Ascend/cann",
        "home/Ascend/ascend-toolkit/latest",
    ],
)
def test_default_folders_are_found_without_set_env(place: str, machine: Path) -> None:
    mock_cann.install(machine / place, "9.1.0")
    found = find_toolkit()
    assert found is not None
    assert (found.root, found.version) == (machine / place, "9.1.0")
    environment = found.environment({"PATH": "/bin"})
    assert environment["ASCEND_HOME_PATH"] == str(machine / place)
    assert environment["PATH"].endswith(f"{os.pathsep}/bin")
    assert environment["LD_LIBRARY_PATH"] == str(machine / place / "lib64")


def test_what_set_env_said_stays(toolkit: Path) -> None:
    found = find_toolkit()
    assert found is not None
    before = {"ASCEND_HOME_PATH": "/elsewhere", "PATH": "/bin"}
    assert found.environment(before) == before


@pytest.mark.parametrize(
    ("value", "found"), [("off", False), ("OFF", False), ("/no/such/bisheng", False), ("", True)]
)
def test_the_switch(value: str, found: bool, toolkit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cann_tools.SWITCH, value)
    assert (find_toolkit() is not None) == found


def test_a_toolkit_that_tells_no_version(toolkit: Path) -> None:
    for file in toolkit.glob("*-linux/*"):
        file.unlink()
    assert name_of("twin") == f"twin {__version__} + bisheng of unknown version"


def test_the_twin_asks_bisheng_too(
    toolkit: Path, source_of: Callable[[str], KernelSource], task_of: Any
) -> None:
    backend = open_backend("twin", "ascend910b1")
    assert isinstance(backend, WithBisheng)
    assert backend.name == name_of("twin") == f"twin {__version__} + bisheng 9.0.0"
    assert backend.latency_source is LatencySource.MODELLED
    assert backend.build(task_of("add"), source_of("add")).library.exists()


def test_what_only_bisheng_refuses_fails_the_gate_with_its_words(
    toolkit: Path, source_of: Callable[[str], KernelSource], task_of: Any, numpy_reference: Any
) -> None:
    good = source_of("add")
    text = good.files[KERNEL].replace("class KernelAdd {", "class OnlyTheTwinKnows;\nclass KernelAdd {")
    line = 1 + text[: text.index("OnlyTheTwinKnows")].count("\n")
    source = ascendc_source(good.files[TILING], text, good.strategy)
    verdict = LocalVerifier(numpy_reference, open_backend("twin", "ascend910b1")).verify(
        task_of("add"), source
    )
    gate = verdict.failed_gate
    assert gate is not None
    assert (gate.gate, gate.code) == (GateName.COMPILE, "compile-bisheng")
    assert f"op_kernel.cpp:{line}: use of undeclared identifier" in gate.feedback
    assert verdict.verifier.endswith("+ bisheng 9.0.0")


def test_what_both_accept_is_judged_as_before(
    toolkit: Path, source_of: Callable[[str], KernelSource], task_of: Any, numpy_reference: Any
) -> None:
    verifier = LocalVerifier(numpy_reference, open_backend("twin", "ascend910b1"))
    verdict = verifier.verify(task_of("relu"), source_of("relu"))
    assert verdict.feasible, verdict.failed_gate


def test_a_compiler_that_does_not_work_judges_nothing(
    toolkit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASCEND_MOCK", "broken-compiler")
    assert isinstance(open_backend("twin", "ascend910b1"), TwinBackend)
    assert "bisheng does not work and is left out" in capsys.readouterr().err


def test_a_compiler_that_hangs_is_ended(
    toolkit: Path, monkeypatch: pytest.MonkeyPatch, source_of: Callable[[str], KernelSource]
) -> None:
    found = find_toolkit()
    assert found is not None
    found.bisheng.write_text("#!/bin/sh\nsleep 60\n")
    monkeypatch.setattr(bisheng, "WALL_SECONDS", 0.3)
    with pytest.raises(Exception, match="more than 0 s"):
        bisheng.compile_problem(found, {"op_kernel.cpp": bisheng.PROBE})
