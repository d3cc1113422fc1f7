"""Stored strategies of programs as versions 1 and 2 wrote them: every kernel's settings under its number, and
the nodes of each kernel call in one text (``0,1|2``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PROGRAM, _GROUPS, _FAMILY = "program", "groups", "family"


def structured(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of a strategy with its groups and kernels apart; as it is where nothing of it is of an earlier
    form. A text that names no nodes gives no groups, which no task has."""
    given = data.get("settings")
    settings = dict(given.items() if isinstance(given, Mapping) else given or ())
    if data.get("family") != _PROGRAM or _GROUPS not in settings:
        return data
    groups = _groups(str(settings.pop(_GROUPS)))
    kernels: dict[int, dict[str, Any]] = {}
    for key in [key for key in settings if str(key).partition(".")[0].isdigit() and "." in str(key)]:
        number, _, name = str(key).partition(".")
        kernels.setdefault(int(number), {})[name] = settings.pop(key)
    schedules = [
        {"family": str(own.pop(_FAMILY, "")), "settings": list(own.items())}
        for _, own in sorted(kernels.items())
    ]
    return {**data, "settings": list(settings.items()), _GROUPS: groups, "kernels": schedules}


def _groups(text: str) -> list[list[int]]:
    try:
        return [[int(index) for index in group.split(",")] for group in text.split("|")]
    except ValueError:
        return []
