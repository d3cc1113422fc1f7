"""HTTP answers of others: bounded in size, packing and time, so that none fills the memory or never ends."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import httpx2

from evokernel_core.domain.sentence import Sentence
from evokernel_core.network import TooMuch

T = TypeVar("T")
PLAIN = {"Accept-Encoding": "identity"}
"""The header that asks for answers which are as long as they seem."""
_CLOSE_S = 2.0


class BoundedStream(httpx2.AsyncByteStream):
    """At most ``most`` bytes, up to ``deadline`` of the monotonic clock. Raises TooMuch, TimeoutError."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int, deadline: float) -> None:
        self._inner, self._most, self._deadline = inner, most, deadline

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > self._most:
                raise TooMuch(Sentence("answers with more than {most} MB", most=self._most // 2**20))
            if time.monotonic() > self._deadline:  # also where data never lets the loop come to its timer
                raise TimeoutError
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def bound(response: httpx2.Response, most: int, seconds: float) -> None:
    """Refuses what could fill the memory or never end, before any of it is read. Raises TooMuch."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise TooMuch(Sentence("packs its answers although it was asked not to"))
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    response.stream = BoundedStream(stream, most, time.monotonic() + seconds)


class BoundedClient:
    """Asks for answers of at most ``most`` bytes, each within ``answer_s`` seconds from the connection to its
    last byte, heads included. For callers that wait, on any thread.

    ``options`` are those of httpx2.AsyncClient, which works on a thread of this object: a timer there can end
    a read at any time, which none can for one that blocks.
    """

    def __init__(self, most: int, answer_s: float, **options: Any) -> None:
        self.answer_s = answer_s

        async def bounded(response: httpx2.Response) -> None:
            bound(response, most, answer_s)

        headers = {**options.pop("headers", {}), **PLAIN}
        self._http = httpx2.AsyncClient(**options, headers=headers, event_hooks={"response": [bounded]})
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    def request(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """The answer, read to its end. Raises httpx2.HTTPError, TooMuch, TimeoutError after ``answer_s``."""
        asked = _within(self._http.request(method, path, **request), self.answer_s)
        future = asyncio.run_coroutine_threadsafe(asked, self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Ends the connections; the next request makes new ones."""
        loop, self._loop = self._loop, None
        if loop is not None:
            _end(loop, self._http)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="http", daemon=True).start()
                weakref.finalize(self, _end, self._loop, self._http)
            return self._loop


async def _within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    async with asyncio.timeout(seconds):
        return await work


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _end(loop: asyncio.AbstractEventLoop, http: httpx2.AsyncClient) -> None:
    """Closes the connections and then the loop, which its thread closes when it stops."""

    async def leave() -> None:
        try:
            await _within(http.aclose(), _CLOSE_S)
        finally:
            loop.stop()

    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(leave()))
