"""Family sort: rows in order, with the places of their elements; or the first few of each sorted row.

Vector cores sort 32 pairs of a number and its place at a time and merge four sorted runs into one. Rows that
a tile holds are sorted whole, several at a time. Of longer rows a kernel keeps the best elements so far and
merges each sorted tile with them; where all are wanted, sorted tiles lie in the workspace and are merged
slice by slice, which is the one way that depends on the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import KernelFacts, StageText
from evokernel_core.ascendc.kernels.machine import tile_start
from evokernel_core.ascendc.kernels.rendering import addresses, kernel_text, parameter, sized, tensors_of
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.ascendc.kernels.sort.problem import Sort, read_sort
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.limits import SORTED_KEPT, SORTED_TILES
from evokernel_core.ascendc.ops import SORT, categories
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import LANES, RESERVED_BYTES
from evokernel_core.twin.roofline import launch_us

_RESULTS = ("values", "indices")
_RUN = 32
"""Elements that one instruction sorts at a time."""
_PAIR = 8


@frozen
class SortSchedule(Settings):
    """Tiles of ``elements``. Of rows that no tile holds, ``best`` elements are kept from tile to tile, or
    all in the workspace where it ``merges``. Without either a tile holds whole rows."""

    elements: int
    best: int = 0
    buffers: int = 2
    merges: bool = False


def _strategy(found: Sort, item: SortSchedule, move: str) -> Strategy:
    form = f"The best {item.best} of a row so far." if item.best else "Whole rows in a tile."
    form = "Sorted tiles are merged in the workspace." if item.merges else form
    notes = (f"Tiles of {item.elements} elements, {item.buffers} buffer(s) of the input.", form)
    descriptor = Descriptor(3 if item.buffers > 1 else 2, 3, 1)
    return Strategy("sort", item.settings(), notes, descriptor, move)


def _is_long(item: SortSchedule) -> bool:
    """Whether the kernel sorts rows that no tile holds."""
    return bool(item.best or item.merges)


def _is_short(found: Sort, item: SortSchedule) -> bool:
    """Whether the kernel sorts several whole rows a tile, where they are short enough when it runs."""
    columns = found.columns.constant
    return columns is None or columns <= item.elements


def _starts(found: Sort, sizes: Sizes, chip: Chip) -> Iterator[SortSchedule]:
    for elements in SORTED_TILES:
        for best in (0, *SORTED_KEPT):
            yield SortSchedule(elements, best)
            yield SortSchedule(elements, best, 1)
        yield SortSchedule(elements, merges=True)


def _steps(found: Sort, here: SortSchedule, sizes: Sizes, chip: Chip) -> Iterator[tuple[str, SortSchedule]]:
    """Named neighbours of a schedule."""
    yield "double tile", evolve(here, elements=here.elements * 2)
    yield "half tile", evolve(here, elements=here.elements // 2)
    yield "double buffer" if here.buffers == 1 else "single buffer", evolve(here, buffers=3 - here.buffers)
    yield "whole rows", evolve(here, best=0, merges=False)


def ub_bytes(found: Sort, item: SortSchedule) -> int:
    """Bytes of all buffers."""
    size = ITEM_SIZE[found.dtype]
    kept = item.elements if _is_short(found, item) or not item.best else item.best
    loaded = item.elements * (size + (8 if found.numbers else 0)) * item.buffers
    numbers = item.elements * 4 * (1 if found.descending else 2)
    work = item.elements * (2 * _PAIR + (4 if size < 4 else 0)) + item.elements // 8
    best = 2 * 2 * item.best * _PAIR
    best += 2 * item.elements * _PAIR if item.merges else 0
    values = size if "values" in found.results else 4
    return loaded + numbers + work + best + kept * (values + (8 if "indices" in found.results else 0))


def _refusal(found: Sort, item: SortSchedule, sizes: Sizes, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    columns, keep = found.columns.constant, found.keep.constant
    if item.elements not in SORTED_TILES or item.best not in (0, *SORTED_KEPT) or item.best > item.elements:
        return f"A tile has {SORTED_TILES[0]} to {SORTED_TILES[-1]} elements, a power of two."
    if item.best and (item.merges or keep is None or keep > item.best):
        return f"{found.keep.cpp()} elements of a row may be more than the {item.best} that are kept."
    if not item.best and not item.merges and (columns is None or columns > item.elements):
        return f"Rows of {found.columns.cpp()} elements may not fit a tile of {item.elements}."
    if ub_bytes(found, item) > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return None


def _cost_us(found: Sort, item: SortSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the slower of the busiest core's copies and its sorting."""
    start = chip.vector.startup_cycles
    rows, columns, keep = (part.evaluate(sizes) for part in (found.rows, found.columns, found.keep))
    size = ITEM_SIZE[found.dtype]
    pitch = math.ceil(columns / _RUN) * _RUN
    if columns > item.elements:
        width, per_tile, tiles_a_row = min(item.elements, pitch), 1, math.ceil(columns / item.elements)
    else:
        width, tiles_a_row = pitch, 1
        per_tile = max(1, min(item.elements // pitch, math.ceil(rows / chip.aiv)))
    tiles = math.ceil(rows / per_tile)
    cores = min(tiles, chip.aiv)
    passes = math.ceil(math.log(max(width / _RUN, 1), 4))
    mte, rate = chip.mte, chip.vector.elements_per_cycle.sort
    sorted_cycles = (passes + 1) * (start + per_tile * width / rate)
    prepared = 8 * (start + per_tile * width / LANES)
    merged = (start + keep) if item.best and columns > item.elements else 0.0
    if item.merges and columns > item.elements:
        # once more through the workspace for each pass, and to take pairs apart
        deeper = max(math.ceil(math.log(max(tiles_a_row, 1), 4)), 0) + 1
        merged = deeper * (4 * tile_start(chip) + width * (1 / rate + 2 * _PAIR / mte.load_bytes_per_cycle))
    stored = max(keep * (size + 8) / mte.store_bytes_per_cycle, 2 * mte.min_burst_cycles)
    stored = start + 40.0 + per_tile * stored
    load = max(width * size / mte.load_bytes_per_cycle, mte.min_burst_cycles)
    load = tile_start(chip) / item.buffers + per_tile * load
    vector = sorted_cycles + prepared + merged
    tile = max(load, vector) if item.buffers == 2 else load + vector
    cycles = math.ceil(tiles / cores) * (tiles_a_row * tile + stored)
    moved = rows * (columns * size + keep * (size + 8))
    return max(cycles / chip.mhz, moved / chip.gm.memory_bytes_us) + launch_us(chip, cores)


def _text(found: Sort, item: SortSchedule, task: KernelTask, name: str) -> StageText:
    """One kernel with two forms: whole rows, and the best of long ones."""
    sizes = sized(task, {key: getattr(found, key) for key in ("rows", "columns", "keep")})
    arguments = [parameter(source, _RESULTS) for source in (found.source, found.numbers) if source]
    results = [key for key in _RESULTS if key in found.results]
    inputs = [parameter(source, _RESULTS) for source in tensors_of(task)]
    return kernel_text(
        "sort",
        name,
        KernelFacts(uses_workspace=item.merges),
        s=item,
        type=CPP_TYPE[found.dtype],
        long=_is_long(item),
        short=_is_short(found, item),
        narrow=found.dtype != "float32",
        ascending=not found.descending,
        given=bool(found.numbers),
        parts=found.parts,
        values="values" in results,
        indices="indices" in results,
        ub_bytes=ub_bytes(found, item),
        parameters=addresses(*inputs, *found.results),
        arguments=", ".join((*arguments, *results, *(["workspace"] if item.merges else []))),
        **sizes,
    )


FAMILY = SearchingFamily(
    name="sort",
    ops=categories(SORT),
    read=on_any_chip(read_sort),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=SortSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
