"""One client over TCP: the first that speaks the protocol, and nobody after it.

A port of this machine is open to every page that its user's browser shows. A page can have the browser send
a request with any text in it, also one that asks to be trusted, but nothing that begins like the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import re

from attrs import define
from pygls.lsp.server import LanguageServer

from evokernel_server.transport.conversation import converse

log = logging.getLogger(__name__)

_PATIENCE_S = 10.0
"""A client says who it is at once."""
_HEADER = re.compile(rb"Content-(Length: \d+|Type: [^\r\n]*)\r\n")


async def serve_one(server: LanguageServer, host: str, port: int) -> None:
    """Serves until the client ends the connection. Raises OSError where the address cannot be had."""
    ended = asyncio.Event()
    taken = False

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        first = await _first_line(reader)
        if taken or first is None:
            log.warning("A connection that is no client's was closed.")
            writer.close()
            return
        taken = True
        listener.close()
        try:
            await converse(server, _Begun(first, reader), writer)
        finally:
            ended.set()

    listener = await asyncio.start_server(connected, host, port)
    await ended.wait()
    server.shutdown()  # type: ignore[no-untyped-call]


async def _first_line(reader: asyncio.StreamReader) -> bytes | None:
    """The first line, None where it is no header of the protocol."""
    try:
        line = await asyncio.wait_for(reader.readline(), _PATIENCE_S)
    except (TimeoutError, OSError, ValueError):
        return None
    return line if _HEADER.fullmatch(line) else None


@define
class _Begun:
    """A stream of which the first line was read already."""

    first: bytes
    rest: asyncio.StreamReader

    async def readline(self) -> bytes:
        """The next line, or the piece of one that fits the stream's buffer."""
        if self.first:
            line, self.first = self.first, b""
            return line
        try:
            return await self.rest.readuntil(b"\n")
        except asyncio.IncompleteReadError as ended:
            return ended.partial
        except asyncio.LimitOverrunError as longer:
            return await self.rest.readexactly(longer.consumed)

    async def readexactly(self, n: int) -> bytes:
        return await self.rest.readexactly(n)
