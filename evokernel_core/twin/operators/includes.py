"""Where the headers that an operator's files include lie in its project."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import frozen

from evokernel_core.paths import cache_dir
from evokernel_core.twin.build import is_header
from evokernel_core.twin.operators.folder import SOURCE_FILES, OperatorFolder, of_another_chip, text_of

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_LIBRARIES = ("log", "op_common", "op_host", "op_kernel", "util", "utils")
"""Folders of headers that come with libraries of operators and not with the toolkit: a project with a header
of such a path means its own."""
_SIDES = {"op_host", "op_kernel"}


def include_folders(files: Iterable[Path], folder: OperatorFolder) -> tuple[Path, ...]:
    """The folders of ``-I`` with which every header of the project is found that ``files`` include.

    A project's build lists them; here the header nearest to the file that includes it is taken. Headers that
    a build copies out of another operator's ``op_kernel`` before it compiles are found through files that
    include them, in a folder of the cache.
    """
    result = _included(files, folder)
    return (*result.folders, *_copied(result.copied))


def _copied(headers: Mapping[str, Path]) -> tuple[Path, ...]:
    """A folder from which each spelling reaches its header. The spellings may begin with ``..``."""
    if not headers:
        return ()
    key = hashlib.sha256(repr(sorted(headers.items())).encode("utf-8", "replace")).hexdigest()[:24]
    place = cache_dir() / "operators" / "copied" / key
    start = place.joinpath(*["op"] * 8)
    for spelled, header in headers.items():
        file = Path(os.path.normpath(start / spelled))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#include "{header}"\n')
    start.mkdir(parents=True, exist_ok=True)
    return (start,)


@frozen
class _Included:
    """``folders`` for ``-I``, ``files`` that are read, and headers by the spelling of a build's copy."""

    folders: tuple[Path, ...]
    files: tuple[Path, ...]
    copied: Mapping[str, Path]


def companions(folder: OperatorFolder) -> tuple[Path, ...]:
    """The sources beside headers of other operators that the host code includes, which define what those
    declare."""
    headers = (path for path in _included(folder.host, folder).files if not path.is_relative_to(folder.root))
    sources = (path.with_suffix(suffix[1:]) for path in headers for suffix in SOURCE_FILES)
    new = (path for path in sources if path not in folder.host and not of_another_chip(path))
    return tuple(path for path in new if path.is_file())


def _included(files: Iterable[Path], folder: OperatorFolder) -> _Included:
    folders: dict[Path, None] = {}
    copied: dict[str, Path] = {}
    waiting, seen = [path.resolve() for path in files], dict[Path, None]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen[path] = None
        for spelled in _INCLUDE.findall(text_of(path)):
            result = _found(spelled, path, folders, folder)
            if result is None and (copy := _before_copy(spelled, path, folder)) is not None:
                copied[spelled] = result = copy
            if result is not None:
                waiting.append(result)
    return _Included(tuple(folders), tuple(seen), copied)


def _before_copy(spelled: str, path: Path, folder: OperatorFolder) -> Path | None:
    """``../other/x.h`` is ``other/op_kernel/x.h`` before a build puts kernels side by side."""
    parts = [part for part in Path(spelled).parts if part != ".."]
    if len(parts) < 2 or is_header(spelled):
        return None
    tail = (parts[0], "op_kernel", *parts[1:])
    fitting = (each for each in folder.headers.get(parts[-1], ()) if each.parts[-len(tail) :] == tail)
    return max(fitting, key=lambda each: len(os.path.commonpath((each, path))), default=None)


def _found(spelled: str, path: Path, folders: dict[Path, None], folder: OperatorFolder) -> Path | None:
    """The project's file that an include means, None for what is not the project's."""
    for place in (path.parent, *folders):
        candidate = Path(os.path.normpath(place / spelled))
        if candidate.is_file():
            return candidate
    tail = Path(os.path.normpath(spelled))
    if is_header(spelled) and tail.parts[0] not in _LIBRARIES:
        return None
    parts = [part for part in tail.parts if part != ".."]
    fitting = [
        each for each in folder.headers.get(tail.name, ()) if each.parts[-len(parts) :] == tuple(parts)
    ]
    if not fitting or len(parts) != len(tail.parts):
        return None
    nearest = max(fitting, key=lambda each: _nearness(each, path))
    folders[nearest.parents[len(parts) - 1]] = None
    return nearest


def _nearness(header: Path, path: Path) -> tuple[int, bool, int]:
    """How near a header is to the file that includes it: in folders that both have, then on the same side."""
    both = len(os.path.commonpath((header, path)))
    return both, bool(_SIDES & set(header.parts) & set(path.parts)), -len(header.parts)
