"""Layout, method turn: one box whose rows lie apart on one side is turned in the unified buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, ClassVar

from attrs import evolve, frozen

from evokernel_core.compiler.schedule import Named, Schedule
from evokernel_core.compiler.shapes.boxes import Layout
from evokernel_core.compiler.shapes.sums import ZERO
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import RESERVED_BYTES
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.ir.traffic import kernel_us
from evokernel_core.targets.ascendc.kernels.layout.tiles import (
    Extents,
    Sides,
    cost,
    gathered,
    numeric,
    transposed,
)
from evokernel_core.targets.ascendc.kernels.layout.turned import build
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS

_MOST = most_of("TransDataTo5HD", "repeatTimes") * 8
"""Elements of an axis of a tile: a transposition takes 8 of them a repeat at least."""


@frozen
class TransposeSchedule(Schedule):
    """The most elements of each axis in a tile (joined by commas), whether squares are transposed or
    elements are picked by a table, and how many tiles are loaded and stored at a time."""

    family: ClassVar[str] = "layout_turn"
    tile: str
    transposes: Annotated[bool, Named({True: "squares transposed", False: "elements picked by a table"})]
    from_buffers: Annotated[
        int, BUFFERS, Named({2: "two tiles loaded at a time", 3: "three tiles loaded at a time"})
    ] = 2
    to_buffers: Annotated[
        int, BUFFERS, Named({1: "one tile stored at a time", 2: "two tiles stored at a time"})
    ] = 2

    @property
    def most(self) -> tuple[int, ...]:
        """Raises StrategyError where the tile is not numbers joined by commas."""
        try:
            return tuple(map(int, self.tile.split(",")))
        except ValueError as error:
            raise StrategyError("A strategy has tile {tile}; draft it anew.", tile=repr(self.tile)) from error

    def with_most(self, most: tuple[int, ...]) -> TransposeSchedule:
        return evolve(self, tile=",".join(map(str, most)))


@frozen
class Transposition:
    """The axes of a box that can be turned, at the sizes of the user's file."""

    axes: tuple[Extents, ...]
    width: int

    def sides(self, schedule: TransposeSchedule) -> Sides | None:
        """The tile of a schedule, None where the schedule is for another box."""
        if len(schedule.most) != len(self.axes) or min(schedule.most) < 1:
            return None
        make = transposed if schedule.transposes else gathered
        return make(self.axes, schedule.most, self.width)


def transposition_of(layout: Layout, sizes: Mapping[str, int]) -> Transposition | None:
    """The box that method turn works on; None where there are several, or nothing to turn."""
    if len(layout.boxes) != 1 or layout.boxes[0].is_fill or not layout.boxes[0].axes:
        return None
    box = layout.boxes[0]
    if box.left or box.right or box.to_start != ZERO:
        return None
    return Transposition(numeric(box, sizes), layout.width)


