"""Every request is answered once, in the order that the protocol prescribes and out of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from evokernel_server.app import EvoKernelServer
from lsprotocol import types

BEGIN = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "capabilities": {}}}
END = {"jsonrpc": "2.0", "id": 2, "method": "shutdown"}
HOVER = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": 0, "character": 0}}
BEGUN = (1, None)
INVALID, PARAMS, EARLY, UNKNOWN, PARSE = -32600, -32602, -32002, -32601, -32700
NAMELESS = (None, INVALID)


def request(method: str, params: Any = None, number: Any = 7) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


class Channel:
    """A writer that keeps what is written."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.sent.append(json.loads(data.split(b"\r\n\r\n", 1)[1]))

    def close(self) -> None:
        return


@pytest.fixture
def server(home: Any) -> EvoKernelServer:
    made = EvoKernelServer()
    made.protocol.set_writer(Channel())
    return made


def answers(server: EvoKernelServer, *messages: Any) -> list[tuple[Any, Any]]:
    """Handles messages; gives id and error code (None for a result) of each answer."""
    for message in messages:
        server.protocol.handle_message(message)
    channel = server.protocol.writer
    assert isinstance(channel, Channel)
    return [(m["id"], m.get("error", {}).get("code")) for m in channel.sent if "method" not in m]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([request("textDocument/hover", HOVER)], [(7, EARLY)], id="before initialize"),
        pytest.param([request("shutdown")], [(7, EARLY)], id="shutdown before initialize"),
        pytest.param([BEGIN, request("initialize", BEGIN["params"])], [BEGUN, (7, INVALID)], id="again"),
        pytest.param([request("initialize", 5), BEGIN], [(7, PARAMS), (1, None)], id="malformed initialize"),
        pytest.param([BEGIN, request("textDocument/hover", HOVER)], [BEGUN, (7, None)], id="in order"),
        pytest.param([BEGIN, request("textDocument/hover", {})], [BEGUN, (7, PARAMS)], id="bad params"),
        pytest.param([BEGIN, request("evokernel/no")], [BEGUN, (7, UNKNOWN)], id="unknown method"),
        pytest.param([BEGIN, request("textDocument/hover") | {"method": 5}], [BEGUN, (7, INVALID)], id="5"),
        pytest.param([BEGIN, request("textDocument/hover", HOVER, None)], [BEGUN, NAMELESS], id="null"),
        pytest.param([BEGIN, request("textDocument/hover", HOVER, [1])], [BEGUN, NAMELESS], id="list"),
        pytest.param([BEGIN, request("textDocument/hover", HOVER, True)], [BEGUN, NAMELESS], id="bool"),
        pytest.param([BEGIN, {"id": 7, "method": "textDocument/hover"}], [BEGUN, (7, INVALID)], id="version"),
        pytest.param([BEGIN, {"jsonrpc": "2.0", "id": 7}], [BEGUN, (7, INVALID)], id="nothing"),
        pytest.param([BEGIN, [], 7, None], [BEGUN, *[NAMELESS] * 3], id="no object"),
        pytest.param([BEGIN, {"jsonrpc": "2.0", "id": 9, "result": {}}], [BEGUN], id="answer to nothing"),
        pytest.param([BEGIN, {"jsonrpc": "2.0", "id": 1, "error": 5}], [BEGUN], id="answer to own request"),
    ],
)  # fmt: skip
async def test_each_request_is_answered_or_rejected(
    messages: list[Any], expected: list[Any], server: EvoKernelServer
) -> None:
    assert answers(server, *messages) == expected


async def test_after_shutdown_only_exit_is_taken(server: EvoKernelServer, eventually: Any) -> None:
    late = request("textDocument/hover", HOVER, 9)
    opened = {"textDocument": {"uri": "file:///a.py", "languageId": "python", "version": 1, "text": ""}}
    note = {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": opened}
    assert answers(server, BEGIN, END, late, note)[:2] == [BEGUN, (9, INVALID)]
    await eventually(lambda: (2, None) in answers(server))
    assert answers(server, late)[-1] == (9, INVALID)
    assert not server.documents.documents, "a notification after shutdown changes nothing"
    with pytest.raises(SystemExit) as ended:
        server.protocol.handle_message({"jsonrpc": "2.0", "method": "exit"})
    assert ended.value.code == 0


async def test_what_is_inside_a_message_is_no_message(server: EvoKernelServer) -> None:
    """An argument that looked like a message was read as one, and the whole failed without an answer."""
    inner = {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": 5}
    given = request("workspace/executeCommand", {"command": "evokernel.none", "arguments": [inner]})
    assert answers(server, BEGIN, given) == [BEGUN, (7, PARAMS)]


async def test_a_client_cannot_answer_its_own_request(server: EvoKernelServer) -> None:
    release = asyncio.Event()

    @server.command("test.slow")
    async def slow(*arguments: Any) -> int:
        await release.wait()
        return 5

    given = request("workspace/executeCommand", {"command": "test.slow"})
    forged = {"jsonrpc": "2.0", "id": 7, "result": "forged"}
    assert answers(server, BEGIN, given, forged) == [BEGUN]
    release.set()
    await asyncio.sleep(0.05)
    assert answers(server)[-1] == (7, None)
    assert server.protocol.writer.sent[-1]["result"] == 5  # type: ignore[union-attr]


async def test_a_malformed_answer_ends_the_wait(server: EvoKernelServer) -> None:
    answers(server, BEGIN)
    waiting = asyncio.ensure_future(
        server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(types.WorkspaceEdit()))
    )
    await asyncio.sleep(0)
    (number,) = server.protocol._own
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}}
    answers(server, cancel)
    assert not waiting.done(), "only the server takes its own questions back"
    answers(server, {"jsonrpc": "2.0", "id": number, "result": {"applied": "perhaps", "failedChange": []}})
    (error,) = await asyncio.gather(waiting, return_exceptions=True)
    assert isinstance(error, Exception) and not server.protocol._own


async def test_a_result_that_cannot_be_written_is_an_error(server: EvoKernelServer) -> None:
    @server.command("test.odd")
    def odd(*arguments: Any) -> Any:
        return {1, 2}

    given = request("workspace/executeCommand", {"command": "test.odd"})
    assert answers(server, BEGIN, given) == [BEGUN, (7, -32603)]


async def test_what_is_no_json_is_rejected(server: EvoKernelServer) -> None:
    from pygls.exceptions import JsonRpcException

    server.report_server_error(ValueError("no json"), JsonRpcException)
    assert answers(server) == [(None, PARSE)]


@pytest.mark.parametrize("number", [[], {}, [1], True, 1.0, None, "none", 2])
async def test_a_cancellation_of_nothing_is_not_answered(number: Any, server: EvoKernelServer) -> None:
    """``true`` and 1.0 are not the request 1, and what is no key of a table is not looked up."""
    server.protocol._request_futures[1] = future = asyncio.get_running_loop().create_future()
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}}
    assert answers(server, BEGIN | {"id": 5}, cancel) == [(5, None)]
    assert not future.cancelled()
