"""Elements, or short runs, picked from rows in the unified buffer by the vector unit: one form of take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evokernel_core.ascendc.kernels.candidates import Sizes
from evokernel_core.ascendc.kernels.family import VECTORS_ALONE, StageText
from evokernel_core.ascendc.kernels.indexed import IndexedSchedule
from evokernel_core.ascendc.kernels.rendering import RAW, kernel_text, parameter, parameters_of, sized
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import LANES, RESERVED_BYTES
from evokernel_core.twin.roofline import launch_us

if TYPE_CHECKING:
    from evokernel_core.ascendc.kernels.gather.family import Take

MOST_RUN = 16
"""Elements that move with one index; longer runs are copied as they are."""
_STEPS = 9
"""Instructions on the indices of a chunk."""
_TOP = 8192
"""Bytes that choosing between pieces takes at the top of the unified buffer."""


def width_of(found: Take) -> int:
    """Bytes of what is picked at a time: elements of 8 bytes are picked as two halves."""
    return min(found.width, 4)


def run_of(found: Take) -> int | None:
    """Elements of that width that move with one index, None where this form does not cover them."""
    run = found.run.constant
    if run is None or found.width < 2 or len(found.indices) != 1 or not found.lanes.is_one:
        return None
    elements = run * found.width // width_of(found)
    return elements if 1 <= elements <= MOST_RUN else None


def refusal(found: Take, item: IndexedSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware."""
    if run_of(found) is None:
        return "The vector unit picks elements and short runs of 2, 4 or 8 bytes by one index each."
    if item.runs % LANES or not 4 * LANES <= item.runs <= 4096 or item.bytes % 512 or item.bytes < 4096:
        return "A chunk is 256 to 4096 elements, whole repeats, from at least 4 KB of rows."
    if ub_bytes(found, item) + _TOP > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return None


def ub_bytes(found: Take, item: IndexedSchedule) -> int:
    indices = ITEM_SIZE[found.indices[0][1]]
    work = (7 if run_of(found) != 1 else 4) * 4
    return 2 * item.bytes + item.runs * (2 * indices + 2 * width_of(found) + work)


def cost_us(found: Take, item: IndexedSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: rows into the unified buffer, and the vector unit's work on each chunk."""
    start = chip.vector.startup_cycles
    run = run_of(found) or 1
    outer, count = found.outer.evaluate(sizes), found.count.evaluate(sizes)
    size, width = found.indices[0][2].evaluate(sizes), width_of(found)
    row = size * run * width
    pieces = math.ceil(row / item.bytes)
    fitting = 1 if found.shared else min(item.bytes // max(row, 1), item.runs // max(count * run, 1))
    rows = max(min(fitting, math.ceil(outer / chip.aiv)), 1)
    groups = math.ceil(outer / rows)
    share = math.ceil(count / math.ceil(chip.aiv / min(groups, chip.aiv)))
    entries = count if rows > 1 else min(share, item.runs // run)
    chunks = math.ceil(count / entries)
    units = math.ceil(groups * chunks / chip.aiv)
    loads = units * pieces if pieces > 1 else math.ceil(units / chunks)
    elements = rows * entries * run
    steps = _STEPS + 4 * (run > 1) + 8 * (pieces > 1) * pieces
    picks = elements / chip.vector.elements_per_cycle.gather * (pieces + (run > 1))
    vector = steps * (2 * start + elements / LANES) + picks
    latency, rate = chip.mte.load_latency_cycles, chip.mte.load_bytes_per_cycle
    loaded = loads * (latency + rows * min(row, item.bytes) / rate)
    picked = units * (vector + latency)
    busy = max(picked, loaded) + min(picked, loaded) / max(loads, 1) + 400.0
    moved = (outer * row + 2 * outer * count * run * width) / chip.gm.l2_bytes_us
    return float(max(busy / chip.mhz, moved) + launch_us(chip, min(groups * chunks, chip.aiv)))


def text(found: Take, item: IndexedSchedule, task: KernelTask, name: str) -> StageText:
    """The kernel of a schedule."""
    source, dtype, size = found.indices[0]
    width = width_of(found)
    sizes = sized(task, {"outer": found.outer, "count": found.count, "size": size})
    return kernel_text(
        "gather/vector",
        name,
        VECTORS_ALONE,
        s=item,
        type=RAW[width],
        real="half" if width == 2 else "float",
        width=width,
        run=run_of(found),
        index_type=CPP_TYPE[dtype],
        shared=found.shared,
        wraps=found.wraps,
        ub_bytes=ub_bytes(found, item) + _TOP,
        parameters=parameters_of(task),
        arguments=", ".join(map(parameter, (found.source, source))),
        **sizes,
    )
