"""The two ends of standard input and output: guarded, never blocking, and watched.

Whatever anything prints goes to stderr, because a stray line on stdout would end the session.
Nothing waits for the client on the event loop: a client that sends a large document without reading
its end of the pipe would otherwise wait for us while we wait for it. A thread is woken no more often than
that needs, since a busy machine may take milliseconds for each time.
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import sys
import threading
from typing import BinaryIO

_PIECE = 1 << 16
"""Bytes that are read at once: what a pipe of Linux holds."""
_MOST_READ = 1 << 20
"""Bytes that wait to be understood before the client has to wait."""


def guard_stdout() -> BinaryIO:
    """Points file descriptor 1 at stderr and returns the real stdout as a private stream."""
    sys.stdout.flush()
    real = os.dup(1)
    os.set_inheritable(real, False)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return os.fdopen(real, "wb", buffering=0)


def guard_stdin() -> int:
    """Keeps the real stdin private, and returns its descriptor: child processes read nothing instead of the
    client's messages."""
    real = os.dup(0)
    os.set_inheritable(real, False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return real


class Incoming:
    """What comes through a descriptor, which a thread reads in pieces as they come. Lives on the running
    loop; ``readline`` and ``readexactly`` are those of a stream, and give what there is where that ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._read = 0
        """Bytes that the thread has read, also those that the loop was too busy to hear of."""
        self._taken = 0
        self._ended = False
        self._arrived = asyncio.Event()
        self._room = threading.Event()
        threading.Thread(target=self._run, name="stdin", daemon=True).start()

    async def readline(self) -> bytes:
        seen = 0
        while (end := self._buffer.find(b"\n", seen)) < 0 and not self._ended:
            seen = len(self._buffer)
            await self._more()
        return self._take(end + 1 if end >= 0 else len(self._buffer))

    async def readexactly(self, n: int) -> bytes:
        await asyncio.sleep(0)  # what earlier messages have begun goes on between two that came together
        while len(self._buffer) < n and not self._ended:
            await self._more()
        return self._take(n)

    async def _more(self) -> None:
        self._arrived.clear()
        self._room.set()
        await self._arrived.wait()

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._taken += len(taken)
        return taken

    def _feed(self, data: bytes) -> None:
        self._buffer += data
        self._ended = not data
        self._arrived.set()

    def _run(self) -> None:
        data = b"begin"
        while data:
            self._room.wait()
            try:
                data = os.read(self._descriptor, _PIECE)
            except OSError:
                data = b""  # the client is gone
            self._read += len(data)
            if self._read - self._taken > _MOST_READ:
                self._room.clear()  # until the loop, which hears of this piece next, asks for more
            try:
                self._loop.call_soon_threadsafe(self._feed, data)
            except RuntimeError:
                return  # the loop has ended


class QueuedStream:
    """A writable stream whose ``write`` returns at once. What the other end surely takes is written there
    and then, the rest by a thread, in order."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._queued = 0
        """Messages that the thread has not written yet."""
        self._thread = threading.Thread(target=self._run, name="stdout", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> int:
        with self._lock:
            at_once = not self._queued and _takes(self._stream, len(data))
            if not at_once:
                self._queued += 1
                self._queue.put(data)
            elif not self._written(data):
                return 0
        return len(data)

    def flush(self) -> None:
        """The thread writes unbuffered, so there is nothing to flush."""

    def close(self) -> None:
        """Writes what is queued, for at most a second."""
        self._queue.put(None)
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while (data := self._queue.get()) is not None and self._written(data):
            with self._lock:
                self._queued -= 1

    def _written(self, data: bytes) -> bool:
        try:
            _write_all(self._stream, data)
        except OSError:
            return False  # the client is gone; the reader sees the end of stdin
        return True


def _takes(stream: BinaryIO, size: int) -> bool:
    """Whether so many bytes can be written without waiting: a pipe that is ready takes ``PIPE_BUF``. Windows
    does not tell of a pipe whether it is ready."""
    if size > getattr(select, "PIPE_BUF", 0):
        return False
    ready = select.poll()
    ready.register(stream.fileno(), select.POLLOUT)
    return ready.poll(0) == [(stream.fileno(), select.POLLOUT)]


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
