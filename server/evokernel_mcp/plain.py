"""The SDK's server with answers in few characters and refusals in one sentence, as agents show them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, InputRequiredResult, TextContent, Tool
from pydantic import ValidationError

from evokernel_core.visible import visible
from evokernel_mcp.foreign import shown
from evokernel_mcp.slim import outline, short, without_empty
from evokernel_mcp.state import ServerState

MOST_FAULTS = 5
"""Arguments that a refusal names."""


class PlainServer(MCPServer[ServerState]):
    """Tells what tools answer. The SDK's own words for it have the tool's name before each error, several
    lines with an address for an argument that is wrong, an indented line for each value, and every field that
    is empty."""

    _schemas: Mapping[str, dict[str, Any]] = {}

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[ServerState, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """The answer to a call. Raises ToolError with one sentence."""
        try:
            answer = await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            said = f"{name} failed by a defect of EvoKernel: its standard error stream has the details."
            raise UnexpectedToolError(said) from error.__cause__
        except ToolError as error:
            raise ToolError(visible(_sentence(name, error))) from error.__cause__
        if not isinstance(answer, CallToolResult):
            return answer
        return _compact(answer, await self._schema(name))

    async def list_tools(self) -> list[Tool]:
        """The tools with schemas in few characters: all of them are a part of each of an agent's prompts."""
        return [
            tool.model_copy(
                update={
                    "input_schema": short(tool.input_schema),
                    "output_schema": tool.output_schema and outline(tool.output_schema),
                }
            )
            for tool in await super().list_tools()
        ]

    async def _schema(self, name: str) -> Mapping[str, Any]:
        """The schema of a tool's answers."""
        if not self._schemas:
            self._schemas = {tool.name: tool.output_schema or {} for tool in await super().list_tools()}
        return self._schemas.get(name, {})


def _sentence(name: str, error: ToolError) -> str:
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        return f"{name} cannot take these arguments: {_faults(cause)}."
    return str(cause) if isinstance(cause, ToolError) else str(error)


def _faults(error: ValidationError) -> str:
    result = error.errors(include_url=False, include_input=False, include_context=False)
    told = [
        f"{'.'.join(map(str, element['loc']))[:80]}: {element['msg'][:200]}"
        for element in result[:MOST_FAULTS]
    ]
    return "; ".join([*told, *([f"{len(result) - MOST_FAULTS} more"] if len(result) > MOST_FAULTS else [])])


def _compact(answer: CallToolResult, schema: Mapping[str, Any]) -> CallToolResult:
    """The structured content without what is empty, and as text for clients that give their model that."""
    if answer.structured_content is None:
        return answer
    told = shown(without_empty(answer.structured_content, schema))
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    content = [TextContent(type="text", text=text)]
    return answer.model_copy(update={"structured_content": told, "content": content})
