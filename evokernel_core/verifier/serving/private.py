"""Files and folders that only their owner can read."""

from __future__ import annotations

import os
from pathlib import Path


def private_folder(folder: Path) -> Path:
    """The folder, made for its owner alone if it is not there. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def make_private(path: Path) -> Path:
    """The file, made if it is not there, with mode 0600 also where it was wider. Raises OSError.

    SQLite gives its journals the mode of their database.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    return path
