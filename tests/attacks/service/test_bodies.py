"""Requests that are no honest question. Each docstring: what it wants; what must happen."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tests.attacks.service.conftest import is_problem

JSON = {"Content-Type": "application/json"}
HEAD = (
    b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer right-token\r\n"
    b"Content-Type: application/json\r\n"
)


def post(town: Any, content: bytes, **headers: str) -> Any:
    with town.client() as http:
        return http.post("/v1/jobs", content=content, headers=JSON | headers)


def alive(town: Any) -> bool:
    with town.client() as http:
        return bool(http.get("/v1/status").status_code == 200)


def test_send_more_than_the_limit(square: Any) -> None:
    """Announces a terabyte. Refused by the announcement, before a byte of it."""
    answer = square.say(HEAD + b"Content-Length: 1099511627776\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")


def test_send_more_than_the_limit_unannounced(square: Any) -> None:
    """Sends chunks without end. Refused as soon as they are too much."""
    with square.client() as http:
        answer = http.post("/v1/jobs", content=(b" " * 2**20 for _ in range(6)), headers=JSON)
    assert answer.status_code == 413


@pytest.mark.parametrize("length", [b"-1", b"1e9", b"0x10", b"9" * 400, b"4, 5", b" "])
def test_announce_a_strange_length(square: Any, length: bytes) -> None:
    """Wants two readers to see two lengths. It is no HTTP, or too large."""
    answer = square.say(HEAD + b"Content-Length: " + length + b"\r\n\r\n{}")
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413"))
    assert alive(square)


def test_smuggle_a_second_request(square: Any) -> None:
    """Says both length and chunks, so that a proxy and the service disagree. One answer at most, no job."""
    inner = b"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer right-token\r\n\r\n"
    answer = square.say(
        HEAD + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (5 + len(inner)) + inner
    )
    assert answer.startswith(b"HTTP/1.1 4")


def test_unpack_a_bomb(square: Any) -> None:
    """Four kilobytes that unpack to four megabytes. Nothing is unpacked."""
    assert post(square, gzip.compress(b" " * 2**22), **{"Content-Encoding": "gzip"}).status_code == 422


def at(*path: str | int) -> Callable[[dict[str, Any], Any], None]:
    def put(data: Any, value: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = value

    return put


SHAPE = at("task", "graph", "inputs", 0, "spec", "shape")
ARGUMENT = at("task", "graph", "nodes", 0, "args")
STRATEGY = at("source", "strategy", "settings")


def nested(depth: int, what: type = list) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if what is list else {"a": value}
    return value


@pytest.mark.parametrize(
    ("put", "value"),
    [
        (SHAPE, ["-" * 50_000 + "1", 4]),
        (SHAPE, ["-" * 99_999 + "1", 4]),
        (SHAPE, ["(" * 5_000 + "1" + ")" * 5_000, 4]),
        (SHAPE, ["1+" * 30_000 + "1", 4]),
        (SHAPE, ["9" * 6_000, 4]),
        (SHAPE, ["9**9**9", 4]),
        (SHAPE, ["__import__('os').getpid()", 4]),
        (SHAPE, [nested(60), 4]),
        (SHAPE, [10**30, 4]),
        (ARGUMENT, nested(200)),
        (ARGUMENT, nested(200, dict)),
        (ARGUMENT, [10**400]),
        (STRATEGY, nested(500, dict)),
        (STRATEGY, [[0]] * 300_000),
    ],
    ids=lambda value: str(value)[:24] if not callable(value) else "",
)
def test_tire_the_reader(square: Any, put: Any, value: Any) -> None:
    """Wants a crash, a stack overflow or minutes of work from one field. 422 and a sentence."""
    data = square.body()
    put(data, value)
    answer = post(square, json.dumps(data).encode())
    assert answer.status_code == 422, answer.text[:200]
    assert is_problem(answer)
    assert len(answer.content) < 3_000
    assert alive(square)


@pytest.mark.parametrize("depth", [100, 900, 5_000, 1_000_000])
@pytest.mark.parametrize("bracket", [b"[", b'{"a":'])
def test_nest_the_whole_body(square: Any, depth: int, bracket: bytes) -> None:
    """Wants the parser's stack. 422, closed or not."""
    close = b"]" if bracket == b"[" else b"1}"
    for content in (bracket * depth, bracket * depth + close * depth):
        assert post(square, content[: 4 * 2**20]).status_code == 422
    assert alive(square)


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 5_000, "9223372036854775808"]
)
def test_send_numbers_that_are_none(square: Any, number: str) -> None:
    """Wants a comparison that is never false, or a size that overflows. 422."""
    data = square.body()
    data["task"]["graph"]["nodes"][0]["args"] = ["NUMBER"]
    assert post(square, json.dumps(data).replace('"NUMBER"', number).encode()).status_code == 422


