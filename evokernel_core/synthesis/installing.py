"""Kernels in the user's tree: a package beside the file, and the call in it."""

from __future__ import annotations

import codecs
import shutil
from collections.abc import Callable
from pathlib import Path

from attrs import evolve, frozen

from evokernel_core.capture.edit import plan_edit
from evokernel_core.domain.region import Region
from evokernel_core.import_root import import_root
from evokernel_core.package.backup import back_up_changed
from evokernel_core.package.vendor import write_vendor_package
from evokernel_core.package.write import ROOT_PACKAGE, kernel_name, placed
from evokernel_core.synthesis.proposers.base import Candidate
from evokernel_core.synthesis.regions import task_of
from evokernel_core.targets.packages import write_package


@frozen
class Package:
    """A kernel package in the user's tree; ``backup`` is that of the one that a person had changed there."""

    name: str
    folder: Path
    backup: Path | None = None


def install(region: Region, candidate: Candidate) -> Package:
    """Writes a kernel's package beside the region's file; it is complete or absent."""
    root = import_root(Path(region.file).resolve())
    backup = back_up_changed(root / ROOT_PACKAGE / kernel_name(task_of(region), placed(region).site))
    return evolve(write_below(root, region, candidate), backup=backup)


def install_vendors(region: Region, chip: str) -> Package:
    """Writes the package that calls the vendor's operator for a region. Raises UsageError where the region is
    no such operator."""
    folder = write_vendor_package(import_root(Path(region.file).resolve()), region, chip)
    return Package(folder.name, folder)


def write_below(root: Path, region: Region, candidate: Candidate) -> Package:
    """Writes a kernel's package below a folder."""
    folder = write_package(root, task_of(region), placed(region), candidate.source, candidate.verdict)
    return Package(folder.name, folder)


def put_into(path: Path, region: Region, install: Callable[[], Package]) -> Package:
    """Installs a package and puts its call into a file, whose line ends and mark of UTF-8 stay. Raises
    EditConflict; then nothing is written."""
    data = path.read_bytes()
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    edited = plan_edit(data.decode("utf-8-sig"), region, kernel_name(task_of(region), placed(region).site))
    package = install()
    _replace(path, mark + edited.encode())
    return package


def _replace(path: Path, data: bytes) -> None:
    """Puts a new text in place of a file's at once, so that no crash leaves half of it."""
    staged = path.with_name(f".{path.name}.evokernel")
    staged.write_bytes(data)
    shutil.copymode(path, staged)
    staged.replace(path)
