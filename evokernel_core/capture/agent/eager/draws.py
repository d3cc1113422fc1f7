"""What the user's code and the graph are given: ordinary values, and those on which two ways to compute the
same part."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..reference.index_ranges import Range, ranges
from ..reference.reference import draw, first_values, shapes_of, size_of
from ..regions.layouts import full_order, inverse, layout_of
from ..regions.parts import PARAMETER, SCALAR, Leaf, Subject

NORMAL, NANS, INFINITIES, ZEROS, EXTREMES, EQUALS = (
    "normal", "nan", "infinity", "zero", "extreme", "equal",
)  # fmt: skip
NEGATIVE, BEYOND = "negative_index", "index_out_of_range"
FILE_SIZES = "file_sizes"
"""Ordinary values, at the sizes of the file."""
OF_FLOATS = (NANS, INFINITIES, ZEROS, EXTREMES, EQUALS)
OF_INDICES = (NEGATIVE, BEYOND)
_SHARE = 1 / 4
"""The share of elements that are no ordinary ones."""


@dataclass(frozen=True)
class Given:
    """One draw: ``of_code`` has a value for each leaf of the subject, ``of_graph`` those of the graph's
    inputs by name. They share no memory."""

    of_code: tuple[Any, ...]
    of_graph: dict[str, Any]

    def copied(self, change: Callable[[Any], Any] = lambda value: value) -> Given:
        """Other tensors of the same values, after ``change``."""
        return Given(
            tuple(_copy(change(value)) for value in self.of_code),
            {name: _copy(change(value)) for name, value in self.of_graph.items()},
        )


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def names_of(subject: Subject, graph: dict[str, Any], sizes: dict[str, int]) -> tuple[str, ...]:
    """The draws that say something of a region: special values take floats or numbers, indices an input that
    is read as such."""
    has_numbers = any(spec["dtype"] != "bool" for spec in subject.specs)
    special = OF_FLOATS if has_numbers else ()
    return (NORMAL, *special, *(OF_INDICES if ranges(graph, shapes_of(graph, sizes)) else ()))


def given(subject: Subject, graph: dict[str, Any], sizes: dict[str, int], name: str, seed: int) -> Given:
    """The values of a draw. Raises AgentError where the graph has none at these sizes."""
    values = first_values(graph, sizes, seed)
    limits = ranges(graph, shapes_of(graph, sizes))
    generator = torch.Generator().manual_seed(seed)
    inputs = {
        operand["expression"]: operand["name"] for operand in graph["inputs"] if operand.get("value") is None
    }
    special = _special_kinds(subject)
    of_code: list[Any] = []
    of_graph = dict(values)
    for leaf, spec in zip(subject.leaves, subject.specs, strict=True):
        known = inputs.get(leaf.expression)
        if leaf.kind == SCALAR:
            value = torch.tensor(float(leaf.value), dtype=torch.float32)
            of_code.append(type(leaf.value)(value.item()))  # a kernel is passed it in float32
        else:
            value = values[known] if known else _unread(spec, sizes, generator)
            value = _changed(value, name, limits.get(known or ""), leaf.kind in special, generator)
            of_code.append(_as_captured(value, leaf))
        if known:
            of_graph[known] = _copy(value)
    return Given(tuple(of_code), of_graph)


def _as_captured(value: torch.Tensor, leaf: Leaf) -> torch.Tensor:
    """The value with its dimensions in memory in the order that the user's tensor has."""
    order = full_order(layout_of(leaf.value), value.dim())
    return value.permute(order).contiguous().permute(inverse(order))


def _special_kinds(subject: Subject) -> frozenset[str]:
    """A weight that is no number would leave no result that is one: weights are ordinary where there is
    anything else."""
    kinds = frozenset(leaf.kind for leaf in subject.leaves if leaf.kind != SCALAR)
    return kinds - {PARAMETER} or kinds


def _unread(spec: Mapping[str, Any], sizes: Mapping[str, int], generator: torch.Generator) -> torch.Tensor:
    """A tensor that the graph does not take."""
    shape = tuple(size_of(dim, sizes) for dim in spec["shape"])
    dtype = getattr(torch, spec["dtype"])
    if dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=dtype)
    return draw(shape, spec["dtype"], "normal", generator)


def _changed(
    value: torch.Tensor, name: str, limit: Range | None, is_special: bool, generator: torch.Generator
) -> torch.Tensor:
    if not value.numel():
        return value
    if limit is not None and not value.is_floating_point() and value.dtype != torch.bool:
        return value if limit.divides else _indices(value, name, limit, generator)
    if not is_special or name not in OF_FLOATS or value.is_complex():
        return value
    if value.dtype == torch.bool:
        return _rows_of_truth(value)
    return _with(value, _specials(value.dtype, name), name, generator)


def _rows_of_truth(value: torch.Tensor) -> torch.Tensor:
    """The first row of a mask is all true, and the second one all false."""
    rows = value.clone().reshape(-1, value.shape[-1] if value.dim() else 1)
    rows[:1] = True
    rows[1:2] = False
    return rows.reshape(value.shape)


def _specials(dtype: torch.dtype, name: str) -> torch.Tensor:
    """The values of a draw, some of them several times."""
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        known = {EXTREMES: (info.min, info.max, info.max - 1), EQUALS: (1, 2), ZEROS: (0,)}
        return torch.tensor(known.get(name, (0, 1)), dtype=torch.int64).to(dtype)
    limits = torch.finfo(dtype)
    known_floats = {
        NANS: (math.nan,),
        INFINITIES: (math.inf, -math.inf),
        ZEROS: (0.0, -0.0),
        EXTREMES: (limits.max, limits.min, limits.tiny, -limits.tiny, limits.tiny / 4, limits.max / 4),
        EQUALS: (0.5, -1.0, math.nan),
    }
    return torch.tensor(known_floats[name], dtype=torch.float64).to(dtype)


def _with(value: torch.Tensor, specials: torch.Tensor, name: str, generator: torch.Generator) -> torch.Tensor:
    """The value with specials in it, one at least; among infinities one row is nothing else but -inf, as rows
    that a mask takes away."""
    chosen = torch.rand(value.shape, generator=generator) < (1.0 if name == EQUALS else _SHARE)
    chosen.view(-1)[-1] = True
    others = specials[torch.randint(0, len(specials), value.shape, generator=generator)]
    result = torch.where(chosen, others, value)
    if name == INFINITIES and value.is_floating_point() and value.dim() > 1:
        result.view(-1, value.shape[-1])[0] = -math.inf
    return result


def _indices(value: torch.Tensor, name: str, limit: Range, generator: torch.Generator) -> torch.Tensor:
    """Indices from the start of a dimension, or of which some count from the end, or one is beyond it."""
    lowest = torch.iinfo(value.dtype).min
    if limit.low < 0:
        value = torch.where(value < 0, value + limit.high, value)
    if name == NEGATIVE and lowest < 0:
        high = max(limit.high, 1)
        below = torch.randint(-high, 0, value.shape, generator=generator).to(value.dtype)
        return torch.where(torch.rand(value.shape, generator=generator) < _SHARE * 2, below, value)
    if name == BEYOND:
        result = value.clone().contiguous()
        result.view(-1)[-1] = limit.high
        return result
    return value
