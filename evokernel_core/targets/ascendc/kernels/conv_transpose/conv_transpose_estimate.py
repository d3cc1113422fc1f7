"""The modelled time of a transposed convolution's schedule."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL, LANES, REQUEST_BYTES
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import Sizes, Transposed
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import (
    ConvTransposePlan,
    ConvTransposeSchedule,
    fractals_of,
    fractals_of_piece,
    joined_lines,
    plan,
    turned_outputs,
    whole,
)
from evokernel_core.targets.ascendc.kernels.epilogue.epilogue_cost import Cost

_STEP_CYCLES = 70
"""From the last cycle of a product until the next step may be loaded in its place."""
_VECTOR_CYCLES = 60
"""Of one vector instruction that the next one waits for."""
_HANDOVER_CYCLES = 250
"""From the last product of a result to its first byte outside, where no other result is at work."""
_RAGGED_STORE = 256
"""Bytes that a run at any address moves over its own: copies go by 512 bytes."""
_IDLE_CYCLES = {2: 370, 3: 65}
"""Of the matrix unit between two phases whose results are turned, by the steps in L0; fitted to modelled
kernels that multiply most of the time."""
_PART_CYCLES = 800
"""Of one part of the weights that is laid out."""


def estimate_us(
    problem: Transposed, schedule: ConvTransposeSchedule, symbols: Mapping[str, int], chip: Chip
) -> float:
    """Modelled microseconds: the slowest of the pipes of the busiest core and of device memory."""
    planned = plan(problem, schedule, symbols)
    if planned is None:
        return math.inf
    sizes = problem.sizes(symbols)
    width = ITEM_SIZE[problem.dtype]
    tiles = -(-planned.tiles // min(chip.aic, planned.tiles))
    cube = _cube_cycles(problem, planned, sizes, schedule, width)
    cost = problem.behind.cost if problem.behind is not None else None
    vector = _vector_cycles(problem, planned, sizes, schedule, width, cost)
    cycles = max(cube, vector) * tiles + min(cube, vector)
    read = _read_bytes(problem, planned, sizes, schedule, width)
    outputs = sizes.images * sizes.results * math.prod(sizes.made)
    written = outputs * (width if cost is None else cost.written_of(sizes.results))
    read += 0 if cost is None else outputs * cost.read
    busy = cycles / chip.mhz
    packing = _packing_cycles(problem, planned, sizes, chip, schedule) / chip.mhz
    if schedule.turned:
        cores = min(chip.aic, planned.tiles)
        work = _turned_us(busy, read, written, tiles * cores / planned.tiles, chip)
    else:
        work = _direct_us(busy, read, written, schedule, chip)
    return work + packing + chip.mixed_launch_of(chip.aic)


def _direct_us(
    busy: float, read: float, written: float, schedule: ConvTransposeSchedule, chip: Chip
) -> float:
    """Where cube cores store what they compute: microseconds of all tiles, from those of the busiest core's
    pipes and the bytes that all cores read and write."""
    moved = max(read, _written_back(read, written, chip)) / chip.gm.memory_bytes_us
    exposed = 1.0 if schedule.c_slots == 1 else 0.1  # of one result, nothing is computed while it is stored
    return max(busy, moved) + exposed * min(busy, moved)


def _turned_us(busy: float, read: float, written: float, uneven: float, chip: Chip) -> float:
    """The same where results pass through the cores that load the input. Results fill L2 first, in which time
    device memory reads alone. ``uneven``: tiles of the busiest core over those of each on average."""
    rate = chip.gm.memory_bytes_us / uneven
    back = _written_back(read, written, chip) / rate
    first = min(1.0, chip.l2_bytes / (read + written))
    filling = first * busy, first * read / rate
    writing_back = (1 - first) * busy, (1 - first) * read / rate + back
    exposed = 0.2  # vector cores load, turn and store in turns
    return sum(max(part) + exposed * min(part) for part in (filling, writing_back))


def _written_back(read: float, written: float, chip: Chip) -> float:
    """What is written beyond L2, as bytes that device memory could read in the time."""
    return max(0.0, read + written - chip.l2_bytes) * written / (read + written) * chip.gm.write_back_cost


def _packing_cycles(
    problem: Transposed, planned: ConvTransposePlan, sizes: Sizes, chip: Chip, schedule: ConvTransposeSchedule
) -> float:
    """Until all weights lie in blocks, and cores have waited for those of others."""
    blocks = problem.groups * planned.blocks * math.prod(sizes.kernel)
    rows = planned.tiles_m * planned.tile_m
    each = chip.mte.min_copy_cycles + 2 * rows
    parts = problem.groups * planned.blocks * planned.tiles_m
    cycles = (blocks * each + parts * _PART_CYCLES) / 2
    return (
        cycles if schedule.own_weights else cycles / min(chip.aic, planned.tiles) + chip.sync.sync_all_cycles
    )


def _read_bytes(
    problem: Transposed, planned: ConvTransposePlan, sizes: Sizes, schedule: ConvTransposeSchedule, width: int
) -> float:
    """Bytes that device memory moves for the input: rows of neighbouring sweeps come anew, and rows that
    begin at any address are moved in whole pieces."""
    spread = 1 if schedule.turned else problem.axes[2].stride
    columns = min(-(-planned.slab[2] // spread), sizes.inputs[2])
    row = columns * width
    is_aligned = columns == sizes.inputs[2] and row % problem.chip.mte.aligned_bytes == 0
    inside = min(1.0, sizes.inputs[1] / planned.slab[1])
    rows = planned.tiles * planned.rows * inside * sizes.channels
    return rows * (row + (0 if is_aligned else REQUEST_BYTES))


def _run(
    problem: Transposed, planned: ConvTransposePlan, sizes: Sizes, schedule: ConvTransposeSchedule
) -> int:
    """Turned outputs that are stored together."""
    _, height, columns = planned.tile
    run = height * columns if planned.is_flat else columns
    _, rows, phases = problem.alternating
    joined = joined_lines(problem, schedule, sizes, planned)
    if joined > 0:
        return joined * rows * sizes.made[2]
    held = turned_outputs(problem, schedule) // phases // FRACTAL * FRACTAL
    return min(run, whole(-(-run // -(-run // held)))) * phases


def _cube_cycles(
    problem: Transposed, planned: ConvTransposePlan, sizes: Sizes, schedule: ConvTransposeSchedule, width: int
) -> float:
    """Cycles of one tile on the cube core, all phases and tiles of channels."""
    axis_d, axis_h, _ = problem.axes
    rows, cube = planned.tile_m // FRACTAL, problem.chip.cube
    hit = problem.chip.mte.cube_load_hit_bytes_per_cycle
    fractals = fractals_of(planned.tile, planned.slab[2], planned.is_flat or planned.is_dense)
    runs = 1 if planned.is_flat else planned.tile[0] * (1 if planned.is_dense else planned.tile[1])
    taps = math.prod(sizes.kernel)
    phases = axis_d.stride * axis_h.stride * schedule.phases_w(problem)
    # Taps whose planes are padding are left out, the others are of all phases together.
    planes = sizes.inputs[0] + planned.tile[0] - 1
    products = taps * planned.blocks * min(1.0, planes * axis_d.stride / sizes.outputs[0])
    steps = products / planned.step_blocks + phases
    matrix = products * rows * fractals * cube.fractal_cycles(width) + steps * cube.mmad_overhead_cycles
    fractal = FRACTAL * BLOCK_BYTES
    sides = fractal / cube.l1_l0a_bytes_per_cycle, fractal / cube.l1_l0b_bytes_per_cycle
    cycles = sides if schedule.turned else sides[::-1]  # of a fractal of pixels, and of weights
    held = schedule.step_fractals(problem) // rows // planned.step_blocks if schedule.turned else 1
    groups = steps / held  # of weights
    each = runs * cube.load_overhead_cycles + fractals * cycles[0] + rows * cycles[1]
    loads = products * each + groups * cube.load_overhead_cycles
    slab = planned.blocks * planned.plane * BLOCK_BYTES / hit
    axes = problem.axes if schedule.turned else problem.axes[:2]
    used = math.prod(min(axis.tap_step, taps) for axis, taps in zip(axes, sizes.kernel, strict=False))
    reloads = 1 if planned.chunks == 1 else used * planned.tiles_m
    weights = 0.0 if planned.is_resident else products * planned.tile_m * BLOCK_BYTES / hit * planned.tiles_m
    burst = planned.tile_m * FRACTAL * fractals * width if schedule.turned else planned.tile[2] * width
    ragged = 1 if schedule.turned else 1 + _RAGGED_STORE / burst
    each = max(width / cube.fixpipe_gm_bytes_per_cycle, 1 / cube.fixpipe_b32_elements_per_cycle)
    stored = phases * fractals * planned.tile_m * FRACTAL * each * planned.tiles_m * ragged
    in_turn = (matrix + loads + steps * _STEP_CYCLES) / schedule.step_slots
    if schedule.turned and schedule.c_slots > 1 and phases > 1:
        matrix += phases * _IDLE_CYCLES[schedule.step_slots]
    work = max(matrix, loads, in_turn) * planned.tiles_m
    if schedule.c_slots == 1:
        work += stored + phases * planned.tiles_m * _HANDOVER_CYCLES
    else:  # nothing is multiplied while results are stored that no tap reaches
        work += stored * max(0.0, 1 - used / phases)
    return max(work, slab * reloads + weights, stored) + phases * 50


def _vector_cycles(
    problem: Transposed,
    planned: ConvTransposePlan,
    sizes: Sizes,
    schedule: ConvTransposeSchedule,
    width: int,
    cost: Cost | None,
) -> float:
    """Cycles of one tile on one of the two vector cores of a cube core."""
    spread = 1 if schedule.turned else problem.axes[2].stride
    rows = planned.rows * planned.blocks / 2
    stored = rows * planned.slab[2] * BLOCK_BYTES / problem.chip.mte.store_bytes_per_cycle
    channels, mte = BLOCK_BYTES // width, problem.chip.mte
    loaded = rows * channels * (planned.slab[2] / spread * width + _RAGGED_STORE)
    loaded /= mte.load_bytes_per_cycle
    batches = math.ceil(rows / planned.row_batch)
    turned = rows * (problem.chip.vector.startup_cycles + planned.slab[2] * 2 / FRACTAL / spread) + stored / 4
    laid_out = max(stored, loaded, turned) + batches * _VECTOR_CYCLES * 4 + 500
    if not schedule.turned:
        return laid_out
    outputs = math.prod(planned.tile) * math.prod(problem.alternating)
    run = _run(problem, planned, sizes, schedule)
    together = FRACTAL * fractals_of_piece(problem)  # channels of a piece
    pieces = outputs / run * planned.tiles_m * planned.tile_m / together / 2
    most = min(together, sizes.results)
    stored = most * (run * width + _RAGGED_STORE) / mte.store_bytes_per_cycle
    pooled = math.prod(problem.strides) if problem.is_pooled else 1
    turn = pooled * together * run * width / mte.load_hit_bytes_per_cycle + 2 * _VECTOR_CYCLES
    turn += (pooled - 1) * (together * run / LANES + problem.chip.vector.startup_cycles) / 2
    if cost is None:
        return laid_out + pieces * (max(stored, turn) + _VECTOR_CYCLES)
    steps = together * run * cost.each + cost.tile + math.ceil(run / LANES) * cost.slab
    loaded = most * sum(run * size + _RAGGED_STORE for size in cost.beside) / mte.load_bytes_per_cycle
    copied = most * sum(run * size + _RAGGED_STORE for size in cost.made)
    copied += sum(run * size + _RAGGED_STORE for size in cost.reduced)
    stored = copied / mte.store_bytes_per_cycle
    return laid_out + pieces * (max(stored, loaded, turn / 2 + steps) + turn / 2)
