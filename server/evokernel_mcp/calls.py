"""How a tool works: with a worker of its own, telling of progress, its errors as sentences."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from evokernel_core.domain.errors import EvoKernelError
from evokernel_mcp.context import state_of

BEAT_S = 5.0
"""Seconds of silence after which a call says that it still works: clients end calls that seem dead."""
_BEAT = 0.001
"""What a beat adds to the progress, which has to grow."""

P = ParamSpec("P")
T = TypeVar("T")


def answering(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """The tool with its own errors as sentences for the agent; others are logged and not told."""

    @functools.wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await tool(*args, **kwargs)
        except EvoKernelError as error:
            raise ToolError(str(error)) from error

    return call


async def working(ctx: Context, what: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """A worker's answer. Attempts of a search are told as they come, and that the call lives at every beat.
    Raises WorkerError."""
    events: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
    teller = asyncio.create_task(_tell(ctx, what, events))
    try:
        return await state_of(ctx).pool.request(method, params, on_event=events.put_nowait)
    finally:
        teller.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await teller


async def _tell(ctx: Context, what: str, events: asyncio.Queue[Mapping[str, Any]]) -> None:
    progress, total, words = 0.0, None, what
    while True:
        try:
            event = await asyncio.wait_for(events.get(), BEAT_S)
            progress, total, words = float(event["n"]), float(event["budget"]), _attempt_words(event)
        except TimeoutError:
            progress += _BEAT
        await ctx.report_progress(progress, total, words)


def _attempt_words(event: Mapping[str, Any]) -> str:
    best = f"; the best takes {event['best_us']:.2f} us" if event["best_us"] else ""
    return f"Attempt {event['n']} of {event['budget']}: {event['verdict_summary'][:200]}{best}"
