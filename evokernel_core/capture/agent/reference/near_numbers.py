"""Values at and around given numbers: those that a graph or a kernel compares, clips, adds or multiplies.

A number that a kernel names and should not shows at few magnitudes alone: a bound beyond it, what is added
and taken away where it swallows the value, a factor and its inverse where the product has no digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

_MANTISSA = {torch.float16: 10, torch.bfloat16: 7}
_MANY_ROWS = 12
"""Rows from which each of them may be drawn otherwise."""
_EXACT = 2 / 3
_COLUMNS = 1 / 4
_SQUARED, _LAST_EXPONENT, _ROOM = 2.0**60, 127, 10
"""Squares of values as large have a sum over all elements that stays so many bits below the end of float32:
what is computed of a tensor may have more elements, and right kernels sum about another point than the mean.
"""
_END = 0.9
"""The share of a type's largest number that values reach."""

_Kind = Callable[[torch.Tensor, torch.Tensor, torch.finfo], torch.Tensor]


def draw_near(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    numbers: Sequence[float],
    generator: torch.Generator,
    *,
    far: bool,
    squares: bool = True,
    columns: bool = False,
) -> torch.Tensor:
    """Rows, or elements where there are few rows, each about one of the numbers: the number itself, of either
    sign, what lies next to it, half and twice of it; with ``far`` also what it swallows, what lies beyond it,
    and what a product with it leaves no number of. A sixth is N(0, 1). With ``columns`` a quarter of these,
    too, lies beyond a number in all rows, on one side of 0. Float32 of the given shape, within the dtype's
    range, and with ``squares`` such that sums of squares are in that of float32."""
    rows, length = math.prod(shape[:-1]), shape[-1] if shape else 1
    count, width = (rows, length) if rows >= _MANY_ROWS else (rows * length, 1)
    limits = torch.finfo(dtype)
    kinds: tuple[_Kind, ...] = (_at, _swallowed, _beyond, _overflowing) if far else (_at,)
    chosen = (torch.randint(0, 6, (count,), generator=generator) - 2).clamp_min(0)
    sizes = torch.tensor([abs(number) for number in numbers], dtype=torch.float64)
    sizes = sizes[torch.randint(0, len(numbers), (count,), generator=generator)]
    drawn = torch.randn((count, width), generator=generator).double()
    beside = torch.randint(-2, 3, drawn.shape, generator=generator)
    next_to = torch.where(beside.abs() < 2, 1.0 + beside * 2.0 ** -_MANTISSA.get(dtype, 23), 1.0)
    values = drawn.clone()
    for number, kind in enumerate(kinds):
        places = chosen == number
        values[places] = kind(sizes[places, None], drawn[places], limits)
    exact = (chosen == 0)[:, None] & (torch.rand(drawn.shape, generator=generator) < _EXACT)
    values = torch.where(exact, torch.copysign(sizes[:, None] * next_to, drawn), values)
    if far and columns:
        values = _with_columns(values.reshape(rows, length), numbers, limits, generator)
    if squares:
        most = 2.0 ** ((_LAST_EXPONENT - _ROOM - (rows * length).bit_length()) // 2)
        values = torch.copysign(values.abs().clamp(1.0 / _SQUARED, min(_SQUARED, most)), values)
    return values.clamp(-limits.max * _END, limits.max * _END).reshape(shape).float()


def _with_columns(
    values: torch.Tensor, numbers: Sequence[float], limits: torch.finfo, generator: torch.Generator
) -> torch.Tensor:
    """The values of rows with a quarter of the columns beyond one of the numbers."""
    length = values.shape[1]
    sizes = torch.tensor([abs(number) for number in numbers], dtype=torch.float64)
    sizes = sizes[torch.randint(0, len(numbers), (length,), generator=generator)]
    drawn = torch.randn(values.T.shape, generator=generator).double()
    chosen = torch.rand((length,), generator=generator) < _COLUMNS
    return torch.where(chosen, _beyond(sizes[:, None], drawn, limits).T, values)


def whole_near(values: torch.Tensor, numbers: Sequence[float], generator: torch.Generator) -> torch.Tensor:
    """Integers, a quarter of which are one of the numbers or beside one, of either sign."""
    info = torch.iinfo(values.dtype)
    known = [int(number) for number in numbers if number == int(number) and abs(number) < info.max]
    if not known:
        return values
    shape = values.shape
    near = torch.tensor(known)[torch.randint(0, len(known), shape, generator=generator)]
    near = near * (1 - 2 * torch.randint(0, 2, shape, generator=generator))
    near = near + torch.randint(-1, 2, shape, generator=generator)
    chosen = torch.rand(shape, generator=generator) < 0.25
    return torch.where(chosen, near.clamp(info.min, info.max).to(values.dtype), values)


def _at(sizes: torch.Tensor, drawn: torch.Tensor, _: torch.finfo) -> torch.Tensor:
    """Half of the number, or twice of it."""
    return torch.copysign(torch.where(drawn.abs() < 0.7, sizes / 2, sizes * 2), drawn)


def _swallowed(sizes: torch.Tensor, drawn: torch.Tensor, limits: torch.finfo) -> torch.Tensor:
    """Of so many bits less that a sum with the number keeps three of them, in float32."""
    return torch.where(sizes * 2.0**-20 > limits.tiny * 2.0**-6, drawn * sizes * 2.0**-20, drawn)


def _beyond(sizes: torch.Tensor, drawn: torch.Tensor, _: torch.finfo) -> torch.Tensor:
    """Beyond the number, whole rows on one side of 0."""
    return torch.copysign((1.0 + drawn.abs()) * 2.0 * sizes, drawn[:, :1])


def _overflowing(sizes: torch.Tensor, drawn: torch.Tensor, limits: torch.finfo) -> torch.Tensor:
    """What times the number is infinite, or for numbers below one has no digits."""
    large = drawn * 4.0 * limits.max / sizes.clamp_min(1.0)
    small = drawn * 0.25 * limits.tiny / sizes.clamp_max(1.0).clamp_min(limits.tiny)
    return torch.where(sizes >= 2.0, large, torch.where(sizes < 0.5, small, drawn))
