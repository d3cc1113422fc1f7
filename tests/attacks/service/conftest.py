"""A service in a process of its own, its users, and sockets that do not behave."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from evokernel_core.domain.sentence import sentence_of
from evokernel_core.domain.serial import to_data
from evokernel_core.verifier.serving.tokens import TokenStore
from evokernel_core.verifier.serving.users import Priority, Quota, Scope
from tests.verifier.service.conftest import (
    Server,
    free_port,
    make_certificate,
    make_kernel,
    make_server,
    server,
)

__all__ = ["make_certificate", "make_kernel", "make_server", "server"]

Kernel = Callable[..., tuple[Any, Any]]


class Town:
    """A server and those who live around it."""

    def __init__(self, server: Server, make: Kernel) -> None:
        self.server = server
        self._make = make

    def token(
        self, user: str, *scopes: Scope, days: float = 1, only: Priority | None = None, **quota: int
    ) -> str:
        store = TokenStore(self.server.folder)
        made = store.add(
            user,
            frozenset(scopes or [Scope.SUBMIT]),
            days=days,
            priorities=frozenset([only] if only else Priority),
            quota=Quota(**quota),
        )
        store.close()
        return made

    def revoke(self, which: str) -> int:
        store = TokenStore(self.server.folder)
        count = store.revoke(which)
        store.close()
        return count

    def client(self, token: str = "right-token") -> httpx2.Client:
        return self.server.client(token)

    def body(self, name: str = "scale", script: str = "", **more: Any) -> dict[str, Any]:
        task, source = self._make(name, script)
        return {"task": to_data(task), "source": to_data(source)} | more

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=10)

    def say(self, data: bytes) -> bytes:
        """What the server answers to these bytes, until it closes or is silent for a second."""
        with self.raw() as connection:
            connection.sendall(data)
            connection.settimeout(1)
            return heard(connection)

    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.server.folder / "audit.jsonl").read_text().splitlines()]


def is_problem(answer: httpx2.Response) -> bool:
    """Whether an answer is one sentence and, where it has values, what it is made of."""
    data = answer.json()
    if set(data) == {"error", "said"}:
        return str(sentence_of(data["said"])) == data["error"]
    return list(data) == ["error"]


def heard(connection: socket.socket) -> bytes:
    answer = b""
    try:
        while more := connection.recv(65536):
            answer += more
    except (TimeoutError, ConnectionResetError):
        pass
    return answer


def closed_within(connection: socket.socket, seconds: float) -> bool:
    """Whether the server hangs up in so many seconds, whatever it says before."""
    deadline = time.monotonic() + seconds
    try:
        while (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            if not connection.recv(65536):
                return True
    except TimeoutError:
        return False
    except OSError:
        return True
    return False


@pytest.fixture
def make_town(make_server: Callable[..., Server], make_kernel: Kernel) -> Callable[..., Town]:
    return lambda **options: Town(make_server(**options), make_kernel)


@pytest.fixture
def town(server: Server, make_kernel: Kernel) -> Town:
    return Town(server, make_kernel)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One service for the attacks that leave nothing behind in it."""
    server = Server(tmp_path_factory.mktemp("service"), free_port()).start()
    yield server
    server.kill()


@pytest.fixture
def square(shared: Server, make_kernel: Kernel) -> Town:
    return Town(shared, make_kernel)
