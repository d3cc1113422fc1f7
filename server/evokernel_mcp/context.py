"""From a call to what the server keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mcp.server.mcpserver import Context

if TYPE_CHECKING:
    from evokernel_mcp.state import ServerState


def state_of(ctx: Context) -> ServerState:
    """The server's state, which its lifespan made."""
    return cast("ServerState", ctx.request_context.lifespan_context)
