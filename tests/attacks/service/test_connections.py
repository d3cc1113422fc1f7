"""Connections that are slow, idle or many. Each docstring: what it wants; what must happen."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.attacks.service.conftest import closed_within

LIMITS = {"head_s": 1.0, "body_s": 1.0, "idle_s": 1.0, "answer_s": 4.0}
GRACE_S = 5.0
HEAD = (
    b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer right-token\r\nContent-Length: 100\r\n\r\n"
)
GET = b"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer right-token\r\n\r\n"


@pytest.fixture
def quick(make_town: Callable[..., Any]) -> Any:
    """A service whose deadlines are short."""
    return make_town(limits=LIMITS)


def honest(town: Any, seconds: float = 3.0) -> None:
    """Somebody with a token is answered soon, on a new connection."""
    started = time.monotonic()
    with town.client() as http:
        assert http.get("/v1/status").status_code == 200
    assert time.monotonic() - started < seconds


@contextlib.contextmanager
def crowd(town: Any, count: int, first: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections that have sent so much."""
    open_: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = town.raw()
            with contextlib.suppress(OSError):
                connection.sendall(first)
            open_.append(connection)
        yield open_
    finally:
        for connection in open_:
            connection.close()


def drip(connection: socket.socket, text: bytes, seconds: float) -> bool:
    """Sends a byte every tenth of a second; whether the server hung up within the time."""
    deadline = time.monotonic() + seconds
    for byte in text * 1000:
        if time.monotonic() > deadline:
            return False
        try:
            connection.sendall(bytes([byte]))
        except OSError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("first", [b"", b"G", b"GET /v1/status HTTP/1.1\r\nHost: x\r\nA: "])
def test_open_and_be_silent(quick: Any, first: bytes) -> None:
    """Wants a connection for ever by never finishing the head. It has the head's time."""
    with quick.raw() as connection:
        connection.sendall(first)
        assert closed_within(connection, 3)


def test_drip_the_head(quick: Any) -> None:
    """Sends a byte now and then, so that something always comes. The time is for the whole head."""
    with quick.raw() as connection:
        connection.sendall(b"GET /v1/status HTTP/1.1\r\nX: ")
        assert drip(connection, b"a", 4)


def test_drip_the_head_of_the_second_request(quick: Any) -> None:
    """Behaves once, then drips. The second head has the same time."""
    with quick.raw() as connection:
        connection.sendall(GET)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert drip(connection, b"G", 4)


def test_drip_the_body(quick: Any) -> None:
    """Has a token and drips a body. 408 after the body's time."""
    with quick.raw() as connection:
        connection.sendall(HEAD)
        started = time.monotonic()
        while b"408" not in (answer := _now(connection)) and time.monotonic() - started < 4:
            with contextlib.suppress(OSError):
                connection.sendall(b" ")
            time.sleep(0.1)
        assert answer.startswith(b"HTTP/1.1 408")
        assert closed_within(connection, LIMITS["idle_s"] + GRACE_S + 2)


def _now(connection: socket.socket) -> bytes:
    connection.settimeout(0.05)
    try:
        return connection.recv(65536)
    except (TimeoutError, ConnectionError):
        return b""


def test_keep_a_connection_after_the_answer(quick: Any) -> None:
    """Wants to sit on an idle connection. It is closed."""
    with quick.raw() as connection:
        connection.sendall(GET)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert closed_within(connection, LIMITS["idle_s"] + 2)


def test_never_take_the_answers(quick: Any) -> None:
    """Asks for the schema again and again and reads nothing. The connection is cut, others are answered."""
    request = GET.replace(b"/v1/status", b"/v1/openapi.json")
    with quick.raw() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.settimeout(0.2)
        cut, deadline = False, time.monotonic() + 15
        while not cut and time.monotonic() < deadline:
            try:
                connection.sendall(request * 50)
            except TimeoutError:
                time.sleep(0.1)
            except OSError:
                cut = True
        assert cut
    honest(quick)


def test_send_a_head_without_end(quick: Any) -> None:
    """Wants memory by header lines without end. Refused at sixteen kilobytes."""
    with quick.raw() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        with contextlib.suppress(OSError):
            for number in range(4000):
                connection.sendall(b"X-%d: %s\r\n" % (number, b"a" * 100))
        assert closed_within(connection, 2)
    honest(quick)


@pytest.mark.parametrize("first", [b"", b"GET /v1/status HTTP/1.1\r\nHost: x\r\n"])
def test_lock_everybody_out_with_half_open_connections(town: Any, first: bytes) -> None:
    """1,100 connections of the honest client's own address that send nothing, or half a head.

    The deadlines are the usual ones, so that all are still open. Whoever asks is answered.
    """
    with crowd(town, 1100, first):
        for _ in range(5):
            honest(town)


def test_lock_everybody_out_with_answered_connections(town: Any) -> None:
    """600 connections that were refused once and stay. They are the first to go."""
    with crowd(town, 600, GET.replace(b"right-token", b"wrong-token")):
        for _ in range(5):
            honest(town)


def test_lock_everybody_out_while_a_job_is_waited_for(town: Any) -> None:
    """Wants the honest client's own long request to be what makes room. It is answered."""
    verdicts: list[Any] = []

    def ask() -> None:
        with town.client() as http:
            job = http.post("/v1/jobs", json=town.body(script="sleep 2")).json()["id"]
            verdicts.append(http.get(f"/v1/jobs/{job}", params={"wait": 30}).json()["verdict"])

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.5)
    with crowd(town, 600):
        asking.join()
    assert verdicts and verdicts[0]


def test_open_again_and_again(town: Any) -> None:
    """Opens connections as fast as it can, in the place of each that goes. The honest one gets through."""
    ended = threading.Event()

    def hammer() -> None:
        held: list[socket.socket] = []
        while not ended.is_set():
            with contextlib.suppress(OSError):
                held.append(town.raw())
            if len(held) > 400:
                held.pop(0).close()
        for connection in held:
            connection.close()

    hammering = threading.Thread(target=hammer)
    hammering.start()
    try:
        answered = 0
        for _ in range(20):
            with contextlib.suppress(Exception), town.client() as http:
                answered += http.get("/v1/status").status_code == 200
        assert answered >= 15
    finally:
        ended.set()
        hammering.join()


def test_never_shake_hands(make_town: Callable[..., Any], make_certificate: Any) -> None:
    """Over https: connections that never begin TLS, kept for a minute by uvicorn alone. They make room."""
    town = make_town(
        options={"tls": [str(path) for path in make_certificate]},
        limits={"head_s": 2.0, "connections_an_address": 64},
    )
    with crowd(town, 300) as open_:
        honest(town)
        assert closed_within(open_[-1], 5)
    honest(town)


def test_pipeline_a_thousand_requests(quick: Any) -> None:
    """A thousand requests in one packet, to be worked off at once. Others are answered in between."""
    with quick.raw() as connection:
        connection.sendall(GET * 1000)
        honest(quick)
