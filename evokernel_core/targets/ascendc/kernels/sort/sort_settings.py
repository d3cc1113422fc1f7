"""The schedules of sorting."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.limits import SORTED_KEPT, SORTED_TILES
from evokernel_core.compiler.problems.sort import Sort
from evokernel_core.compiler.schedule import Named, OneOf, Scaled, Schedule, Word
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS


@frozen
class SortSchedule(Schedule):
    """Tiles of ``elements``. Of rows that no tile holds, ``best`` elements are kept from tile to tile, or
    all in the workspace where it ``merges``. Without either a tile holds whole rows."""

    elements: Annotated[int, OneOf(SORTED_TILES), Scaled("double tile", "half tile")]
    best: Annotated[int, Word("count"), OneOf((0, *SORTED_KEPT))] = 0
    buffers: Annotated[int, BUFFERS, Named({2: "double buffer", 1: "single buffer"})] = 2
    merges: bool = False


def is_long(schedule: SortSchedule) -> bool:
    """Whether the kernel sorts rows that no tile holds."""
    return bool(schedule.best or schedule.merges)


def is_short(problem: Sort, schedule: SortSchedule) -> bool:
    """Whether the kernel sorts several whole rows a tile, where they are short enough when it runs."""
    columns = problem.columns.constant
    return columns is None or columns <= schedule.elements
