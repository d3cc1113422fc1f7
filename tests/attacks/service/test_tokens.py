"""Who pretends to be somebody, or to be more. Each docstring: what it wants; what must happen."""

from __future__ import annotations

import sqlite3
import stat
import time
from typing import Any

import pytest

from evokernel_core.verifier.serving.tokens import TokenStore
from evokernel_core.verifier.serving.users import Priority, Scope

PLACES = [
    "/v1/status",
    "/v1/openapi.json",
    "/openapi.json",
    "/docs",
    "/redoc",
    "/metrics",
    "/v1/jobs/" + "0" * 64,
]


def refused(town: Any, token: str) -> bool:
    with town.client(token) as http:
        return bool(http.get("/v1/status").status_code == 401)


@pytest.mark.parametrize("path", PLACES)
def test_look_around_without_a_token(square: Any, path: str) -> None:
    """Wants the documentation, the schema or a job. Nothing is told."""
    with square.client() as http:
        del http.headers["Authorization"]
        answer = http.get(path)
    assert (answer.status_code, list(answer.json())) == (401, ["error"])


def test_guess_tokens(square: Any) -> None:
    """Wants in by likely words and by pieces of a real token. Each is refused."""
    real = square.token("alice")
    guesses = ["x", "token", "right-toke", "right-tokens", "RIGHT-TOKEN", "evk__", real[:-1], real[:17]]
    guesses += [
        real + "A",
        real.upper(),
        real.replace("_", "-"),
        real[:-1] + ("A" if real[-1] != "A" else "B"),
    ]
    assert [guess for guess in guesses if not refused(square, guess)] == []
    assert not refused(square, real)


def test_guess_the_secret_of_a_known_id(square: Any) -> None:
    """Knows an id from the list of tokens and tries secrets. The id opens nothing."""
    identity = square.token("bob").split("_")[1]
    assert refused(square, f"evk_{identity}_{'A' * 43}")
    assert refused(square, f"evk_{identity}_")


def test_steal_the_database(square: Any) -> None:
    """Reads tokens.db from a backup. It holds no token, and its hashes are none."""
    token = square.token("carol")
    secret = token.split("_", 2)[2]
    files = list(square.server.folder.glob("tokens.db*"))
    assert files and all(secret.encode() not in path.read_bytes() for path in files)
    with sqlite3.connect(square.server.folder / "tokens.db") as database:
        rows = database.execute("SELECT id, digest FROM tokens").fetchall()
    assert all(
        refused(square, guess)
        for identity, digest in rows
        for guess in (digest, f"evk_{identity}_{digest[:43]}")
    )


def test_read_the_files_as_another_user_of_the_host(square: Any) -> None:
    """Wants tokens, jobs or the log from the data folder. Only the owner can read them."""
    names = ["tokens.db", "queue.db", "queue.lock", "audit.jsonl"]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in square.server.folder.glob("*")}
    assert {name: modes[name] for name in names} == dict.fromkeys(names, 0o600)
    assert all(mode == 0o600 for name, mode in modes.items() if "db" in name)


def test_use_a_revoked_token(square: Any) -> None:
    """Goes on after the token was revoked, on a connection that is open. It ends with the next request."""
    token = square.token("dave")
    with square.client(token) as http:
        assert http.get("/v1/status").status_code == 200
        assert square.revoke("dave") == 1
        assert http.get("/v1/status").status_code == 401


def test_use_an_expired_token(square: Any) -> None:
    """Kept a token from last year. It is refused."""
    token = square.token("erin", days=0.2 / 86_400)
    time.sleep(0.3)
    assert refused(square, token)


def test_submit_with_a_token_for_reading(square: Any) -> None:
    """Wants to spend the service's time with a token that may only look. 403, and no job."""
    with square.client(square.token("frank", Scope.READ)) as http:
        assert http.post("/v1/jobs", json=square.body("looked")).status_code == 403
        assert http.delete("/v1/jobs/" + "0" * 64).status_code == 403
        assert http.get("/v1/status").json()["queued"] == 0


def test_ask_for_interactive_turns_with_a_background_token(square: Any) -> None:
    """Wants to go first. 403; without the wish the job is in the background."""
    with square.client(square.token("grace", only=Priority.BACKGROUND)) as http:
        assert http.post("/v1/jobs", json=square.body("urgent", priority="interactive")).status_code == 403
        assert http.post("/v1/jobs", json=square.body("urgent")).status_code == 201
    lines = [line for line in square.audit() if line["what"] == "submitted" and line["user"] == "grace"]
    assert [line["priority"] for line in lines] == ["background"]


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", "Bearer wrong"), ("Authorization", "Bearer right-token")],
        [("Authorization", "Bearer right-token"), ("Authorization", "Bearer right-token")],
        [("Authorization", "Bearer right-token, Bearer wrong")],
        [("Cookie", "Authorization=Bearer right-token")],
        [("Proxy-Authorization", "Bearer right-token")],
        [("X-Authorization", "Bearer right-token")],
        [("Authorization", "Bearer\tright-token")],
    ],
)
def test_hide_the_token_from_those_who_check(square: Any, headers: list[tuple[str, str]]) -> None:
    """Wants two readers of one request to see two tokens. Only one plain header counts."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    answer = square.say(f"GET /v1/status HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 401")


def test_put_the_token_into_the_address(square: Any) -> None:
    """Wants tokens in logs of proxies. A query is no token."""
    with square.client("x") as http:
        assert http.get("/v1/status?token=right-token&access_token=right-token").status_code == 401


def test_read_tokens_from_the_audit_log(square: Any) -> None:
    """Wants what others typed. The log has names and ids, never a token, right or wrong."""
    token = square.token("heidi")
    with square.client(token) as http:
        http.post("/v1/jobs", json=square.body("logged"))
    assert refused(square, "a-wrong-token-with-words")
    text = (square.server.folder / "audit.jsonl").read_text()
    assert "heidi" in text and token.split("_")[1] in text
    assert token.split("_", 2)[2] not in text
    assert "a-wrong-token" not in text and "right-token" not in text


def test_fill_the_disk_with_refusals(town: Any) -> None:
    """Wants a log that grows with every wrong token. An address has a few lines a minute."""
    with town.client("wrong") as http:
        for _ in range(100):
            http.get("/v1/status")
    assert 1 <= sum(line["what"] == "refused" for line in town.audit()) <= 20


def test_name_oneself_owner(tmp_path: Any) -> None:
    """Wants a user that the service takes for its owner. There is no such name to give."""
    store = TokenStore(tmp_path)
    for name in ("owner", "", "a b", "a\nb", "../x", "x" * 65, "-x", "ünal"):
        with pytest.raises(Exception, match="cannot name a user"):
            store.add(name, frozenset({Scope.ADMIN}), days=1)
    store.close()
