"""The SDK's server with answers in few characters and refusals in one sentence, as agents show them."""

from __future__ import annotations

import json
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, InputRequiredResult, TextContent
from pydantic import ValidationError

from evokernel_mcp.state import State

MOST_FAULTS = 5
"""Arguments that a refusal names."""


class PlainServer(MCPServer[State]):
    """Tells what tools answer. The SDK's own words for it have the tool's name before each error, several
    lines with an address for an argument that is wrong, and an indented line for each value."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[State, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """The answer to a call. Raises ToolError with one sentence."""
        try:
            answer = await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            said = f"{name} failed by a defect of EvoKernel: its standard error stream has the details."
            raise UnexpectedToolError(said) from error.__cause__
        except ToolError as error:
            raise ToolError(_sentence(name, error)) from error.__cause__
        return _compact(answer) if isinstance(answer, CallToolResult) else answer


def _sentence(name: str, error: ToolError) -> str:
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        return f"{name} cannot take these arguments: {_faults(cause)}."
    return str(cause) if isinstance(cause, ToolError) else str(error)


def _faults(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    told = [f"{'.'.join(map(str, item['loc']))[:80]}: {item['msg'][:200]}" for item in found[:MOST_FAULTS]]
    return "; ".join([*told, *([f"{len(found) - MOST_FAULTS} more"] if len(found) > MOST_FAULTS else [])])


def _compact(answer: CallToolResult) -> CallToolResult:
    """The structured content as text, for clients that give their model that."""
    if answer.structured_content is None:
        return answer
    text = json.dumps(answer.structured_content, ensure_ascii=False, separators=(",", ":"))
    return answer.model_copy(update={"content": [TextContent(type="text", text=text)]})
