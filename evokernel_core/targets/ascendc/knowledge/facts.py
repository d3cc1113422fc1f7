"""What API cards say of functions, from the table of the interface: how they are called, on which pipe, with
which types, alignment, limits and units, and by what they are paid. The rest of a card is its author's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from evokernel_core.hardware.ascend.api import DTYPES, ApiRow, TypeRule, api_row

_WORD = re.compile(r"\w+")
_STRUCT = re.compile(r"Param|Info$|List$")
_EVERY = frozenset(DTYPES) - {"int4b_t"}
_REPEATED: Mapping[str, tuple[str, ...]] = {
    "repeatTime": ("repeats of 256 bytes",),
    **dict.fromkeys(
        """dstBlkStride srcBlkStride src0BlkStride src1BlkStride dstRepStride srcRepStride src0RepStride
        src1RepStride""".split(),  # noqa: SIM905
        ("32-byte blocks",),
    ),
}
"""Parameters of the repeat form with what they count there: one card has their limits for all functions."""
_OVERLAPS = {
    "same": "source and destination are the same or disjoint",
    "disjoint": "source and destination are disjoint",
    "accumulates": "source and destination are the same or disjoint; a destination that does not advance may "
    "be its own second source",
}
UB_BLOCK = 32
_PAID_BY = {
    "MTE1": "by bytes",
    "MTE2": "by bytes and copies",
    "MTE3": "by bytes and copies",
    "FIX": "by results",
    "M": "by fractals",
    "V": "by bytes",
    "S": "",
}


def fact_lines(keys: Sequence[str], *, repeats: bool = False) -> list[str]:
    """All that the table says of the rows of these keys. ``repeats``: with the limits of the repeat form.
    Raises TableError."""
    return [
        *call_lines(keys),
        *limit_lines(keys, repeats=repeats),
        *_shared(keys, "Operands of", _operands),
        *_shared(keys, "Cost of", _cost),
    ]


def call_lines(keys: Sequence[str]) -> list[str]:
    """A line for each way in which the rows of these keys are called. Raises TableError."""
    calls: dict[tuple[str, str], list[str]] = {}
    for row in map(api_row, keys):
        calls.setdefault((f"({', '.join(_shown(row))})", _facts(row)), []).append(_named(row))
    return [f"{' '.join(names)}{arguments}{facts}." for (arguments, facts), names in calls.items()]


def limit_lines(keys: Sequence[str], *, repeats: bool = True) -> list[str]:
    """The limits of the rows of these keys with their units, a line for those that share them. Without
    ``repeats`` those of the repeat form are left out. Raises TableError."""
    return _shared(keys, "Limits of", lambda row: _limits(row, repeats))


def _limits(row: ApiRow, repeats: bool) -> str:
    usual = [
        limit for limit in row.limits if row.units.get(limit.parameter) in _REPEATED.get(limit.parameter, ())
    ]
    shown = [limit for limit in row.limits if repeats or limit not in usual]
    bounded = {limit.parameter for limit in row.limits}
    alike: dict[str, list[str]] = {}
    for entry in shown:
        alike.setdefault(f"{entry.low}..{entry.high}{_unit(row, entry.parameter)}", []).append(
            entry.parameter
        )
    ranges = [f"{' '.join(names)} {bounds}" for bounds, names in alike.items()]
    counted = [f"{name}{_unit(row, name)}" for name in row.units if name not in bounded | {"count", "mask"}]
    whole = [f"{name} * sizeof(T) a multiple of {unit}" for name, unit in row.whole.items()]
    return ", ".join([*ranges, *(counted if shown or not bounded else []), *whole])


def _unit(row: ApiRow, parameter: str) -> str:
    return f" ({row.units[parameter]})" if parameter in row.units else ""


def _operands(row: ApiRow) -> str:
    sizes = [
        f"{name} at multiples of {size} bytes"
        for name, size in row.alignment.items()
        if size > 1 and (name, size) != ("all", UB_BLOCK)  # what holds for all of UB is said once
    ]
    return "; ".join(
        [*([", ".join(sizes)] if sizes else []), *([_OVERLAPS[row.overlap]] if row.overlap else [])]
    )


def _cost(row: ApiRow) -> str:
    if row.cost:
        return f"class {row.cost}"
    paid_by = _PAID_BY[row.pipe]
    return paid_by.replace("bytes and", "bytes, rows and") if row.units.get("nValue") == "rows" else paid_by


def _shared(keys: Sequence[str], head: str, said: Callable[[ApiRow], str]) -> list[str]:
    """What is said of each row, a line for those of which the same is; none where nothing is."""
    by_text: dict[str, list[str]] = {}
    for row in map(api_row, keys):
        if text := said(row):
            by_text.setdefault(text, []).append(_title(row))
    if len(by_text) == 1 and len(next(iter(by_text.values()))) == len(keys):
        (text,) = by_text
        return [f"{head.removesuffix(' of')}: {text}."]
    return [f"{head} {' '.join(dict.fromkeys(names))}: {text}." for text, names in by_text.items()]


def _title(row: ApiRow) -> str:
    """The row's name, and its key where other rows have that name."""
    return row.name if row.key in (row.name, row.of + row.name) else row.key


