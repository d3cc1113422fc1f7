"""The files of an operator's folder, and where the headers that they include lie in its project."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.build import INCLUDE

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_ENTRY = re.compile(r"__global__\s[^;{]*?\b(\w+)\s*\(", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LIBRARY = re.compile(r'#\s*include\s*["<](?:opdev/|aclnn|acl/|aclnn_kernels/)')
"""What code of the single-operator library includes, which calls operators and defines none."""
_HEADERS = ("*.h", "*.hpp")
_MARKS = (".git", "CMakePresets.json", "build.sh", "framework")
"""What lies at the root of a project."""


@frozen
class OperatorFolder:
    """``kernels`` are the files of op_kernel with an entry, ``host`` the sources of op_host that define and
    tile; ``project`` is where headers are looked up."""

    root: Path
    project: Path
    kernels: tuple[Path, ...]
    host: tuple[Path, ...]

    @property
    def headers(self) -> Mapping[str, tuple[Path, ...]]:
        return header_index(self.project)


def read_folder(root: Path, project: Path | None = None) -> OperatorFolder:
    """The operator below ``root``. Raises UsageError where it has no op_kernel or no op_host."""
    root = root.resolve()
    sides = {side: root / side for side in ("op_kernel", "op_host")}
    for side, folder in sides.items():
        if not folder.is_dir():
            raise UsageError(f"{root} has no folder {side}; name the folder of one operator.")
    kernels = tuple(path for path in _sources(sides["op_kernel"]) if entries(path))
    host = tuple(path for path in _sources(sides["op_host"]) if not _LIBRARY.search(_text(path)))
    if not kernels or not host:
        raise UsageError(f"{root} has no {'kernel' if not kernels else 'host code'}; check its folders.")
    return OperatorFolder(root, (project or project_of(root)).resolve(), kernels, host)


def entries(path: Path) -> tuple[str, ...]:
    """The names of the kernels that a file defines."""
    return tuple(dict.fromkeys(_ENTRY.findall(_COMMENT.sub(" ", _text(path)))))


def project_of(root: Path) -> Path:
    """The nearest folder above an operator that looks like a project's root, else its parent."""
    for folder in root.parents:
        if any((folder / mark).exists() for mark in _MARKS):
            return folder
    return root.parent


@lru_cache(maxsize=8)
def header_index(project: Path) -> Mapping[str, tuple[Path, ...]]:
    """Headers of a project by file name."""
    found: dict[str, list[Path]] = defaultdict(list)
    for pattern in _HEADERS:
        for path in sorted(project.rglob(pattern)):
            found[path.name].append(path)
    return {name: tuple(paths) for name, paths in found.items()}


def include_folders(files: Iterable[Path], folder: OperatorFolder) -> tuple[Path, ...]:
    """The folders of ``-I`` with which every header of the project is found that ``files`` include.

    A project's build lists them; here the header nearest to the file that includes it is taken.
    """
    folders: dict[Path, None] = {}
    waiting, seen = [path.resolve() for path in files], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for spelled in _INCLUDE.findall(_text(path)):
            found = _found(spelled, path, folders, folder)
            if found is not None:
                waiting.append(found)
    return tuple(folders)


def _found(spelled: str, path: Path, folders: dict[Path, None], folder: OperatorFolder) -> Path | None:
    """The project's file that an include means, None for what is not the project's."""
    for place in (path.parent, *folders):
        candidate = Path(os.path.normpath(place / spelled))
        if candidate.is_file():
            return candidate
    if (INCLUDE / spelled).is_file():
        return None
    tail = Path(os.path.normpath(spelled))
    parts = [part for part in tail.parts if part != ".."]
    fitting = [
        each for each in folder.headers.get(tail.name, ()) if each.parts[-len(parts) :] == tuple(parts)
    ]
    if not fitting or len(parts) != len(tail.parts):
        return None
    nearest = max(fitting, key=lambda each: (len(os.path.commonpath((each, path))), -len(each.parts)))
    folders[nearest.parents[len(parts) - 1]] = None
    return nearest


def _sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.cpp")):
        inside = path.relative_to(folder).parts
        if not {"op_api", "aclnn", "tests", "config"} & set(inside):
            yield path


def _text(path: Path) -> str:
    return path.read_text(errors="surrogateescape")
