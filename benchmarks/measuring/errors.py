"""How far results are from a reference, in units of the reference's root mean square."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_CHUNK = 1 << 26
"""Elements compared at a time."""


def worst(got: Sequence[Any], wanted: Sequence[Any]) -> float:
    """The largest of the outputs' errors, infinite where their number, shapes or kinds differ."""
    if len(got) != len(wanted):
        return math.inf
    return max((error(one, other) for one, other in zip(got, wanted, strict=True)), default=0.0)


def error(got: Any, wanted: Any) -> float:
    """The largest difference over the root mean square of what is wanted; for whole numbers and truths the
    share of elements that differ. Infinite where shapes differ, or infinities and NaN stand elsewhere."""
    import torch

    if tuple(got.shape) != tuple(wanted.shape):
        return math.inf
    got, wanted = got.reshape(-1), wanted.reshape(-1)
    if not wanted.numel():
        return 0.0
    if not (got.is_floating_point() and wanted.is_floating_point()):
        return float((got != wanted).to(torch.float32).mean())
    farthest, squares, finite = 0.0, 0.0, 0
    for first in range(0, wanted.numel(), _CHUNK):
        one = got[first : first + _CHUNK].to(torch.float64)
        other = wanted[first : first + _CHUNK].to(torch.float64)
        fits = torch.isfinite(other)
        away = torch.where(fits, one - other, torch.zeros_like(other))
        strange = torch.where(
            fits, fits & torch.isfinite(one), (one == other) | (one.isnan() & other.isnan())
        )
        if not bool(strange.all()):
            return math.inf
        farthest = max(farthest, float(away.abs().max()))
        squares += float(torch.where(fits, other, torch.zeros_like(other)).square().sum())
        finite += int(fits.sum())
    size = math.sqrt(squares / finite) if finite else 0.0
    return farthest / size if size else farthest
