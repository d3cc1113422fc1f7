"""The connections of the service: how many, how long, and who goes when there is no room.

uvicorn limits neither how long a client may take over its headers nor how many connections one
address opens. Here each connection has a deadline for what it is doing, and a new one that finds no
room takes the place of the oldest that has not shown a token: slow and idle connections keep nobody out.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import resource
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import h11
import uvicorn
from attrs import define, field, frozen
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.h11_impl import H11Protocol

from evokernel_core.logs import get_logger

log = get_logger(__name__)


@frozen
class Limits:
    """Seconds for each thing that a connection does, and connections at a time.

    ``answer_s`` bounds a request with its body and the wait for a verdict; ``idle_s`` the pause
    between two requests, in which an answer also must have been taken.
    """

    head_s: float = 10.0
    body_s: float = 30.0
    answer_s: float = 120.0
    idle_s: float = 15.0
    connections: int = 1024
    connections_an_address: int = 256
    head_bytes: int = 16 * 1024


GRACE_S = 5.0
"""After ``idle_s`` uvicorn closes a connection; so much later, one that does not take its answer is cut."""

FILES_RESERVED = 200
"""Open files that are left for the queue, the workers' pipes and the libraries."""


def affordable(limits: Limits) -> int:
    """Connections that the process's limit of open files allows, at least 16."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(limits.connections, max(16, soft - FILES_RESERVED))


def neighbourhood(address: str) -> str:
    """What counts as one address: IPv6 hands every host a /64 of its own."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


@define(eq=False)
class Visitor:
    """One connection. ``known``: a request of it had a valid token; ``busy``: one is being answered."""

    address: str
    leave: Callable[[], object]
    since: float = field(factory=time.monotonic)
    known: bool = False
    busy: bool = False


