"""How a schedule tiles a transposed convolution, and its modelled time.

``plan`` repeats the arithmetic of the template ``transposed_tiling`` for the sizes in the user's file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve, frozen

from evokernel_core.ascendc.families.epilogue_cost import Cost
from evokernel_core.ascendc.families.machine import LANES
from evokernel_core.ascendc.families.searching import Settings
from evokernel_core.ascendc.families.transposed_geometry import Sizes, Transposed
from evokernel_core.ascendc.families.turned_epilogue import ROW_BYTES
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip

_FRACTAL, _BLOCK = 16, 32
_ROW_BYTES = 88 * 1024
_L0_BYTES, _L0C_BYTES = 64 * 1024, 128 * 1024
_MOST_ROW = 255 * _FRACTAL
_LOAD_CYCLES = 9
"""Of one copy from L1 to L0 before its first byte (twin/chips, cube)."""
_PRODUCT_CYCLES = 10
_STEP_CYCLES = 70
"""From the last cycle of a product until the next step may be loaded in its place."""
_VECTOR_CYCLES = 60
"""Of one vector instruction that the next one waits for."""
_HANDOVER_CYCLES = 250
"""From the last product of a result to its first byte outside, where no other result is at work."""
_RAGGED_STORE = 256
"""Bytes that a run at any address moves over its own: copies go by 512 bytes."""
_RAGGED = {False: 0, True: 200}
"""The same for what goes back from L2 to device memory, turned or not; fitted to modelled kernels."""
_LEAST_COPY, _PART_CYCLES, _BARRIER_CYCLES = 21, 800, 1000
"""Of a copy, of one part of the weights that is laid out, and of a barrier among all cores."""
_TURN_BYTES = 22 * 1024
"""Results in the unified buffer, one of two slots, before they are turned and after."""
_ALIGNED = 128
_RAGGED_READ = 512
"""Bytes that a row at any address moves over its own, unless it begins at a multiple of ``_ALIGNED``."""
_CORES = 24
"""Cube cores among which sweeps are cut, at most."""


@frozen
class Schedule(Settings):
    """Most output channels and pixels of a tile, results in L0C at a time, kilobytes of L1 for one of two
    slabs and one of two panels of weights, and slabs in the ring of a cube core. ``turned``: pixels are
    the rows of the product, and the vector cores turn the result into rows of outputs. ``own_weights``:
    the vector cores of each cube core lay weights out for it alone, and no core waits for all others.
    ``step_slots``: steps of weights and pixels in L0."""

    most_m: int
    most_n: int
    c_slots: int = 1
    slab_kb: int = 160
    panel_kb: int = 80
    ring: int = 2
    turned: bool = False
    own_weights: bool = False
    step_slots: int = 2

    @property
    def step_fractals(self) -> int:
        """What a step in L0 holds of each operand."""
        return _L0_BYTES // self.step_slots // (_FRACTAL * _BLOCK)

    def phases_w(self, found: Transposed) -> int:
        """Outputs along W that are computed apart from one another."""
        return found.axes[2].stride if self.turned else 1


@frozen
class Plan:
    """Tiles of one binding of the symbols; see ``OpTiling`` in the template. ``rows``: of a slab that are
    laid out for each tile, on average: the others are those of the slab before."""

    tile_m: int
    tiles_m: int
    tile: tuple[int, int, int]
    slab: tuple[int, int, int]
    plane: int
    tiles: int
    is_flat: bool
    is_dense: bool
    blocks: int
    chunks: int
    is_resident: bool
    step_blocks: int
    row_batch: int
    rows: float


def plan(found: Transposed, item: Schedule, symbols: Mapping[str, int]) -> Plan | None:
    """The tiles, None where no tile fits the buffers or the sizes leave no output."""
    sizes = found.sizes(symbols)
    if min(*sizes.outputs, sizes.images, sizes.channels, sizes.results) < 1:
        return None
    blocks = -(-sizes.channels // (_BLOCK // ITEM_SIZE[found.dtype]))
    padded = _whole(sizes.results)
    tile_m = _whole(-(-padded // -(-padded // item.most_m)))
    tile, is_flat, is_dense = _first_tile(found, item, sizes, tile_m)
    while True:
        slab, plane = _slab(found, item, sizes, tile, is_flat)
        if plane * _BLOCK <= item.slab_kb * 1024:
            break
        smaller = _halved(tile, is_flat)
        if smaller is None:
            return None
        tile = smaller
    spread = 1 if item.turned else found.axes[2].stride
    pitch = slab[2] + _FRACTAL * spread
    load = _whole(-(-slab[2] // spread))
    held = min(memory_of(found, item)[0] // ((pitch + load) * _BLOCK), slab[0] * slab[1])
    if held < 1 or load > _MOST_ROW:
        return None
    new_rows = tile[0] * slab[1] if found.sweeps_depth else tile[1]
    shared = new_rows if blocks % 2 == 0 else -(-new_rows // 2)
    panel = item.panel_kb * 1024 // (tile_m * _BLOCK)
    most = min(blocks, item.slab_kb * 1024 // (plane * _BLOCK), panel)
    chunk = -(-blocks // -(-blocks // most))
    chunks = -(-blocks // chunk)
    taps = math.prod(sizes.kernel)
    rows = -(-padded // tile_m)
    steps = [-(-out // axis.stride) for out, axis in zip(sizes.outputs[:2], found.axes[:2], strict=True)]
    steps.append(-(-sizes.outputs[2] // item.phases_w(found)))
    counts = [-(-length // part) for length, part in zip(steps, tile, strict=True)]
    tiles = sizes.images * math.prod(counts)
    # A sweep begins anew where the core before leaves off.
    sweeps = max(tiles / counts[0 if found.sweeps_depth else 1], _CORES)
    anew = min(1.0, sweeps / tiles)
    fractals = _fractals(tile, slab[2], is_flat or is_dense)
    return Plan(
        tile_m,
        rows,
        tile,
        slab,
        plane,
        tiles,
        is_flat,
        is_dense,
        blocks,
        chunks,
        chunks == 1 and rows == 1 and taps * blocks <= 2 * panel,
        item.step_fractals // max(fractals, tile_m // _FRACTAL),
        -(-shared // -(-shared // held)),
        anew * slab[0] * slab[1] + (1 - anew) * new_rows,
    )


def memory_of(found: Transposed, item: Schedule) -> tuple[int, int]:
    """Bytes of the unified buffer: of one slot of the input's rows and of one of turned results."""
    if found.behind is not None:
        return ROW_BYTES, found.behind.turn_bytes
    return (_ROW_BYTES // 2, _TURN_BYTES) if item.turned else (_ROW_BYTES, 0)


def turned_outputs(found: Transposed) -> int:
    """Outputs of 16 channels that vector cores turn at a time, at most."""
    if found.behind is not None:
        return found.behind.outputs
    return _TURN_BYTES // (_FRACTAL * ITEM_SIZE[found.dtype])


def _whole(value: int, unit: int = _FRACTAL) -> int:
    return -(-value // unit) * unit


def _fractals(tile: tuple[int, int, int], pitch: int, is_dense: bool) -> int:
    """Of pixels in a tile, whose rows lie ``pitch`` apart in the slab and, where it is dense, in L0."""
    depth, height, width = tile
    plane = _whole((height - 1) * pitch + width) if is_dense else height * _whole(width)
    return depth * plane // _FRACTAL


def _first_tile(
    found: Transposed, item: Schedule, sizes: Sizes, tile_m: int
) -> tuple[tuple[int, int, int], bool, bool]:
    """The largest tile, whether it is flat and whether it is dense."""
    held = _L0C_BYTES // (item.c_slots * tile_m * 4) // _FRACTAL * _FRACTAL
    most = min(item.most_n, held, item.step_fractals * _FRACTAL)
    out_d, out_h, out_w = sizes.outputs
    axis_d, axis_h, axis_w = found.axes
    depths, heights = -(-out_d // axis_d.stride), -(-out_h // axis_h.stride)
    shares_zeros = axis_w.padding == axis_w.output_padding == 0
    phases = item.phases_w(found)
    is_flat = shares_zeros and axis_h.stride == phases == 1 and out_w * 2 <= most
    is_dense = is_flat and item.turned
    if is_flat:
        width = out_w
    elif item.turned:
        halo = axis_w.highest - axis_w.lowest(sizes.kernel[2])
        width, is_dense = _turned_width(-(-out_w // phases), heights, most, halo)
    else:
        width = _width(out_w, heights, most)
    pitch = width + halo if is_dense and not is_flat else width
    rows = (most - width) // pitch + 1
    height = -(-heights // -(-heights // min(rows, heights)))
    plane = _fractals((1, height, width), pitch, is_dense) * _FRACTAL
    planes = 1 if is_flat else min(most // plane, depths)
    return (-(-depths // -(-depths // planes)), height, width), is_flat, is_dense


def _width(out_w: int, heights: int, most: int) -> int:
    fewest = -(-out_w // most)

    def waste(count: int) -> int:
        width = _whole(-(-out_w // count))
        pixels = min(most // width, heights) * width
        return count * (width + 32) * (pixels + 64) * 64 // pixels

    return _whole(-(-out_w // min(range(fewest, 2 * fewest + 8), key=waste)))


def _turned_width(columns: int, heights: int, most: int, halo: int) -> tuple[int, bool]:
    """The width that wastes least, and whether rows are dense."""
    fewest = -(-columns // most)

    def waste(item: tuple[int, bool]) -> int:
        count, dense = item
        width = -(-columns // count) if dense else _whole(-(-columns // count))
        pitch = width + halo if dense else width
        rows = min((most - width) // pitch + 1, heights)
        pixels = _whole((rows - 1) * pitch + width)
        return count * -(-heights // rows) * (pixels + rows * (32 if dense else 48) + 64)

    options = [(count, dense) for count in range(fewest, 2 * fewest + 8) for dense in (False, True)]
    count, is_dense = min(options, key=waste)
    return -(-columns // count) if is_dense else _whole(-(-columns // count)), is_dense


def _slab(
    found: Transposed, item: Schedule, sizes: Sizes, tile: tuple[int, int, int], is_flat: bool
) -> tuple[tuple[int, int, int], int]:
    axis = found.axes[2] if item.turned else evolve(found.axes[2], stride=1)
    halo = axis.highest - axis.lowest(sizes.kernel[2])
    depth, height = (
        tile[i] + found.axes[i].highest - found.axes[i].lowest(sizes.kernel[i]) for i in range(2)
    )
    width = sizes.outputs[2] if is_flat else tile[2] + halo
    return (depth, height, width), depth * height * width + halo + _FRACTAL


def _halved(tile: tuple[int, int, int], is_flat: bool) -> tuple[int, int, int] | None:
    depth, height, width = tile
    if depth > 1:
        return -(-depth // 2), height, width
    if height > 1:
        return depth, -(-height // 2), width
    return None if is_flat or width <= _FRACTAL else (depth, height, _whole(-(-width // 2)))


# -- time -----------------------------------------------------------------------------------------


def estimate_us(found: Transposed, item: Schedule, symbols: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: the slowest of the pipes of the busiest core and of device memory."""
    planned = plan(found, item, symbols)
    if planned is None:
        return math.inf
    sizes, constants = found.sizes(symbols), chip.constants
    width = ITEM_SIZE[found.dtype]
    tiles = -(-planned.tiles // min(chip.aic, planned.tiles))
    cube = _cube_cycles(found, planned, sizes, item, width)
    cost = found.behind.cost(chip) if found.behind is not None else None
    vector = _vector_cycles(found, planned, sizes, item, width, cost)
    cycles = max(cube, vector) * tiles + min(cube, vector)
    read = _read_bytes(found, planned, sizes, item, width)
    outputs = sizes.images * sizes.results * math.prod(sizes.outputs)
    written = outputs * (width if cost is None else cost.written)
    read += 0 if cost is None else outputs * cost.read
    back = max(0, read + written - chip.l2_bytes) * written / (read + written)
    back *= constants["gm.write_back_cost"] * (
        1 + _RAGGED[item.turned] / (_run(found, planned, item, width) * width)
    )
    # Turned results pass through the cores that load the input; else cube cores store what they compute.
    moved = (read + back if item.turned else max(read, back)) / (constants["gm.hbm_achieved_gbps"] * 1e3)
    busy = cycles / chip.mhz
    packing = _packing_cycles(found, planned, sizes, min(chip.aic, planned.tiles), item) / chip.mhz
    exposed = 1.0 if item.c_slots == 1 and not item.turned else 0.1  # nothing is computed while one is stored
    return float(max(busy, moved) + exposed * min(busy, moved) + packing + chip.launch_us + 6)


def _packing_cycles(found: Transposed, planned: Plan, sizes: Sizes, cubes: int, item: Schedule) -> float:
    """Until all weights lie in blocks, and cores have waited for those of others."""
    blocks = found.groups * planned.blocks * math.prod(sizes.kernel)
    rows = planned.tiles_m * planned.tile_m
    each = _LEAST_COPY + 2 * rows
    parts = found.groups * planned.blocks * planned.tiles_m
    cycles = (blocks * each + parts * _PART_CYCLES) / 2
    return cycles if item.own_weights else cycles / cubes + _BARRIER_CYCLES


def _read_bytes(found: Transposed, planned: Plan, sizes: Sizes, item: Schedule, width: int) -> float:
    """Bytes that device memory moves for the input: rows of neighbouring sweeps come anew, and rows that
    begin at any address are moved in whole pieces."""
    spread = 1 if item.turned else found.axes[2].stride
    columns = min(-(-planned.slab[2] // spread), sizes.inputs[2])
    row = columns * width
    is_aligned = columns == sizes.inputs[2] and row % _ALIGNED == 0
    inside = min(1.0, sizes.inputs[1] / planned.slab[1])
    rows = planned.tiles * planned.rows * inside * sizes.channels
    return rows * (row + (0 if is_aligned else _RAGGED_READ))


def _run(found: Transposed, planned: Plan, item: Schedule, width: int) -> int:
    """Outputs that are stored together."""
    _, height, columns = planned.tile
    run = height * columns if planned.is_flat else columns
    phases = item.phases_w(found)
    if not item.turned:
        return run
    held = turned_outputs(found) // phases // _FRACTAL * _FRACTAL
    return min(run, _whole(-(-run // -(-run // held)))) * phases


def _cube_cycles(found: Transposed, planned: Plan, sizes: Sizes, item: Schedule, width: int) -> float:
    """Cycles of one tile on the cube core, all phases and tiles of channels."""
    axis_d, axis_h, _ = found.axes
    rows = planned.tile_m // _FRACTAL
    fractals = _fractals(planned.tile, planned.slab[2], planned.is_flat or planned.is_dense)
    runs = 1 if planned.is_flat else planned.tile[0] * (1 if planned.is_dense else planned.tile[1])
    taps = math.prod(sizes.kernel)
    phases = axis_d.stride * axis_h.stride * item.phases_w(found)
    # Taps whose planes are padding are left out, the others are of all phases together.
    planes = sizes.inputs[0] + planned.tile[0] - 1
    products = taps * planned.blocks * min(1.0, planes * axis_d.stride / sizes.outputs[0])
    steps = products / planned.step_blocks + phases
    matrix = products * rows * fractals * (2 if width == 4 else 1) + steps * _PRODUCT_CYCLES
    cycles = (2, 4) if item.turned else (4, 2)  # of a fractal of pixels, and of weights
    held = item.step_fractals // rows // planned.step_blocks if item.turned else 1
    groups = steps / held  # of weights
    loads = products * (runs * _LOAD_CYCLES + fractals * cycles[0] + rows * cycles[1]) + groups * _LOAD_CYCLES
    slab = planned.blocks * planned.plane * _BLOCK / 110
    axes = found.axes if item.turned else found.axes[:2]
    used = math.prod(min(axis.tap_step, taps) for axis, taps in zip(axes, sizes.kernel, strict=False))
    reloads = 1 if planned.chunks == 1 else used * planned.tiles_m
    weights = 0.0 if planned.is_resident else products * planned.tile_m * _BLOCK / 110 * planned.tiles_m
    burst = planned.tile_m * _FRACTAL * fractals * width if item.turned else planned.tile[2] * width
    ragged = 1 if item.turned else 1 + _RAGGED_STORE / burst
    stored = (
        phases * fractals * planned.tile_m * _FRACTAL * max(width / 76, 1 / 32) * planned.tiles_m * ragged
    )
    in_turn = (matrix + loads + steps * _STEP_CYCLES) / item.step_slots
    work = max(matrix, loads, in_turn) * planned.tiles_m
    if item.c_slots == 1:
        work += stored + phases * planned.tiles_m * _HANDOVER_CYCLES
    else:  # nothing is multiplied while results are stored that no tap reaches
        work += stored * max(0.0, 1 - used / phases)
    return max(work, slab * reloads + weights, stored) + phases * 50


def _vector_cycles(
    found: Transposed, planned: Plan, sizes: Sizes, item: Schedule, width: int, cost: Cost | None
) -> float:
    """Cycles of one tile on one of the two vector cores of a cube core."""
    spread = 1 if item.turned else found.axes[2].stride
    rows = planned.rows * planned.blocks / 2
    stored = rows * planned.slab[2] * _BLOCK / 32
    channels = _BLOCK // width
    loaded = rows * channels * (planned.slab[2] / spread * width + _RAGGED_STORE) / 32
    batches = math.ceil(rows / planned.row_batch)
    turned = rows * (22 + planned.slab[2] * 2 / _FRACTAL / spread) + stored / 4
    laid_out = max(stored, loaded, turned) + batches * _VECTOR_CYCLES * 4 + 500
    if not item.turned:
        return laid_out
    outputs = math.prod(planned.tile) * math.prod(axis.stride for axis in found.axes)
    run = _run(found, planned, item, width)
    pieces = outputs / run * planned.tiles_m * planned.tile_m / _FRACTAL / 2
    most = min(_FRACTAL, sizes.results)
    stored = most * (run * width + _RAGGED_STORE) / 32
    turn = _FRACTAL * run * width / 70 + 2 * _VECTOR_CYCLES
    if cost is None:
        return laid_out + pieces * (max(stored, turn) + _VECTOR_CYCLES)
    steps = _FRACTAL * run * cost.each + cost.tile + math.ceil(run / LANES) * cost.slab
    loaded = most * sum(run * size + _RAGGED_STORE for size in cost.beside) / 32
    stored = most * sum(run * size + _RAGGED_STORE for size in cost.made) / 32
    return laid_out + pieces * (max(stored, loaded, turn / 2 + steps) + turn / 2)
