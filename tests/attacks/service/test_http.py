"""HTTP that two readers could read in two ways. Each case: what it wants; what must happen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.attacks import Attack, each
from tests.attacks.service.conftest import heard, is_problem

TOKEN = b"Authorization: Bearer right-token\r\n"
POST = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + TOKEN
STATUS = b" /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
BODY = b"\r\n2\r\n{}\r\n0\r\n\r\n"
NO_HTTP = "it is no HTTP"
FRAMES = {
    "two-lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "signed-length": b"Content-Length: +2\r\n\r\n{}",
    "unknown-coding": b"Transfer-Encoding: xchunked\r\n" + BODY,
    "coding-before-chunks": b"Transfer-Encoding: gzip, chunked\r\n" + BODY,
    "chunks-before-coding": b"Transfer-Encoding: chunked, identity\r\n" + BODY,
    "coding-twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" + BODY,
    "blank-before-colon": b"Transfer-Encoding : chunked\r\n" + BODY,
    "vertical-tab": b"Transfer-Encoding:\x0bchunked\r\n" + BODY,
    "zero-in-a-header": b"X: a\0b\r\n\r\n",
    "negative-chunk": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "prefixed-chunk": b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "chunk-without-end": b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
}


@each([Attack(name, "two readers to see two requests", NO_HTTP, data) for name, data in FRAMES.items()])
def test_frame_a_body_in_two_ways(attack: Attack, square: Any) -> None:
    answer = square.say(POST + attack.given)
    assert answer.startswith(b"HTTP/1.1 400") and answer.count(b"HTTP/1.1 ") == 1


MOST = 16 * 1024
FIRST = b"GET /v1/status HTTP/1.1\r\nHost: x\r\n" + TOKEN + b"\r\n"
LONG: dict[str, tuple[bytes, bytes]] = {
    "one-header": (b"", b"GET" + STATUS + TOKEN + b"X: " + b"x" * MOST + b"\r\n\r\n"),
    "many-headers": (b"", b"GET" + STATUS + TOKEN + b"X: y\r\n" * (MOST // 6) + b"\r\n"),
    "blanks": (b"", b"GET" + STATUS + TOKEN + b"X:" + b" " * MOST + b"x\r\n\r\n"),
    "target": (b"", b"GET /v1/status?" + b"x" * MOST + b" HTTP/1.1\r\nHost: x\r\n" + TOKEN + b"\r\n"),
    "without-token": (b"", b"GET" + STATUS + b"X: " + b"x" * MOST + b"\r\n\r\n"),
    "token": (b"", b"GET" + STATUS + b"Authorization: Bearer " + b"x" * MOST + b"\r\n\r\n"),
    "behind-another": (FIRST, b"GET" + STATUS + TOKEN + b"X: " + b"x" * MOST + b"\r\n\r\n"),
    "trailer": (b"", POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * MOST + b"\r\n\r\n"),
}


@each([Attack(name, "memory by heads", "it is no HTTP", given) for name, given in LONG.items()])
@pytest.mark.parametrize("pieces", [1, 7], ids=["in-one-piece", "in-seven"])
def test_send_a_head_without_end(attack: Attack, pieces: int, square: Any) -> None:
    before, text = attack.given
    size = len(text) // pieces + 1
    with square.raw() as connection:
        for start in range(0, len(text), size):
            connection.sendall((b"" if start else before) + text[start : start + size])
            time.sleep(0.02)
        connection.settimeout(5)
        answer = heard(connection)
    assert answer.count(b"HTTP/1.1 200") == bool(before)
    assert answer.count(b"HTTP/1.1 400") == 1, answer[:300]


def test_a_head_that_just_fits_is_answered(square: Any) -> None:
    head = b"GET" + STATUS + TOKEN
    for more, status in ((0, b"200"), (1, b"400")):
        blanks = b"X: " + b"x" * (MOST - len(head) - 7 + more) + b"\r\n\r\n"
        assert len(head + blanks) == MOST + more
        assert square.say(head + blanks).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    "method", [b"TRACE", b"OPTIONS", b"CONNECT", b"PROPFIND", b"PUT", b"PATCH", b"GE\tT"]
)
def test_use_a_method_that_tells_more(square: Any, method: bytes) -> None:
    """Wants its headers repeated, a tunnel, or a browser to be let in. 405 or no HTTP, without the token."""
    answer = square.say(method + STATUS + b"Origin: http://evil.example\r\n" + TOKEN + b"\r\n")
    assert answer.startswith((b"HTTP/1.1 405", b"HTTP/1.1 400"))
    assert b"right-token" not in answer and b"access-control" not in answer.lower()


@pytest.mark.parametrize("upgrade", [b"websocket", b"h2c", b"TLS/1.0"])
def test_change_the_protocol(square: Any, upgrade: bytes) -> None:
    """Wants past the check of tokens by another protocol on the connection. It stays HTTP/1.1, and 401."""
    fields = b"Upgrade: " + upgrade + b"\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    answer = square.say(b"GET" + STATUS + b"Sec-WebSocket-Version: 13\r\n" + fields + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    "target", [b"http://evil.example/v1/status", b"//v1/status", b"/v1/../v1/status", b"*"]
)
def test_name_another_target(square: Any, target: bytes) -> None:
    """Wants a path that a proxy lets pass and the service reads as another. 404, or 400 for what is none."""
    head = b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    assert square.say(head + b"\r\n").startswith((b"HTTP/1.1 401", b"HTTP/1.1 400"))
    assert square.say(head + TOKEN + b"\r\n").startswith((b"HTTP/1.1 404", b"HTTP/1.1 400"))


def test_come_from_another_address(square: Any) -> None:
    """Wants its refusals to be another's in the log and in the limits. The connection's address counts."""
    names = (b"X-Forwarded-For", b"X-Real-IP", b"Forwarded", b"True-Client-IP")
    fields = b"".join(name + b": for=203.0.113.9\r\n" for name in names)
    square.say(b"GET" + STATUS + fields + b"Authorization: Bearer wrong\r\n\r\n")
    assert {line["address"] for line in square.audit() if "address" in line} <= {"127.0.0.1"}


HALVES: list[tuple[tuple[str, ...], Any]] = [
    (("source",), {"\ud800": 1}),
    (("client",), "\ud800"),
    (("priority",), "\udfff"),
    (("source", "files", "op_kernel.cpp"), "\ud800"),
    (("task", "op_category"), "\ud800"),
    (("task", "name"), "\ud800"),
    (("\ud800",), 1),
]


@pytest.mark.parametrize(("path", "value"), HALVES, ids=[str(number) for number in range(len(HALVES))])
def test_have_a_half_character_repeated(square: Any, path: tuple[str, ...], value: Any) -> None:
    """Wants an answer that cannot be written, by text that has no UTF-8 form. 422 and a sentence."""
    data = square.body()
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    content = json.dumps(data).encode()
    with square.client() as http:
        answer = http.post("/v1/jobs", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422 and is_problem(answer)


def test_fill_the_disk_with_warnings(make_town: Callable[..., Any], tmp_path: Path) -> None:
    """Sends what is no HTTP, a line on the service's standard error each. It says nothing of them."""
    errors = tmp_path / "errors"
    town = make_town(errors=errors)
    for _ in range(5):
        town.say(b"nonsense\r\n\r\n")
        town.say(b"GET" + STATUS + b"Upgrade: websocket\r\n\r\n")
    assert errors.read_text() == ""
