"""Which GPUs a machine has, as their driver says; nothing of CUDA is loaded here."""

from __future__ import annotations

import subprocess
from pathlib import Path

from attrs import frozen

from evokernel_core.programs import program_on_path

_SMI = "nvidia-smi"
_FIELDS = ("name", "driver_version", "clocks.sm", "clocks.max.sm", "power.draw")
_SECONDS = 20.0


@frozen
class PresentGpu:
    """Clocks in MHz and watts are as the driver prints them, "" where it does not tell."""

    name: str
    driver: str
    clock_mhz: str
    most_mhz: str
    watts: str


def has_driver() -> bool:
    """Whether NVIDIA's driver is installed, without asking it: nothing is started."""
    return Path("/proc/driver/nvidia/version").exists() or program_on_path(_SMI) is not None


def present_gpus() -> tuple[PresentGpu, ...]:
    """What the driver lists. Raises OSError where it cannot be asked, or does not answer."""
    program = program_on_path(_SMI)
    if program is None:
        raise OSError(f"{_SMI} is not on PATH")
    command = [program, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{_SMI} does not answer") from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines() or ["it says nothing"]
        raise OSError(f"{_SMI}: {said[0][:200]}")
    return tuple(PresentGpu(*_told(line)) for line in done.stdout.splitlines() if line.strip())


def _told(line: str) -> list[str]:
    """The fields of a line; a name may hold a comma, what the driver does not tell is [N/A] or the like."""
    parts = [part.strip() for part in line.rsplit(",", len(_FIELDS) - 1)]
    parts += [""] * (len(_FIELDS) - len(parts))
    return ["" if part.startswith("[") else part for part in parts]
