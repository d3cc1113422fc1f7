"""Runs whose places are dealt out to cores: one form of put."""

from __future__ import annotations

import math
from collections.abc import Iterator

from evokernel_core.ascendc.kernels.candidates import Sizes
from evokernel_core.ascendc.kernels.scatter.problem import ATOMICS, Put, PutSchedule
from evokernel_core.ascendc.ops import LAST
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.api import most_of
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import BLOCK_BYTES, LANES, RESERVED_BYTES
from evokernel_core.twin.roofline import launch_us

MOST_OWNED = 4096
"""Places of a range of which each takes one run."""
_MOST_EXACT = 1 << 24
"""Places are compared as floats."""
_STEPS = 11
"""Vector instructions on the indices of a chunk."""
_CHUNK = 120.0
"""Cycles in which a chunk waits for its indices and for what the vector unit says of them."""
_ENTRY = 40.0
"""Scalar cycles of an entry that a core takes in: its place, its number, and a copy."""
_PLACE = 20.0
"""Scalar cycles of a place that takes one run."""


def refusal(found: Put, item: PutSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware."""
    if item.picks or item.held or found.parts > 1 or not found.copies:
        return "Only whole runs that are put into one result are dealt out by their places."
    if (found.size.constant or 0) >= _MOST_EXACT:
        return f"Places are dealt out as floats, which are exact below {_MOST_EXACT}."
    if item.runs % LANES or not LANES <= item.runs <= most_of("DataCopyPadIn", "blockCount"):
        return "Indices are looked at in whole repeats."
    if item.bytes < 4096 or item.bytes % 512 or item.sums % 512 or (item.sums and found.kind not in ATOMICS):
        return "A tile has at least 4 KB, and sums are held only where runs are combined."
    if ub_bytes(found, item) > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return None


def ub_bytes(found: Put, item: PutSchedule) -> int:
    indices = sum(2 * item.runs * ITEM_SIZE[dtype] for _, dtype, _ in found.places)
    work = 4 * (5 * item.runs + item.runs // 32 + 8)
    cleared = item.bytes if found.parts and not item.sums else 0
    return 2 * item.bytes + indices + work + cleared + (item.sums or 4 * MOST_OWNED * (found.kind == LAST))


def cost_us(found: Put, item: PutSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the slower of memory and the busiest core."""
    outer, size, count, run = (
        getattr(found, key).evaluate(sizes) for key in ("outer", "size", "count", "run")
    )
    width = ITEM_SIZE[found.dtype]
    fitting = min(item.bytes, item.sums or item.bytes) // width
    step = 512 // width
    segment = min(math.ceil(run / step) * step, fitting // step * step)
    segments = math.ceil(run / segment)
    widest = math.ceil(min(segment, run) * width / BLOCK_BYTES) * BLOCK_BYTES
    most = item.sums // widest if item.sums else MOST_OWNED
    units = outer * segments * math.ceil(size / most)
    rounds = math.ceil(units / chip.aiv)
    cores = min(max(units, outer * segments * min(size, chip.aiv)), chip.aiv)
    start = chip.vector.startup_cycles
    chunks = math.ceil(count / item.runs)
    looked = rounds * (chunks * (_STEPS * start + _CHUNK) + count * _STEPS / LANES)
    combined = found.kind in ATOMICS
    copied = 0 if found.parts else size
    runs = outer * segments * (copied + count * combined)
    loads = runs / cores
    scalar = outer * segments * (count * _ENTRY + (0 if combined else size * _PLACE)) / cores
    copies = loads * max(widest / chip.mte.load_bytes_per_cycle, chip.mte.min_copy_cycles)
    stored = (
        outer
        * segments
        * size
        / cores
        * max(widest / chip.mte.store_bytes_per_cycle, chip.mte.min_burst_cycles)
    )
    read = (copied + count * combined) * outer * run * width
    written = size * outer * run * width  # what is sent more often stays in L2
    sent = count * outer * run * width * (combined and not item.sums)
    touched = read + written
    back = max(0, touched - chip.l2_bytes) * written / touched * chip.gm.write_back_cost
    moved_us = max((read + back) / chip.gm.memory_bytes_us, (touched + sent) / chip.gm.l2_bytes_us)
    moved_cycles = moved_us * chip.mhz
    if combined:  # the runs of a chunk are fetched when it is known which they are
        own = min(count / chunks * size / cores, item.bytes / widest) if item.sums else 1
        looked += (
            rounds * chunks * (chip.mte.load_latency_cycles + own * widest / chip.mte.load_bytes_per_cycle)
        )
    busy = looked + max(scalar, copies, stored, moved_cycles) + rounds * 4 * chip.mte.load_latency_cycles
    return float(busy / chip.mhz + launch_us(chip, cores))


def starts(found: Put) -> Iterator[PutSchedule]:
    """Schedules to choose the first one from."""
    for runs in (512, 1024, 2048):
        for size in (8192, 16384, 32768):
            for sums in (0, 65536, 98304) if found.kind in ATOMICS else (0,):
                yield PutSchedule(runs, size, owned=True, sums=sums)
