"""Whether a kernel package is the one that was verified: kernel.json has the digests of all files and itself.

Nobody signs a package, so this tells a change and not who made it: whoever may write kernel.json can write
its digests too. What a package then asks for is checked as the work of a stranger in any case.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from evokernel_core.domain import earlier_sources
from evokernel_core.domain.errors import EvoKernelError, PackageChanged, UsageError
from evokernel_core.domain.files import Files
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.foreign import read_foreign, read_foreign_bytes
from evokernel_core.visible import is_visible

MANIFEST = "kernel.json"
CANONICAL_FORMAT = 4
"""From this format on ``task_id`` is that of the mathematics; before, of the graph as it was spelled."""
MOST_FILES = 32
"""Files with a digest, each of at most ``foreign.MOST_BYTES``; packages have nine."""
_OWN = "digest"
_BUILD = "build"
_MOST_LISTED, _MOST_NAMED = 10_000, 10
"""Entries of a folder that are looked at, and of foreign ones that are named."""


def sealed(manifest: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """The text of kernel.json with the digests of the package's other files and its own."""
    data = {**manifest, "files": {name: digest(text) for name, text in sorted(files.items())}}
    data[_OWN] = _digest_of(data)
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    EvoKernelError,
    ExceptionGroup,
)
"""What reading a kernel of a package may raise."""


def records_of(manifest: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The fields of each kernel in kernel.json, of the one that was written last first. Raises TypeError or
    AttributeError for what is none."""
    return (manifest, *(dict(fields.items()) for fields in manifest.get("also", ())))


def target_of(fields: Mapping[str, Any]) -> str:
    """The target of a kernel by its fields; AscendC before they named one."""
    return str(fields.get("target", earlier_sources.TARGET))


def record_of(manifest: Mapping[str, Any], target: str = "") -> Mapping[str, Any]:
    """The fields of the kernel of a target; without one of the kernel that was written last. Raises
    UsageError where there is none."""
    records = records_of(manifest)
    if not target:
        return records[0]
    for fields in records:
        if target_of(fields) == target:
            return fields
    raise UsageError(
        "The package has no kernel for {target}, but for {known}.",
        target=target,
        known=", ".join(map(target_of, records)),
    )


def source_names(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """The files of a package that are its kernel, in the order in which they are read. Raises ValueError for
    names that are none: they are a stranger's, and are read."""
    names = manifest.get("sources", earlier_sources.NAMES)
    return tuple(Files(dict.fromkeys(names, "")))


def read_source(folder: Path, manifest: Mapping[str, Any]) -> KernelSource:
    """The kernel's files as they are now, as kernel.json names them; packages of before it did hold two files
    of AscendC. Raises OSError, LookupError, TypeError, ValueError or cattrs' errors for what is none."""
    files = {name: read_foreign(folder / name) for name in source_names(manifest)}
    return KernelSource(target_of(manifest), files, from_data(manifest["strategy"], Strategy))


def digest(text: str) -> str:
    """sha256 (hex) of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def check_unchanged(
    folder: Path, manifest: Mapping[str, Any], task: KernelTask, source: KernelSource
) -> None:
    """Raises PackageChanged, naming the first file that is not the one that was verified."""
    check_files(folder, manifest)
    ids = (task.task_id,) if _has_canonical_id(manifest) else (task.task_id, task.spelled_id)
    is_known = any(
        (target_of(fields), fields.get("source_id")) == (source.target, source.source_id)
        for fields in records_of(manifest)
    )
    if manifest.get("task_id") not in ids or not is_known:
        raise PackageChanged(_words(folder, MANIFEST))


def _has_canonical_id(manifest: Mapping[str, Any]) -> bool:
    """Whether the package names its task by its mathematics."""
    given = manifest.get("format")
    return isinstance(given, int) and given >= CANONICAL_FORMAT


def check_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """The same without what the digests are of. Raises PackageChanged."""
    if _OWN not in manifest:
        raise PackageChanged(
            "{name} comes from an older version without digests of its files; make the kernel again, "
            "or verify it with `evokernel verify --changed {path}`.",
            name=folder.name,
            path=folder,
        )
    known = _files(manifest)
    if len(known) > MOST_FILES:
        raise PackageChanged(_words(folder, MANIFEST))
    for name, value in known.items():
        if digest_of_file(folder / name) != value:
            raise PackageChanged(_words(folder, name))
    if manifest[_OWN] != _digest_of(manifest):
        raise PackageChanged(_words(folder, MANIFEST))


def digest_of_file(path: Path) -> str:
    """The same of a file, empty where it cannot be read, or is a link, a pipe or larger than any of ours."""
    try:
        return hashlib.sha256(read_foreign_bytes(path)).hexdigest()
    except (OSError, ValueError):
        return ""


def foreign(folder: Path, manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """What lies in a package's folder and is not part of it, by name. Nothing of ours runs or reads it; what
    CMake builds has its own digests."""
    known = {MANIFEST, _BUILD, *_files(manifest)}
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, _MOST_LISTED) if entry.name not in known)
    except OSError:
        return ()
    return tuple(names[:_MOST_NAMED])


def foreign_words(folder: Path, manifest: Mapping[str, Any]) -> str:
    """The same as a sentence; empty where there is nothing else."""
    names = [_printable(f"{folder.name}/{name}") for name in foreign(folder, manifest)]
    if not names:
        return ""
    return Sentence(
        "Not part of the package: {names}. Nothing of it was run; remove what is not yours.",
        names=", ".join(names),
    )


def _printable(name: str) -> str:
    return name if is_visible(name) else ascii(name)  # it may have been made to look like words of ours


def _files(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The digests by file; a name that leads out of the folder has none that any file matches."""
    files = manifest.get("files")
    named = files.items() if isinstance(files, dict) else ()
    return {str(name): value if Path(name).name == name else None for name, value in named}


def _digest_of(manifest: Mapping[str, Any]) -> str:
    data = {key: value for key, value in manifest.items() if key != _OWN}
    return digest(json.dumps(data, sort_keys=True, separators=(",", ":")))


def _words(folder: Path, name: str) -> Sentence:
    return Sentence(
        "{file} was changed after it was verified; restore it, make the kernel again, or verify the "
        "change with `evokernel verify --changed {folder}`.",
        file=f"{folder.name}/{_printable(name)}",
        folder=folder,
    )
