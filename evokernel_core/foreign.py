"""Files that somebody else wrote, as those of a package: read as what they should be, or not at all."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

MOST_BYTES = 4 * 1024**2
"""A manifest is some kilobytes, that of the largest program some hundred; sources are smaller."""


def read_foreign(path: Path, most: int = MOST_BYTES) -> str:
    """A regular file's text in UTF-8. Raises as ``read_foreign_bytes``, ValueError for other encodings."""
    return read_foreign_bytes(path, most).decode("utf-8")


def read_foreign_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """What a regular file holds.

    Raises OSError for what is not there and for a link, which could name any file of the reader's;
    ValueError for a pipe or a device and for more than ``most`` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        result = os.fstat(descriptor)
        if not stat.S_ISREG(result.st_mode):
            raise ValueError(f"{path} is no regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"{path} has more than {most} bytes")
    return data


def read_foreign_object(path: Path) -> dict[str, Any]:
    """A JSON object. Raises OSError, and ValueError for anything else, also where it is nested so deeply that
    reading it would take the reader down."""
    text = read_foreign(path)
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path} holds no object")
    return data
