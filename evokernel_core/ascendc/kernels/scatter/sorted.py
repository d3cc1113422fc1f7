"""Single elements that the vector unit sorts by their places: one form of put."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import evolve

from evokernel_core.ascendc.kernels.candidates import Sizes
from evokernel_core.ascendc.kernels.scatter.problem import Put, PutSchedule
from evokernel_core.ascendc.ops import LAST
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import LANES, RESERVED_BYTES
from evokernel_core.twin.roofline import launch_us

_FLOAT = 4
_MOST_MERGED = 4032
"""Elements of one sorted run; an instruction merges runs of at most 4095."""
CYCLES: Mapping[str, int] = {"unit_cycles": 2500, "looked": 40, "sorted": 240, "own": 130}
"""About what a tile takes: cycles, and hundredths of cycles of each entry that it looks at, of each that it
sorts, and of each element of its own. ComputeTiling cuts rows by them: they are the same on every chip."""


def refusal(found: Put, item: PutSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware."""
    width = ITEM_SIZE[found.dtype]
    if not found.elements or len(found.places) != 1 or width not in (2, 4):
        return "Single elements of 2 or 4 bytes with one index each are sorted by their places."
    if found.kind not in (LAST, "add") or item.picks or item.owned:
        return "What is sorted by places is replaced or summed there."
    tile = item.bytes // _FLOAT
    if tile % LANES or not LANES <= tile <= _MOST_MERGED or item.held % LANES or item.held > _MOST_MERGED:
        return (
            f"Tiles have {LANES} to {_MOST_MERGED} elements, and as many entries are sorted, whole repeats."
        )
    if item.runs % LANES or not LANES <= item.runs < item.held:
        return "Entries are looked at in whole repeats, and more of them are held."
    if ub_bytes(found, item) > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return None


def ub_bytes(found: Put, item: PutSchedule) -> int:
    tile, held, width = item.bytes // _FLOAT, item.held, ITEM_SIZE[found.dtype]
    entries = 2 * item.runs * (ITEM_SIZE[found.places[0][1]] + width)
    masks = 2 * 8 * ((tile + held + item.runs) // 256 + 2)
    work = 6 * tile + 8 * held + 3 * item.runs + masks + 4 * LANES
    return entries + (2 * tile + held + 32) * width + work * _FLOAT


def cost_us(found: Put, item: PutSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds of the tiles of the busiest core, which ComputeTiling cuts alike."""
    outer, size, count = (getattr(found, key).evaluate(sizes) for key in ("outer", "size", "count"))
    parts, width = max(found.parts, 1), ITEM_SIZE[found.dtype]
    share, tile = math.ceil(count / parts), item.bytes // _FLOAT
    results, least = parts * outer, math.ceil(size / tile)
    fitting = 1 if found.parts or found.shared else min(tile // max(size, 1), item.runs // max(count, 1))
    rows = max(min(fitting, math.ceil(outer / chip.aiv)), 1)
    cuts = range(least, max(min(least + chip.aiv, math.ceil(size / 64)), least) + 1) if rows == 1 else [1]
    units = math.ceil(results / rows)
    work = min(
        math.ceil(units * ranges / chip.aiv) * _tile_cycles(item, rows, share, size, ranges, chip)
        for ranges in cuts
    )
    moved = (1 + parts) * outer * size * width + outer * count * (width + 8)
    launched = launch_us(chip, min(units * least, chip.aiv))
    return float(max(work / chip.mhz, moved / chip.gm.memory_bytes_us) + launched)


def _tile_cycles(item: PutSchedule, rows: int, count: int, size: int, ranges: int, chip: Chip) -> float:
    """Cycles of a tile: what it looks at, chunk by chunk, and what it sorts, flush by flush."""
    looked, mine = rows * count, rows * count / ranges
    own = rows * size / ranges
    chunks = math.ceil(looked / item.runs)
    flushes = max(math.ceil(mine / max(item.held - item.runs // 2, 1)), 1)
    start = chip.vector.startup_cycles
    looking = chunks * (8 * start + 100.0) + looked * CYCLES["looked"] / 200
    sorting = flushes * (30 * start + own * CYCLES["own"] / 100) + mine * CYCLES["sorted"] / 100
    return looking + sorting + chip.mte.load_latency_cycles * 2


def starts() -> Iterator[PutSchedule]:
    """Schedules to choose the first one from."""
    for runs in (512, 1024):
        for tile in (1024, 1408, 2048, 2752, 4032):
            for held in (1024, 1536, 2048, 3072):
                yield PutSchedule(runs, tile * _FLOAT, held=held)


def steps(here: PutSchedule) -> Iterator[tuple[str, PutSchedule]]:
    """The named changes of a schedule of this form, and the one that leads to it."""
    if not here.held:
        yield (
            "sorted by places",
            PutSchedule(512, 2048 * _FLOAT, held=1024),
        )
        return
    yield "more entries sorted at a time", evolve(here, held=here.held * 2)
    yield "fewer entries sorted at a time", evolve(here, held=here.held // 2)
