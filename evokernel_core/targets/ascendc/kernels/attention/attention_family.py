"""Family attention: softmax(query @ key^T * scale + mask) @ value in one kernel, with an online softmax.

The cube core of a unit writes scores of some queries against some keys into the workspace, where L2
keeps them; its two vector cores turn them into weights and sum the parts of the output. Both work at
the same time: scores are computed one step ahead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import frozen

from evokernel_core.compiler.aten import ATTENTION
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip, CoreMemories
from evokernel_core.hardware.ascend.isa import FRACTAL, LANES
from evokernel_core.targets.ascendc.kernels.attention.attention_kernel import build
from evokernel_core.targets.ascendc.kernels.attention.attention_settings import (
    AttentionSchedule,
    ChipAttention,
    fixed_bytes,
    read_on_chip,
)
from evokernel_core.targets.ascendc.kernels.built import Sizes, always
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily

_MOST_BLOCKS = most_of("Sub", "src0RepStride")
"""32-byte blocks between two repeats of a vector instruction."""
_HANDOVER = 2000.0
"""Cycles of a step in which the vector cores wait: for the flag, the store and their first load."""


_SHAPES = (
    (1024, 32),
    (512, 64),
    (256, 128),
    (1024, 8),
    (1024, 16),
    (512, 16),
    (512, 32),
    (256, 32),
    (256, 64),
    (128, 32),
    (128, 64),
    (64, 32),
)
"""Keys of a step, and rows of a chunk; the first ones take a larger unified buffer than that of the 910B."""


def _starts(problem: ChipAttention, sizes: Sizes, chip: Chip) -> Iterator[AttentionSchedule]:
    size = ITEM_SIZE[problem.dtype]
    base_k = 128 // size
    for queries in (256, 128, 64, 32):
        for keys, chunk in _SHAPES:
            for base_n in (256, 128):
                slots = 2 if 2 * queries * base_n * 4 <= chip.memory.l0c_bytes else 1
                deep = min(base_k, chip.memory.l0_bytes // 2 // size // max(queries, base_n) // 16 * 16)
                for buffers in (2, 1):
                    yield AttentionSchedule(queries, keys, chunk, base_n, deep, 4 * deep, buffers, slots)


def _refusal(problem: ChipAttention, schedule: AttentionSchedule, sizes: Sizes, chip: Chip) -> str | None:
    keys, width = problem.keys.evaluate(sizes), problem.width.evaluate(sizes)
    padded = -(-width // 8) * 8
    parts = 0 if keys <= schedule.keys else schedule.queries // 2 * padded * 4
    if schedule.chunk > schedule.queries // 2:
        return "A vector core has at least one chunk of rows."
    if max(schedule.keys, padded) // 8 > _MOST_BLOCKS:
        return "A row is too long to step over in one repeat."
    if fixed_bytes(problem, schedule) + parts > chip.ub_bytes or padded * 8 > schedule.chunk * schedule.keys:
        return "Scores, weights and parts of the output do not fit the unified buffer."
    return _cube_refusal(schedule, ITEM_SIZE[problem.dtype], chip.memory)


def _cube_refusal(schedule: AttentionSchedule, size: int, memory: CoreMemories) -> str | None:
    if schedule.panel_k % schedule.base_k:
        return "Panels are whole steps."
    if 2 * max(schedule.queries, schedule.base_n) * schedule.base_k * size > memory.l0_bytes:
        return "Two steps of an operand do not fit L0."
    if 2 * (schedule.queries + schedule.base_n) * schedule.panel_k * size > memory.l1_bytes:
        return "Two panels of each operand do not fit L1."
    if schedule.c_slots * schedule.queries * schedule.base_n * 4 > memory.l0c_bytes:
        return "The results do not fit L0C."
    return None


def _steps(
    problem: ChipAttention, here: AttentionSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, AttentionSchedule]]:
    yield from here.neighbours(
        "queries", "keys", "chunk", "buffers", "base_n", "base_k", "panel_k", "c_slots"
    )


@frozen
class _Step:
    """One step of a core, in elements: rows x columns scores."""

    rows: int
    columns: int
    depth: int
    width: int
    online: bool


def _cost_us(problem: ChipAttention, schedule: AttentionSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the slower of cube and vector cores in each step, all steps of a core."""
    queries, keys, depth, width = (
        getattr(problem, key).evaluate(sizes) for key in ("queries", "keys", "depth", "width")
    )
    tiles = math.ceil(queries / schedule.queries)
    units = problem.matrices.evaluate(sizes) * tiles
    cores = min(units, chip.aic)
    more = keys - queries if problem.bottom_right else 0
    behind = [(tile + 1) * schedule.queries + more for tile in range(tiles)]
    is_cut = problem.causal and problem.heads.is_one
    seen = [max(1, min(keys, last)) if is_cut else keys for last in behind]
    steps = sum(math.ceil(each / schedule.keys) for each in seen) / tiles
    columns = math.ceil(sum(seen) / tiles / steps)
    step = _Step(min(queries, schedule.queries), columns, depth, width, keys > schedule.keys)
    share = min(chip.gm.l2_bytes_us / chip.mhz / cores, chip.mte.cube_load_hit_bytes_per_cycle)
    cube = _cube_cycles(problem.dtype, schedule, step, share, chip)
    vector = _vector_cycles(problem, schedule, step, 1 / steps if problem.causal else 0.0, chip)
    busy = math.ceil(units / cores) * steps * max(cube, vector + _HANDOVER) + cube + vector
    memory = _memory_bytes(problem, sizes) / chip.gm.memory_bytes_us
    return float(max(busy / chip.mhz, memory) + chip.mixed_launch_of(cores))


