"""Schedules of searches, and which of them a problem takes.

``lanes``: the searched elements lie apart; lanes side by side keep their best value so far, several steps at
a time. ``short``: several rows a tile, 64 lanes a row. ``long``: one row at a time, in tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.problems.argmax import ArgReduction
from evokernel_core.compiler.schedule import Named, OneOf, Range, Scaled, Schedule, Shifted
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Reuse, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS

_MOST_ELEMENTS = 8192
"""Lanes of all steps of a copy: an instruction over all of them is one of less than 255 repeats."""
_NOTES = {
    "lanes": Sentence("Lanes side by side, each with its best value so far."),
    "short": Sentence("Several whole rows a tile; 64 lanes a row, compared with each other in the end."),
    "long": Sentence("Rows in tiles; each lane of the tiles keeps its best value so far."),
}


def _form(form: str) -> Callable[[ArgSchedule], bool]:
    return lambda schedule: schedule.form == form


_LANES, _SHORT, _LONG = map(_form, _NOTES)


@frozen
class ArgSchedule(Schedule):
    """``form``: see above. Tiles have ``steps`` of ``lanes``; at most ``rows`` rows and ``elements``, rows
    being whole or ``chunked``; or ``elements`` of a row. ``buffers`` of the input."""

    form: Annotated[str, OneOf(tuple(_NOTES))]
    lanes: Annotated[
        int,
        Range(LANES, unit=LANES, when=_LANES),
        Scaled("twice the lanes", "half the lanes", when=_LANES),
        Shifted("more lanes", "fewer lanes", 512, when=_LANES),
    ] = LANES
    steps: Annotated[
        int,
        Range(power_of_two=True, when=_LANES),
        Scaled("twice the steps a copy", "half the steps a copy", when=_LANES),
    ] = 1
    rows: Annotated[
        int, OneOf((64, 128, 192), when=_SHORT), Shifted("more rows", "fewer rows", LANES, when=_SHORT)
    ] = LANES
    elements: Annotated[
        int,
        Range(1024, when=_SHORT),
        Range(512, LANES * LANES, when=_LONG),
        Shifted("larger tile", "smaller tile", 2048, when=_SHORT),
        Scaled("double tile", "half tile", when=_LONG),
    ] = 4096
    chunked: Annotated[bool, Named({True: "rows in pieces", False: "whole rows"}, when=_SHORT)] = False
    buffers: Annotated[int, BUFFERS, Named({2: "double buffer", 1: "single buffer"})] = 2


def schedules() -> Iterator[ArgSchedule]:
    """Schedules to choose the first one from."""
    for lanes in (64, 128, 256, 512, 1024, 1536, 2048, 4096, 5120):
        yield ArgSchedule("lanes", lanes, 1 << (_MOST_ELEMENTS // lanes).bit_length() - 1)
    yield ArgSchedule("lanes", 4096, 1)
    for rows, elements in ((64, 4096), (64, 8192), (64, 12288), (64, 16384), (128, 8192)):
        yield ArgSchedule("short", rows=rows, elements=elements)
        yield ArgSchedule("short", rows=rows, elements=elements, chunked=True)
    for elements in (1024, 2048, 4096):
        yield ArgSchedule("long", elements=elements)


def steps(
    problem: ArgReduction, here: ArgSchedule, sizes: Mapping[str, int], chip: Chip
) -> Iterator[tuple[str, ArgSchedule]]:
    """Named changes of a schedule."""
    yield from here.neighbours("lanes", "steps", "rows", "elements", "chunked")
    if here.form == "short":
        yield "rows in tiles", ArgSchedule("long", elements=2048)
    if here.form == "long":
        yield "several rows a tile", ArgSchedule("short")
    yield from here.neighbours("buffers")


def why_illegal(problem: ArgReduction, schedule: ArgSchedule) -> str | None:
    """Why a schedule makes no kernel of the problem at all."""
    if _LANES(schedule) == problem.lanes.is_one:
        return "The searched elements lie otherwise than the schedule is for."
    tile = schedule.lanes * schedule.steps
    if _LANES(schedule) and (tile % 256 or tile > _MOST_ELEMENTS):
        return Sentence("A copy has whole blocks of masks, and {most} elements or less.", most=_MOST_ELEMENTS)
    if _SHORT(schedule) and schedule.chunked and schedule.elements < schedule.rows * LANES:
        return "A tile has a repeat of each row."
    return None


def notes(problem: ArgReduction, schedule: ArgSchedule) -> tuple[str, ...]:
    """The schedule in words."""
    return _NOTES[schedule.form], Sentence("{buffers} buffer(s) of the input.")


def cell(problem: ArgReduction, schedule: ArgSchedule) -> Descriptor:
    """What a tile is, and what cores share out."""
    dataflow, split = {
        "lanes": (Dataflow.LANES, Split.COLUMNS),
        "short": (Dataflow.BLOCKS if schedule.chunked else Dataflow.PACKED_ROWS, Split.ROWS),
        "long": (Dataflow.STREAMED, Split.ROWS),
    }[schedule.form]
    return Descriptor(dataflow, Reuse.NONE, split, Algorithm.SINGLE_PASS)
