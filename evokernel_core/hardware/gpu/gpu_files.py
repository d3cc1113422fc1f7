"""The files of devices that Triton is written for, by name: who only lists them reads none."""

from __future__ import annotations

from pathlib import Path

from evokernel_core.hardware.ascend.chip_files import chip_names

GPUS = Path(__file__).parent / "gpus"
DEFAULT_GPU = "nvidia_h200"


def gpu_names() -> tuple[str, ...]:
    """The GPUs that have a file, the default first."""
    names = sorted(path.stem for path in GPUS.glob("*.toml"))
    return (DEFAULT_GPU, *(name for name in names if name != DEFAULT_GPU))


def device_names() -> tuple[str, ...]:
    """All that Triton is written for: GPUs, and Ascend chips by what the vendor's own compiler takes."""
    return (*gpu_names(), *chip_names())
