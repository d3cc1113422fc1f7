"""Kernel packages as they lie beside a model file, read from their manifests."""

from __future__ import annotations

import json
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.verdict import Latency, Verdict

FOLDER = "evokernel_kernels"


@frozen
class Installed:
    """What a generated call runs: the kernel of its package."""

    name: str
    folder: Path
    task_id: str
    source_id: str
    latency: Latency
    verifier: str


def import_root(file: Path) -> Path:
    """The first folder above a file that is no package: where its absolute imports start."""
    folder = file.parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return folder


def package_folder(file: Path, name: str) -> Path:
    return import_root(file) / FOLDER / name


def read_installed(file: Path, name: str) -> Installed | None:
    """The package of a generated call in ``file``; None where it is missing or unreadable."""
    folder = package_folder(file, name)
    try:
        manifest = json.loads((folder / "kernel.json").read_text("utf-8"))
        verdict = from_data(manifest["verdict"], Verdict)
    except (OSError, ValueError, KeyError, TypeError, EvoKernelError, ExceptionGroup):
        return None
    if verdict.latency is None:
        return None
    return Installed(name, folder, verdict.task_id, verdict.source_id, verdict.latency, verdict.verifier)
