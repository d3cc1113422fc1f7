"""Integer inputs whose values may be anything: those that no float and no index depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..graph.names import refs_in
from .index_ranges import DIVIDING
from .magnitudes import Magnitude
from .patterns import with_lines

_WIDTHS = {"int64": 64, "int32": 32, "int16": 16, "int8": 8, "uint8": 8}
_ENDS = (0, 1, -1, 1 << 24, (1 << 24) + 1, (1 << 31) - 1, 1 << 31, 1 << 32, -(1 << 31) - 1, (1 << 63) - 1,
         -(1 << 63))  # fmt: skip
"""Where other widths, or floats, lose integers."""
_AT_ENDS = 1 / 8
_WIDE = ("wide", "scales", "large", "mixed")
"""Distributions of values of several magnitudes; integers have all widths then."""
_NARROW = frozenset(("pow", "bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__"))
_ANY = frozenset(
    """add sub rsub mul neg abs sign square maximum minimum clamp clamp_min clamp_max eq ne lt le gt ge
    bitwise_and bitwise_or bitwise_xor bitwise_not logical_and logical_or logical_not logical_xor where
    masked_fill _to_copy sum amax amin max min prod cumsum cumprod argmax argmin any all view reshape
    _unsafe_view unsqueeze squeeze expand permute transpose t slice select alias clone detach flatten
    unflatten cat stack flip roll repeat contiguous""".split()  # noqa: SIM905
)
"""Operations that have a result for all integers."""
_FIRST = frozenset(("div", "remainder", "fmod", "pow", "bitwise_left_shift", "bitwise_right_shift",
                    "__lshift__", "__rshift__"))  # fmt: skip
"""Those that have one for all integers as their first operand."""


def free(graph: Mapping[str, Any]) -> set[str]:
    """The inputs that only operations on integers read which have a result for all of them, as every value
    has that is computed from them."""
    inputs = {operand["name"]: operand["spec"]["dtype"] for operand in graph["inputs"]}
    sources: dict[str, set[str]] = {name: {name} for name, dtype in inputs.items() if dtype in _WIDTHS}
    bound: set[str] = set()
    for node in graph["nodes"]:
        read = set().union(*(sources.get(name, set()) for name in refs_in([node["args"], node["kwargs"]])))
        if not _takes_all(node):
            bound |= read - _divided(node, inputs)
        if any(spec["dtype"] in _WIDTHS for spec in node["outputs"]):
            sources[node["name"]] = read
    return {name for name, dtype in inputs.items() if dtype in _WIDTHS} - bound


def _divided(node: Mapping[str, Any], inputs: Mapping[str, str]) -> set[str]:
    """The input that a node divides by a tensor of integers, which have a quotient for all but the least."""
    if node["op"].split(".")[1] not in DIVIDING or node["outputs"][0]["dtype"] not in _WIDTHS:
        return set()
    first, *others = (set(refs_in(arg)) for arg in node["args"])
    return first & inputs.keys() - set().union(*others)


def _takes_all(node: Mapping[str, Any]) -> bool:
    packet, dtypes = node["op"].split(".")[1], [spec["dtype"] for spec in node["outputs"]]
    if any(dtype not in _WIDTHS and dtype != "bool" for dtype in dtypes):
        return False
    if packet in _FIRST:
        other = node["args"][1] if len(node["args"]) > 1 else None
        return isinstance(other, int) and other != -1  # the least integer has no negative
    numbers = [arg for arg in node["args"] if isinstance(arg, dict) and "float" in arg]
    return packet in _ANY and not numbers


def is_wide(how: Magnitude) -> bool:
    """Whether integers have every size their type holds where floats are drawn so."""
    return how.scale > 0 or how.base in _WIDE


def takes_wide(graph: Mapping[str, Any]) -> bool:
    """Whether integers that floats are computed from may be any: none is an exponent or a count of bits."""
    return not any(node["op"].split(".")[1] in _NARROW for node in graph["nodes"])


def draw_whole(shape: tuple[int, ...], dtype: str, generator: torch.Generator, *, wide: bool) -> torch.Tensor:
    """Integers of every size where they are ``wide``, rows or columns at one end of the type among them, else
    small ones of both signs."""
    if not wide:
        values = torch.randint(-8, 9, shape, generator=generator, dtype=torch.int64)
        return values.to(getattr(torch, dtype))
    halves = torch.randint(-(1 << 31), 1 << 31, (2, *shape), generator=generator, dtype=torch.int64)
    values = (halves[0] << 32) + halves[1]
    values = values >> torch.randint(0, 64, shape, generator=generator, dtype=torch.int64)
    ends = torch.tensor(_ENDS)[torch.randint(0, len(_ENDS), shape, generator=generator)]
    values = torch.where(torch.rand(shape, generator=generator) < _AT_ENDS, ends, values)
    values = values.to(getattr(torch, dtype))
    limits = torch.iinfo(values.dtype)
    end = (limits.min, limits.max)[int(torch.randint(0, 2, (), generator=generator))]
    return with_lines(values, end, generator)


def without_least(values: torch.Tensor) -> torch.Tensor:
    """The integers, none of which is the least of its type: divided by -1 that has no quotient."""
    least = torch.iinfo(values.dtype).min
    return values.clamp_min(least + 1) if least < 0 else values


def without_minus_one(values: torch.Tensor) -> torch.Tensor:
    """Divisors of the least integer."""
    return torch.where(values == -1, -2, values).to(values.dtype)
