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


_EMPTY: tuple[Any, ...] = (None, "", [], {})
_REFERENCE = "#/$defs/"
_UNTOLD = ("title", "maxLength", "minLength", "maxItems")


def without_empty(value: Any, schema: Mapping[str, Any]) -> Any:
    """A JSON value of a schema, which fits it afterwards as well."""
    return _slim(value, schema, schema.get("$defs", {}))


def short(schema: Any) -> Any:
    """A schema without titles that repeat names, defaults that are empty, and limits of lengths: who exceeds
    one is told so by a refusal."""
    if isinstance(schema, list):
        return [short(element) for element in schema]
    if not isinstance(schema, dict):
        return schema
    whole = dict(schema)
    if {"type": "null"} in whole.get("anyOf", ()):  # clients leave out what is not given
        choices = [choice for choice in whole.pop("anyOf") if choice != {"type": "null"}]
        whole |= choices[0] if len(choices) == 1 else {"anyOf": choices}
    return {
        name: short(value)
        for name, value in whole.items()
        if not (name in _UNTOLD and isinstance(value, str | int))
        and not (name == "default" and _is_empty(value))
    }


def outline(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an answer with their types: what they hold is seen in the answer itself."""
    models = schema.get("$defs", {})
    fields = {name: _outlined(part, models) for name, part in schema.get("properties", {}).items()}
    return {"type": "object", "properties": fields}


def _outlined(schema: Mapping[str, Any], models: Mapping[str, Any]) -> dict[str, Any]:
    part = _resolved(schema, models)
    return {"type": part["type"]} if "type" in part else {}


def _slim(value: Any, schema: Mapping[str, Any], models: Mapping[str, Any]) -> Any:
    part = _resolved(schema, models)
    if isinstance(value, list):
        return [_slim(element, part.get("items", {}), models) for element in value]
    fields = part.get("properties")
    if not isinstance(value, dict) or fields is None:
        return value
    slim = {name: _slim(member, fields.get(name, {}), models) for name, member in value.items()}
    kept = part.get("required", ())
    return {name: value for name, value in slim.items() if name in kept or not _is_empty(value)}


def _resolved(schema: Mapping[str, Any], models: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema behind a reference, or of the alternative that is no null."""
    if "anyOf" in schema:
        given = (choice for choice in schema["anyOf"] if choice.get("type") != "null")
        return _resolved(next(given, {}), models)
    if "$ref" in schema:
        return _resolved(models.get(str(schema["$ref"]).removeprefix(_REFERENCE), {}), models)
    return schema


def _is_empty(value: Any) -> bool:
    return any(value == empty and type(value) is type(empty) for empty in _EMPTY)
