"""From a call to what the server keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mcp.server.mcpserver import Context

if TYPE_CHECKING:
    from evokernel_mcp.state import State


def state_of(ctx: Context) -> State:
    """The server's state, which its lifespan made."""
    return cast("State", ctx.request_context.lifespan_context)
