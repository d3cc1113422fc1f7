"""In front of every request: who asks, how much they may say at once, and how long they may take over it."""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from collections.abc import Mapping

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evokernel_core.domain.sentence import Sentence
from evokernel_core.verifier.serving.audit_log import AuditLog
from evokernel_core.verifier.serving.tokens import TokenStore, digest_of
from evokernel_core.verifier.serving.users import User, owner
from evokernel_core.verifier.unjudged import answered, many_bytes, many_requests, too_large, too_slow

REQUESTS_A_USER = 128
"""Requests of one user that are answered at a time; most of them wait for a verdict."""

BODIES_A_USER = 4
"""Bodies of the greatest size that the requests of one user may hold in memory at a time."""

WRONG = (
    "The bearer token is missing or wrong, or was revoked, or has expired; `evokernel verifier token` on the"
    " host shows its own, `evokernel verifier token add` makes one for a user."
)


class RequestRefused(Exception):
    """A request that ends with a status and one sentence; ``retry_after_s`` 0 says nothing about when."""

    def __init__(self, status: int, sentence: str, retry_after_s: int = 0) -> None:
        super().__init__(sentence)
        self.sentence = Sentence(sentence)
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def response(self) -> JSONResponse:
        return problem(
            self.status,
            self.sentence,
            {"Retry-After": str(self.retry_after_s)} if self.retry_after_s else None,
        )


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The one form of every answer that is not a success: the sentence, and what it is made of."""
    return JSONResponse(answered(Sentence(sentence)), status, headers)


class Doorkeeper:
    """Knows users by their tokens: the owner's own, of which the hash is kept, and those of the store."""

    def __init__(self, owner_token: str, store: TokenStore) -> None:
        self._owner = digest_of(owner_token) if owner_token else ""
        self._store = store

    def user(self, headers: list[tuple[bytes, bytes]]) -> User | None:
        """The user of exactly one valid ``Authorization: Bearer`` header."""
        authorizations = [value for name, value in headers if name == b"authorization"]
        if len(authorizations) != 1 or not authorizations[0].startswith(b"Bearer "):
            return None
        token = authorizations[0].removeprefix(b"Bearer ").decode("latin-1")
        if self._owner and hmac.compare_digest(digest_of(token), self._owner):
            return owner()
        return self._store.user(token)


class RequestGuard:
    """Lets requests of known users through, with a body of bounded size that came in bounded time."""

    def __init__(
        self, app: ASGIApp, doorkeeper: Doorkeeper, audit: AuditLog, max_body_bytes: int, body_s: float
    ) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._audit = audit
        self._limit = max_body_bytes
        self._body_s = body_s
        self._open: Counter[str] = Counter()
        self._held: Counter[str] = Counter()
        """Bytes of bodies, by user."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        user = self._doorkeeper.user(scope["headers"])
        if user is None:
            self._note(scope, 401)
            await problem(401, WRONG, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        _greet(scope)
        scope["state"]["user"] = user
        self._open[user.name] += 1
        try:
            await self._admit(user, scope, receive, send)
        finally:
            self._open[user.name] -= 1
            if not self._open[user.name]:
                del self._open[user.name], self._held[user.name]

    async def _admit(self, user: User, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        try:
            if self._open[user.name] > REQUESTS_A_USER:
                raise RequestRefused(429, many_requests(user.name, REQUESTS_A_USER), 1)
            await self._read(body, user, dict(scope["headers"]), receive)
        except RequestRefused as refusal:
            self._note(scope, refusal.status, user)
            await refusal.response(scope, receive, send)
        else:
            await self._app(scope, _replay(bytes(body), receive), send)
        finally:
            self._held[user.name] -= len(body)

    async def _read(
        self, body: bytearray, user: User, headers: Mapping[bytes, bytes], receive: Receive
    ) -> None:
        """Appends what comes to ``body``, and counts it for the user. Raises Refused."""
        announced = headers.get(b"content-length", b"0")
        self._check_size(int(announced[:20]) if announced.isdigit() else 0)
        more = True
        try:
            async with asyncio.timeout(self._body_s):
                while more:
                    message = await receive()
                    part = message.get("body", b"")
                    body += part
                    self._held[user.name] += len(part)
                    self._check_size(len(body))
                    self._check_share(user)
                    more = message.get("more_body", False)
        except TimeoutError as error:
            raise RequestRefused(408, too_slow(self._body_s)) from error

    def _check_share(self, user: User) -> None:
        most = BODIES_A_USER * self._limit
        if self._held[user.name] > most:
            raise RequestRefused(429, many_bytes(user.name, most), 1)

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise RequestRefused(413, too_large(self._limit))

    def _note(self, scope: Scope, status: int, user: User | None = None) -> None:
        who = {"user": user.name, "token": user.token} if user else {}
        self._audit.refusal(address_of(scope), status=status, method=scope["method"], **who)


def address_of(scope: Scope) -> str:
    """The client's address as the connection has it; headers are not believed."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _greet(scope: Scope) -> None:
    """The connection has shown a valid token: it is not the first to go when there is no room."""
    visitor = scope.setdefault("state", {}).get("visitor")
    if visitor is not None:
        visitor.known = visitor.busy = True


def _replay(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives the body that was read already, then what follows it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