class Visitors:
    """All connections; makes room by the oldest that has shown least."""

    def __init__(self, total: int, an_address: int) -> None:
        self._total = total
        self._an_address = an_address
        self._at: dict[str, list[Visitor]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def admit(self, visitor: Visitor) -> bool:
        """Whether there is room, if need be after another has left."""
        neighbours = self._at.get(visitor.address, [])
        if len(neighbours) >= self._an_address and not self._oust(neighbours):
            return False
        if self._count >= self._total and not self.oust():
            return False
        self._at.setdefault(visitor.address, []).append(visitor)
        self._count += 1
        return True

    def oust(self) -> bool:
        """Ends the connection that is easiest to miss; False where every one is being answered."""
        crowds = sorted(self._at.values(), key=len, reverse=True)
        return any(self._oust(crowd) for crowd in crowds)

    def gone(self, visitor: Visitor) -> None:
        neighbours = self._at.get(visitor.address, [])
        if visitor in neighbours:
            neighbours.remove(visitor)
            self._count -= 1
            if not neighbours:
                del self._at[visitor.address]

    def _oust(self, crowd: list[Visitor]) -> bool:
        idle = [visitor for visitor in crowd if not visitor.busy]
        if not idle:
            return False
        victim = min(idle, key=lambda visitor: (visitor.known, visitor.since))
        self.gone(victim)
        victim.leave()
        return True


class ShortHeads(h11.Connection):
    """A server's side of HTTP/1.1 whose requests have heads, and trailers, of at most ``most`` bytes. h11
    measures what is not complete: a head that comes in one piece would be as long as that piece."""

    def __init__(self, most: int) -> None:
        super().__init__(h11.SERVER, most)
        self._most = most

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """As h11's. Raises h11.RemoteProtocolError for what is too long."""
        before = self._unread if self.their_state is h11.IDLE else 0
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._check(before - self._unread)
        elif isinstance(event, h11.EndOfMessage):
            self._check(sum(len(name) + len(value) for name, value in event.headers))
        return event

    @property
    def _unread(self) -> int:
        return len(self.trailing_data[0])

    def _check(self, size: int) -> None:
        if size > self._most:
            raise h11.RemoteProtocolError("Request header fields too large", error_status_hint=431)


class Protocol(H11Protocol):
    """uvicorn's, with a deadline for whatever the client is to do next, and short heads."""

    def __init__(self, *arguments: Any, visitor: Visitor, visitors: Visitors, limits: Limits) -> None:
        super().__init__(*arguments)
        self.app_state = self.app_state | {"visitor": visitor}
        self._visitor = visitor
        self._visitors = visitors
        self._limits = limits
        self._deadline: asyncio.TimerHandle | None = None
        self.conn = ShortHeads(limits.head_bytes)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._visitor.leave = transport.abort
        self._within(self._limits.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._visitors.gone(self._visitor)
        self._within(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        waiting, first = self._waiting, self.timeout_keep_alive_task is not None
        super().data_received(data)
        if waiting and not self._waiting:
            self._within(self._limits.answer_s)
        elif waiting and first:  # the next request begins; more of its bytes gain it no time
            self._within(self._limits.head_s)

    def on_response_complete(self) -> None:
        self._visitor.busy = False
        self._visitor.since = time.monotonic()
        self._within(self._limits.idle_s + GRACE_S)
        super().on_response_complete()
        if not self._waiting:  # a request that was sent behind the last one
            self._within(self._limits.answer_s)

    def send_400_response(self, msg: str) -> None:
        """As every refusal: JSON with a sentence."""
        content = json.dumps({"error": "The request is not HTTP/1.1; look at the client."}).encode()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()  # in the middle of an answer there is nothing left to say
            return
        headers = [("content-type", "application/json"), ("content-length", str(len(content)))]
        head = h11.Response(
            status_code=400, headers=[*headers, ("connection", "close")], reason=b"Bad Request"
        )
        for event in (head, h11.Data(data=content), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    @property
    def _waiting(self) -> bool:
        """No request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _within(self, seconds: float | None) -> None:
        if self._deadline:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.transport.abort) if seconds else None


class Door:
    """Accepts connections; what uvicorn knows as one of its servers."""

    def __init__(
        self,
        listener: socket.socket,
        welcome: Callable[[Visitor, Visitors], asyncio.Protocol],
        *,
        limits: Limits,
        context: ssl.SSLContext | None,
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._welcome = welcome
        self._limits = limits
        self._context = context
        self._visitors = Visitors(affordable(limits), limits.connections_an_address)
        self._shaking: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        self._accepting.cancel()
        for task in self._shaking:
            task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(self._accepting, *self._shaking, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    continue  # the peer had left already
                log.warning("no open file is left for a connection")
                self._visitors.oust()
                await asyncio.sleep(0.05)
                continue
            self._let_in(connection, neighbourhood(str(address[0])))

    def _let_in(self, connection: socket.socket, address: str) -> None:
        visitor = Visitor(address, connection.close)
        if not self._visitors.admit(visitor):
            connection.close()
            return
        task = asyncio.create_task(self._shake_hands(connection, visitor))
        visitor.leave = task.cancel
        self._shaking.add(task)
        task.add_done_callback(partial(self._shaken, connection, visitor))

    async def _shake_hands(self, connection: socket.socket, visitor: Visitor) -> None:
        limit = self._limits.head_s if self._context else None
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: self._welcome(visitor, self._visitors),
            connection,
            ssl=self._context,
            ssl_handshake_timeout=limit,
            ssl_shutdown_timeout=limit,
        )

    def _shaken(self, connection: socket.socket, visitor: Visitor, task: asyncio.Task[None]) -> None:
        self._shaking.discard(task)
        if not task.cancelled() and task.exception() is None:
            return
        self._visitors.gone(visitor)
        connection.close()


class Server(uvicorn.Server):
    """uvicorn's server behind our door."""

    def __init__(self, config: uvicorn.Config, limits: Limits) -> None:
        super().__init__(config)
        self._limits = limits

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise SystemExit(STARTUP_FAILURE)
        assert sockets
        doors = [Door(sock, self._protocol, limits=self._limits, context=self.config.ssl) for sock in sockets]
        self.servers = cast(list[asyncio.Server], doors)  # of which uvicorn asks close and wait_closed
        self.started = True

    def _protocol(self, visitor: Visitor, visitors: Visitors) -> Protocol:
        return Protocol(
            self.config,
            self.server_state,
            self.lifespan.state,
            visitor=visitor,
            visitors=visitors,
            limits=self._limits,
        )
