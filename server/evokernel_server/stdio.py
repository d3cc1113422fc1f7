"""The two ends of standard input and output: guarded, never blocking, and watched.

Whatever anything prints goes to stderr, because a stray line on stdout would end the session.
Writing happens on a thread of its own: a client that sends a large document without reading
its end of the pipe would otherwise wait for us while we wait for it.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from typing import BinaryIO


def guard_stdout() -> BinaryIO:
    """Points file descriptor 1 at stderr and returns the real stdout as a private stream."""
    sys.stdout.flush()
    real = os.dup(1)
    os.set_inheritable(real, False)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return os.fdopen(real, "wb", buffering=0)


def guard_stdin() -> BinaryIO:
    """Keeps the real stdin private: child processes read nothing instead of the client's messages."""
    real = os.dup(0)
    os.set_inheritable(real, False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return os.fdopen(real, "rb")


class QueuedStream:
    """A writable stream whose ``write`` returns at once; a thread does the writing in order."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="stdout", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> int:
        self._queue.put(data)
        return len(data)

    def flush(self) -> None:
        """The thread writes unbuffered, so there is nothing to flush."""

    def close(self) -> None:
        """Writes what is queued, for at most a second."""
        self._queue.put(None)
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            try:
                _write_all(self._stream, data)
            except OSError:
                return  # the client is gone; the reader sees the end of stdin


def _write_all(stream: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[stream.write(view) or 0 :]


def is_alive(pid: int) -> bool:
    """Whether a process of this id exists."""
    if os.name == "nt":
        import psutil

        return bool(psutil.pid_exists(pid))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
