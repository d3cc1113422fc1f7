"""The listening socket: answers leave at once."""

from __future__ import annotations

import socket

import pytest

from evokernel_core.domain.errors import UsageError
from evokernel_core.verifier.service import listen


def test_connections_send_small_answers_without_delay() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_said() -> None:
    with listen("127.0.0.1", 0) as listener, pytest.raises(UsageError, match="choose another --port"):
        listen("127.0.0.1", listener.getsockname()[1])
