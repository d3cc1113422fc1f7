"""The files of an operator's folder."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import UsageError

_ENTRY = re.compile(r"__global__\s[^;{]*?\b(\w+)\s*\(", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LIBRARY = re.compile(r'#\s*include\s*["<](?:opdev/|aclnn|acl/|aclnn_kernels/)')
"""What code of the single-operator library includes, which calls operators and defines none."""
_HEADERS = ("*.h", "*.hpp")
SOURCE_FILES = ("*.cpp", "*.cc")
_TARGET = re.compile(r"target_sources\s*\(\s*(\w+)([^)]*)\)")
_DEPENDENCIES = re.compile(r"\bDEPENDENCIES((?:\s+[a-z][a-z0-9_]*)+)")
"""Operators on whose host code another one's depends, in their order; keywords of a build are capitals."""
_TILES = re.compile(r"\bIMPL_OP_OPTILING\b|\bSetTiling\s*\(|\.\s*Tiling\s*\(")
"""Where host code says which function tiles an operator."""
_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_NAMED = re.compile(r"[^\s\"]+\.(?:cpp|cc)\b")
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
    own = [path for path in _sources(sides["op_host"]) if not _LIBRARY.search(text_of(path))]
    if not kernels or not own:
        raise UsageError(f"{root} has no {'kernel' if not kernels else 'host code'}; check its folders.")
    project = (project or project_of(root)).resolve()
    host = dict.fromkeys([*own, *_shared(root, project), *_tiling_of_others(kernels, own, root, project)])
    return OperatorFolder(root, project, kernels, tuple(host))


def entries(path: Path) -> tuple[str, ...]:
    """The names of the kernels that a file defines."""
    return tuple(dict.fromkeys(_ENTRY.findall(_COMMENT.sub(" ", text_of(path)))))


def project_of(root: Path) -> Path:
    """The nearest folder above an operator that looks like a project's root, else its parent."""
    for folder in root.parents:
        if any((folder / mark).exists() for mark in _MARKS):
            return folder
    return root.parent


@lru_cache(maxsize=8)
def header_index(project: Path) -> Mapping[str, tuple[Path, ...]]:
    """Headers of a project by file name."""
    result: dict[str, list[Path]] = defaultdict(list)
    for pattern in _HEADERS:
        for path in sorted(project.rglob(pattern)):
            result[path.name].append(path)
    return {name: tuple(paths) for name, paths in result.items()}


def _shared(root: Path, project: Path) -> Iterator[Path]:
    """Host sources of the project outside the operator's folder that its CMakeLists.txt names."""
    for file in (root / "CMakeLists.txt", root / "op_host" / "CMakeLists.txt"):
        if not file.is_file():
            continue
        text = re.sub(r"#[^\n]*", "", text_of(file))
        for name in " ".join(_DEPENDENCIES.findall(text)).split():
            yield from _host_of(name, root, project)
        for target, names in _TARGET.findall(text):
            if "aclnn" in target or "opapi" in target:
                continue
            for name in _NAMED.findall(names):
                result = _named(name, file.parent, project)
                if result is not None and not of_another_chip(result) and not result.is_relative_to(root):
                    yield result


def _tiling_of_others(
    kernels: Iterable[Path], own: Iterable[Path], root: Path, project: Path
) -> Iterator[Path]:
    """The host sources of the operators whose kernels an operator without a tiling function includes."""
    if any(_TILES.search(text_of(path)) for path in own):
        return
    spelled = (name for path in kernels for name in _QUOTED.findall(text_of(path)))
    folders = dict.fromkeys(part for name in spelled for part in Path(name).parent.parts)
    for name in folders.keys() - {"..", "op_kernel", root.name}:
        yield from _host_of(name, root, project)


def _host_of(name: str, root: Path, project: Path) -> Iterator[Path]:
    """The host sources of the operator ``name`` that is nearest to ``root``, but for those that call it."""
    near = (folder / name / "op_host" for folder in root.parents if folder.is_relative_to(project))
    result = next((folder for folder in near if folder.is_dir()), None)
    for path in _sources(result) if result else ():
        if not _LIBRARY.search(text_of(path)):
            yield path


def _named(name: str, beside: Path, project: Path) -> Path | None:
    """The source that a build names, from the variable's folder on where it begins with one."""
    if "$" not in name:
        path = Path(os.path.normpath(beside / name))
        return path if path.is_file() else None
    tail = name.rpartition("}")[2].lstrip("/")
    return next((path for path in source_index(project) if path.as_posix().endswith(f"/{tail}")), None)


@lru_cache(maxsize=8)
def source_index(project: Path) -> tuple[Path, ...]:
    """The C++ files of a project."""
    return tuple(sorted(path for suffix in SOURCE_FILES for path in project.rglob(suffix)))


def _sources(folder: Path) -> Iterator[Path]:
    for path in sorted(path for suffix in SOURCE_FILES for path in folder.rglob(suffix)):
        inside = path.relative_to(folder).parts
        if not {"op_api", "aclnn", "tests", "config"} & set(inside) and not of_another_chip(path):
            yield path


def of_another_chip(path: Path) -> bool:
    """Whether a file lies in a folder of another architecture; that of 910B is called 22 or 32."""
    return any(re.fullmatch(r"arch(?![23]2$)\d+", part) for part in path.parts)


def text_of(path: Path) -> str:
    return path.read_text(errors="surrogateescape")
