"""What an Ascend host has: its toolkit, driver and Python packages, and whether they go together.

The steps of this part of a first run; each ends as ok, failed or skipped, with a sentence that says what to
do. No step changes anything outside temporary folders.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.first_run import StepState
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.programs import program_on_path
from evokernel_core.targets.ascendc.backends.cann_tools import (
    SWITCH,
    Toolkit,
    find_toolkit,
    looked_in,
    watched,
)
from evokernel_core.targets.ascendc.backends.cann_versions import misfit, release_of
from evokernel_core.twin.run import Finished, run_process

TOOL_SECONDS = 180.0
"""For npu-smi, and for the import of torch_npu from a cold disk."""
ASK = """\
import json, platform, torch, torch_npu
count = torch.npu.device_count()
print(json.dumps({"python": platform.python_version(), "torch": torch.__version__,
                  "torch_npu": torch_npu.__version__, "devices": count,
                  "name": torch.npu.get_device_name(0) if count else ""}))
"""
_LAST_LINES = 8
Found = tuple[str, dict[str, Any]]
"""What an ok step says, and its details."""
_T = TypeVar("_T")


class NotOk(Exception):
    """A step that failed or was skipped."""

    def __init__(self, state: StepState, message: str, advice: str, **details: Any) -> None:
        super().__init__(message)
        self.state, self.found, self.advice, self.details = state, message, advice, details


def failed(message: str, advice: str, **details: Any) -> NotOk:
    return NotOk(StepState.FAILED, message, advice, **details)


def skipped(step: str) -> NotOk:
    """The step needs another one that is not ok."""
    return NotOk(StepState.SKIPPED, f"it needs the step {step}", "Repair that step first.")


def needed(value: _T | None, step: str) -> _T:
    """What another step found. Raises NotOk where it found nothing."""
    if value is None:
        raise skipped(step)
    return value


class NpuHost:
    """This machine, as far as its steps have come; ``python`` is the interpreter with torch_npu."""

    def __init__(self, python: str) -> None:
        self.python = python
        self.toolkit: Toolkit | None = None
        self._environment = dict(os.environ)
        self._npus: tuple[str, ...] = ()
        self._packages: dict[str, Any] = {}

    def find_toolkit(self) -> Found:
        """CANN's compiler, on the PATH or where the documentation puts it."""
        toolkit = find_toolkit(self._environment)
        if toolkit is None:
            looked = looked_in(self._environment)
            advice = "Install the CANN toolkit, or call `source .../set_env.sh` of the one that is there."
            if self._environment.get(SWITCH):
                advice = f"Unset {SWITCH}, or let it name a bisheng."
            raise failed(f"no bisheng in {', '.join(looked)}", advice, looked_in=looked)
        self.toolkit = toolkit
        self._environment = toolkit.environment(self._environment)
        version = toolkit.version or "of unknown version"
        details = {"cann": toolkit.version, "bisheng": str(toolkit.bisheng)}
        return f"CANN {version}, {toolkit.bisheng}", details

    def ask_driver(self) -> Found:
        """The NPUs and their health, as npu-smi tells."""
        program = program_on_path("npu-smi", self._environment.get("PATH", os.defpath))
        if program is None:
            raise failed(
                "npu-smi is not on the PATH",
                "Install the NPU driver and firmware, or map /dev/davinci* and npu-smi into the container; "
                "without an NPU only the compile steps can pass.",
            )
        done = self._call([program, "info"])
        npus, version, ill = parse_npu_smi(done.stdout)
        if done.exit_code or not npus:
            result = f"npu-smi info ended with {done.exit_code} and listed {len(npus)} NPUs"
            advice = "Check that the driver is loaded and that this user may open /dev/davinci0."
            raise failed(result, advice, output=_last_lines(done))
        if ill:
            raise failed(f"the health of {', '.join(ill)} is not OK", "Reset or replace it first.")
        self._npus = npus
        return f"{len(npus)} x {npus[0]}, npu-smi {version}", {"npus": list(npus), "npu_smi": version}

    def ask_torch_npu(self) -> Found:
        """The packages of the interpreter, and the devices that they see."""
        done = self._call([self.python, "-c", ASK])
        try:
            said = json.loads(done.stdout.strip().splitlines()[-1])
        except (IndexError, ValueError):
            advice = (
                "Install torch and torch_npu there (docs/npu.md has the versions), or name another "
                "Python with --interpreter."
            )
            raise failed(f"{self.python} cannot import torch_npu", advice, output=_last_lines(done)) from None
        self._packages = said
        versions = f"torch_npu {said['torch_npu']} with torch {said['torch']}"
        if not said["devices"]:
            advice = "Check ASCEND_RT_VISIBLE_DEVICES and the rights on /dev/davinci0."
            raise failed(f"{versions} sees no device", advice, **said)
        return f"{versions} sees {said['devices']} x {said['name']}", said

    def compare_versions(self) -> Found:
        """Whether torch, torch_npu and CANN are made for each other."""
        if not self._packages:
            raise skipped("torch_npu")
        torch_npu, cann = str(self._packages["torch_npu"]), self.toolkit.version if self.toolkit else ""
        problem = misfit(str(self._packages["torch"]), torch_npu, cann)
        if problem is not None:
            raise failed(problem.found, problem.advice)
        row = release_of(torch_npu)
        if not cann or row is None or not row.cann:
            published = f"no CANN is published for torch_npu {torch_npu}"
            why = published if cann else "CANN does not tell its version"
            raise NotOk(StepState.SKIPPED, why, "Compare with the vendor's compatibility table by hand.")
        return f"torch_npu {torch_npu} goes with CANN {cann}", {"cores_column": row.cores}

    def any_chip(self) -> Chip:
        """A chip to compile for: the one that is here, or another of the architecture."""
        return self._named(self._name()) if self._name() else load_chip()

    def chip(self) -> Chip:
        """The chip that torch_npu sees. Raises NotOk where there is none or EvoKernel does not know it."""
        if not self._packages.get("devices"):
            raise skipped("torch_npu")
        return self._named(self._name())

    def _name(self) -> str:
        return str(self._packages.get("name") or "") or next(iter(self._npus), "")

    @staticmethod
    def _named(name: str) -> Chip:
        try:
            return load_chip(f"ascend{name.lower().removeprefix('ascend')}")
        except EvoKernelError as error:
            raise failed(f"the chip {name} is not one that EvoKernel knows", str(error)) from error

    def _call(self, command: Sequence[str]) -> Finished:
        return run_process(watched(command), Path("/"), TOOL_SECONDS, self._environment)


def parse_npu_smi(output: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Of ``npu-smi info``: the chips' names, the tool's version, and the NPUs whose health is not OK."""
    row = re.compile(r"^\|\s*(\d+)\s+([A-Za-z0-9_-]*\d[\w-]*)\s*\|\s*([A-Za-z]+)\s*\|", re.MULTILINE)
    rows = row.findall(output)
    version = re.search(r"Version:\s*(\S+)", output)
    ill = tuple(f"NPU {number} ({health})" for number, _, health in rows if health.upper() != "OK")
    return tuple(name for _, name, _ in rows), version[1] if version else "of unknown version", ill


def _last_lines(done: Finished) -> str:
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return "\n".join(lines[-_LAST_LINES:])
