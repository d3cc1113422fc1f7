"""Answers without what says nothing: an agent pays for every field that it reads.

A field that a schema does not require and that is empty (null, "", [] or {}) is left out. What is required
stays, and so do false and 0, which are answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EMPTY: tuple[Any, ...] = (None, "", [], {})
_REFERENCE = "#/$defs/"


def without_empty(value: Any, schema: Mapping[str, Any]) -> Any:
    """A JSON value of a schema, which fits it afterwards as well."""
    return _slim(value, schema, schema.get("$defs", {}))


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
