"""What kernels in Triton need on a machine: Triton in the person's interpreter, and for times a GPU."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from evokernel_core.domain.check import Check
from evokernel_core.hardware.gpu.present import PresentGpu, has_driver, present_gpus

_VERSION = "import triton; print(triton.__version__)"
_SEES = "import torch; print(torch.version.cuda or 'none', int(torch.cuda.is_available()))"
_SECONDS = 120.0


def checks(python: str, *, asked: bool) -> Iterator[Check]:
    """``Toolchain.checks``: a line about Triton, and one about CUDA."""
    yield _triton(python, asked)
    yield _cuda(python, asked)


def _triton(python: str, asked: bool) -> Check:
    if not python:
        return Check("triton", not asked, "no interpreter to ask", "set an interpreter that has torch")
    version, said = _run(python, _VERSION)
    if version:
        return Check("triton", True, f"triton {version} in {python}")
    missing = "No module named 'triton'" in said
    found = f"not installed in {python}" if missing else f"{python} does not import triton ({said})"
    note = found if asked else f"{found}; --target triton needs it"
    return Check("triton", not asked, note, f"run `{python} -m pip install triton`")


def _cuda(python: str, asked: bool) -> Check:
    if not has_driver():
        words = "no NVIDIA driver; Triton's interpreter verifies kernels, and their latencies are estimated"
        return Check("cuda", True, words)
    try:
        gpus = present_gpus()
    except OSError as error:
        return Check("cuda", not asked, f"{error}", "install or repair NVIDIA's driver")
    if not gpus:
        return Check(
            "cuda", not asked, "the driver lists no GPU", "check the driver and the container's GPUs"
        )
    said, _ = _run(python, _SEES) if python else ("", "")
    built, _, sees = said.partition(" ")
    if sees == "1":
        return Check("cuda", True, f"{_words(gpus)}; CUDA {built} in torch")
    words = f"{_words(gpus)}; torch does not see it"
    return Check("cuda", not asked, words, "install a torch built for CUDA")


def _words(gpus: tuple[PresentGpu, ...]) -> str:
    first = gpus[0]
    known = f"SM clock {first.clock_mhz} of {first.most_mhz} MHz"
    clocks = known if first.clock_mhz else "clocks not readable"
    power = f", {first.watts} W" if first.watts else ""
    several = f" ({len(gpus)} of them)" if len(gpus) > 1 else ""
    return f"{first.name}{several}, driver {first.driver}, {clocks}{power}"


def _run(python: str, code: str) -> tuple[str, str]:
    """The last line that a Python prints, and where it fails the last of its complaint."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    try:
        done = subprocess.run(
            [python, "-c", code], env=environment, cwd=Path(python).parent,
            capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", type(error).__name__
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or [""]
    return (lines[-1].strip(), "") if done.returncode == 0 else ("", lines[-1][:200])
