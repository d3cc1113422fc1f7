"""How a tool works: with a worker of its own, telling of progress, its errors as sentences."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from evokernel_server.jobs.worker import Event, WorkerError
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from evokernel_core.domain.errors import EvoKernelError
from evokernel_mcp.context import state_of
from evokernel_mcp.foreign import quoted, refusal

BEAT_S = 5.0
"""Seconds of silence after which a call says that it still works: clients end calls that seem dead."""
_BEAT = 0.001
"""What a beat adds to the progress, which has to grow."""

_told: ContextVar[list[float]] = ContextVar("told")
"""The last progress of the call that this task answers."""

P = ParamSpec("P")
T = TypeVar("T")


def answering(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """The tool with its own errors as sentences for the agent; others are logged and not told."""

    @functools.wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        _told.set([0.0])
        try:
            return await tool(*args, **kwargs)
        except EvoKernelError as error:
            raise ToolError(refusal(error, own=not isinstance(error, WorkerError))) from error

    return call


@contextlib.asynccontextmanager
async def telling(ctx: Context, what: str) -> AsyncIterator[Event]:
    """Says at every beat of the block that the call lives; attempts of a search given to what it yields are
    told as they come."""
    events: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
    teller = asyncio.create_task(_tell(ctx, what, events))
    try:
        yield events.put_nowait
        events.put_nowait(None)
        await teller
    finally:
        teller.cancel()


async def working(ctx: Context, what: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """A worker's answer, with progress meanwhile. Raises WorkerError."""
    async with telling(ctx, what) as hear:
        return await state_of(ctx).pool.request(method, params, on_event=hear)


async def _tell(ctx: Context, what: str, events: asyncio.Queue[Mapping[str, Any] | None]) -> None:
    """Until there is a None among the events."""
    told, total, words = _told.get(), None, what
    while True:
        at = 0.0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(
                BEAT_S
            ):  # wait_for may lose a cancellation where an event comes with it
                event = await events.get()
            if event is None:
                return
            at, total, words = float(event["n"]), float(event["budget"]), _attempt_words(event)
        told[0] = max(at, told[0] + _BEAT)
        await ctx.report_progress(told[0], total, words)


def _attempt_words(event: Mapping[str, Any]) -> str:
    figure = f"{event['best_us']:.2f} us {event['best_source']}" if event["best_us"] else ""
    best = f"; the best takes {figure}" if figure else ""
    return f"Attempt {event['n']} of {event['budget']}: {quoted(event['verdict_summary'], 200)}{best}"
