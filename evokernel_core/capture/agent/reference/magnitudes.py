"""Draws of one magnitude: all values tiny, all large, or all far from 0 beside their spread."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..errors import AgentError

_TEXT = re.compile(
    r"(?P<base>[a-z]+)(?:\*2\^(?P<scale>-?\d{1,3}))?(?:(?P<side>[+<>])2\^(?P<offset>\d{1,2}))?"
    r"(?:@(?P<near>[-0-9.e,]{1,999}))?"
)
_MOST_EXPONENT = 126
_LEAST_FEW, _MOST_FEW = 2.0**-10, 2.0**10
"""Numbers about which values are ordinary."""
_LARGEST = 2.0**128 * 0.99
"""Magnitudes stay below the end of float32."""
_MOSTLY = 0.5
"""The share of a result that is finite at least."""
_MOST_ROUNDED = {torch.float16: 0.03, torch.bfloat16: 0.04, torch.float32: 0.01, torch.float64: 0.01}
"""The share of a result's magnitude by which PyTorch's own rounding moves it at most."""


@dataclass(frozen=True)
class Magnitude:
    """``base`` is a distribution of ordinary values, which are multiplied by ``2**scale``; then a constant of
    ``2**offset`` to twice of that is added, of each input another one: below 0 where ``side`` is ``<``, above
    where it is ``>``, else of either sign. With ``near`` they are drawn about these numbers, and with ``far``
    also at magnitudes at which those show elsewhere."""

    base: str
    scale: int = 0
    offset: int = 0
    near: tuple[float, ...] = ()
    far: bool = True
    side: str = "+"

    @property
    def is_ordinary(self) -> bool:
        return not (self.scale or self.offset or self.near)

    def milder(self) -> Iterator[Magnitude]:
        """The same, and what is drawn instead where that makes no numbers: half the exponents, and half of
        those, down to ordinary values; of these positive ones."""
        result = self
        yield result
        while not result.is_ordinary:
            halved: dict[str, Any] = {"scale": int(result.scale / 2), "offset": result.offset // 2}
            if result.near:
                few = tuple(number for number in result.near if _LEAST_FEW <= abs(number) <= _MOST_FEW)
                halved |= {"near": few if result.far else (), "far": False}
            result = replace(result, **halved)
            yield result
        if result.base != "uniform":
            yield replace(result, base="uniform")

    def applied(self, values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Drawn values in this magnitude."""
        if self.scale:
            values = (values * 2.0**self.scale).clamp(-_LARGEST, _LARGEST)
        if self.offset:
            size, sign = torch.rand((2,), generator=generator)
            moved = 2.0**self.offset * (1.0 + float(size))
            is_above = self.side == ">" or (self.side == "+" and float(sign) < 0.5)
            values = values + (moved if is_above else -moved)
        return values


def parsed(distribution: str) -> Magnitude:
    """``normal``, ``normal*2^-20``, ``normal<2^4``, ``ties*2^4+2^9``. Raises AgentError for other text."""
    match = _TEXT.fullmatch(distribution)
    if match is None or abs(int(match["scale"] or 0)) > _MOST_EXPONENT:
        raise AgentError("unsupported", "There is no distribution {name}.", name=repr(distribution[:60]))
    scale, offset = int(match["scale"] or 0), int(match["offset"] or 0)
    near, side = _numbers(match["near"] or ""), match["side"] or "+"
    return Magnitude(match["base"], scale, offset, near, side=side)


def _numbers(text: str) -> tuple[float, ...]:
    """Finite numbers that are not 0. Raises AgentError for other text."""
    try:
        numbers = tuple(float(word) for word in text.split(",") if word)
    except ValueError as error:
        name = repr(text[:60])
        raise AgentError("unsupported", "There is no distribution {name}.", name=name) from error
    return tuple(number for number in numbers if number and math.isfinite(number))


def finite_share(results: list[torch.Tensor]) -> float:
    """The share of all elements of floats that are finite, 1 where there are none."""
    floats = [result for result in results if result.is_floating_point() or result.is_complex()]
    total = sum(float_.numel() for float_ in floats)
    return sum(int(float_.isfinite().sum()) for float_ in floats) / total if total else 1.0


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
