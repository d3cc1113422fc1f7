"""Schedules of scans, and which of them a problem takes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.problems.scan import Scan, block_of, row_block_of
from evokernel_core.compiler.schedule import Listed, Named, OneOf, Range, Scaled, Schedule
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS

_MOST_STEPS = 240
"""A repeat count is at most 255."""
_LANES = (128, 256, 512, 1024)
_BLOCKS = (1, 3, 5, 7, 9, 11, 13, 15)
"""Blocks of a lane: odd, so that squares of 16 lanes meet no bank twice."""
SIDE = 16
"""Of the squares that are transposed."""
_LEAST_LANES = 512
_MOST_STARTS = 8
MASKS = 2048
"""Truth values that become numbers at a time."""
_TILES = (2048, 4096, 8192, 12288, 16384)
_WIDTHS = (64, 128, 256, 512)


_IN_ROWS = attrgetter("lanes")


def _in_columns(schedule: ScanSchedule) -> bool:
    return not schedule.lanes


@frozen
class ScanSchedule(Schedule):
    """``lanes`` of so many ``steps`` for scans in rows; for those in columns elements of a ``tile``, and the
    ``width`` that its rows have at least. ``out_buffers``: tiles that wait to be written."""

    lanes: Annotated[
        int, OneOf(_LANES, when=_IN_ROWS), Scaled("more lanes", "fewer lanes", when=_IN_ROWS)
    ] = 0
    steps: Annotated[int, Range(1, _MOST_STEPS, when=_IN_ROWS)] = 0
    tile: Annotated[
        int,
        OneOf(_TILES, when=_in_columns),
        Listed("larger tile", "smaller tile", _TILES, when=_in_columns),
    ] = 0
    width: Annotated[
        int,
        OneOf(_WIDTHS, when=_in_columns),
        Scaled("wider rows", "narrower rows", when=_in_columns),
    ] = 512
    out_buffers: Annotated[
        int, BUFFERS, Named({2: "two tiles to be written", 1: "one tile to be written"})
    ] = 1


def starts(scan: Scan, sizes: Mapping[str, int], chip: Chip) -> Iterator[ScanSchedule]:
    """Schedules to choose the first one from: of each shape of tiles one, the largest shapes."""
    outer, length, inner = (choice.evaluate(sizes) for choice in (scan.outer, scan.length, scan.inner))
    result: dict[tuple[int, int], ScanSchedule] = {}
    if scan.in_rows:
        for lanes, blocks in itertools.product(_LANES, _BLOCKS):
            schedule = ScanSchedule(lanes, blocks * block_of(scan))
            if _fits(scan, schedule, chip):
                result[_shape(scan, schedule, -(-outer // chip.aiv), length)] = schedule
        by_size = sorted(result.values(), key=lambda element: element.lanes * element.steps)
        yield from by_size[-_MOST_STARTS:]
        return
    share = -(-inner // -(-chip.aiv // outer))
    for tile, width in itertools.product(_TILES, (_WIDTHS[0], *_WIDTHS[-2:])):
        wide = min(max(share, width), most_width(scan, tile), inner)
        result.setdefault((wide, min(tile // wide, length)), ScanSchedule(tile=tile, width=width))
    yield from result.values()


def _shape(scan: Scan, schedule: ScanSchedule, rows: int, length: int) -> tuple[int, int]:
    """Lanes of a tile, and elements of each, for so many rows a core."""
    tile, block = schedule.lanes * schedule.steps, row_block_of(scan)
    if length <= longest_lane(scan, schedule):
        steps = -(-length // block) * block
        return min(tile // steps // SIDE, -(-rows // SIDE), most_lanes(schedule) // SIDE) * SIDE, steps
    equal = -(-length // -(-length // tile))
    return schedule.lanes, min(
        (-(-equal // (schedule.lanes * block_of(scan))) | 1) * block_of(scan), schedule.steps
    )


def _fits(scan: Scan, schedule: ScanSchedule, chip: Chip) -> bool:
    """Whether the buffers for rows fit the unified buffer, none of which shares memory."""
    size, most, is_masked = ITEM_SIZE[scan.dtype], most_lanes(schedule), bool(scan.mask)
    each = (2 + schedule.out_buffers) * size + 4 + 2 * (size == 2) + 2 * is_masked
    lanes = 32 * schedule.lanes + 4 * most + 8 * (most + LANES) * (scan.op == "logaddexp")
    return schedule.lanes * schedule.steps * each + lanes + MASKS * 6 * is_masked <= chip.ub_bytes


def most_lanes(schedule: ScanSchedule) -> int:
    """Rows of a tile at most, where rows are lanes."""
    return max(schedule.lanes, _LEAST_LANES)


def most_width(scan: Scan, tile: int) -> int:
    """Columns of a tile at most. Repeats step over less than 256 blocks from one masked row to the next."""
    return tile // (8 if scan.mask else 4)


def longest_lane(scan: Scan, schedule: ScanSchedule) -> int:
    """Elements of the longest rows that are lanes: a square of them fits a tile."""
    return schedule.lanes * schedule.steps // SIDE // row_block_of(scan) * row_block_of(scan)


def steps(
    scan: Scan, here: ScanSchedule, sizes: Mapping[str, int], chip: Chip
) -> Iterator[tuple[str, ScanSchedule]]:
    """Named changes of a schedule."""
    yield from here.neighbours("out_buffers")
    if not scan.in_rows:
        yield from here.neighbours("tile", "width")
        return
    block = block_of(scan)
    yield "more steps a lane", evolve(here, steps=here.steps + 2 * block)
    yield "fewer steps a lane", evolve(here, steps=here.steps - 2 * block)
    yield from here.neighbours("lanes")
    halved = max(here.steps // block // 2, 1) | 1
    yield "more lanes of fewer steps", evolve(here, lanes=here.lanes * 2, steps=halved * block)
    doubled = here.steps // block * 2 - 1
    yield "fewer lanes of more steps", evolve(here, lanes=here.lanes // 2, steps=doubled * block)


def why_illegal(scan: Scan, schedule: ScanSchedule) -> str | None:
    """Why a schedule makes no kernel of the problem at all."""
    if scan.in_rows != bool(schedule.lanes):
        return "The schedule is for scans that lie otherwise."
    if scan.in_rows and schedule.steps % block_of(scan):
        return "A lane has whole blocks of steps."
    return None


def notes(scan: Scan, schedule: ScanSchedule) -> Iterator[str]:
    """A schedule in words."""
    if schedule.lanes:
        yield Sentence(
            "Tiles of {lanes} segments of {steps} elements, transposed so that segments are lanes."
        )
    else:
        yield Sentence("Tiles of {tile} elements, rows of {width} or more; neighbouring scans are lanes.")
    yield Sentence("One tile travels while another is computed.")


def cell(scan: Scan, schedule: ScanSchedule) -> Descriptor:
    """Segments of one row wait for the sums before them, lanes of neighbouring scans for nothing."""
    dataflow, split = (Dataflow.BLOCKS, Split.ROWS) if schedule.lanes else (Dataflow.LANES, Split.COLUMNS)
    way = Algorithm.TRANSPOSE if schedule.lanes else Algorithm.SINGLE_PASS
    return Descriptor(dataflow, memories.UB, split, way, Overlap.PIPELINED)
