"""What API cards say of functions, from the table of the interface: how they are called, on which pipe, with
which types and limits. The rest of a card is its author's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evokernel_core.twin.api import ApiRow, TypeRule, api_row

_WORD = re.compile(r"\w+")


def call_lines(keys: Sequence[str]) -> list[str]:
    """A line for each way in which the rows of these keys are called. Raises TableError."""
    rows = [api_row(key) for key in keys]
    calls: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        calls.setdefault((f"({', '.join(parameters(row))})", _facts(row)), []).append(_named(row))
    return [f"{' '.join(names)}{arguments}{facts}." for (arguments, facts), names in calls.items()]


def limit_lines(keys: Sequence[str]) -> list[str]:
    """The limits of the rows of these keys, a line for those that share them. Raises TableError."""
    by_limits: dict[str, list[str]] = {}
    for row in map(api_row, keys):
        ranges = [f"{item.parameter} {item.low}..{item.high}" for item in row.limits]
        ranges += [f"{name} * sizeof(T) a multiple of {unit}" for name, unit in row.whole.items()]
        if ranges:
            by_limits.setdefault(", ".join(ranges), []).append(row.name)
    return [f"Limits of {' '.join(dict.fromkeys(names))}: {text}." for text, names in by_limits.items()]


def names_of(keys: Sequence[str]) -> list[str]:
    """The names of the rows' functions, today's and former ones."""
    rows = [api_row(key) for key in keys]
    return list(dict.fromkeys(name for row in rows for name in (row.name, *row.former)))


def pages_of(keys: Sequence[str]) -> list[str]:
    """The rows' pages of the documentation, below docs/zh/api."""
    return list(dict.fromkeys(api_row(key).page for key in keys))


def parameters(row: ApiRow) -> list[str]:
    """The names of the parameters of the form with a count, of the first form where there is none."""
    forms = [_parameters(text) for text in row.signatures]
    counted = [form for form in forms if "count" in form]
    return (counted or forms)[0]


def _parameters(signature: str) -> list[str]:
    """``dst`` and ``count`` of ``void F(const LocalTensor<T>& dst, const int32_t& count = 1)``."""
    found, depth, word = [], 0, ""
    inside = signature.removesuffix(" const").removesuffix(")").rsplit("(", 1)[1]
    for char in [*inside, ","]:
        depth += (char in "<{[") - (char in ">}]")
        if char == "," and depth == 0:
            words = _WORD.findall(re.sub(r"\[.*?\]", "", word.split("=", maxsplit=1)[0]))
            found += words[-1:]
            word = ""
        else:
            word += char
    return found


def _named(row: ApiRow) -> str:
    former = f" (formerly {', '.join(row.former)})" if row.former else ""
    return (f"{row.of}." if row.of else "") + row.name + former


def _facts(row: ApiRow) -> str:
    pipe = f" on {row.pipe}" if row.pipe != "S" else ""
    return f"{pipe}: {_types(row)}" if row.types else pipe


def _types(row: ApiRow) -> str:
    by_modes: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for rule in row.types:
        target = rule.dst if rule.sources else ""
        by_modes.setdefault(rule.modes, {}).setdefault(target, []).append(_source(rule))
    return "; ".join(_mode(modes) + _alternatives(types) for modes, types in by_modes.items())


def _source(rule: TypeRule) -> str:
    return " x ".join(rule.sources) if rule.sources else rule.dst


def _mode(modes: tuple[str, ...]) -> str:
    return f"{'/'.join(mode.removeprefix('CAST_') for mode in modes)} " if modes else ""


def _alternatives(types: dict[str, list[str]]) -> str:
    return ", ".join(" ".join(sources) + (f" -> {dst}" if dst else "") for dst, sources in types.items())
