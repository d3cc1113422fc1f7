"""JSON-RPC 2.0 with Content-Length framing on private file descriptors.

The user's code may print, read stdin or write to file descriptor 1: the channel is moved away first.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from .errors import AgentError

Handler = Callable[[dict[str, Any]], Any]

MAX_MESSAGE_BYTES = 256 * 1024 * 1024


def take_channel() -> tuple[BinaryIO, BinaryIO]:
    """Duplicate stdin and stdout for the protocol, then point fd 0 at nothing and fd 1 at stderr."""
    reader = os.fdopen(os.dup(0), "rb")
    writer = os.fdopen(os.dup(1), "wb")
    nothing, end = os.pipe()  # empty once its end is closed; a sandbox may have no /dev/null
    os.close(end)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stderr
    return reader, writer


def read_message(reader: BinaryIO) -> dict[str, Any] | None:
    """The next message; None at the end of the stream. Raises ValueError on a broken frame."""
    length = -1
    while line := reader.readline():
        if line in (b"\r\n", b"\n"):
            break
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    else:
        return None
    if not 0 <= length <= MAX_MESSAGE_BYTES:
        raise ValueError(f"A frame of {length} bytes is not acceptable.")
    body = reader.read(length)
    return json.loads(body) if len(body) == length else None


def write_message(writer: BinaryIO, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    writer.flush()


def serve(reader: BinaryIO, writer: BinaryIO, handlers: dict[str, Handler]) -> None:
    """Answer requests one by one until ``shutdown`` or the end of the stream."""
    while (message := read_message(reader)) is not None:
        answer = {"jsonrpc": "2.0", "id": message.get("id")}
        handler = handlers.get(message.get("method", ""))
        if handler is None:
            answer["error"] = {"code": -32601, "message": f"There is no method {message.get('method')!r}."}
        else:
            try:
                answer["result"] = handler(message.get("params") or {})
            except AgentError as error:
                data = {"reason": error.reason, "stale": error.stale}
                answer["error"] = {"code": -32000, "message": error.sentence.data(), "data": data}
        write_message(writer, answer)
        if message.get("method") == "shutdown":
            return
