"""``evokernel doctor`` about Triton and CUDA, with programs that answer as an interpreter or a driver may."""

from __future__ import annotations

from pathlib import Path

import pytest

from evokernel_core.domain.check import Check
from evokernel_core.hardware.gpu import present
from evokernel_core.targets.triton import checks

H200 = "NVIDIA H200, 580.95.05, 345, 1980, 76.52"
DARK = "NVIDIA H200, 580.95.05, [N/A], [N/A], [N/A]"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH."""
    monkeypatch.setattr(present, "program_on_path", lambda name: _there(tmp_path / name))
    return tmp_path


def _there(path: Path) -> str | None:
    return str(path) if path.exists() else None


def _write(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def _python(folder: Path, triton: str, torch: str) -> str:
    """A Python whose Triton and torch answer so."""
    return _write(folder / "python", f'case "$2" in *triton*) {triton};; *) {torch};; esac')


TRITON, NONE = "echo 3.6.0", "echo \"ModuleNotFoundError: No module named 'triton'\" >&2; exit 1"
BROKEN = "echo 'ImportError: GLIBC_2.32 not found' >&2; exit 1"


CLOCKS = "driver 580.95.05, SM clock 345 of 1980 MHz, 76.52 W; CUDA 13.0 in torch"
INTERPRETED = "interpreter verifies kernels, and their latencies are estimated"
SEES, BLIND = "echo 13.0 1", "echo none 0"
FAILED = "echo 'NVIDIA-SMI has failed'; exit 9"
ROWS = [
    (TRITON, SEES, f"echo '{H200}'", ("triton 3.6.0", CLOCKS), ()),
    (TRITON, SEES, f"echo '{H200}'; echo '{H200}'", ("", "H200 (2 of them)"), ()),
    (TRITON, SEES, f"echo '{DARK}'", ("", "clocks not readable; CUDA"), ()),
    (TRITON, BLIND, f"echo '{H200}'", ("", "torch does not see it"), ("cuda",)),
    (TRITON, BLIND, FAILED, ("", "NVIDIA-SMI has failed"), ("cuda",)),
    (TRITON, "", ":", ("", "lists no GPU"), ("cuda",)),
    (NONE, "", "", ("not installed in", INTERPRETED), ("triton",)),
    (BROKEN, "", "", ("does not import triton (ImportError: GLIBC_2.32 not found)", ""), ("triton",)),
]


@pytest.mark.parametrize(("triton", "torch", "driver", "found", "failing"), ROWS)
@pytest.mark.parametrize("asked", [True, False])
def test_a_line_says_what_is_there_and_what_to_do(
    triton: str,
    torch: str,
    driver: str,
    found: tuple[str, str],
    failing: tuple[str, ...],
    asked: bool,
    programs: Path,
) -> None:
    python = _python(programs, triton, torch or "exit 1")
    if driver:
        _write(programs / "nvidia-smi", driver)
    lines = {check.name: check for check in checks.checks(python, asked=asked)}
    assert tuple(lines) == ("triton", "cuda")
    for words, check in zip(found, lines.values(), strict=True):
        assert words in check.found and "\n" not in check.found
        assert check.ok or check.advice
    assert {name for name, check in lines.items() if not check.ok} == (set(failing) if asked else set())


def test_without_an_interpreter_nothing_is_run(programs: Path) -> None:
    triton, _ = checks.checks("", asked=True)
    assert triton == Check("triton", False, "no interpreter to ask", "set an interpreter that has torch")
