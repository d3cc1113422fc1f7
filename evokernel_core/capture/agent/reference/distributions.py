"""Floats by the name of how they are drawn: ``capture.reference`` says what each is for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch

from .patterns import with_lines

_EXTREME = 30.0
_MANY_ROWS = 12
"""Rows from which each of them may be drawn otherwise, so that all ways are among them."""


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator)


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.rand(shape, generator=generator)


def _wide(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """[-50, 50], one in sixteen exactly zero, of either sign."""
    values = torch.rand(shape, generator=generator) * 100.0 - 50.0
    return torch.where(torch.rand(shape, generator=generator) < 1 / 16, values * 0.0, values)


def _structured(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Rows in turn: a ramp, a constant, alternating extremes, and zeros with one spike."""
    columns = shape[-1] if shape else 1
    rows = math.prod(shape[:-1])
    if rows * columns == 0:
        return torch.zeros(shape)
    column = torch.arange(columns, dtype=torch.float32)
    alternating = torch.where(column.remainder(2) == 0, _EXTREME, -_EXTREME)
    spike = torch.where(column == columns // 2, _EXTREME, 0.0)
    patterns = torch.stack([column / columns * 4 - 2, torch.full_like(column, 0.5), alternating, spike])
    offset = int(torch.randint(0, len(patterns), (), generator=generator))
    return patterns[(torch.arange(rows) + offset) % len(patterns)].reshape(shape)


def _peaks(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """N(0, 1), with a largest and a least element in each line along each dimension, whose place runs through
    the line from one line to the next: a kernel that leaves an element out misses one of them somewhere."""
    values = torch.randn(shape, generator=generator)
    if values.numel() == 0:
        return values
    places = torch.zeros(shape, dtype=torch.int64)
    for dim, size in enumerate(shape):
        places += torch.arange(size).reshape([-1 if dim == other else 1 for other in range(len(shape))])
    for size in shape:
        values[places % size == 0] += _PEAK
        values[places % size == 1] -= _PEAK
    return values


def _zeros_first(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Zeros up to a place in the second quarter, then [0, 1): nothing is below 0, so that a logarithm has
    numbers to tell, and what looks at the first elements alone finds no other."""
    values = torch.rand(shape, generator=generator).flatten()
    quarter = values.numel() // 4
    values[: quarter + int(torch.randint(0, quarter + 1, (), generator=generator))] = 0.0
    return values.reshape(shape)


_PEAK = 6.0
"""Beyond what N(0, 1) has in a line; its exponential is in range in every type."""


def _ties(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Quarters from -1 to 1, zeros of both signs: most elements have equals."""
    signs = 1.0 - 2.0 * torch.randint(0, 2, shape, generator=generator)
    return torch.randint(0, 5, shape, generator=generator).float() / 4 * signs


def _signs(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Plus, minus, plus, ... along the last dimension, each row beginning with either."""
    if not shape:
        return torch.randn(shape, generator=generator)
    flips = torch.arange(shape[-1]) + torch.randint(0, 2, (*shape[:-1], 1), generator=generator)
    return torch.randn(shape, generator=generator).abs() * (1 - 2 * (flips % 2))


def _scales(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Magnitudes of all orders from 2**-10 to 2**4, of both signs."""
    sizes = torch.exp2(torch.rand(shape, generator=generator) * 14.0 - 10.0)
    return torch.where(torch.rand(shape, generator=generator) < 0.5, -sizes, sizes)


def _sorted(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """N(0, 1) in rows that rise, or all that fall."""
    values = torch.randn(shape, generator=generator)
    falls = bool(torch.randint(0, 2, (), generator=generator))
    return values.sort(-1, descending=falls).values if shape else values


def _rows(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Each row one eighth or a multiple of it, up to 2: sums of many are exact."""
    values = torch.randint(-16, 17, (*shape[:-1], 1) if shape else (), generator=generator).float() / 8
    return values.expand(shape).clone()


def _large(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """N(0, 1), one in 64 of them a thousand times as large, at most 2000."""
    values = torch.randn(shape, generator=generator)
    chosen = torch.rand(shape, generator=generator) < 1 / 64
    return torch.where(chosen, (values * 1000).clamp(-2000, 2000), values)


def _mixed(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Each row of another kind, or each element where there are few rows; and at the same places of every
    input some rows, or blocks of elements, that are faint, so that what is computed of them is too."""
    rows, columns = math.prod(shape[:-1]), shape[-1] if shape else 1
    count, width = (rows, columns) if rows >= _MANY_ROWS else (rows * columns, 1)
    chosen = torch.randint(0, len(_KINDS), (count,), generator=generator)
    chosen[_are_faint(rows, columns, count)] = len(_KINDS)
    values = torch.empty(count, width)
    for number, draw_kind in enumerate((*_KINDS, _faint)):
        places = (chosen == number).nonzero()[:, 0]
        values[places] = draw_kind((len(places), width), generator)
    return values.reshape(shape)


def _are_faint(rows: int, columns: int, count: int) -> torch.Tensor:
    """Which of ``count`` rows, or elements of few rows, are faint: one row in twelve, of short ones several
    in a row; else one block in twelve and the last of three rows or more."""
    places = torch.arange(count)
    block = _BLOCK if rows < _MANY_ROWS else max(_SHORT // max(columns, 1), 1)
    result = places // block % _FAINT_ONE_IN == _FAINT_ONE_IN - 1
    if 3 <= rows < _MANY_ROWS:
        result |= places >= count - count // rows
    return result


def _faint(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """N(0, 1) in units of 2**-12."""
    return torch.randn(shape, generator=generator) * 2.0**-12


def _zeros(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Zeros of both signs: rows that have no length, maximum or place of their own."""
    return torch.randn(shape, generator=generator) * 0.0


_KINDS = (_normal, _uniform, _wide, _ties, _scales, _large, _zeros)
_FAINT_ONE_IN, _BLOCK, _SHORT = 12, 2048, 96


def _special(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """N(0, 1), every second one no ordinary number."""
    values = torch.randn(shape, generator=generator)
    others = torch.tensor(_SPECIAL)[torch.randint(0, len(_SPECIAL), shape, generator=generator)]
    return torch.where(torch.rand(shape, generator=generator) < 0.5, others, values)


def _rare(values: torch.Tensor, others: tuple[float, ...], generator: torch.Generator) -> torch.Tensor:
    """Up to 64 of the values replaced: whole sums are of no use where one element decides them."""
    flat = values.flatten()
    count = min(max(flat.numel() // _ONE_IN, 1), _MOST_RARE) if flat.numel() else 0
    places = torch.randint(0, max(flat.numel(), 1), (count,), generator=generator)
    flat[places] = torch.tensor(others)[torch.randint(0, len(others), (count,), generator=generator)]
    return flat.reshape(values.shape)


def _nans(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _rare(torch.randn(shape, generator=generator), (math.nan,), generator)


def _infinities(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _rare(torch.randn(shape, generator=generator), (math.inf, -math.inf), generator)


def _lowest(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return with_lines(_infinities(shape, generator), -math.inf, generator)


def _highest(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return with_lines(_infinities(shape, generator), math.inf, generator)


_ONE_IN, _MOST_RARE = 64, 64
_SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-40, -1e-40, 6e-8)
"""The last ones are denormal in float32, or in float16."""
DISTRIBUTIONS: Mapping[str, Callable[[tuple[int, ...], torch.Generator], torch.Tensor]] = {
    "normal": _normal,
    "uniform": _uniform,
    "wide": _wide,
    "structured": _structured,
    "ties": _ties,
    "signs": _signs,
    "scales": _scales,
    "sorted": _sorted,
    "rows": _rows,
    "large": _large,
    "mixed": _mixed,
    "alike": _normal,
    "columns": _normal,
    "peaks": _peaks,
    "zeros": _zeros_first,
    "special": _special,
    "nans": _nans,
    "infinities": _infinities,
    "lowest": _lowest,
    "highest": _highest,
}
