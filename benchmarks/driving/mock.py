"""A mock of a model on loopback: it asks for prepared calls of our tools, one after another, and ends.

It speaks every protocol of wire.py as a stream. The next call is known from the number of results in the
request, so that an agent which asks again is answered again.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

from attrs import define, field, frozen

from driving.wire import Answer, Asked, Call, Offered, protocol_of

SERVER = "evokernel"


@frozen
class Step:
    """A call of the story; its arguments may come from the results so far, as the agent handed them on."""

    tool: str
    arguments: Callable[[tuple[str, ...]], dict[str, Any]]


def ours(asked: Asked) -> dict[str, Offered]:
    """Our tools in a request, by our names: agents put the server's name in front, each in its way."""
    found = {}
    for tool in asked.tools:
        if match := re.fullmatch(rf"(?:mcp_+)?{SERVER}_*(\w+)", tool.full_name):
            found[match[1]] = tool
    return found


@define
class Mock:
    """Plays a story; keeps the requests that offered our tools, and counts those that offered only others:
    the agent asked its model before our server was there."""

    story: tuple[Step, ...]
    asked: list[Asked] = field(factory=list)
    too_early: int = 0
    url: str = ""

    def answer(self, asked: Asked) -> Answer:
        """The next call of the story, or the end. Requests without tools are for titles and the like."""
        tools = ours(asked)
        if not tools:
            self.too_early += bool(asked.tools)
            return "A title."
        self.asked.append(asked)
        done = len(asked.results)
        if done >= len(self.story) or self.story[done].tool not in tools:
            return "Done."
        step = self.story[done]
        return Call(tools[step.tool], step.arguments(asked.results))


@contextmanager
def serving(mock: Mock) -> Iterator[Mock]:
    """The mock on a free port of loopback; its address is in ``url``."""
    numbers = count(1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            found = protocol_of(self.path)
            if found is None:
                self._send(b'{"totalTokens": 1, "input_tokens": 1}', "application/json")
                return
            answer = mock.answer(found.read(body))
            self._send(b"".join(found.stream(answer, next(numbers))), "text/event-stream")

        def do_GET(self) -> None:
            self._send(b'{"data": [], "models": []}', "application/json")

        def do_HEAD(self) -> None:
            self.do_GET()

        def _send(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Says nothing: the table is what is told."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    mock.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield mock
    finally:
        server.shutdown()
        server.server_close()
