"""The analytic estimate that picks the first schedule: cycles of one core's slowest pipe.

Rates are those of the chip file; the model of the twin is finer. What matters here is the order of
schedules, not the figure. All estimates are modelled, none is measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from evokernel_core.compiler.lowering.values import REDUCTIONS, Domain
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import LANES, REQUEST_BYTES
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram
from evokernel_core.targets.ascendc.kernels.fused.settings import IN_LANES, IN_PIECES, Form
from evokernel_core.targets.ascendc.kernels.fused.shared import point_bytes, shares
from evokernel_core.targets.ascendc.kernels.fused.steps import MOST_STEPS, in_whole_blocks, lanes_per_block
from evokernel_core.targets.ascendc.kernels.machine import TILE_FLAGS
from evokernel_core.targets.ascendc.lowering.program import Instruction

_NUMBER = 60.0
"""Scalar cycles to read one number from device memory through the data cache."""
_GET_VALUE = 70.0
"""Cycles that the vector pipe waits while the scalar unit reads one of its results."""
_SLOW = frozenset({"Exp", "Ln", "Sqrt", "Div"})
_HITS = 0.83
"""The share of a core's rate from L2 at which it reads rows again (fitted)."""
_MEETING = 4000.0
"""Cycles in which all cores finish, leave their numbers, meet, and take those of others."""
_KEPT = 0.6
"""The part of L2 that what is read again can count on."""


@frozen
class Work:
    """The tiles that one core runs: how many, their elements, and the rows in each. ``moved`` is the cost
    of an element's copy against that of a long run of memory."""

    tiles: float
    elements: float
    rows: float
    cores: int
    tiles_of_a_row: float = 1.0
    moved: float = 1.0


