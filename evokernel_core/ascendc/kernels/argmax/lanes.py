"""Schedules of the search along leading or middle dimensions: lanes side by side, several steps at a time.

Steps that travel together are compared with what was best in the same place of the copies before, so that
one instruction takes them all; in the end each lane's are compared with each other, half with half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.argmax.problem import ArgReduction
from evokernel_core.ascendc.kernels.machine import tile_start
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import LANES, REQUEST_BYTES, RESERVED_BYTES
from evokernel_core.twin.roofline import launch_us

_COPY = 30.0
"""Cycles that a copy leaves the memory idle."""
_FLAGS = 20.0
"""Scalar cycles of one copy's flags."""
_FULL_OPS = 4
"""Instructions over all lanes of all steps, at one repeat a cycle: two comparisons and two selections."""
_MERGE_OPS = 9
"""Instructions that compare one half of the steps with the other."""
_MOST_ELEMENTS = 8192
"""Lanes of all steps of a copy: an instruction over all of them is one of less than 255 repeats."""


@frozen
class LanesSchedule(Settings):
    """``lanes`` of a chunk, ``steps`` that travel together, ``buffers`` of the input queue."""

    lanes: int
    steps: int
    buffers: int = 2


def starts() -> Iterator[LanesSchedule]:
    """Schedules to choose the first one from."""
    for lanes in (64, 128, 256, 512, 1024, 2048, 3072, 4096, 5120):
        for steps in (1, 2, 4, 8, 16, 32, 64):
            yield LanesSchedule(lanes, steps)


def steps_from(here: LanesSchedule) -> Iterator[tuple[str, LanesSchedule]]:
    """Named neighbours of a schedule."""
    yield "twice the lanes", evolve(here, lanes=here.lanes * 2)
    yield "half the lanes", evolve(here, lanes=here.lanes // 2)
    yield "more lanes", evolve(here, lanes=here.lanes + 512)
    yield "fewer lanes", evolve(here, lanes=here.lanes - 512)
    yield "twice the steps a copy", evolve(here, steps=here.steps * 2)
    yield "half the steps a copy", evolve(here, steps=here.steps // 2)
    yield "double buffer" if here.buffers == 1 else "single buffer", evolve(here, buffers=3 - here.buffers)


def ub_bytes(found: ArgReduction, item: LanesSchedule) -> int:
    """Bytes of all buffers."""
    size = ITEM_SIZE[found.dtype]
    tile = item.lanes * item.steps
    wide = tile * 4 if found.dtype != "float32" else 0
    results = item.lanes * (8 + (size if found.values else 0))
    return item.buffers * tile * size + wide + results + 2 * tile * 4 + 3 * tile // 8


def refusal(found: ArgReduction, item: LanesSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    tile = item.lanes * item.steps
    if item.lanes < LANES or item.lanes % LANES or tile % 256:
        return "A chunk is a whole number of repeats, and its masks whole blocks."
    if item.steps < 1 or item.steps & (item.steps - 1) or tile > _MOST_ELEMENTS:
        return f"A copy has a power of two of steps, and {_MOST_ELEMENTS} elements or less."
    if ub_bytes(found, item) > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return None


def estimate_us(found: ArgReduction, item: LanesSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: the slower of the busiest core's copies and comparisons."""
    start = chip.vector.startup_cycles
    outer, steps, lanes = (part.evaluate(sizes) for part in (found.outer, found.steps, found.lanes))
    share = math.ceil(math.ceil(outer * lanes / chip.aiv) / LANES) * LANES
    cores = math.ceil(outer * lanes / share)
    width = min(item.lanes, share, lanes)
    chunks = max(math.ceil(share / width), math.ceil(share / lanes))
    size, repeats = ITEM_SIZE[found.dtype], math.ceil(width / LANES)
    # Bursts that do not start at whole pieces of memory move the pieces that they touch.
    extra = REQUEST_BYTES if lanes * size % chip.mte.aligned_bytes else 0
    copies, side = math.ceil(steps / item.steps), item.steps
    least = 1.0 if width == lanes else chip.mte.min_burst_cycles
    burst = max((width * size + extra) / chip.mte.load_bytes_per_cycle, least)
    load = copies * tile_start(chip) / item.buffers + steps * burst
    casts = copies * start + steps * repeats if size < 4 else 0.0
    each = _FULL_OPS * (start + 1.1 * repeats * side) + 2 * start + _FLAGS
    merges = _MERGE_OPS * (math.log2(side) * start + side * repeats)
    vector = copies * each + casts + merges + 2 * side * repeats
    cycles = chunks * (max(load, vector) if item.buffers == 2 else load + vector)
    rate = chip.gm.memory_bytes_us
    moved = (outer * steps * lanes * size + chunks * steps * cores * extra) / rate
    waits = chunks * copies * _COPY / chip.mhz
    return max(cycles / chip.mhz, moved + waits) + launch_us(chip, cores)
