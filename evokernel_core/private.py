"""Files and folders that only their owner reads: what is kept is a person's code and what they decided."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def private_folder(folder: Path) -> Path:
    """Makes a folder that nobody else can read, as well as what is missing above it, and closes it where
    others could. Raises OSError."""
    for ancestor in reversed(folder.parents):
        ancestor.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    _close(folder, 0o700)
    return folder


def private_file(path: Path) -> Path:
    """Makes an empty file, or takes one that is there, and lets its owner alone read it. Raises OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))
    _close(path, 0o600)
    return path


def private_opener(path: str, flags: int) -> int:
    """For ``open(..., opener=private_opener)``: a new file is its owner's alone."""
    return os.open(path, flags, 0o600)


def _close(path: Path, mode: int) -> None:
    """Another person's file keeps its mode, and so does one on a disk that is not written."""
    if path.stat().st_mode & 0o077:
        with contextlib.suppress(OSError):
            path.chmod(mode)