def estimate_us(kernel: Kernel, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds of a kernel at given sizes."""
    work = _work(kernel, sizes, chip)
    programs = kernel.programs
    kept = _is_kept(kernel, work, chip)
    loads = [
        _load(kernel, program, work, chip, again=kept and program is not programs[0]) for program in programs
    ]
    stores = _store(kernel, work, chip)
    memory = sum(part.memory for part in (*loads, stores))
    cache = sum(part.cache for part in (*loads, stores))
    loading = max(memory, cache, sum(load.cycles for load in loads))
    vectors = [_vector_cycles(kernel, program, work, chip) for program in programs]
    vector = sum(vectors) + _row_cycles(kernel, work, chip)
    scalar = work.tiles * (TILE_FLAGS * len(programs) + _NUMBER * len(kernel.numbers))
    if kernel.schedule.buffers > 1:
        passes = sum(_pass_cycles(load, own, work, chip) for load, own in zip(loads, vectors, strict=True))
        cycles = max(loading, stores.cycles, scalar, passes + _row_cycles(kernel, work, chip))
    else:
        cycles = max(memory, cache, sum(load.cycles for load in loads) + stores.cycles) + vector
    fill = (loads[0].cycles + stores.cycles) / max(work.tiles, 1.0)
    if kernel.exchanged:  # cores begin anew after each pass
        turns = work.tiles / work.tiles_of_a_row
        fill += (loads[0].cycles / work.tiles + _MEETING) * (len(programs) - 1) * turns
    return (cycles + fill) / chip.mhz + chip.launch_of(work.cores)


def _pass_cycles(load: Copies, vector: float, work: Work, chip: Chip) -> float:
    """One pass over all tiles with two buffers: a buffer is filled again when it has been read, so that two
    of them take a load and its work in turn. Its copies wait for the memory as long as other cores read."""
    loading = max(load.cycles, load.memory, load.cache)
    return max(load.cycles, vector, (loading + work.tiles * chip.mte.load_latency_cycles + vector) / 2)


def _work(kernel: Kernel, sizes: Mapping[str, int], chip: Chip) -> Work:
    plan, schedule = kernel.plan, kernel.schedule
    rows, columns = plan.rows.evaluate(sizes), plan.inner.evaluate(sizes)
    cores = min(schedule.cores or chip.aiv, chip.aiv)
    if schedule.form in (Form.FLAT, Form.SEGMENTS):
        share = max(rows * columns / cores, 1.0)
        tile = min(schedule.tile, share, columns if schedule.form is Form.SEGMENTS else share)
        return Work(
            math.ceil(share / tile), min(tile, share), 1.0, min(cores, math.ceil(rows * columns / 128))
        )
    if schedule.form in IN_LANES:
        return _lanes_work(kernel, sizes, cores, chip)
    if schedule.form is Form.SHARED:
        result = shares(plan, schedule, sizes, cores)
        tile = columns / math.ceil(columns / schedule.tile)
        return Work(result.turns * result.tiles, tile, 1.0, result.rows * result.sharers, result.tiles)
    per_core = math.ceil(rows / cores)
    if schedule.form is Form.PIECES:
        tiles = math.ceil(columns / schedule.tile)
        pieces = plan.leading.evaluate(sizes) * plan.mid.evaluate(sizes)
        share = pieces * tiles
        return Work(per_core * share, columns / tiles, 1.0, math.ceil(rows / per_core), share)
    used = math.ceil(rows / per_core)
    if schedule.form is Form.PACKED:
        per_tile = max(1, min(schedule.tile // max(columns, 1), schedule.rows, per_core))
        return Work(math.ceil(per_core / per_tile), per_tile * columns, per_tile, used)
    tiles = math.ceil(columns / schedule.tile)
    return Work(per_core * tiles, columns / tiles, 1.0, used, tiles)


def _lanes_work(kernel: Kernel, sizes: Mapping[str, int], cores: int, chip: Chip) -> Work:
    """Rows are the lanes that a core has at a time, of one step a tile or of several."""
    plan, schedule = kernel.plan, kernel.schedule
    steps, columns = plan.mid.evaluate(sizes), plan.inner.evaluate(sizes)
    outer = plan.rows.evaluate(sizes) // steps
    several = schedule.form is Form.STEPS
    width = 32 // lanes_per_block(plan) if several else ITEM_SIZE["float32"]
    step = 128 // width if several else 128
    share = math.ceil(outer * columns / cores / step) * step
    longest = min(share, schedule.columns if several else schedule.tile)
    if schedule.whole:
        longest = min(longest, schedule.tile // steps // step * step)
    chunk = math.ceil(columns / math.ceil(columns / longest) / step) * step
    chunks = math.ceil(columns / chunk)
    if schedule.dense:
        chunk, chunks = columns, 1
    per_core = math.ceil(outer * chunks / cores)
    at_once = min(steps, schedule.tile // chunk, MOST_STEPS) if several else 1
    if schedule.dense:
        group = in_whole_blocks(columns)
        at_once = min(-(-steps // group) * group, max(schedule.tile // columns // group * group, group))
    tiles, lanes = math.ceil(steps / at_once), columns / chunks
    moved = 1.0 if schedule.dense else _moved(min(chunk, columns), columns, width, chip)
    busy = math.ceil(outer * chunks / per_core)
    return Work(per_core * tiles, steps / tiles * lanes, lanes, busy, tiles, moved)


def _moved(lanes: int, columns: int, width: int, chip: Chip) -> float:
    """Cost of a copy in short bursts against that of one run: bursts that are not aligned move whole
    pieces, and a burst takes a request however short it is."""
    burst = lanes * width
    if columns * width % chip.mte.aligned_bytes:
        return 1 + REQUEST_BYTES / burst
    requests = burst / REQUEST_BYTES + (0.75 if burst % REQUEST_BYTES else 0.0)
    rate = chip.gm.memory_bytes_us / chip.mhz / chip.gm.requests_per_cycle
    return max(1.0, requests * rate / burst)


@frozen
class Copies:
    """Copies of one core in one direction: cycles of its engine, and of its share of the rates of device
    memory and of L2, which every byte passes."""

    cycles: float
    memory: float
    cache: float


def _share(chip: Chip, work: Work, cached: bool) -> float:
    """Bytes a cycle of the chip's rate that one of the busy cores gets."""
    rate = chip.gm.l2_bytes_us if cached else chip.gm.memory_bytes_us
    return rate / chip.mhz / work.cores


def _bytes(domain: Domain, dtype: str, work: Work) -> float:
    """Bytes of a tensor that a tile takes on average: values of a row are moved once a row."""
    is_long = domain in (Domain.FULL, Domain.COLUMN)
    moved = work.elements * work.moved if is_long else work.rows / work.tiles_of_a_row
    return moved * ITEM_SIZE[dtype]


def _spilled(kernel: Kernel, work: Work, chip: Chip) -> float:
    """The share of what is written that L2 cannot keep: columns are the same in every tile."""
    tensors = (tensor for tensor in kernel.tensors if tensor.domain is not Domain.COLUMN)
    total = sum(_bytes(tensor.domain, tensor.dtype, work) for tensor in tensors) * work.tiles * work.cores
    return max(0.0, 1.0 - chip.l2_bytes / max(total, 1.0))


def _is_kept(kernel: Kernel, work: Work, chip: Chip) -> bool:
    """Whether L2 holds what the cores work on at a time until they have read it again: until then about
    half of what they read and write in all passes has come to lie in it."""
    at_once = work.cores * work.tiles_of_a_row * work.elements * point_bytes(kernel.plan)
    return at_once / 2 <= _KEPT * chip.l2_bytes


def _load(kernel: Kernel, program: TileProgram, work: Work, chip: Chip, again: bool) -> Copies:
    """``again``: the row has been read before, so that L2 holds it."""
    queued = {tensor.name for tensor in kernel.queued}
    items = [operand for operand in program.inputs if operand.name in queued]
    total = sum(_bytes(item.domain, item.dtype, work) for item in items)
    rate = _HITS * chip.mte.load_hit_bytes_per_cycle if again else chip.mte.load_bytes_per_cycle
    cycles = (total / rate + len(items) * chip.mte.load_latency_cycles / kernel.schedule.buffers) * work.tiles
    fresh = sum(_bytes(i.domain, i.dtype, work) for i in items if i.domain is not Domain.COLUMN)
    memory = 0.0 if again else fresh * work.tiles / _share(chip, work, cached=False)
    return Copies(cycles, memory, total * work.tiles / _share(chip, work, cached=True))


def _store(kernel: Kernel, work: Work, chip: Chip) -> Copies:
    total = sum(_bytes(output.domain, output.dtype, work) for output in kernel.plan.outputs)
    starts = sum(
        1.0 if output.domain is Domain.FULL else 1.0 / work.tiles_of_a_row for output in kernel.plan.outputs
    )
    cycles = total / chip.mte.store_bytes_per_cycle + starts * chip.mte.store_latency_cycles
    cost = chip.gm.write_back_cost * _spilled(kernel, work, chip)
    memory = total * work.tiles * cost / _share(chip, work, cached=False)
    return Copies(cycles * work.tiles, memory, total * work.tiles / _share(chip, work, cached=True))


_STANDING = 2.0
"""Cycles of a repeat whose destination is that of the repeat before."""


def _row_cycles(kernel: Kernel, work: Work, chip: Chip) -> float:
    """What a row takes beside its tiles where it has several: lanes are set, combined and reduced."""
    if kernel.form is Form.STEPS and not kernel.schedule.whole:
        start, steps = chip.vector.startup_cycles, work.elements / work.rows
        fold = 2 * work.elements / LANES + start * (math.log2(steps) + 2)
        if kernel.calls("Exp") and kernel.schedule.online:  # a maximum whose places stay as they are
            fold += steps * start
        if kernel.schedule.dense:
            gathered = (in_whole_blocks(round(work.rows)) - 1) * work.rows
            fold += gathered / chip.vector.elements_per_cycle.gather
        return work.tiles / work.tiles_of_a_row * len(kernel.plan.reductions) * fold
    if kernel.schedule.form is not Form.STREAM and kernel.form not in IN_PIECES:
        return 0.0
    start = chip.vector.startup_cycles
    set_lanes = start + kernel.schedule.tile / LANES
    lanes = min(work.elements, kernel.schedule.tile)
    combine = _row_reduction(lanes, chip) + 3 * (start + lanes / LANES) * kernel.schedule.online + _GET_VALUE
    rows = work.tiles / work.tiles_of_a_row
    return rows * len(kernel.plan.reductions) * (set_lanes + combine)


def _vector_cycles(kernel: Kernel, program: TileProgram, work: Work, chip: Chip) -> float:
    return work.tiles * sum(_instruction_cycles(kernel, statement, work, chip) for statement in program.body)


def _instruction_cycles(kernel: Kernel, instruction: Instruction, work: Work, chip: Chip) -> float:
    repeats = work.elements / kernel.lanes
    start = chip.vector.startup_cycles
    if instruction.op in _SLOW:
        start = chip.vector.startup_transcendental_cycles
    if instruction.op == "get_value":
        return _GET_VALUE
    if instruction.op == "shift":
        return (_row_reduction(work.elements, chip) + _GET_VALUE) / work.tiles_of_a_row
    if instruction.op in ("fold_steps", "lane_shift"):  # one half to the other, until one is left
        instructions = 2 + math.log2(max(work.elements / work.rows, 1.0))
        return (repeats + start * instructions) * (
            1 if instruction.op == "fold_steps" else 3 / work.tiles_of_a_row
        )
    if instruction.op == "expand_columns" and instruction.target is not None and instruction.target.name:
        return 0.0  # once for the whole kernel
    if instruction.domain is Domain.ROW:
        repeats, instructions = work.rows / LANES, 1.0
    elif instruction.op in REDUCTIONS:
        return _reduction_cycles(kernel, work, chip)
    elif instruction.op.startswith("expand_") or instruction.op.endswith(("Rows", "Columns")):
        instructions = _spread_instructions(kernel, work)
    else:
        instructions = 1.0
    rate = kernel.lanes / chip.vector.elements_per_cycle.transcendental if instruction.op in _SLOW else 1.0
    if instruction.op == "rounded":
        rate = 2.0
    if repeats % 1:
        start += chip.vector.counter_tail_cycles
    return repeats * rate + start * instructions * (2 if instruction.op == "rounded" else 1)


def _spread_instructions(kernel: Kernel, work: Work) -> float:
    if kernel.form is Form.STEPS:
        return math.ceil(work.rows / LANES)
    columns = work.elements / max(work.rows, 1.0)
    return 1 + (work.rows if kernel.schedule.spread == "rows" else math.ceil(columns / LANES))


def _repeat_cycles(chip: Chip) -> float:
    """Cycles of a repeat that is reduced to a number."""
    return LANES / chip.vector.elements_per_cycle.reduce_repeat_b32


def _row_reduction(columns: float, chip: Chip) -> float:
    """Cycles of one row: blocks to numbers until one repeat is left, then that."""
    block = chip.vector.startup_reduce_block_cycles
    repeat = chip.vector.startup_reduce_cycles + _repeat_cycles(chip)
    if columns <= LANES:
        return float(repeat)
    levels = math.ceil(math.log(columns / LANES, 8))
    return float(columns / LANES * 1.15 + (block + chip.vector.counter_tail_cycles) * levels + repeat)


def _reduction_cycles(kernel: Kernel, work: Work, chip: Chip) -> float:
    columns = work.elements / max(work.rows, 1.0)
    repeat = chip.vector.startup_reduce_cycles + _repeat_cycles(chip) * work.rows
    if columns <= LANES:
        return repeat
    if kernel.schedule.packed and kernel.schedule.reduction == "standing":
        start, tail = chip.vector.startup_cycles, columns % LANES > 0
        return work.elements / LANES * _STANDING + work.rows * start * (1 + tail) + start + repeat
    if kernel.folds_over_rows:
        start = chip.vector.startup_cycles
        # every other pair of columns lies in one bank group
        return work.elements / LANES * 1.5 + start * (1 + math.ceil(columns / LANES)) + repeat
    if kernel.schedule.packed and kernel.schedule.reduction == "tile":
        levels = math.ceil(math.log(columns / LANES, 8))
        block = chip.vector.startup_reduce_block_cycles
        return work.elements / LANES * 1.15 + block * levels + repeat
    return work.rows * _row_reduction(columns, chip)
