"""Frames on a pipe: the length of a head in eight bytes, the head in JSON, and as many blobs as it says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, Any

_LENGTH = 8
BLOBS = "blobs"
"""In a head: the bytes of each blob behind it."""


def write(stream: IO[bytes], head: dict[str, Any], blobs: Sequence[Any] = ()) -> None:
    """Sends one frame. Raises OSError where nobody reads."""
    sizes = [memoryview(blob).nbytes for blob in blobs]
    text = json.dumps({**head, BLOBS: sizes}).encode()
    stream.write(len(text).to_bytes(_LENGTH, "little") + text)
    for blob in blobs:
        stream.write(memoryview(blob).cast("B") if memoryview(blob).nbytes else b"")
    stream.flush()


def read(stream: IO[bytes]) -> tuple[dict[str, Any], list[bytes]] | None:
    """The next frame, None at the end of the stream."""
    start = stream.read(_LENGTH)
    if len(start) < _LENGTH:
        return None
    text = stream.read(int.from_bytes(start, "little"))
    head: dict[str, Any] = json.loads(text)
    return head, [stream.read(size) for size in head[BLOBS]]
