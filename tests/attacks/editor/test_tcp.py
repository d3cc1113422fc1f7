"""Whoever reaches the port of ``evokernel lsp --tcp`` wants to be its client: a page, a network."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evokernel_core.cli.lsp import _address
from evokernel_core.domain.errors import UsageError
from tests.attacks import Attack, each
from tests.attacks.editor.test_protocol import EVOKERNEL, said
from tests.verifier.service.conftest import free_port

INITIALIZE = {
    "processId": None,
    "rootUri": None,
    "capabilities": {},
    "initializationOptions": {"trusted": True},
}
MESSAGE = said("initialize", INITIALIZE, 1)
BODY = MESSAGE.partition(b"\r\n\r\n")[2]


class Port:
    """A server on a port of its own."""

    def __init__(self, home: Path) -> None:
        self.number = free_port()
        environment = {**os.environ, "EVOKERNEL_HOME": str(home)}
        command = [EVOKERNEL, "lsp", "--tcp", f"127.0.0.1:{self.number}"]
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    def connect(self) -> socket.socket:
        deadline = time.monotonic() + 30
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.number), timeout=30)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    """One server for connections that are closed again: it goes on waiting for its client."""
    port = Port(tmp_path_factory.mktemp("home"))
    yield port
    port.process.kill()
    port.process.wait()


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    port = Port(tmp_path)
    yield port
    port.process.kill()
    port.process.wait()


def answer(connection: socket.socket) -> bytes:
    """What comes first, nothing where the connection is closed."""
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


def http(method: bytes, fields: bytes = b"") -> bytes:
    head = method + b" / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n" + fields
    return head + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


CLOSED = "it is closed, and nothing in it is read"
SENT = {
    "post": http(b"POST", b"Content-Type: text/plain\r\n"),
    "post-of-messages": b"POST / HTTP/1.1\r\n\r\n" + MESSAGE,
    "get": http(b"GET"),
    "line-first": b"\r\n" + MESSAGE,
    "tls": b"\x16\x03\x01\x02\x00\x01" + MESSAGE,
    "header-in-a-header": b"X: y\r\n" + MESSAGE,
    "bare-line-end": MESSAGE.replace(b"\r\n", b"\n"),
    "line-without-end": b"Content-Length: " + b"1" * 200_000,
}


@each(
    [
        Attack(name, "a page in the browser to be a client that is trusted", CLOSED, data)
        for name, data in SENT.items()
    ]
)
def test_what_a_browser_can_send(attack: Attack, waiting: Port) -> None:
    with waiting.connect() as page:
        page.sendall(attack.given)
        assert answer(page) == b""


def test_to_be_there_before_the_editor_and_after_it(port: Port) -> None:
    """Wants to keep the editor out by a page and by connections that say nothing, then to speak to the server
    that it has. The editor is served, and the port is closed."""
    with port.connect() as page:
        page.sendall(SENT["post"])
        assert answer(page) == b""
    silent = [port.connect() for _ in range(20)]
    with port.connect() as editor:
        editor.sendall(MESSAGE)
        assert b"capabilities" in answer(editor)
        silent[0].sendall(MESSAGE)
        assert answer(silent[0]) == b""
        with pytest.raises(OSError), socket.create_connection(("127.0.0.1", port.number), timeout=5):
            pass
    for connection in silent:
        connection.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1", "example.org"])
def test_a_port_that_a_network_reaches(host: str) -> None:
    """Wants the server to listen where others are; it has no password, so it does not."""
    with pytest.raises(UsageError, match="forward the port"):
        _address(f"{host}:2087")


def test_the_attackers_message_is_one_that_works() -> None:
    """No attack: what the page sends is what an editor sends."""
    assert json.loads(BODY)["params"]["initializationOptions"] == {"trusted": True}
