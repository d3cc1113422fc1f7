"""The two ends of standard input and output: nothing lost, nothing out of order, nobody waits for anybody."""

from __future__ import annotations

import asyncio
import io
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, cast

import pytest
from evokernel_server.transport.stdio import Incoming, QueuedStream


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue  # the test has closed it


def send(end: int, pieces: Sequence[bytes]) -> threading.Thread:
    """Writes on a thread, since a pipe holds little, and closes the end."""

    def write() -> None:
        with os.fdopen(end, "wb", buffering=0) as stream:
            for piece in pieces:
                view = memoryview(piece)
                while view:
                    view = view[stream.write(view) :]

    thread = threading.Thread(target=write)
    thread.start()
    return thread


@pytest.mark.parametrize(
    "pieces",
    [
        [b"one\n", b"two\n", b"12345", b"three\n"],
        [b"o", b"ne\ntw", b"o\n123", b"45three", b"\n"],
        [b"one\ntwo\n12345three\n"],
    ],
)
async def test_what_comes_is_read_as_it_is_asked_for(pipe: tuple[int, int], pieces: list[bytes]) -> None:
    writing = send(pipe[1], pieces)
    incoming = Incoming(pipe[0])
    read = [await incoming.readline(), await incoming.readline(), await incoming.readexactly(5)]
    assert [*read, await incoming.readline()] == [b"one\n", b"two\n", b"12345", b"three\n"]
    assert await incoming.readline() == b"" == await incoming.readexactly(3)
    writing.join()


async def test_the_end_gives_what_there_is(pipe: tuple[int, int]) -> None:
    send(pipe[1], [b"half a line"]).join()
    incoming = Incoming(pipe[0])
    assert await incoming.readexactly(4) == b"half"
    assert await incoming.readexactly(100) == b" a line"
    assert await incoming.readline() == b""


async def test_a_message_may_be_larger_than_what_may_wait(pipe: tuple[int, int]) -> None:
    body = os.urandom(5 << 20)
    writing = send(pipe[1], [body, b"\nbehind\n"])
    incoming = Incoming(pipe[0])
    assert await incoming.readexactly(len(body)) == body
    assert [await incoming.readline(), await incoming.readline()] == [b"\n", b"behind\n"]
    writing.join()


async def test_a_client_that_floods_waits(pipe: tuple[int, int]) -> None:
    """What nobody asks for stays with the client but for a little."""
    writing = send(pipe[1], [b"\n", b"x" * (20 << 20), b"\n"])
    incoming = Incoming(pipe[0])
    assert await incoming.readline() == b"\n"
    while len(incoming._buffer) <= 1 << 20:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    assert len(incoming._buffer) < 2 << 20 and writing.is_alive()
    assert len(await incoming.readline()) == (20 << 20) + 1
    writing.join()


async def test_a_client_that_floods_waits_for_a_busy_loop(pipe: tuple[int, int]) -> None:
    """The thread read on until the loop came round to stopping it."""
    writing = send(pipe[1], [b"\n", b"x" * (20 << 20), b"\n"])
    incoming = Incoming(pipe[0])
    assert await incoming.readline() == b"\n"
    time.sleep(0.5)  # the loop stands still
    assert incoming._read < 2 << 20 and writing.is_alive()
    assert len(await incoming.readline()) == (20 << 20) + 1
    writing.join()


def test_large_and_small_messages_arrive_in_order(pipe: tuple[int, int]) -> None:
    """A large one is written by a thread: those behind it may not overtake it."""
    sent = [bytes([65 + number % 26]) * (200_000 if number % 7 == 0 else 10) for number in range(60)]
    got = bytearray()

    def read() -> None:
        while piece := os.read(pipe[0], 1 << 16):
            got.extend(piece)

    reading = threading.Thread(target=read)
    reading.start()
    stream = QueuedStream(os.fdopen(pipe[1], "wb", buffering=0))
    for message in sent:
        assert stream.write(message) == len(message)
    stream.close()
    stream._stream.close()
    reading.join()
    assert bytes(got) == b"".join(sent)


def test_nobody_waits_for_a_client_that_does_not_read(pipe: tuple[int, int]) -> None:
    stream = QueuedStream(os.fdopen(pipe[1], "wb", buffering=0))
    for _ in range(5_000):
        stream.write(b"x" * 100)  # a pipe holds 65,536 bytes
    read = 0
    while read < 500_000:
        read += len(os.read(pipe[0], 1 << 16))
    stream.close()
    stream._stream.close()


def test_a_client_that_is_gone_breaks_nothing(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    stream = QueuedStream(os.fdopen(pipe[1], "wb", buffering=0))
    for size in (10, 200_000, 10):
        stream.write(b"x" * size)
    stream.close()
    stream._stream.close()


class Slow(io.RawIOBase):
    """Takes a few bytes at a time, and tells ``begun`` when it has taken the first of them."""

    def __init__(self, end: int) -> None:
        self._end = end
        self.begun = threading.Event()

    def fileno(self) -> int:
        return self._end

    def write(self, data: Any) -> int:
        written = os.write(self._end, data[:4])
        self.begun.set()
        time.sleep(0.02)  # the other thread would write now
        return written


def test_two_threads_write_one_after_the_other(pipe: tuple[int, int]) -> None:
    """A message of another thread, such as a log, does not begin inside of one."""
    slow = Slow(pipe[1])
    stream = QueuedStream(cast(BinaryIO, slow))
    first = threading.Thread(target=stream.write, args=(b"first message",))
    first.start()
    assert slow.begun.wait(5)
    stream.write(b"second message")
    first.join()
    stream.close()
    assert os.read(pipe[0], 100) == b"first messagesecond message"


class Counted(QueuedStream):
    """Its counter takes a while to be read, in which another thread may change it."""

    @property
    def _queued(self) -> int:
        counted: int = self.__dict__.get("counted", 0)
        time.sleep(0.004 if threading.current_thread() is self._thread else 0.003)
        return counted

    @_queued.setter
    def _queued(self, value: int) -> None:
        self.__dict__["counted"] = value


def test_what_is_queued_is_counted_once_whoever_counts(pipe: tuple[int, int]) -> None:
    """Two threads count: a lost step would leave every later message to the thread, or let it overtake."""
    stream = Counted(os.fdopen(pipe[1], "wb", buffering=0))
    for _ in range(10):
        stream.write(b"x" * 5000)  # too large to be written at once
    stream.close()
    stream._stream.close()
    assert stream._queued == 0