@pytest.mark.parametrize(
    "name",
    [
        "..%2f..%2fetc%2fpasswd",
        "..",
        "%00",
        "%2e%2e%2f",
        "0" * 63 + "G",
        "0" * 65,
        "A" * 64,
        "0" * 64 + "%0a",
        "%27%20OR%201=1--",
    ],
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_wander_through_ids(square: Any, name: str, method: str) -> None:
    """Wants a file, another row or a log line by an id that is none. 404, 405 or 422, and a sentence."""
    line = f"{method} /v1/jobs/{name} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer right-token\r\n\r\n"
    answer = square.say(line.encode())
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 405", b"HTTP/1.1 422"))
    assert b"root:" not in answer


@pytest.mark.parametrize("client", ["a\nb", 'a", "user": "owner', "../x", "a" * 65, "\x00", "é", "a b"])
def test_write_a_line_into_the_log(square: Any, client: str) -> None:
    """Wants to forge a line by its own name. 422, and every line of the log is still one object."""
    assert post(square, json.dumps(square.body(client=client)).encode()).status_code == 422
    assert all(line.get("user") != "forged" for line in square.audit())


def test_write_a_line_into_the_log_by_the_method(square: Any) -> None:
    """Wants control characters in the log by way of the request line. They stay outside or in quotes."""
    square.say(b'FORGED", "user": "forged HTTP/1.1\r\nHost: x\r\n\r\n')
    square.say(b"F\x1b[2J /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
    square.say(b"FORGED /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
    text = (square.server.folder / "audit.jsonl").read_text()
    assert "\x1b" not in text
    assert all(line.get("user") != "forged" for line in square.audit())


def test_inject_a_header(square: Any) -> None:
    """Wants its own line in the answer's head. What was asked comes back in the body alone, if at all."""
    answer = square.say(
        b"GET /v1/%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer right-token\r\n\r\n"
    )
    head = answer.partition(b"\r\n\r\n")[0]
    assert answer.startswith(b"HTTP/1.1 404") and b"Set-Cookie" not in head


@pytest.mark.parametrize("path", ["/v1/status/", "//evil.example/v1", "/v1/jobs/", "/v1/%2e%2e/status"])
def test_be_sent_elsewhere(square: Any, path: str) -> None:
    """Gives another host, and wants an answer that leads there. No redirect, no echo of the host."""
    answer = square.say(
        f"GET {path} HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer right-token\r\n\r\n".encode()
    )
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 405"))
    assert b"location" not in head and b"evil" not in head


def test_ask_from_a_web_page(square: Any) -> None:
    """A page in a browser on the host asks for permission to talk to the service. It gets none."""
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    with square.client() as http:
        for token in ("Bearer right-token", "Bearer x"):
            answers = [
                http.request(method, "/v1/jobs", headers=origin | {"Authorization": token})
                for method in ("OPTIONS", "GET")
            ]
            assert all(answer.status_code in (401, 405) for answer in answers)
            assert not [
                name for answer in answers for name in answer.headers if "access-control" in name.lower()
            ]


def test_claim_another_address(square: Any) -> None:
    """Wants the log to blame somebody else. Headers about addresses are not believed."""
    with square.client("wrong") as http:
        http.get("/v1/status", headers={"X-Forwarded-For": "203.0.113.7", "Forwarded": "for=203.0.113.7"})
    assert {line["address"] for line in square.audit() if line["what"] == "refused"} == {"127.0.0.1"}


def test_send_a_pickle(square: Any) -> None:
    """A body and a kernel that are pickles, for whoever unpacks them. Text stays text."""

    class Bomb:
        def __reduce__(self) -> Any:
            return (print, ("boom",))

    bomb = pickle.dumps(Bomb(), protocol=0)
    assert post(square, bomb).status_code == 422
    data = square.body(script=f"// {bomb!r}")
    job = post(square, json.dumps(data).encode()).json()["id"]
    with square.client() as http:
        assert http.get(f"/v1/jobs/{job}", params={"wait": 10}).json()["verdict"]


def test_change_the_protocol(square: Any) -> None:
    """Wants a WebSocket, for which no limit was written. There is none."""
    answer = square.say(
        b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 401")
