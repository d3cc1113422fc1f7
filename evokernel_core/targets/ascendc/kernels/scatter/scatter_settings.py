"""The schedules of kernels that write by index."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.problems.scatter import Put
from evokernel_core.compiler.schedule import Named, Range, Scaled, Schedule
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.kernels.indexed import MOST_INDICES, more_or_fewer

ATOMICS = {"add": "Add", "max": "Max", "min": "Min"}
"""What copies into device memory, and the vector unit, combine."""
NEUTRAL = {"add": 0.0, "max": -math.inf, "min": math.inf}
"""What changes nothing, of the kinds that parts have."""
LEAST_SEGMENT_BYTES = 512
"""Shorter pieces of a run are slow to write."""
MOST_RUN_BYTES = 2**32 - 1
"""Copies count the bytes between runs in 32 bits."""


def copies(problem: Put) -> bool:
    """Whether copies into device memory can put the values: those combine only what atomics do."""
    return problem.ordered or (problem.kind in ATOMICS and problem.dtype != "int64")


def _in_order(schedule: ScatterSchedule) -> bool:
    return not (schedule.held or schedule.owned or schedule.sums)


def _by_segments(before: ScatterSchedule, after: ScatterSchedule) -> ScatterSchedule:
    return evolve(after, owned=False, held=0, sums=0)


@frozen
class ScatterSchedule(Schedule):
    """Tiles of at most ``runs`` runs, each with its index, and ``bytes`` bytes, and how values come to their
    places. ``picks``: the scalar unit puts single elements into a tile of the unified buffer. ``held``,
    unless 0: the vector unit sorts so many of them at a time by their places in a tile, which has a float for
    every 4 ``bytes``. ``owned``: a core finds the runs that go to its own range of places, which is in
    ``sums`` bytes of the unified buffer where it combines them there. Otherwise every run is a copy, of which
    a core makes a segment."""

    runs: Annotated[
        int,
        Range(16, MOST_INDICES, unit=16, when=_in_order),
        more_or_fewer(Sentence("indices a tile")),
    ]
    bytes: Annotated[
        int, Range(4096, unit=512, when=lambda it: not it.held), Scaled("larger tile", "smaller tile")
    ]
    picks: Annotated[bool, Named({True: "scalar unit", False: "copies"}, also=_by_segments)] = False
    owned: bool = False
    held: Annotated[
        int,
        Scaled("more entries sorted at a time", "fewer entries sorted at a time", when=attrgetter("held")),
    ] = 0
    sums: int = 0
