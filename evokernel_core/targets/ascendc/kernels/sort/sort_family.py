"""Family sort: rows in order, with the places of their elements; or the first few of each sorted row.

Vector cores sort 32 pairs of a number and its place at a time and merge four sorted runs into one. Rows that
a tile holds are sorted whole, several at a time. Of longer rows a kernel keeps the best elements so far and
merges each sorted tile with them; where all are wanted, sorted tiles lie in the workspace and are merged
slice by slice, which is the one way that depends on the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve

from evokernel_core.compiler.limits import SORTED_KEPT, SORTED_TILES
from evokernel_core.compiler.ops import SORT, categories
from evokernel_core.compiler.problems.sort import Sort, read_sort
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.kernels.built import Sizes, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.machine import tile_start
from evokernel_core.targets.ascendc.kernels.merging import RUN
from evokernel_core.targets.ascendc.kernels.sort.sort_kernel import build
from evokernel_core.targets.ascendc.kernels.sort.sort_settings import SortSchedule

_PAIR = 8


def _notes(problem: Sort, schedule: SortSchedule) -> Iterator[str]:
    yield Sentence("Tiles of {elements} elements, {buffers} buffer(s) of the input.")
    if schedule.merges:
        yield Sentence("Sorted tiles are merged in the workspace.")
    elif schedule.best:
        yield Sentence("The best {count} of a row so far.")
    else:
        yield Sentence("Whole rows in a tile.")


def _cell(problem: Sort, schedule: SortSchedule) -> Descriptor:
    if schedule.merges:
        return Descriptor(Dataflow.STREAMED, memories.L2, Split.ROWS, Algorithm.MERGE)
    if schedule.best:
        return Descriptor(Dataflow.STREAMED, memories.UB, Split.ROWS, Algorithm.SELECTION)
    return Descriptor(Dataflow.RESIDENT_ROWS, memories.UB, Split.ROWS, Algorithm.SORT)


def _starts(problem: Sort, sizes: Sizes, chip: Chip) -> Iterator[SortSchedule]:
    for elements in SORTED_TILES:
        for best in (0, *SORTED_KEPT):
            yield SortSchedule(elements, best)
            yield SortSchedule(elements, best, 1)
        yield SortSchedule(elements, merges=True)


def _steps(problem: Sort, here: SortSchedule, sizes: Sizes, chip: Chip) -> Iterator[tuple[str, SortSchedule]]:
    """Named neighbours of a schedule."""
    yield from here.neighbours()
    yield "whole rows", evolve(here, best=0, merges=False)


def _why_illegal(problem: Sort, schedule: SortSchedule) -> str | None:
    """Why a schedule makes no kernel."""
    columns, keep = problem.columns.constant, problem.keep.constant
    if schedule.best > schedule.elements:
        return "No more elements are kept than a tile has."
    if schedule.best and (schedule.merges or keep is None or keep > schedule.best):
        return Sentence(
            "{keep} elements of a row may be more than the {best} that are kept.",
            keep=problem.keep.cpp(),
            best=schedule.best,
        )
    if not schedule.best and not schedule.merges and (columns is None or columns > schedule.elements):
        return Sentence(
            "Rows of {columns} elements may not fit a tile of {elements}.",
            columns=problem.columns.cpp(),
            elements=schedule.elements,
        )
    return None


def _cost_us(problem: Sort, schedule: SortSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the slower of the busiest core's copies and its sorting."""
    start = chip.vector.startup_cycles
    rows, columns, keep = (part.evaluate(sizes) for part in (problem.rows, problem.columns, problem.keep))
    size = ITEM_SIZE[problem.dtype]
    pitch = math.ceil(columns / RUN.value) * RUN.value
    if columns > schedule.elements:
        width, per_tile, tiles_a_row = (
            min(schedule.elements, pitch),
            1,
            math.ceil(columns / schedule.elements),
        )
    else:
        width, tiles_a_row = pitch, 1
        per_tile = max(1, min(schedule.elements // pitch, math.ceil(rows / chip.aiv)))
    tiles = math.ceil(rows / per_tile)
    cores = min(tiles, chip.aiv)
    passes = math.ceil(math.log(max(width / RUN.value, 1), 4))
    mte, rate = chip.mte, chip.vector.elements_per_cycle.sort
    sorted_cycles = (passes + 1) * (start + per_tile * width / rate)
    prepared = 8 * (start + per_tile * width / LANES)
    merged = (start + keep) if schedule.best and columns > schedule.elements else 0.0
    if schedule.merges and columns > schedule.elements:
        # once more through the workspace for each pass, and to take pairs apart
        deeper = max(math.ceil(math.log(max(tiles_a_row, 1), 4)), 0) + 1
        merged = deeper * (4 * tile_start(chip) + width * (1 / rate + 2 * _PAIR / mte.load_bytes_per_cycle))
    stored = max(keep * (size + 8) / mte.store_bytes_per_cycle, 2 * mte.min_burst_cycles)
    stored = start + 40.0 + per_tile * stored
    load = max(width * size / mte.load_bytes_per_cycle, mte.min_burst_cycles)
    load = tile_start(chip) / schedule.buffers + per_tile * load
    vector = sorted_cycles + prepared + merged
    tile = max(load, vector) if schedule.buffers == 2 else load + vector
    cycles = math.ceil(tiles / cores) * (tiles_a_row * tile + stored)
    moved = rows * (columns * size + keep * (size + 8))
    return max(cycles / chip.mhz, moved / chip.gm.memory_bytes_us) + chip.launch_of(cores)


FAMILY = SearchingFamily(
    variant=variant_of(build, _why_illegal),
    name="sort",
    ops=categories(SORT),
    read=on_any_chip(read_sort),
    schedule_of=SortSchedule.of,
    starts=_starts,
    notes=_notes,
    cell=_cell,
    steps=_steps,
    cost_us=_cost_us,
    rough=lambda problem, schedule, sizes, chip: _why_illegal(problem, schedule),
)
