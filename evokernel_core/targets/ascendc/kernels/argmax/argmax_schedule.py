"""Schedules of searches, and which of them a problem takes.

``lanes``: the searched elements lie apart; lanes side by side keep their best value so far, several steps at
a time. ``short``: several rows a tile, 64 lanes a row. ``long``: one row at a time, in tiles.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from evokernel_core.compiler.problems.argmax import ArgReduction
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Reuse, Split
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.kernels.settings import Settings

_MOST_ELEMENTS = 8192
"""Lanes of all steps of a copy: an instruction over all of them is one of less than 255 repeats."""
_NOTES = {
    "lanes": Sentence("Lanes side by side, each with its best value so far."),
    "short": Sentence("Several whole rows a tile; 64 lanes a row, compared with each other in the end."),
    "long": Sentence("Rows in tiles; each lane of the tiles keeps its best value so far."),
}


@frozen
class ArgSchedule(Settings):
    """``form``: see above. Tiles have ``steps`` of ``lanes``; at most ``rows`` rows and ``elements``, rows
    being whole or ``chunked``; or ``elements`` of a row. ``buffers`` of the input."""

    form: str
    lanes: int = LANES
    steps: int = 1
    rows: int = LANES
    elements: int = 4096
    chunked: bool = False
    buffers: int = 2


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


def neighbours(problem: ArgReduction, here: ArgSchedule) -> Iterator[tuple[str, ArgSchedule]]:
    """Named changes of a schedule."""
    if here.form == "lanes":
        yield "twice the lanes", evolve(here, lanes=here.lanes * 2)
        yield "half the lanes", evolve(here, lanes=here.lanes // 2)
        yield "more lanes", evolve(here, lanes=here.lanes + 512)
        yield "fewer lanes", evolve(here, lanes=here.lanes - 512)
        yield "twice the steps a copy", evolve(here, steps=here.steps * 2)
        yield "half the steps a copy", evolve(here, steps=here.steps // 2)
    elif here.form == "short":
        yield "more rows", evolve(here, rows=here.rows + LANES)
        yield "fewer rows", evolve(here, rows=here.rows - LANES)
        yield "larger tile", evolve(here, elements=here.elements + 2048)
        yield "smaller tile", evolve(here, elements=here.elements - 2048)
        yield "whole rows" if here.chunked else "rows in pieces", evolve(here, chunked=not here.chunked)
        yield "rows in tiles", ArgSchedule("long", elements=2048)
    else:
        yield "double tile", evolve(here, elements=here.elements * 2)
        yield "half tile", evolve(here, elements=here.elements // 2)
        yield "several rows a tile", ArgSchedule("short")
    yield "double buffer" if here.buffers == 1 else "single buffer", evolve(here, buffers=3 - here.buffers)


def why_illegal(problem: ArgReduction, schedule: ArgSchedule) -> str | None:
    """Why a schedule makes no kernel of the problem at all."""
    if schedule.form not in _NOTES or (schedule.form == "lanes") == problem.lanes.is_one:
        return "The searched elements lie otherwise than the schedule is for."
    return {"lanes": _lanes_illegal, "short": _short_illegal, "long": _long_illegal}[schedule.form](schedule)


def _lanes_illegal(schedule: ArgSchedule) -> str | None:
    tile = schedule.lanes * schedule.steps
    if schedule.lanes < LANES or schedule.lanes % LANES or tile % 256:
        return "A chunk is a whole number of repeats, and its masks whole blocks."
    if schedule.steps < 1 or schedule.steps & (schedule.steps - 1) or tile > _MOST_ELEMENTS:
        return f"A copy has a power of two of steps, and {_MOST_ELEMENTS} elements or less."
    return None


def _short_illegal(schedule: ArgSchedule) -> str | None:
    if schedule.rows not in (64, 128, 192) or schedule.elements < 1024:
        return "A tile has 64, 128 or 192 rows, whole repeats of row values."
    if schedule.chunked and schedule.elements < schedule.rows * LANES:
        return "A tile has a repeat of each row."
    return None


def _long_illegal(schedule: ArgSchedule) -> str | None:
    if 512 <= schedule.elements <= LANES * LANES:
        return None
    return "A tile has 512 to 4096 elements, so that one repeat holds one number of each of its repeats."


def strategy_of(problem: ArgReduction, schedule: ArgSchedule, move: str) -> Strategy:
    """The schedule in settings and words."""
    notes = (_NOTES[schedule.form], Sentence("{buffers} buffer(s) of the input.", buffers=schedule.buffers))
    return Strategy("arg", schedule.settings(), notes, _descriptor(schedule), move)


def _descriptor(schedule: ArgSchedule) -> Descriptor:
    dataflow, split = {
        "lanes": (Dataflow.LANES, Split.COLUMNS),
        "short": (Dataflow.BLOCKS if schedule.chunked else Dataflow.PACKED_ROWS, Split.ROWS),
        "long": (Dataflow.STREAMED, Split.ROWS),
    }[schedule.form]
    return Descriptor(dataflow, Reuse.NONE, split, Algorithm.SINGLE_PASS, Overlap.of(schedule.buffers))
