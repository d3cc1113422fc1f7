"""The table as a C++ header: what the twin's checks and its interface read.

``api_header`` is written to ``evokernel/twin/api_table.h`` when the twin is built; its text is part of the
twin's identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evokernel_core.hardware.ascend.api.rows import DTYPES, ApiRow, TypeRule, api_rows

HEADER = "evokernel/twin/api_table.h"
"""Where the header lies among the twin's own, from the folder of ``-I``."""
_MOST_SOURCES = 3

_PROLOGUE = """// Made from evokernel_core/hardware/ascend/api when the twin is built; not to be edited.
#pragma once
#include "evokernel/twin/api_row.h"
"""


def api_header(rows: Sequence[ApiRow] | None = None) -> str:
    """The header's text: an enumerator, an ``ApiRow``, its limits and its types for each row of the table."""
    given = api_rows() if rows is None else rows
    rules = [_rule(row, rule) for row in given for rule in row.types]
    limits = [f'{{"{limit.parameter}", {limit.low}, {limit.high}}}' for row in given for limit in row.limits]
    parts = [
        _PROLOGUE,
        *(f"#define EVK_{form.upper()}_INSTRUCTIONS(X) {_listed(given, form)}" for form in _MADE),
        f"#define EVK_LANE_INSTRUCTIONS(X) {' '.join(f'X({row.key})' for row in given if row.lanes)}",
        "",
        "namespace evokernel::twin {\n",
        _block("enum class Api : uint16_t {", (row.key for row in given)),
        _block("constexpr TypeRule kTypeRules[] = {", rules),
        _block("constexpr Limit kLimits[] = {", limits),
        _block("constexpr ApiRow kApiRows[] = {", _entries(given)),
        _ACCESS,
        "}  // namespace evokernel::twin\n",
    ]
    return "\n".join(parts)


_MADE = ("binary", "unary", "scalar")
_ACCESS = """constexpr const ApiRow &RowOf(Api api) { return kApiRows[static_cast<uint16_t>(api)]; }

// The row's limit of a parameter; asked for in a constant expression, a row without it does not compile.
constexpr const Limit &LimitOf(Api api, const char *parameter)
{
    return FindLimit(RowOf(api), kLimits, parameter);
}
"""


def _block(opening: str, items: Iterable[str]) -> str:
    return "\n".join([opening, *(f"    {item}," for item in items), "};\n"])


def _listed(rows: Sequence[ApiRow], form: str) -> str:
    """``X(Name, Key)`` for each function of the form, under today's and former names."""
    names = [(name, row.key) for row in rows if row.form == form for name in (row.name, *row.former)]
    return " ".join(f"X({name}, {key})" for name, key in names)


def _entries(rows: Sequence[ApiRow]) -> Iterator[str]:
    rule = limit = 0
    for row in rows:
        flags = [
            ("kLanes", row.lanes),
            ("kTwoSources", row.sources == 2),
            ("kReadsDst", row.reads_dst),
            ("kOverflows", row.overflows),
            ("kAccumulates", row.overlap == "accumulates"),
        ]
        text = " | ".join(name for name, holds in flags if holds) or "0"
        numbers = f"{rule}, {len(row.types)}, {limit}, {len(row.limits)}"
        alignment = row.alignment.get("all", 0)
        yield f'{{"{row.name}", {_cost(row)}, {text}, {numbers}, {alignment}, {_repeats(row)}}}'
        rule, limit = rule + len(row.types), limit + len(row.limits)


def _repeats(row: ApiRow) -> int:
    return max(
        (limit.high for limit in row.limits if limit.parameter in ("repeatTime", "repeatTimes")), default=0
    )


def _cost(row: ApiRow) -> str:
    words = (row.cost or "none").split("_")
    return "Cost::" + "".join(word.capitalize() for word in words)


def _rule(row: ApiRow, rule: TypeRule) -> str:
    sources = [*rule.sources, *["" for _ in range(_MOST_SOURCES - len(rule.sources))]]
    types = ", ".join([_dtype(rule.dst), *(_dtype(source) if source else "kNoType" for source in sources)])
    modes = " | ".join(f"ModeBit(AscendC::{row.modes}::{mode})" for mode in rule.modes)
    return f"{{{{{types}}}, {len(rule.sources)}, {modes or '0'}}}"


def _dtype(name: str) -> str:
    return f"DType::{_LETTERS[DTYPES.index(name)]}"


_LETTERS = ("S4", "S8", "U8", "S16", "U16", "F16", "BF16", "S32", "U32", "F32", "S64", "U64", "F64")
