"""The traps of the protocol layer, each closed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from evokernel_server.app import EvoKernelServer
from evokernel_server.serve import configure_logging
from lsprotocol import types


class Channel:
    """A writer that keeps what is written."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def close(self) -> None:
        return


@pytest.fixture
def server(home: Any) -> EvoKernelServer:
    made = EvoKernelServer()
    made.protocol.set_writer(Channel())
    made.protocol.client_capabilities = types.ClientCapabilities()
    return made


async def test_a_late_reply_to_a_cancelled_request_is_dropped(server: EvoKernelServer) -> None:
    waiting = asyncio.ensure_future(
        server.window_show_message_request_async(
            types.ShowMessageRequestParams(types.MessageType.Info, "Apply?", [])
        )
    )
    await asyncio.sleep(0)
    (number,) = server.protocol._request_futures
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    server.protocol._handle_response(number, result=None)
    assert number not in server.protocol._request_futures


async def test_an_answer_in_time_arrives(server: EvoKernelServer) -> None:
    waiting = asyncio.ensure_future(
        server.window_show_message_request_async(
            types.ShowMessageRequestParams(types.MessageType.Info, "Apply?", [])
        )
    )
    await asyncio.sleep(0)
    (number,) = server.protocol._request_futures
    server.protocol._handle_response(number, result=types.MessageActionItem("Accept"))
    answer = await waiting
    assert answer is not None and answer.title == "Accept"


async def test_a_failing_handler_shows_no_message(
    server: EvoKernelServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.report_server_error(ValueError("boom"), ValueError)
    assert "boom" in caplog.text
    channel = server.protocol.writer
    assert isinstance(channel, Channel) and not channel.sent


async def test_shutdown_meets_requests_in_flight(server: EvoKernelServer) -> None:
    @server.command("test.slow")
    async def slow(*arguments: Any) -> None:
        await asyncio.sleep(3600)

    server.protocol._handle_request(
        7, types.WORKSPACE_EXECUTE_COMMAND, types.ExecuteCommandParams("test.slow")
    )
    await asyncio.sleep(0)
    server.protocol._handle_request(8, types.SHUTDOWN, None)
    channel = server.protocol.writer
    assert isinstance(channel, Channel)
    for _ in range(100):
        await asyncio.sleep(0.01)
        if any(b'"id": 8' in sent for sent in channel.sent):
            break
    (answer,) = [sent for sent in channel.sent if b'"id": 8' in sent]
    assert b"error" not in answer


def test_a_persons_code_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    configure_logging()
    assert not logging.getLogger("pygls.protocol.json_rpc").isEnabledFor(logging.ERROR)
