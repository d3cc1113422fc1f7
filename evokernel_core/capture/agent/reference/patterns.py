"""Indices, divisors, truth values and constant lines as data has them: in order, in runs, and all alike.

A kernel that takes neighbours together, or looks at a part of a mask, is right on values that are evenly
spread: those hold no run of neighbours, and no row of them is all true.
"""

from __future__ import annotations

import math

import torch

from .index_ranges import Range

_EVEN = ("normal", "uniform", "alike", "signs")
"""Distributions in which every value is as likely as each other one."""
_ONE = ("structured", "rows")
_SEGMENT = 24
"""Neighbours that follow one pattern, on the average."""
_STRIDES = (-1.0, 0.0, 0.25, 0.5, 1.0, 1.0, 3.0)
"""How far an index is from the one before it: below 1 several are equal."""
_EXTRA_SHARE = 1 / 8
_ALONE, _ALONE_SHARE = 4, 1 / 2
"""So few indices are often all the extra one, and a single one of the least sizes (``uniform``) always is."""
_AT_ENDS = 1 / 16
"""The share of segments that begin at the first index, and that of those which begin at the last one."""
_DENSITIES = (0.0, 1.0, 0.5, 1 / 16, 15 / 16)
_THICK, _MOST_OF_ALL = 4, 1 / 2
"""Lines side by side, as windows of a pooling have them, and the share of all elements that they may be."""


def draw_integers(
    shape: tuple[int, ...], limit: Range, distribution: str, generator: torch.Generator
) -> torch.Tensor:
    """Integers within the limit: the last one everywhere where the distribution is structured, evenly spread
    where it is ordinary, else in segments that rise, fall or repeat. Divisors have both signs."""
    low, high = min(limit.low, limit.high - 1), max(limit.high, 1)
    if distribution in _ONE:
        values = torch.full(shape, high - 1, dtype=torch.int64)
        if limit.offsets:
            values[..., :1] = low
        return values
    values = torch.randint(low, high, shape, generator=generator, dtype=torch.int64)
    if limit.divides:
        return _divisors(values, high.bit_length(), generator)
    if distribution not in _EVEN and high - low > 1:
        values = _in_segments(values, low, high, generator)
    if limit.offsets:
        values = values.sort(-1).values
        values[..., :1] = low
    if limit.extra is None:
        return values
    share = 1.0 if distribution == "uniform" and values.numel() == 1 else _ALONE_SHARE
    is_alone = values.numel() <= _ALONE and bool(torch.rand((), generator=generator) < share)
    chosen = torch.rand(shape, generator=generator) < (1.0 if is_alone else _EXTRA_SHARE)
    return torch.where(chosen, torch.full((), limit.extra), values)


def draw_truths(shape: tuple[int, ...], distribution: str, generator: torch.Generator) -> torch.Tensor:
    """Half of them true where the distribution is ordinary; else rows that are all true, all false, true up
    to or from somewhere, or all but a few one of them."""
    drawn = torch.rand(shape, generator=generator)
    if distribution in _EVEN or not shape:
        return drawn < 0.5
    rows, columns = math.prod(shape[:-1]), shape[-1]
    densities = torch.tensor(_DENSITIES)[torch.randint(0, len(_DENSITIES), (rows, 1), generator=generator)]
    values = drawn.reshape(rows, columns) < densities
    ends = (torch.rand((rows, 1), generator=generator) * (columns + 1)).long()
    before = torch.arange(columns) < ends
    kinds = torch.randint(0, 4, (rows, 1), generator=generator)
    values = torch.where(kinds == 0, before, torch.where(kinds == 1, ~before, values))
    return values.reshape(shape)


def _in_segments(values: torch.Tensor, low: int, high: int, generator: torch.Generator) -> torch.Tensor:
    """Runs of neighbours with one stride each, from anywhere in the range and round its end; a fifth of them
    stays as it is."""
    flat = values.reshape(-1)
    ends = torch.rand(flat.shape, generator=generator)
    flat = torch.where(ends < _AT_ENDS, low, torch.where(ends > 1 - _AT_ENDS, high - 1, flat))
    places = torch.arange(flat.numel())
    begins = torch.rand(flat.shape, generator=generator) < 1 / _SEGMENT
    begins[:1] = True
    first = torch.where(begins, places, 0).cummax(0).values
    strides = torch.tensor((math.nan, math.nan, *_STRIDES))
    stride = strides[torch.randint(0, len(strides), flat.shape, generator=generator)][first]
    steps = torch.where(stride.isnan(), 0.0, (places - first) * stride).floor().long()
    followed = low + (flat[first] - low + steps) % (high - low)
    return torch.where(stride.isnan(), flat, followed).reshape(values.shape)


def _divisors(values: torch.Tensor, bits: int, generator: torch.Generator) -> torch.Tensor:
    """Of every width, and none of them 0."""
    narrowed = values >> torch.randint(0, bits, values.shape, generator=generator)
    return torch.where(narrowed == 0, torch.ones_like(values), narrowed)


def with_lines(values: torch.Tensor, number: float, generator: torch.Generator) -> torch.Tensor:
    """The values, of which some lines along each dimension are nothing but one number, as a mask or padding
    leaves rows: a reduction that begins with another number shows there alone."""
    result = values.clone()
    for along in range(values.dim()):
        widths = [min(_THICK, -(-size // 8)) for size in values.shape]
        thick = [*widths[:along], values.shape[along], *widths[along + 1 :]]
        if 0 < math.prod(thick) <= _MOST_OF_ALL * values.numel():
            part = result
            for dim, (size, width) in enumerate(zip(values.shape, thick)):  # noqa: B905
                start = int(torch.randint(0, size - width + 1, (), generator=generator))
                part = part.narrow(dim, start, width)
            part.fill_(number)
    return result
