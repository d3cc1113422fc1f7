"""The schedule of a windowed kernel whose lanes are rows: its tile, and those to choose the first from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.problems.pooling import Combine, Window
from evokernel_core.compiler.schedule import Listed, Named, OneOf, Range, Schedule
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.targets.ascendc.kernels.built import Sizes
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS

_ROWS = (1, 2, 4, 8, 16, 32, 48, 64, 128)
_COLUMNS = (1, 8, 16, 32, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1024, 1536, 2016)
_PLAIN_COLUMNS = (*_COLUMNS, 4096, 8192)
_TOGETHER = 16
"""Rows that are turned together."""
_HIGHEST = 64
"""Rows of a tile beyond which nothing is gained that steps do not find."""
_LOW, _HIGH = 3, 2
"""Widths that are looked at, of tiles of no more rows than that and of higher ones."""


@frozen
class WindowSchedule(Schedule):
    """A tile of ``rows`` x ``columns`` of the result, in ``buffers`` buffers of each queue."""

    rows: Annotated[int, Range(1, most_of("Max", "repeatTime")), Listed("more rows", "fewer rows", _ROWS)]
    columns: Annotated[int, Range()]
    buffers: Annotated[int, BUFFERS, Named({1: "one buffer", 2: "two buffers"})] = 2
    lanes: Annotated[str, OneOf(("rows",))] = "rows"


def columns_of(window: Window) -> tuple[int, ...]:
    return _COLUMNS if window.is_across else _PLAIN_COLUMNS


def starts(window: Window, sizes: Sizes, fits: Callable[[WindowSchedule], bool]) -> Iterator[WindowSchedule]:
    """Of each height the widest tiles that fit; those of fewer rows than are turned together where no others
    do, or where half as many are whole. Of tiles that are cut alike the narrowest stands for all."""
    rows, columns = (axis.result.evaluate(sizes) for axis in (window.rows, window.columns))
    heights = [height for height in _ROWS if height < 2 * rows and height <= _HIGHEST]
    cuts = {-(-columns // width): width for width in reversed(columns_of(window))}
    result = {
        height: list(
            islice(filter(fits, _widths(height, cuts.values())), _LOW if height <= _TOGETHER else _HIGH)
        )
        for height in heights
    }
    low, high = (
        [element for height in heights if (height >= _TOGETHER) is is_high for element in result[height]]
        for is_high in (False, True)
    )
    if any(item.columns >= min(32, columns) for item in high):
        yield from high
        # Estimates promise more of low tiles than they hold where each tap has a weight.
        is_weighted = window.combine is Combine.WEIGHTED
        half = [item for item in low if item.rows >= _TOGETHER // 2 and item.columns >= columns]
        low = [] if is_weighted else half
    yield from low


def _widths(height: int, widths: Iterable[int]) -> Iterator[WindowSchedule]:
    return (WindowSchedule(height, width) for width in sorted(widths, reverse=True))


def steps(here: WindowSchedule, window: Window) -> Iterator[tuple[str, WindowSchedule]]:
    """Named steps, legal or not."""
    yield from here.neighbours("rows")
    across = Listed(Sentence("wider tile"), Sentence("narrower tile"), columns_of(window))
    for name, columns in across.values(here.columns):
        yield name, evolve(here, columns=columns)
    yield from here.neighbours("buffers")


def why_illegal(window: Window, schedule: WindowSchedule) -> str | None:
    """Why a schedule makes no kernel."""
    held = (schedule.rows - 1) * window.rows.stride + window.rows.reach
    if held > most_of("DataCopyPadIn", "blockCount"):
        return "A tile has more rows than a copy takes."
    return None
