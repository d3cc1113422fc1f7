"""Answers and schemas without what says nothing: an agent pays for every field that it reads.

A field that a schema does not require and that is empty (null, "", [] or {}) is left out. What is required
stays, and so do false and 0, which are answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    kept = {
        name: value
        for name, value in schema.items()
        if not (name in _UNTOLD and isinstance(value, str | int))
        and not (name == "default" and _is_empty(value))
    }
    if kept.get("anyOf") and {"type": "null"} in kept["anyOf"]:  # clients leave out what is not given
        choices = [choice for choice in kept.pop("anyOf") if choice != {"type": "null"}]
        kept |= choices[0] if len(choices) == 1 else {"anyOf": choices}
    return {name: short(value) for name, value in kept.items()}


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
