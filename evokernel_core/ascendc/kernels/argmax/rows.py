"""Schedules of the search along the last dimensions: short rows many at a time, long rows in tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.argmax.problem import ArgReduction
from evokernel_core.ascendc.kernels.machine import TILE_FLAGS, tile_start
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.api import most_of
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import BLOCK_BYTES, LANES, REQUEST_BYTES, RESERVED_BYTES
from evokernel_core.twin.roofline import launch_us

_GET_VALUE = 80.0
"""Cycles until the scalar unit has read a result of the vector unit and handed it back."""
_MOST_COUNTED = 2**24
MOST_SHORT = most_of("Compare", "src0RepStride") * 8 // LANES * LANES
"""Columns, in whole repeats, that the repeat stride of an instruction can step over."""


@frozen
class ShortSchedule(Settings):
    """Tiles of at most ``rows`` rows and ``elements``, padded to whole repeats; where ``chunked``, all of
    the rows and a piece of each."""

    rows: int
    elements: int
    buffers: int = 2
    chunked: bool = False


@frozen
class LongSchedule(Settings):
    """``elements`` of a row at a time."""

    elements: int
    buffers: int = 2


def short_starts() -> Iterator[ShortSchedule]:
    for rows in (64, 128, 192):
        for elements in (4096, 8192, 12288, 16384):
            yield ShortSchedule(rows, elements)
            yield ShortSchedule(rows, elements, chunked=True)


def long_starts() -> Iterator[LongSchedule]:
    for elements in (512, 1024, 2048, 4096):
        yield LongSchedule(elements)


def short_steps(here: ShortSchedule) -> Iterator[tuple[str, ShortSchedule]]:
    """Named neighbours of a schedule."""
    yield "more rows", evolve(here, rows=here.rows + 64)
    yield "fewer rows", evolve(here, rows=here.rows - 64)
    yield "larger tile", evolve(here, elements=here.elements + 2048)
    yield "smaller tile", evolve(here, elements=here.elements - 2048)
    yield "whole rows" if here.chunked else "rows in pieces", evolve(here, chunked=not here.chunked)
    yield "double buffer" if here.buffers == 1 else "single buffer", evolve(here, buffers=3 - here.buffers)


def long_steps(here: LongSchedule) -> Iterator[tuple[str, LongSchedule]]:
    """Named neighbours of a schedule."""
    yield "double tile", evolve(here, elements=here.elements * 2)
    yield "half tile", evolve(here, elements=here.elements // 2)
    yield "double buffer" if here.buffers == 1 else "single buffer", evolve(here, buffers=3 - here.buffers)


def short_bytes(found: ArgReduction, item: ShortSchedule) -> int:
    """Bytes of all buffers."""
    size = ITEM_SIZE[found.dtype]
    wide = item.elements * 4 if size < 4 else 0
    results = item.rows * (8 + (size if found.values else 0))
    partial = item.rows * LANES
    rows = (3 * item.rows + LANES) * 4 + 2 * item.rows * 32
    return item.buffers * item.elements * size + wide + results + 3 * partial * 4 + partial // 4 + rows


def long_bytes(found: ArgReduction, item: LongSchedule) -> int:
    """Bytes of all buffers."""
    size = ITEM_SIZE[found.dtype]
    wide = item.elements * 4 if size < 4 else 0
    lanes = 4 * item.elements * 4 + item.elements // 4
    return item.buffers * item.elements * size + wide + lanes + (4 * LANES + 8) * 4 + 8 * 8 + 8 * 4


def short_refusal(
    found: ArgReduction, item: ShortSchedule, sizes: Mapping[str, int], chip: Chip
) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    columns = found.steps.evaluate(sizes)
    if not 64 <= item.rows <= 192:
        return "A tile has 64, 128 or 192 rows, whole repeats of row values."
    if item.chunked and (item.elements < item.rows * LANES or columns > _MOST_COUNTED):
        return "A tile has a repeat of each row, and float32 counts columns."
    fits = columns <= MOST_SHORT and math.ceil(columns / LANES) * LANES <= item.elements
    if item.elements < 1024 or not (item.chunked or fits):
        return f"Rows of {columns} elements do not fit a tile of {item.elements}."
    if short_bytes(found, item) > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return None


def long_refusal(found: ArgReduction, item: LongSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    if not 512 <= item.elements <= LANES * LANES:
        return "A tile has 512 to 4096 elements, so that one repeat holds one number of each of its repeats."
    if long_bytes(found, item) > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return None


def short_us(found: ArgReduction, item: ShortSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: the slower of the busiest core's copies and comparisons."""
    start = chip.vector.startup_cycles
    rows, columns = found.outer.evaluate(sizes), found.steps.evaluate(sizes)
    size, blocks = ITEM_SIZE[found.dtype], math.ceil(columns / LANES)
    share = math.ceil(rows / chip.aiv)
    if item.chunked:
        per_tile = math.ceil(share / math.ceil(share / item.rows))
        room = min(item.elements // per_tile, MOST_SHORT) // LANES * LANES
        pieces = math.ceil(columns / room)
    else:
        per_tile, pieces = min(item.rows, item.elements // (blocks * LANES), share), 1
    tiles = math.ceil(rows / per_tile)
    cores = min(tiles, chip.aiv)
    update = 5 * start + 4.4 * per_tile
    casts = pieces * start + blocks * per_tile if size < 4 else 0.0
    choose = 15 * start + (8 + 3 * _reduced(chip)) * per_tile
    burst = math.ceil(columns / pieces) * size
    extra = REQUEST_BYTES if pieces > 1 and columns * size % chip.mte.aligned_bytes else 0
    row = (burst + BLOCK_BYTES - 1 + extra) / chip.mte.load_bytes_per_cycle
    load = pieces * (tile_start(chip) / item.buffers + per_tile * max(row, chip.mte.min_burst_cycles))
    vector = blocks * update + casts + pieces * TILE_FLAGS + choose
    mine = math.ceil(tiles / cores)
    cycles = mine * (max(load, vector) if item.buffers == 2 else load + vector)
    moved = _moved_us(found, sizes, chip) * (1 + extra / burst)
    return max(cycles / chip.mhz, moved) + launch_us(chip, cores)


def long_us(found: ArgReduction, item: LongSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: the slower of the busiest core's copies and comparisons."""
    start = chip.vector.startup_cycles
    rows, columns = found.outer.evaluate(sizes), found.steps.evaluate(sizes)
    size, repeats = ITEM_SIZE[found.dtype], item.elements / LANES
    tiles, cores = math.ceil(columns / item.elements), min(rows, chip.aiv)
    vector = tiles * (5 * start + (4 if size == 4 else 5) * repeats)
    choose = 20 * start + (12 + 4 * _reduced(chip)) * repeats + 4 * _GET_VALUE
    load = tiles * tile_start(chip) / item.buffers + columns * size / chip.mte.load_bytes_per_cycle
    mine = math.ceil(rows / cores)
    cycles = mine * ((max(load, vector) if item.buffers == 2 else load + vector) + choose)
    return max(cycles / chip.mhz, _moved_us(found, sizes, chip)) + launch_us(chip, cores)


def _reduced(chip: Chip) -> float:
    """Cycles of a repeat that is reduced to a number."""
    return LANES / chip.vector.elements_per_cycle.reduce_repeat_b32


def _moved_us(found: ArgReduction, sizes: Mapping[str, int], chip: Chip) -> float:
    """Microseconds until all cores together have read the input."""
    total = found.outer.evaluate(sizes) * found.steps.evaluate(sizes) * ITEM_SIZE[found.dtype]
    return total / chip.gm.memory_bytes_us
