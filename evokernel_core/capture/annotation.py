"""The shape comment: ``# evokernel: x=f16[32,1024], w=f16[1024,1024], scale=0.5``.

A value is a dtype with sizes in brackets, or a Python literal for an argument that is no tensor.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from attrs import frozen

from evokernel_core.domain.errors import ShapesNeeded
from evokernel_core.domain.tensor import ITEM_SIZE

_SHORT_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64",
    "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8",
}  # fmt: skip
COMMENT = re.compile(r"#\s*evokernel:\s*(?P<values>.*\S)")
_TENSOR = re.compile(r"(?P<dtype>[a-z]+\d*)\s*\[(?P<sizes>[\d\s,_]*)\]")
_ARGUMENT = re.compile(r"\s*(?P<name>[^\W\d]\w*)\s*=\s*")
_UNSEPARATED = re.compile(r"[^\s,\[\](){}'\"]+\s+(?P<next>[^\W\d]\w*\s*=[^=].*)")
"""A bare value with the next argument right behind it."""


@frozen
class TensorShape:
    """What a comment says about one tensor argument."""

    shape: tuple[int, ...]
    dtype: str


def parse_annotation(values: str) -> dict[str, TensorShape | Any]:
    """Argument names and what they are. Raises ShapesNeeded where the text does not parse."""
    result: dict[str, TensorShape | Any] = {}
    rest = values
    while rest.strip():
        match = _ARGUMENT.match(rest)
        if match is None:
            raise _malformed(values, rest)
        rest = rest[match.end() :]
        tensor = _TENSOR.match(rest)
        if tensor:
            result[match["name"]] = _tensor(tensor, values)
            after = rest[tensor.end() :]
        else:
            literal, after = _literal(rest, values)
            result[match["name"]] = literal
        said = f"{match['name']}={rest[: len(rest) - len(after)].strip()}"
        rest = _after_comma(after, said)
    return result


def _tensor(match: re.Match[str], values: str) -> TensorShape:
    dtype = _SHORT_NAMES.get(match["dtype"], match["dtype"])
    sizes = [size.strip() for size in match["sizes"].split(",") if size.strip()]
    if dtype not in ITEM_SIZE or not all(re.fullmatch(r"\d+(_\d+)*", size) for size in sizes):
        raise _malformed(values, match[0])
    return TensorShape(tuple(int(size) for size in sizes), dtype)


def _literal(rest: str, values: str) -> tuple[Any, str]:
    """The shortest prefix up to a comma that Python reads as a literal."""
    ends = [match.start() for match in re.finditer(",", rest)] + [len(rest)]
    for end in ends:
        try:
            return ast.literal_eval(rest[:end].strip()), rest[end:]
        except (ValueError, SyntaxError):
            continue
    if missing := _UNSEPARATED.match(rest):
        raise _no_comma(missing["next"])
    raise _malformed(values, rest)


def _after_comma(rest: str, said: str) -> str:
    """What follows the comma behind an argument, which the comment puts as ``said``."""
    rest = rest.strip()
    if rest and not rest.startswith(","):
        if _ARGUMENT.match(rest):
            raise _no_comma(rest)
        raise ShapesNeeded(
            "The shape comment has '{where}' behind {said}, which it cannot say: it gives a dtype and sizes, "
            "or a value; leave that out.",
            where=_part(rest),
            said=said,
        )
    return rest[1:]


def _no_comma(rest: str) -> ShapesNeeded:
    return ShapesNeeded(
        "The shape comment has no comma before '{where}': put one between two arguments.", where=_part(rest)
    )


def _part(rest: str) -> str:
    """The part of the comment that is meant, up to its next comma outside brackets."""
    return re.split(r",(?![^\[\]]*\])", rest.strip())[0].strip()[:40]


def _malformed(values: str, where: str) -> ShapesNeeded:
    return ShapesNeeded(
        "The shape comment '{values}' does not parse at '{where}': write it as x=f16[32,1024], scale=0.5.",
        values=values,
        where=where.strip()[:40],
    )
