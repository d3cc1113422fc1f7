"""Folders for a moment's work: under one parent in the temporary directory, and gone with their process.

Each process has a folder ``evokernel-UID/PID-RANDOM`` there and holds a lock in it, which the system
releases however the process ends. So whoever comes next finds what a killed one left, and removes it. Nobody
but the owner can look inside: a case's expected results and a person's code lie there.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from attrs import define

from evokernel_core.private import private_opener

try:
    import fcntl
except ImportError:  # Windows, where a folder in use cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

_LOCK = "lock"
_NAME = "evokernel"
_MAKING_S = 60.0
"""Between the making of a folder and of its lock lie microseconds; one without for this long is nobody's."""


@define
class _Own:
    """This process's folder; ``pid`` tells a fork that it has none yet."""

    pid: int
    folder: Path
    lock: IO[bytes]


_owned: list[_Own] = []
"""This process's folder once it has one; beside it those that it had before it was forked off."""
_mutex = threading.Lock()


def folder(what: str) -> tempfile.TemporaryDirectory[str]:
    """A new folder of mode 0700, as ``tempfile.TemporaryDirectory``. Raises OSError."""
    return tempfile.TemporaryDirectory(prefix=f"{what}-", dir=_of_process(), ignore_cleanup_errors=True)


@contextlib.contextmanager
def folder_in(place: Path, what: str) -> Iterator[Path]:
    """A new folder of mode 0700 inside ``place``, for what is moved from there to where others look for it;
    those that killed processes left there go first. Raises OSError."""
    for file in place.glob(f"{what}-*"):
        _abandoned(file)
    path, lock = _locked_folder(f"{what}-", place)
    with lock:
        try:
            (path / "work").mkdir()
            yield path / "work"
        finally:
            shutil.rmtree(path, ignore_errors=True)


def parent() -> Path | None:
    """Where the folders of all our processes are; None where another person has put something in its place,
    so that each process's folder lies in the temporary directory itself. Raises OSError."""
    path = Path(tempfile.gettempdir()) / f"{_NAME}-{_user()}"
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    result = path.lstat()
    if not stat.S_ISDIR(result.st_mode) or result.st_uid != _user():
        return None
    if result.st_mode & 0o077:
        path.chmod(0o700)
    return path


def sweep() -> int:
    """Removes what processes left that are gone. The number of their folders."""
    removed = 0
    with contextlib.suppress(OSError):
        shared = parent()
        for path in shared.iterdir() if shared else ():
            removed += _abandoned(path)
    return removed


def sweep_after(pid: int, patience_s: float) -> None:
    """As ``sweep``, waiting a while for the end of a process that was killed."""
    end = time.monotonic() + patience_s
    while True:
        sweep()
        if not _left_by(pid) or time.monotonic() > end:
            return
        time.sleep(0.01)


def leave() -> None:
    """Removes this process's folder, as before an exit that runs no clean-up."""
    with _mutex:
        mine = [own for own in _owned if own.pid == os.getpid()]
        _owned.clear()
    for own in mine:
        shutil.rmtree(own.folder, ignore_errors=True)
        own.lock.close()


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _left_by(pid: int) -> list[Path]:
    try:
        shared = parent()
        return list(shared.glob(f"{pid}-*")) if shared else []
    except OSError:
        return []


def _of_process() -> Path:
    with _mutex:
        mine = next((own for own in _owned if own.pid == os.getpid() and own.folder.is_dir()), None)
        if mine is None:
            sweep()
            mine = _make()
            _owned.append(mine)
            atexit.register(leave)
        return mine.folder


def _make() -> _Own:
    shared = parent()
    prefix = f"{os.getpid()}-" if shared else f"{_NAME}-{_user()}-{os.getpid()}-"
    return _Own(os.getpid(), *_locked_folder(prefix, shared))


def _locked_folder(prefix: str, place: Path | None) -> tuple[Path, IO[bytes]]:
    """Another process may take the new folder for one that was left until its lock is held: then again."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        try:
            lock = open(path / _LOCK, "wb", opener=private_opener)  # noqa: SIM115
        except FileNotFoundError:
            continue
        if _lock(lock) and (path / _LOCK).exists():
            return path, lock
        lock.close()


def _abandoned(path: Path) -> bool:
    """Removes a process's folder if nobody holds its lock."""
    try:
        lock = (path / _LOCK).open("rb")
    except OSError:
        return _without_lock(path)
    with lock:
        if not _lock(lock):
            return False
        shutil.rmtree(path, ignore_errors=True)
    return True


def _without_lock(path: Path) -> bool:
    try:
        if not path.is_dir() or time.time() - path.lstat().st_mtime < _MAKING_S:
            return False
    except OSError:
        return False
    shutil.rmtree(path, ignore_errors=True)
    return True


def _lock(file: IO[bytes]) -> bool:
    """Whether the lock is ours now."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
