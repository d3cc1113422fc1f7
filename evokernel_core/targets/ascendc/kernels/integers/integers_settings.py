"""The schedules of reductions of rows of integers, and how two integers are combined."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.problems.integers import IntegerRows
from evokernel_core.compiler.schedule import Named, OneOf, Range, Scaled, Schedule
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS
from evokernel_core.targets.ascendc.legalization.limbs import BITS, Operand, Words, wrapped
from evokernel_core.targets.ascendc.legalization.wide import WIDTHS, Arithmetic, Whole

_METHODS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
ROWS = (32, 64, 128, 256, 512)
"""Rows of a tile that are lanes."""
TILES = (256, 512, 1024, 2048, 4096, 8192)
"""The last one is for rows as lanes and for the scalar unit."""

_LANES = Named(
    {0: Sentence("elements are lanes")}
    | {count: Sentence("{count} rows are lanes", count=count) for count in ROWS}
)


def _without_rows(before: IntegerRowsSchedule, after: IntegerRowsSchedule) -> IntegerRowsSchedule:
    return evolve(after, rows=0)


@frozen
class IntegerRowsSchedule(Schedule):
    """``tile`` elements at a time, ``buffers`` of the input; ``scalar``: on the scalar unit, as running ones
    are and short rows may be; ``rows`` of a tile are lanes, where the elements of one are not."""

    tile: Annotated[int, OneOf(TILES), Scaled("double tile", "halve tile")]
    scalar: Annotated[bool, Named({True: "scalar unit", False: "lanes"}, also=_without_rows)] = False
    rows: Annotated[int, OneOf((0, *ROWS)), _LANES] = 0
    buffers: Annotated[int, BUFFERS, Range(1, 2), Named({2: "double buffer", 1: "single buffer"})] = 2


def is_wide(problem: IntegerRows) -> bool:
    """Whether an integer is two words."""
    return WIDTHS[problem.dtype] > BITS


def neutral(problem: IntegerRows) -> tuple[int, ...]:
    """The words of what changes nothing, the low one first."""
    value = problem.neutral
    return (wrapped(value), value >> BITS) if is_wide(problem) else (value,)


@cache
def combination(kind: str, dtype: str) -> tuple[Operand, ...]:
    """The words of two integers combined, the low one first. ``one low`` and ``other low`` are read, and
    ``high`` ones where integers have eight bytes."""
    words, bits = Words(), WIDTHS[dtype]
    limbs = ("low",) if bits == BITS else ("low", "high")
    a, b = (Whole(*(words.read("narrow", f"{name} {limb}") for limb in limbs)) for name in ("one", "other"))
    result: Whole = getattr(Arithmetic(words, bits), _METHODS[kind])(a, b)
    return (result.low,) if result.high is None else (result.low, result.high)