def refusal(turn: Transposition, schedule: TransposeSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    sides = turn.sides(schedule)
    if sides is None:
        return "The schedule does not fit the axes of the box."
    if max(schedule.most) > _MOST and schedule.transposes:
        return Sentence(
            "A transposition repeats at most {most} times.", most=most_of("TransDataTo5HD", "repeatTimes")
        )
    if _used_bytes(turn, sides, schedule) > chip.ub_bytes - RESERVED_BYTES:
        return "The tiles do not fit the unified buffer."
    return None


def _used_bytes(turn: Transposition, sides: Sides, schedule: TransposeSchedule) -> int:
    used = (
        sides.from_elements * schedule.from_buffers + sides.to_elements * schedule.to_buffers
    ) * turn.width
    if turn.width == 1:
        used += (sides.from_elements + sides.to_elements) * 2
    return used if schedule.transposes else used + 3 * 4 * sides.to_elements


def starts(turn: Transposition, chip: Chip) -> Iterator[TransposeSchedule]:
    """Per method the schedule that single steps do not improve any more."""
    tile = ",".join(["1"] * len(turn.axes))
    for transposes, stored in ((True, 1), (True, 2), (False, 2)):
        one = TransposeSchedule(tile, transposes, 2, stored)
        if refusal(turn, one, chip) is None:
            result = _climbed(turn, one, chip)
            yield result
            more = evolve(result, from_buffers=3)
            if refusal(turn, more, chip) is None:
                yield more


@lru_cache(maxsize=1024)
def _climbed(turn: Transposition, schedule: TransposeSchedule, chip: Chip) -> TransposeSchedule:
    best = estimate_us(turn, schedule, chip)
    while True:
        neighbours = [
            (estimate_us(turn, other, chip), other)
            for other in _neighbours(turn, schedule)
            if refusal(turn, other, chip) is None
        ]
        us, other = min(neighbours, key=lambda pair: pair[0], default=(best, schedule))
        if us >= best * 0.999:
            return schedule
        best, schedule = us, other


def _neighbours(turn: Transposition, schedule: TransposeSchedule) -> Iterator[TransposeSchedule]:
    """One axis longer or shorter, or one longer and another shorter."""
    axes = range(len(turn.axes))
    for i in axes:
        for factor in (2.0, 1.5):
            longer = _scaled(schedule.most, i, turn.axes[i].size, factor)
            yield schedule.with_most(longer)
            yield schedule.with_most(_scaled(schedule.most, i, turn.axes[i].size, 1 / factor))
            for j in axes:
                if i != j:
                    yield schedule.with_most(_scaled(longer, j, turn.axes[j].size, factor))
                    yield schedule.with_most(_scaled(longer, j, turn.axes[j].size, 1 / factor))
        yield schedule.with_most(_replaced(schedule.most, i, turn.axes[i].size))


def _scaled(most: tuple[int, ...], axis: int, size: int, factor: float) -> tuple[int, ...]:
    return _replaced(most, axis, max(1, min(int(most[axis] * factor), size)))


def _replaced(most: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    return (*most[:axis], max(1, value), *most[axis + 1 :])


def steps(turn: Transposition, here: TransposeSchedule) -> Iterator[tuple[str, TransposeSchedule]]:
    for axis, extents in enumerate(turn.axes):
        size = extents.size
        yield (
            Sentence("tile longer along axis {axis}", axis=axis),
            here.with_most(_scaled(here.most, axis, size, 2)),
        )
        yield (
            Sentence("tile a third longer along axis {axis}", axis=axis),
            here.with_most(_scaled(here.most, axis, size, 4 / 3)),
        )
        yield (
            Sentence("tile shorter along axis {axis}", axis=axis),
            here.with_most(_scaled(here.most, axis, size, 0.5)),
        )
    yield from here.neighbours()


def estimate_us(turn: Transposition, schedule: TransposeSchedule, chip: Chip) -> float:
    """Modelled microseconds of a schedule."""
    start = chip.vector.startup_cycles
    sides = turn.sides(schedule)
    if sides is None:
        return float("inf")
    number, tile = cost(turn.axes, sides, turn.width, schedule.transposes, chip)
    elements = 1.0
    for axis in turn.axes:
        elements *= axis.size
    us = kernel_us(
        [(number, tile)], 2 * elements * turn.width, (schedule.from_buffers, schedule.to_buffers), chip
    )
    if schedule.transposes:
        return us
    return us + (8 * len(turn.axes) + 8) * (start + sides.to_elements / 64) / chip.mhz  # the table


def notes(schedule: TransposeSchedule) -> tuple[str, ...]:
    """The schedule in words."""
    tile = schedule.tile.replace(",", " x ")
    return (
        Sentence("Tiles of {tile} elements are loaded and stored in long runs.", tile=tile),
        Sentence("Squares are transposed in the unified buffer.")
        if schedule.transposes
        else Sentence("A table made once says which element goes where."),
    )


def cell(schedule: TransposeSchedule) -> Descriptor:
    """Whether transpositions or a table say which element goes where."""
    way = Algorithm.TRANSPOSE if schedule.transposes else Algorithm.TABLE
    return Descriptor(Dataflow.BLOCKS, memories.UB, Split.TILES, way)


def kernel(layout: Layout, turn: Transposition, schedule: TransposeSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    sides = turn.sides(schedule)
    assert sides is not None
    stages = (schedule.from_buffers, schedule.to_buffers)
    return build(layout.boxes[0], turn.axes, sides, stages, layout.width, squared=schedule.transposes)
