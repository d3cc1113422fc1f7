"""The files of GPUs, by name: who only lists them reads none."""

from __future__ import annotations

from pathlib import Path

GPUS = Path(__file__).parent / "gpus"
DEFAULT_GPU = "nvidia_h200"


def gpu_names() -> tuple[str, ...]:
    """The GPUs that have a file, the default first."""
    names = sorted(path.stem for path in GPUS.glob("*.toml"))
    return (DEFAULT_GPU, *(name for name in names if name != DEFAULT_GPU))
