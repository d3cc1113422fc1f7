"""Rows of the table of the interface, read from ``table/*.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from evokernel_core.domain.errors import EvoKernelError

FOLDER = Path(__file__).parent / "table"
UNITS = Path(__file__).parent / "units.toml"
DTYPES = (
    *("int4b_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "half", "bfloat16_t"),
    *("int32_t", "uint32_t", "float", "int64_t", "uint64_t", "double"),
)
"""The types of elements, in the order of the twin's DType."""
PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
COSTS = (
    *("", "simple", "transcendental", "mul_add_dst", "reduce_repeat", "reduce_block"),
    *("gather", "gather_block", "gather_mask", "sort", "transpose"),
)
"""Which constants of a chip say how long an instruction takes; empty where its bytes or its kind do."""
OVERLAPS = ("", "same", "disjoint", "accumulates")
FORMS = ("", "binary", "unary", "scalar")

_RULE = re.compile(r"(?P<dst>\w+)(?: <- (?P<sources>\w+(?:, \w+)*))?(?: : (?P<modes>\w+(?: \w+)*))?")


class TableError(EvoKernelError):
    """The table itself is wrong: a defect of this package."""


@frozen
class TypeRule:
    """Types of the operands that go together: the destination's and each source's.

    ``sources`` is empty where all operands have the destination's type. ``modes``: enumerators of the row's
    ``modes`` (rounding, comparison) that the types take; empty for rows without modes.
    """

    dst: str
    sources: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()


@frozen
class Limit:
    """The values that a parameter takes, both ends included, in the unit of the documentation."""

    parameter: str
    low: int
    high: int


@frozen
class ApiRow:
    """A function, or a group of its overloads that take the same types and parameters.

    ``key``: its name in the twin, unique (a member's begins with its class). ``name``: as kernels call it;
    ``former``: names that it had in older versions. ``of``: the class whose member it is. ``page``: of the
    documentation, below docs/zh/api. ``pipe``: that it runs on, S for what the scalar unit does at once.
    ``signatures``: as published, without ``__aicore__`` and ``inline``. ``alignment``: bytes that an
    operand's address is a multiple of (``all`` where it is every operand). ``whole``: bytes that a count's
    elements must be a multiple of. ``overlap``: whether source and destination may share memory:
    ``disjoint`` never, ``same`` where they are identical, ``accumulates`` also where a destination that does
    not advance is its own second source. ``units``: what the parameters count. ``cost``: one of COSTS.
    ``lanes``: computed lane by lane by the twin's function of the row's key; ``form`` is then the set of C++
    overloads that the twin makes, ``sources`` how many tensors are read, ``reads_dst`` and ``overflows`` (to
    infinity, from finite values) what it does with them.
    """

    key: str
    name: str
    page: str
    pipe: str
    signatures: tuple[str, ...]
    types: tuple[TypeRule, ...] = ()
    modes: str = ""
    limits: tuple[Limit, ...] = ()
    alignment: Mapping[str, int] = field(factory=dict, hash=False)
    whole: Mapping[str, int] = field(factory=dict, hash=False)
    overlap: str = ""
    units: Mapping[str, str] = field(factory=dict, hash=False)
    cost: str = ""
    former: tuple[str, ...] = ()
    of: str = ""
    lanes: bool = False
    form: str = ""
    sources: int = 1
    reads_dst: bool = False
    overflows: bool = False

    def limit(self, parameter: str) -> Limit:
        """Raises TableError where the row has no such limit."""
        for limit in self.limits:
            if limit.parameter == parameter:
                return limit
        raise TableError(f"The table's row {self.key} has no limit of {parameter}.")


@cache
def api_rows() -> tuple[ApiRow, ...]:
    """All rows, in the order of their files' names and of the files. Raises TableError for wrong data."""
    result = tuple(row for path in sorted(FOLDER.glob("*.toml")) for row in _read(path))
    keys = [row.key for row in result]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise TableError(f"The table has more than one row with the key {', '.join(twice)}.")
    return _with_units(result, tomllib.loads(UNITS.read_text(encoding="utf-8")))


