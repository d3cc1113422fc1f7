"""Compiled kernels, programs and host code of operators on disk: each in a folder of its content's name,
below the twin that it was compiled for.

Two processes may build, use and evict at the same time, and any of them may be killed: a kernel appears by
one rename, and whoever meets a folder that has just gone goes on without it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from evokernel_core.paths import cache_dir

MAX_BYTES = 1024**3
"""What the kernels of all twins may take on disk together."""
LOOK_EVERY = 16
"""One build in so many looks whether that is exceeded: to look takes tens of milliseconds."""
LARGE_BYTES = 1024**2
"""A kernel from which on its build always looks."""


def kernels_dir() -> Path:
    """The folder of the compiled kernels: the cache's own, or one that several homes share where
    EVOKERNEL_KERNELS_DIR names it."""
    shared = os.environ.get("EVOKERNEL_KERNELS_DIR")
    return Path(shared) if shared else cache_dir() / "kernels"


def folder_of(twin: Path, *content: object) -> Path:
    """Where that lies which is compiled from ``content`` for the twin in a folder."""
    return kernels_dir() / twin.name / hashlib.sha256(repr(content).encode()).hexdigest()[:24]


def folder_of_one_build(twin: Path) -> Path:
    """Where that lies which nobody shall find again: not all that it was compiled from is known."""
    return kernels_dir() / twin.name / secrets.token_hex(12)


def has(folder: Path, name: str) -> bool:
    """Whether a folder has its file of this name; it counts as used then."""
    try:
        if result := (folder / name).exists():
            os.utime(folder)
    except FileNotFoundError:  # another process has just evicted it
        return False
    return result


def added(folder: Path) -> None:
    """Keeps the cache bounded after a kernel with a hexadecimal name was put into it."""
    if int(folder.name[-4:], 16) % LOOK_EVERY == 0 or _bytes_in(str(folder)) >= LARGE_BYTES:
        evict(folder.parent.parent)


def evict(cache: Path) -> None:
    """Where kernels take more than ``MAX_BYTES`` the least recently used go until three quarters are left."""
    sizes = {path: _bytes_in(path) for path in _folders(cache)}
    total = sum(sizes.values())
    if total <= MAX_BYTES:
        return
    for path in sorted(sizes, key=_last_used):
        if total <= MAX_BYTES * 3 // 4:
            return
        total -= sizes[path]
        shutil.rmtree(path, ignore_errors=True)
        Path(path).with_suffix(".lock").unlink(missing_ok=True)


def _folders(cache: Path) -> Iterator[str]:
    """The kernels of all twins, finished ones alone."""
    for twin in _entries(str(cache)):
        for entry in _entries(twin.path) if twin.is_dir() else ():
            if not entry.name.startswith("building-") and entry.is_dir():
                yield entry.path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Nothing where another process has just removed the folder."""
    try:
        with os.scandir(folder) as entries:  # pathlib takes twice as long
            return list(entries)
    except FileNotFoundError:
        return []


@lru_cache(maxsize=20_000)  # what is published does not change
def _bytes_in(folder: str) -> int:
    """0 where another process has evicted the folder."""
    try:
        return sum(file.stat().st_size for file in _entries(folder))
    except FileNotFoundError:
        return 0


def _last_used(folder: str) -> float:
    """A time stamp; 0 where another process has evicted the folder."""
    try:
        return Path(folder).stat().st_mtime
    except FileNotFoundError:
        return 0.0
