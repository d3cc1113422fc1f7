"""Draws of one magnitude: all values tiny, all large, or all far from 0 beside their spread."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..errors import AgentError

_TEXT = re.compile(r"(?P<base>[a-z]+)(?:\*2\^(?P<scale>-?\d{1,3}))?(?:\+2\^(?P<offset>\d{1,2}))?")
_MOST_EXPONENT = 120
_MOSTLY = 0.5
"""The share of a result that is finite at least."""
_MOST_ROUNDED = {torch.float16: 0.03, torch.bfloat16: 0.04, torch.float32: 0.01, torch.float64: 0.01}
"""The share of a result's magnitude by which PyTorch's own rounding moves it at most."""


@dataclass(frozen=True)
class Magnitude:
    """``base`` is a distribution of ordinary values, which are multiplied by ``2**scale``; then a constant of
    ``2**offset`` to twice of that, and either sign, is added, of each input another one."""

    base: str
    scale: int = 0
    offset: int = 0

    @property
    def is_ordinary(self) -> bool:
        return not (self.scale or self.offset)

    def milder(self) -> Iterator[Magnitude]:
        """The same, and what is drawn instead where that makes no numbers: half the exponents, and half of
        those, down to ordinary values; of these positive ones."""
        found = self
        yield found
        while not found.is_ordinary:
            found = replace(found, scale=int(found.scale / 2), offset=found.offset // 2)
            yield found
        if found.base != "uniform":
            yield replace(found, base="uniform")

    def applied(self, values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Drawn values in this magnitude."""
        if self.scale:
            values = values * 2.0**self.scale
        if self.offset:
            size, sign = torch.rand((2,), generator=generator)
            moved = 2.0**self.offset * (1.0 + float(size))
            values = values + (moved if sign < 0.5 else -moved)
        return values


def parsed(distribution: str) -> Magnitude:
    """``normal``, ``normal*2^-20``, ``normal+2^9``, ``ties*2^4+2^9``. Raises AgentError for other text."""
    found = _TEXT.fullmatch(distribution)
    if found is None or abs(int(found["scale"] or 0)) > _MOST_EXPONENT:
        raise AgentError("unsupported", "There is no distribution {name}.", name=repr(distribution[:60]))
    return Magnitude(found["base"], int(found["scale"] or 0), int(found["offset"] or 0))


def finite_share(results: list[torch.Tensor]) -> float:
    """The share of all elements of floats that are finite, 1 where there are none."""
    floats = [item for item in results if item.is_floating_point() or item.is_complex()]
    total = sum(item.numel() for item in floats)
    return sum(int(item.isfinite().sum()) for item in floats) / total if total else 1.0


def is_mostly_finite(share: float) -> bool:
    """Whether a kernel can be judged by a result with such a share of numbers."""
    return share >= _MOSTLY


def is_rounding(results: list[torch.Tensor], precise: list[torch.Tensor]) -> bool:
    """Whether some result is more than rounding: no kernel can be held to what PyTorch's own float32 does
    not tell from another result."""
    return any(_distance(*pair) > _MOST_ROUNDED.get(pair[0].dtype, 1.0) for pair in zip(results, precise))  # noqa: B905


def _distance(result: torch.Tensor, precise: torch.Tensor) -> float:
    if not result.is_floating_point() or not result.numel():
        return 0.0
    left, right = result.double(), precise.double()
    known = left.isfinite() & right.isfinite()
    size: Any = right[known].square().sum().sqrt()
    return float((left - right)[known].square().sum().sqrt() / size) if size else 0.0