def names_of(keys: Iterable[str]) -> list[str]:
    """The names of the rows' functions, today's and former ones."""
    rows = [api_row(key) for key in keys]
    return list(dict.fromkeys(name for row in rows for name in (row.name, *row.former)))


def _form(row: ApiRow) -> str:
    return next((text for text in row.signatures if "count" in _parameters(text)), row.signatures[0])


def _shown(row: ApiRow) -> list[str]:
    """The parameters as a card names them: structs with their type, and tensors where some are global."""
    form = _form(row)
    copies = "GlobalTensor" in form
    return [_typed(words, copies) for words in _declared(form)]


def _typed(words: list[str], copies: bool) -> str:
    kind = next((word for word in words if word != "const"), "")
    is_tensor = copies and kind in ("LocalTensor", "GlobalTensor")
    return f"{kind} {words[-1]}" if is_tensor or _STRUCT.search(kind) else words[-1]


def _parameters(signature: str) -> list[str]:
    """``dst`` and ``count`` of ``void F(const LocalTensor<T>& dst, const int32_t& count = 1)``."""
    return [words[-1] for words in _declared(signature)]


def _declared(signature: str) -> list[list[str]]:
    """The words of each parameter's declaration, its name last."""
    inside = signature.removesuffix(" const").removesuffix(")").rsplit("(", 1)[1]
    bare = (re.sub(r"\[.*?\]", "", word.split("=", maxsplit=1)[0]) for word in _split(inside))
    return [words for words in map(_WORD.findall, bare) if words]


def _split(text: str) -> list[str]:
    """The parts between the commas that are in no brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "<{[(") - (char in ">}])")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _named(row: ApiRow) -> str:
    former = f" (formerly {', '.join(row.former)})" if row.former else ""
    key = f" [{row.key}]" if _title(row) != row.name else ""
    return (f"{row.of}." if row.of else "") + row.name + _arguments(_form(row)) + former + key


def _arguments(signature: str) -> str:
    """``<T, U, config>``: the template's parameters as far as no operand gives them away."""
    if not signature.startswith("template <"):
        return ""
    head = signature.removeprefix("template <")
    end = _closing(head)
    operands = set(_WORD.findall(head[end:].partition("(")[2]))
    found, needed = [], 0
    for part in _split(head[:end]):
        words = _WORD.findall(part.split("=", maxsplit=1)[0])
        if "enable_if" in part or not words or words[-1] == "isSetMask":
            continue
        found.append(words[-1])
        is_type = words[0] in ("typename", "class")
        if words[-1] not in operands if is_type else "=" not in part:
            needed = len(found)
    return f"<{', '.join(found[:needed])}>" if needed else ""


def _closing(text: str) -> int:
    """Where the bracket closes that was opened before the text."""
    depth = 1
    for at, char in enumerate(text):
        depth += (char == "<") - (char == ">")
        if depth == 0:
            return at
    return len(text)


def _facts(row: ApiRow) -> str:
    pipe = f" on {row.pipe}" if row.pipe != "S" else ""
    return f"{pipe}: {_types(row)}" if row.types else pipe


def _types(row: ApiRow) -> str:
    if {rule.dst for rule in row.types if not rule.sources} == _EVERY:
        return "every type of 1 to 8 bytes"
    by_modes: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for rule in row.types:
        target = rule.dst if rule.sources else ""
        by_modes.setdefault(rule.modes, {}).setdefault(target, []).append(_source(rule))
    return "; ".join(_mode(modes) + _alternatives(types) for modes, types in by_modes.items())


def _source(rule: TypeRule) -> str:
    return " x ".join(rule.sources) if rule.sources else rule.dst


def _mode(modes: tuple[str, ...]) -> str:
    return f"{'/'.join(mode.removeprefix('CAST_') for mode in modes)} " if modes else ""


def _alternatives(types: Mapping[str, list[str]]) -> str:
    return ", ".join(" ".join(sources) + (f" -> {dst}" if dst else "") for dst, sources in types.items())
