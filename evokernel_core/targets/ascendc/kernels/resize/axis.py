"""One dimension that is resized: where the taps of each result begin, how many there are, and which part of
the source a run of results needs.

Places are computed as the kernel computes them, in float32 and in PyTorch's order of operations, so that a
tile's part of the source is known before anything runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import frozen

from evokernel_core.compiler.ops import NEAREST
from evokernel_core.compiler.problems.resize import IDENTITY, SMOOTH, ResizeAxis
from evokernel_core.hardware.ascend.api import most_of


@frozen
class Window:
    """The part of a source that a run of results needs: ``span`` elements, of which the first of run number i
    is i * length * sources / results plus ``ahead``, which may be negative, unless an end is nearer."""

    length: int
    span: int
    ahead: int

    def start(self, axis: ResizeAxis, run: int) -> int:
        """The first source of run number ``run``."""
        guess = run * self.length * axis.sources // axis.results
        return min(max(guess + self.ahead, 0), axis.sources - self.span)


@lru_cache(maxsize=256)
def _reaches(axis: ResizeAxis) -> tuple[Any, Any]:
    """The first and the last source of each result."""
    number = np.arange(axis.results, dtype=np.float32)
    step, half = np.float32(axis.step), np.float32(0.5)
    if axis.kind == IDENTITY:
        first = number.astype(np.int64)
    elif axis.kind in SMOOTH:
        first = np.trunc((number + half) * step - np.float32(axis.support) + half).astype(np.int64)
    elif axis.kind in NEAREST:
        first = np.floor((number if axis.kind == "nearest" else number + half) * step).astype(np.int64)
    else:
        place = number * step if axis.aligned else (number + half) * step - half
        first = np.floor(place).astype(np.int64) - (1 if axis.kind == "cubic" else 0)
    last = axis.sources - 1
    return np.clip(first, 0, last), np.clip(first + axis.taps - 1, 0, last)


@lru_cache(maxsize=4096)
def window_of(axis: ResizeAxis, length: int) -> Window:
    """What runs of ``length`` results need."""
    first, last = _reaches(axis)
    begins = np.arange(0, axis.results, length)
    lowest = np.array([first[i : i + length].min() for i in begins])
    highest = np.array([last[i : i + length].max() for i in begins])
    guess = begins * axis.sources // axis.results
    # At the end of the source any start does that lets it be reached.
    ahead = int((lowest - guess).min())
    start = np.maximum(guess + ahead, 0)
    return Window(length, int((highest - start).max()) + 1, ahead)


# -- regular ratios ---------------------------------------------------------------------------------

_MOST_PHASES = 8
_MOST_STEPS = most_of("Muls", "srcRepStride") // 8
"""Blocks that a phase steps over: a repeat has 8 such steps."""
_EXACT = 4e-6
"""How far weights may be off that PyTorch computes anew for each result, in float32."""


@frozen
class Phases:
    """Result number ``p * i + phase`` has its first tap at source ``q * i`` plus the phase's offset, where
    the first and the last source go on beyond the ends, and weights of its own for each phase."""

    p: int
    q: int
    offsets: tuple[int, ...]
    weights: tuple[tuple[float, ...], ...]

    @property
    def taps(self) -> int:
        """Sources that make a result."""
        return len(self.weights[0])

    def overhang(self, axis: ResizeAxis) -> tuple[int, int]:
        """How many sources the taps reach beyond both ends."""
        phase = (axis.results - 1) % self.p
        last = (axis.results - 1) // self.p * self.q + max(self.offsets[: phase + 1]) + self.taps - 1
        return max(0, -min(self.offsets)), max(0, last - axis.sources + 1)


@frozen
class End:
    """A result some of whose taps lie beyond the ends: which sources weigh how much instead."""

    result: int
    weights: tuple[tuple[int, float], ...]


def ends_of(axis: ResizeAxis, phases: Phases) -> Iterator[End]:
    """The results whose taps lie beyond the ends: the outermost sources stand for what is there, or nothing
    does, and all others weigh more."""
    for result in range(axis.results):
        period, phase = divmod(result, phases.p)
        first = period * phases.q + phases.offsets[phase]
        if first >= 0 and first + phases.taps <= axis.sources:
            continue
        weights: dict[int, float] = {}
        for place, weight in enumerate(phases.weights[phase], first):
            source = min(max(place, 0), axis.sources - 1)
            if source == place or axis.kind not in SMOOTH:
                weights[source] = weights.get(source, 0.0) + weight
        total = sum(weights.values()) if axis.kind in SMOOTH else 1.0
        yield End(result, tuple((source, weight / total) for source, weight in weights.items()))


def most_ahead(axis: ResizeAxis, phases: Phases, window: Window) -> int:
    """How far, at most, the first period of a run begins behind the part of the source that it needs."""
    runs = range(-(-axis.results // window.length))
    places = (run * window.length // phases.p * phases.q for run in runs)
    return max(place - window.start(axis, run) for run, place in zip(runs, places, strict=True))


@lru_cache(maxsize=256)
def phases_of(axis: ResizeAxis) -> Phases | None:
    """The phases of a regular ratio; None where every result has weights of its own, or none are weighted
    alike."""
    if axis.kind == IDENTITY or axis.aligned:
        return None
    p = next((p for p in range(1, _MOST_PHASES + 1) if _is_whole(axis.step * p)), None)
    if p is None or axis.results < p:
        return None
    q = round(axis.step * p)
    if q > _MOST_STEPS:
        return None
    if axis.kind in SMOOTH:
        return _smooth_phases(axis, p, q) if axis.results * q == axis.sources * p else None
    places = [_place(axis, phase, q / p) for phase in range(p)]
    ahead = 1 if axis.kind == "cubic" else 0
    offsets = tuple(math.floor(place) - ahead for place in places)
    weights = tuple(_weights(axis.kind, place - math.floor(place)) for place in places)
    problem = Phases(p, q, offsets, weights)
    return problem if _agrees(axis, problem) else None


def _smooth_phases(axis: ResizeAxis, p: int, q: int) -> Phases | None:
    """The same of results that weigh all sources within the support: those on which the profile is positive
    or negative, and as many for each phase."""
    profile = _triangle if axis.kind == "smooth_linear" else _antialiased_keys
    offsets, found = [], []
    for phase in range(p):
        middle = (phase + 0.5) * q / p
        first = math.floor(middle - axis.support + 0.5)
        offsets.append(first)
        found.append([profile(abs(first + tap + 0.5 - middle) / axis.width) for tap in range(axis.taps)])
    while all(abs(row[-1]) < _EXACT for row in found):
        found = [row[:-1] for row in found]
    weights = tuple(tuple(weight / sum(row) for weight in row) for row in found)
    phases = Phases(p, q, tuple(offsets), weights)
    first, _ = _reaches(axis)
    exact = np.arange(axis.results) // p * q + np.array(offsets)[np.arange(axis.results) % p]
    return phases if bool((np.clip(exact, 0, axis.sources - 1) == first).all()) else None


def _triangle(d: float) -> float:
    return max(0.0, 1 - d)


def _antialiased_keys(d: float) -> float:
    return _keys(d, -0.5) if d < 2 else 0.0


def _is_whole(value: float) -> bool:
    return round(value) >= 1 and abs(value - round(value)) < 1e-6


def _place(axis: ResizeAxis, number: int, step: float) -> float:
    if axis.kind == "nearest":
        return number * step
    return (number + 0.5) * step - (0 if axis.kind in NEAREST else 0.5)


def _weights(kind: str, share: float) -> tuple[float, ...]:
    if kind == "linear":
        return (1 - share, share)
    if kind == "cubic":
        return tuple(_keys(distance) for distance in (1 + share, share, 1 - share, 2 - share))
    return (1.0,)


def _keys(d: float, a: float = -0.75) -> float:
    return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _agrees(axis: ResizeAxis, problem: Phases) -> bool:
    """Whether the places that PyTorch computes in float32 are those of the phases."""
    number = np.arange(axis.results)
    exact = number // problem.p * problem.q + np.array(problem.offsets)[number % problem.p]
    step, half = np.float32(axis.step), np.float32(0.5)
    shares = np.array([_place(axis, phase, problem.q / problem.p) for phase in range(problem.p)])
    given = number.astype(np.float32)
    if axis.kind in NEAREST:
        place = (given if axis.kind == "nearest" else given + half) * step
        return bool((np.floor(place) == exact).all())
    place = (given + half) * step - half
    wanted = number // problem.p * problem.q + shares[number % problem.p]
    return bool((np.abs(place - wanted) < _EXACT).all())
