"""Kernel packages as they lie beside a model file, read from their manifests."""

from __future__ import annotations

import itertools
import logging
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.domain.admission import read_task
from evokernel_core.domain.errors import EvoKernelError, PackageChanged
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.verdict import Latency, LatencySource, Verdict
from evokernel_core.foreign import read_foreign_object
from evokernel_core.hardware.devices import load_device
from evokernel_core.import_root import import_root
from evokernel_core.package.integrity import (
    check_files,
    foreign_words,
    read_source,
    records_of,
    source_names,
)
from evokernel_core.targets.sources import FILES as TARGET_FILES
from evokernel_core.targets.sources import main_first
from evokernel_core.vendor.rival import Rival, rival_of

log = logging.getLogger(__name__)

FOLDER = "evokernel_kernels"
MANIFEST = "kernel.json"
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, RecursionError, EvoKernelError, ExceptionGroup)
_STAGING_S = 30.0
"""Writing a package takes milliseconds; a hidden folder older than this belongs to nobody."""
_SAID: set[str] = set()
_MOST_SAID = 1000
_LARGEST_RIVAL = 512
"""Nodes of a graph that one operator of the vendor's could stand for; those that do have some ten."""


@frozen
class Installed:
    """What a generated call runs: the kernel of its package, or where ``function`` names one the vendor's
    operator, which stands for ``region`` and has no verifier, task and source. ``sources`` are the names of
    the kernel's files, the kernel itself first."""

    name: str
    folder: Path
    task_id: str
    source_id: str
    latency: Latency
    verifier: str
    rival: Rival | None = None
    function: str = ""
    region: Region | None = None
    sources: tuple[str, ...] = ()


def package_folder(file: Path, name: str) -> Path:
    return import_root(file) / FOLDER / name


def heal(file: Path, now: float) -> tuple[str, ...]:
    """Finishes what a process was killed in: gives the names of packages that were put back.

    A package is replaced by moving the old one into ``.NAME-old-*`` and the new one into place. Where
    the second step is missing, the old one is put back. Staging folders of the dead are removed.
    """
    parent = import_root(file) / FOLDER
    if parent.is_symlink():
        return ()
    back = []
    for hidden in sorted(parent.glob(".*-*")) if parent.is_dir() else ():
        if hidden.is_symlink() or not hidden.is_dir() or now - hidden.stat().st_mtime < _STAGING_S:
            continue
        for kept in hidden.iterdir() if "-old-" in hidden.name else ():
            target = parent / kept.name
            if not kept.is_symlink() and (kept / MANIFEST).exists() and not target.exists():
                kept.rename(target)
                back.append(target.name)
        shutil.rmtree(hidden, ignore_errors=True)
    return tuple(back)


def read_installed(file: Path, name: str) -> Installed | None:
    """The package of a generated call in ``file``; None where it is missing or unreadable, and for what is no
    name of a package."""
    if not name.isidentifier():
        return None
    folder = package_folder(file, name)
    try:
        manifest = read_foreign_object(folder / MANIFEST)
        check_files(folder, manifest)
        _name_foreign(folder, manifest)
        if "vendor" in manifest:
            return _borrowed(name, folder, manifest)
        verdict, sources = from_data(manifest["verdict"], Verdict), main_first(source_names(manifest))
    except PackageChanged as error:
        log.warning("%s", error)
        return None
    except _UNREADABLE:
        return None
    if verdict.latency is None or not _is_sound(verdict.latency):
        return None
    rival = _rival(manifest, verdict.latency.chip)
    return Installed(
        name, folder, verdict.task_id, verdict.source_id, verdict.latency, verdict.verifier, rival,
        sources=sources,
    )  # fmt: skip


def files_to_read(folder: Path) -> tuple[str, ...]:
    """The names of a package's files as people read them, the kernel itself first; where its manifest does
    not tell, those that a kernel of any target may have."""
    try:
        records = records_of(read_foreign_object(folder / MANIFEST))
        names: Iterable[str] = [name for fields in records for name in source_names(fields)]
    except _UNREADABLE:
        names = itertools.chain.from_iterable(TARGET_FILES.values())
    return (*main_first(names), "call.py", MANIFEST)


def read_kernel(installed: Installed) -> tuple[KernelSource, Verdict] | None:
    """The kernel of a package and its verdict; None where the package does not tell."""
    try:
        manifest = read_foreign_object(installed.folder / MANIFEST)
        source = read_source(installed.folder, manifest)
        verdict = from_data(manifest["verdict"], Verdict)
    except _UNREADABLE:
        return None
    return (source, verdict) if verdict.latency is not None and _is_sound(verdict.latency) else None


def _name_foreign(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Says once what lies in a package's folder and is not part of it."""
    said = foreign_words(folder, manifest)
    if said and len(_SAID) < _MOST_SAID and said not in _SAID:
        _SAID.add(said)
        log.warning("%s", said)


def _is_sound(latency: Latency) -> bool:
    """Whether a package's figures are figures: they are divided by."""
    return all(0 < us < float("inf") for us in (latency.us, latency.baseline_us, latency.roofline_us))


def _borrowed(name: str, folder: Path, manifest: Mapping[str, Any]) -> Installed | None:
    from evokernel_core.targets import author_for

    task, device = read_task(manifest["task"]), load_device(manifest["chip"])
    rival = rival_of(task, device)
    if rival is None:
        return None
    us, word = rival.figures[0]
    author = author_for(device.name)  # which the server starts without
    bound, now = author.least_us(task), author.baseline(task)
    latency = Latency(us, LatencySource(word), device.name, 0, (), "", bound, now.us, baseline=now)
    region = from_data(manifest["region"], Region)
    if not _is_sound(latency):
        return None
    return Installed(name, folder, "", "", latency, "", function=rival.name, region=region)


def _rival(manifest: Mapping[str, Any], chip: str) -> Rival | None:
    """What the kernel has to beat beside the ops one by one; None where the manifest does not tell."""
    try:
        if len(manifest["task"]["graph"]["nodes"]) > _LARGEST_RIVAL:
            return None
        return rival_of(read_task(manifest["task"]), load_device(chip))
    except _UNREADABLE:
        return None