def _memory_bytes(problem: ChipAttention, sizes: Sizes) -> int:
    """Bytes of operands and results, each of them once; scores and weights stay in L2."""
    matrices, sharing, queries, keys, depth, width = (
        getattr(problem, key).evaluate(sizes)
        for key in ("matrices", "sharing", "queries", "keys", "depth", "width")
    )
    elements = matrices * queries + math.ceil(matrices / sharing) * keys
    return int(elements * (depth + width) * ITEM_SIZE[problem.dtype])


def _cube_cycles(dtype: str, schedule: AttentionSchedule, step: _Step, share: float, chip: Chip) -> float:
    """``share``: bytes a cycle that the core loads from L2."""
    high, size = -(-step.rows // 16) * 16, ITEM_SIZE[dtype]
    score_tiles, result_tiles = (
        math.ceil(step.columns / schedule.base_n),
        math.ceil(step.width / schedule.base_n),
    )
    macs = high * step.columns * (step.depth + step.width) / FRACTAL**2 / chip.cube.depth_a_cycle(size)
    score_steps, result_steps = (math.ceil(length / schedule.base_k) for length in (step.depth, step.columns))
    starts = chip.cube.mmad_overhead_cycles * (score_tiles * score_steps + result_tiles * result_steps)
    right = step.columns * (step.depth + step.width)
    left = high * (step.depth * score_tiles + step.columns * result_tiles)
    stored = high * (step.columns + step.width) * 4 / chip.cube.fixpipe_gm_bytes_per_cycle
    return max(macs + starts, size * (left + right) / share, stored)


def _vector_cycles(
    problem: ChipAttention, schedule: AttentionSchedule, step: _Step, hiding: float, chip: Chip
) -> float:
    """``hiding``: the share of steps in which some rows see fewer keys than others."""
    mine, size = math.ceil(step.rows / 2), ITEM_SIZE[problem.dtype]
    start, copied_a_cycle = chip.vector.startup_cycles, chip.mte.load_bytes_per_cycle
    height = min(schedule.chunk, mine)
    flat = height * step.columns / LANES
    slabs = math.ceil(step.columns / LANES) * (start + height)
    passes = 3 + (size < 4) + (problem.mask is not None)  # scaling, and exp at half rate
    chunk = passes * flat + (3 if step.online else 4) * slabs + 14 * height + 14 * start
    chunk += 2 * (start + schedule.queries / LANES) * height * hiding
    cycles = math.ceil(mine / schedule.chunk) * chunk
    copied = mine * step.columns * (4 + size) / copied_a_cycle
    if step.online:
        cycles += math.ceil(step.width / LANES) * (start + mine) + mine * step.width / 32 + 4 * start
        copied += mine * step.width * 4 / copied_a_cycle
    return max(cycles, copied) if schedule.buffers > 1 else cycles + copied


_NOTES = (
    Sentence("Steps of {queries} queries and {keys} keys; scores stay in L2."),
    Sentence("Tiles {width} wide, {depth} deep in L0; {rows} rows in UB at a time."),
)


def _cell(problem: ChipAttention, schedule: AttentionSchedule) -> Descriptor:
    """Whether the weights of all keys are there at once or step by step, whether scores come to the unified
    buffer together or some rows after others, whether queries are read again for other keys of a step, and
    what a unit is; sizes not known count as long."""
    keys, queries = problem.keys.constant, problem.queries.constant
    at_once = keys is not None and keys <= schedule.keys
    together = schedule.chunk * 2 >= schedule.queries
    return Descriptor(
        Dataflow.RESIDENT_ROWS if together else Dataflow.STREAMED,
        memories.L0 if schedule.keys <= schedule.base_n else memories.L2,
        Split.HEADS if queries is not None and queries <= schedule.queries else Split.ROWS,
        Algorithm.SINGLE_PASS if at_once else Algorithm.ONLINE,
    )


FAMILY = SearchingFamily(
    name="attention",
    ops={ATTENTION: "kernel"},
    read=read_on_chip,
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=AttentionSchedule.of,
    notes=always(_NOTES),
    cell=_cell,
    text_of=lambda problem, schedule, task, chip, name: build(problem, schedule),
    too_large=Sentence("The values of this attention are too wide for the unified buffer."),
)