def _with_units(api_rows: tuple[ApiRow, ...], data: Mapping[str, Any]) -> tuple[ApiRow, ...]:
    """The rows with what their parameters count."""
    common, own = data["parameters"], data["rows"]
    return tuple(evolve(row, units=_units(row, common, own.get(row.key, {}))) for row in api_rows)


def _units(row: ApiRow, common: Mapping[str, str], own: Mapping[str, str]) -> Mapping[str, str]:
    words = {word for text in row.signatures for word in re.findall(r"\w+", text)}
    words |= {limit.parameter for limit in row.limits}
    return {**{name: unit for name, unit in common.items() if name in words}, **own}


def api_row(key: str) -> ApiRow:
    """The row with that key. Raises TableError where there is none."""
    result = _by_key().get(key)
    if result is None:
        raise TableError(f"The table has no row with the key {key}.")
    return result


@cache
def _by_key() -> dict[str, ApiRow]:
    return {row.key: row for row in api_rows()}


def named(name: str) -> tuple[ApiRow, ...]:
    """The rows of what kernels call by that name, today's or a former one; none where it is unknown."""
    return tuple(row for row in api_rows() if name == row.name or name in row.former)


@cache
def interface_words() -> frozenset[str]:
    """Every name in the table: of functions (former ones, too), classes, types and parameters."""
    words = (word for row in api_rows() for text in row.signatures for word in re.findall(r"\w+", text))
    return frozenset((*words, *DTYPES)) | {
        name for row in api_rows() for name in (row.name, row.of, *row.former)
    }


def most_of(key: str, parameter: str) -> int:
    """The highest value that a parameter takes. Raises TableError where the table does not say."""
    return api_row(key).limit(parameter).high


def _read(path: Path) -> Iterator[ApiRow]:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    patterns = data.get("patterns", {})
    for entry in data["api"]:
        row = _row({**patterns[entry["like"]], **entry} if "like" in entry else entry)
        _check(row, path.name)
        yield row


def _row(entry: Mapping[str, Any]) -> ApiRow:
    unknown = entry.keys() - _KNOWN
    if unknown:
        raise TableError(
            f"The table's row {entry['name']} has fields that rows do not have: {sorted(unknown)}."
        )
    plain = {name: entry[name] for name in _PLAIN if name in entry}
    return ApiRow(
        key=entry.get("key", entry.get("of", "") + entry["name"]),
        **plain,
        signatures=tuple(text.replace("{name}", entry["name"]) for text in entry["signatures"]),
        types=tuple(_type_rule(text) for text in entry.get("types", ())),
        limits=tuple(Limit(name, low, high) for name, (low, high) in entry.get("limits", {}).items()),
        former=tuple(entry.get("former", ())),
        lanes=entry.get("run") == "lanes",
    )


_PLAIN = (
    *("name", "page", "pipe", "modes", "alignment", "whole", "overlap", "cost", "of", "form"),
    *("sources", "reads_dst", "overflows"),
)
_KNOWN = {*_PLAIN, "key", "signatures", "types", "limits", "former", "run", "like"}


def _type_rule(text: str) -> TypeRule:
    """``float <- half, half : CAST_NONE``; only the destination where all operands are alike."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise TableError(f"The table has types that cannot be read: {text!r}.")
    sources = tuple((match["sources"] or "").split(", ")) if match["sources"] else ()
    unknown = {match["dst"], *sources} - set(DTYPES)
    if unknown:
        raise TableError(f"The table has types that no tensor has: {', '.join(sorted(unknown))}.")
    return TypeRule(match["dst"], sources, tuple((match["modes"] or "").split()))


def _check(row: ApiRow, file: str) -> None:
    allowed = (
        (row.pipe, PIPES),
        (row.cost, COSTS),
        (row.overlap, OVERLAPS),
        (row.form, FORMS),
    )
    for value, values in allowed:
        if value not in values:
            raise TableError(f"{file}, {row.key}: {value!r} is none of {', '.join(filter(None, values))}.")
    if not row.signatures or any(limit.low > limit.high for limit in row.limits):
        raise TableError(f"{file}, {row.key}: a row has signatures, and limits whose ends are in order.")
    if bool(row.modes) != any(rule.modes for rule in row.types):
        raise TableError(
            f"{file}, {row.key}: types name modes where the row says of which enumeration they are."
        )
