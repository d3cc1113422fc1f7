"""Whoever stands at a verifier's address wants the client's memory, its time, or both."""

from __future__ import annotations

import gzip
import itertools
import resource
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evokernel_core.domain.errors import VerifierError, VerifierUnavailable
from evokernel_core.verifier import client
from evokernel_core.verifier.client import RemoteVerifier
from tests.attacks import Attack, each
from tests.verifier.service.conftest import make_kernel

__all__ = ["make_kernel"]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ANSWER_S = 0.6
MOST = 2**20
"""Limits of these tests, so that an attack which would take minutes shows within a second."""
BOMB = b" " * 2**24

Bytes = Iterator[bytes]


def slowly(text: bytes, pause: float = 0.1) -> Bytes:
    for byte in text:
        yield bytes([byte])
        time.sleep(pause)


def _for_ever(piece: bytes, pause: float = 0.0) -> Bytes:
    for item in itertools.repeat(piece):
        yield item
        time.sleep(pause)


def after(first: bytes, rest: Bytes) -> Bytes:
    yield first
    yield from rest


def packed(name: bytes, data: bytes) -> Bytes:
    size = str(len(data)).encode()
    yield HEAD + b"Content-Encoding: " + name + b"\r\nContent-Length: " + size + b"\r\n\r\n" + data


def _drip(first: bytes, byte: bytes) -> Bytes:
    return after(first, _for_ever(byte, 0.1))


SPACES = b"10000\r\n" + b" " * 2**16 + b"\r\n"
LONG = HEAD + b"Content-Length: 1000000000000\r\n\r\n"
SIZE, TIME, WORDS = "more than 1 MB", "not done answering", "packs its answers"
ATTACKS = [
    Attack(name, wants, must, given)
    for name, wants, must, given in (
        ("endless-body", "memory", SIZE, lambda: after(HEAD + b"\r\n", _for_ever(b" " * 2**16))),
        ("endless-chunks", "memory", SIZE, lambda: after(CHUNKED, _for_ever(SPACES))),
        ("a-terabyte", "memory", SIZE, lambda: after(LONG, _for_ever(b" " * 2**16))),
        ("gzip", "memory", WORDS, lambda: packed(b"gzip", gzip.compress(BOMB))),
        ("gzip-twice", "memory", WORDS, lambda: packed(b"gzip, gzip", gzip.compress(gzip.compress(BOMB)))),
        ("deflate", "memory", WORDS, lambda: packed(b"deflate", zlib.compress(BOMB))),
        ("unknown-packing", "memory", WORDS, lambda: packed(b"GZip", gzip.compress(BOMB))),
        ("drip-body", "time", TIME, lambda: _drip(LONG, b" ")),
        ("drip-chunks", "time", TIME, lambda: _drip(CHUNKED, b"1\r\n \r\n")),
        ("drip-the-status", "time", TIME, lambda: slowly(b"HTTP/1.1 200 " + b"O" * 100)),
        ("drip-the-head", "time", TIME, lambda: _drip(HEAD + b"X: ", b"x")),
        ("drip-headers", "time", TIME, lambda: _drip(HEAD, b"X: y\r\n")),
        ("drip-hints", "time", TIME, lambda: _drip(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n")),
        ("endless-hints", "time", TIME, lambda: _for_ever(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)),
        ("drip-a-chunks-size", "time", TIME, lambda: _drip(CHUNKED + b"1;", b"x")),
        ("drip-the-trailer", "time", TIME, lambda: _drip(CHUNKED + b"0\r\n", b"X: y\r\n")),
        ("silence", "time", TIME, lambda: _drip(HEAD + b"\r\n", b"")),
        ("silence-at-once", "time", TIME, lambda: _for_ever(b"", 0.1)),
        ("endless-headers", "memory", "is away", lambda: after(HEAD, _for_ever(b"X: " + b"y" * 2**16))),
    )
]


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[], Bytes]], str]]:
    """Serves one script for every connection; gives its address."""
    stop, listener = threading.Event(), socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket, script: Callable[[], Bytes]) -> None:
        with connection:
            try:
                connection.recv(65536)
                for piece in script():
                    if stop.is_set():
                        return
                    connection.sendall(piece)
            except OSError:  # the client has left, which is what it should
                return

    def accept(script: Callable[[], Bytes]) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection, script), daemon=True).start()

    def start(script: Callable[[], Bytes]) -> str:
        threading.Thread(target=accept, args=(script,), daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    stop.set()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LARGEST_ANSWER", MOST)
    monkeypatch.setattr(client, "ANSWER_S", ANSWER_S)


@each(ATTACKS)
def test_an_answer_that_never_ends_or_fills_the_memory(attack: Attack, serve: Any) -> None:
    remote = RemoteVerifier(serve(attack.given), "right-token", wait=0.0, patience=0.1)
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(VerifierError, match=attack.must) as raised:
        remote.status()
    assert time.monotonic() - started < ANSWER_S + 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024, "kilobytes"
    assert isinstance(raised.value, VerifierUnavailable) == (attack.must in {TIME, "is away"})
    remote.close()


def test_a_service_that_is_never_done_is_not_asked_without_a_pause(serve: Any, make_kernel: Any) -> None:
    """Wants the client's processor: it says at once that the job still runs, though it was asked to wait."""
    asked: list[float] = []

    def script() -> Bytes:
        asked.append(time.monotonic())
        name = b'"name": "n", "backend": "b", "chip": "c", "version": "1", "workers": 1, "queued": 0'
        status = b"{" + name + b', "running": 0, "done": 0, "id": "' + b"0" * 64 + b'", "state": "running"}'
        yield (
            HEAD + b"Connection: close\r\nContent-Length: " + str(len(status)).encode() + b"\r\n\r\n" + status
        )

    remote = RemoteVerifier(serve(script), "right-token", wait=0.2)
    end = time.monotonic() + 1.5
    with pytest.raises(VerifierError, match="cancelled"):
        remote.verify(*make_kernel(), cancelled=lambda: time.monotonic() > end)
    assert len(asked) < 12
    remote.close()
