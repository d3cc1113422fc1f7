"""A language server's process and the messages to it, with as little in between as can be: what is timed is
the server, not a client library."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

PATIENCE_S = 120.0
CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {
        "hover": {"contentFormat": ["markdown"]},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "refactor"]}}},
        "inlayHint": {"resolveSupport": {"properties": ["tooltip", "label.tooltip", "label.command"]}},
    },
    "workspace": {"inlayHint": {"refreshSupport": True}},
}
"""What VS Code says of the requests that are timed."""


class Server:
    """One server process. Requests of the server are answered with null, its notifications are dropped."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.command = command
        self.environment = dict(environment)
        self.heard: Callable[[str], None] = lambda _: None
        self.is_analysing = False
        """As the last status of our own server says."""
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, folder: Path, options: Mapping[str, Any]) -> float:
        """Seconds from the spawn to the answer of ``initialize``."""
        began = time.perf_counter()
        self._process = await asyncio.create_subprocess_exec(
            *self.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, env=self.environment, limit=2**24,
        )  # fmt: skip
        self._reading = asyncio.create_task(self._read())
        await self.ask("initialize", {
            "processId": os.getpid(), "rootUri": folder.as_uri(), "capabilities": CAPABILITIES,
            "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name}],
            "initializationOptions": dict(options),
        })  # fmt: skip
        took = time.perf_counter() - began
        self.tell("initialized", {})
        return took

    @property
    def process(self) -> psutil.Process:
        assert self._process is not None
        return psutil.Process(self._process.pid)

    def rss_mb(self) -> float:
        return float(self.process.memory_info().rss / 2**20)

    async def ask(self, method: str, params: Any) -> Any:
        """The result of a request. Raises RuntimeError for an error, TimeoutError where none comes."""
        self._number += 1
        future = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        self._send({"id": self._number, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE_S):
            return await future

    def tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process is not None and self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        out = self._process.stdout
        while head := await out.readuntil(b"\r\n\r\n"):
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            self._take(json.loads(await out.readexactly(length)))

    def _take(self, message: Mapping[str, Any]) -> None:
        if "method" not in message:
            future = self._waiting.pop(message["id"])
            if "error" in message:
                future.set_exception(RuntimeError(message["error"]["message"]))
            else:
                future.set_result(message.get("result"))
            return
        if message["method"] == "evokernel/status":
            self.is_analysing = message["params"]["mode"] == "analysing"
        self.heard(message["method"])
        if "id" in message:
            count = len(message.get("params", {}).get("items", ())) if message.get("params") else 0
            self._send({"id": message["id"], "result": [None] * count if count else None})

    async def stop(self) -> None:
        """Ends the server as an editor does."""
        assert self._process is not None and self._reading is not None
        await self.ask("shutdown", None)
        self.tell("exit", None)
        self._reading.cancel()
        try:
            await asyncio.wait_for(self._process.wait(), 10.0)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
