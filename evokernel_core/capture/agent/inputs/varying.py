"""Whole numbers that differ between the observed calls of a definition, as a position in a text does."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..guards.guard import CapturedGuard
from .entry import Entry
from .observed import Observation


def pinned_number(
    entry: Entry, guards: Iterable[Mapping[str, str]], observations: Iterable[Observation]
) -> str:
    """The argument that a guard asks for the number of this call, where most of the observed calls had
    another one; empty where there is none."""
    known = [CapturedGuard(**guard) for guard in guards]
    for name, value in entry.bound.arguments.items():
        if type(value) is int and any(guard.fixes(name) for guard in known):
            seen = _seen(entry, name, observations)
            if 2 * seen[value] < seen.total():
                return name
    return ""


def _seen(entry: Entry, name: str, observations: Iterable[Observation]) -> Counter[Any]:
    """How often an argument had each value; what is no number counts as another one."""
    counter: Counter[Any] = Counter()
    for observation in observations:
        if entry.function.qualname not in (observation["qualname"], f"{observation['qualname']}.forward"):
            continue
        given = _bound(entry.bound.signature, observation["call"]).get(name)
        counter[given if type(given) is int else None] += observation["count"]
    return counter


def _bound(signature: inspect.Signature, call: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        bound = signature.bind(*call["args"], **call["kwargs"])
    except TypeError:  # an observation of an older text
        return {}
    bound.apply_defaults()
    return bound.arguments
