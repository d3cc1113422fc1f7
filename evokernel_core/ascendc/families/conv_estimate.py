"""What a convolution on the cube cores costs in the time model."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from evokernel_core.ascendc.families.conv_geometry import Convolution
from evokernel_core.ascendc.families.conv_schedule import FRACTAL, ConvolutionSchedule, whole
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip

_DEPTH_A_CYCLE = {"float32": 4, "float16": 16, "bfloat16": 16}
"""Depth of one cycle of the matrix unit (hardware.md: fp32 K = 4, half K = 16)."""
_PIECE = 512
"""Bytes of one request of the copy engine; copies from other addresses than multiples of 128 move such
pieces whole."""
_ALIGNED = 128
_MEETING = 1.15
"""Requests of cores that meet at one address take longer: some of them do."""
_START_US = 3.5
"""A launch on all cube cores before the first instruction."""


@frozen
class _Tiles:
    """A tile: ``outputs`` channels of ``rows`` rows of ``width`` pixels, ``pitch`` columns apart. ``run``:
    the rows are read in one piece."""

    outputs: int
    rows: int
    width: int
    pitch: int
    run: bool
    of_outputs: int
    of_pixels: int


def _tiles(item: ConvolutionSchedule, sizes: _Sizes) -> _Tiles:
    """The tiles that ComputeTiles of the kernel makes; ``of_pixels`` counts those of one plane."""
    height, width = sizes.made[1:]
    of_outputs = math.ceil(sizes.outputs / item.base_m)
    outputs = whole(math.ceil(sizes.outputs / of_outputs))
    if width > item.part_n:
        tile = whole(math.ceil(width / math.ceil(width / item.base_n)))
        return _Tiles(outputs, 1, tile, tile, True, of_outputs, height * math.ceil(width / tile))
    pitch = sizes.read[2]
    run = item.flat and pitch % FRACTAL == 0 and pitch <= item.part_n
    pitch = pitch if run else whole(width)
    most = min(height, item.parts * (item.part_n // pitch))
    rows = math.ceil(height / math.ceil(height / most))
    return _Tiles(outputs, rows, width, pitch, run or rows == 1, of_outputs, math.ceil(height / rows))


@frozen
class _Sizes:
    batch: int
    channels: int
    outputs: int
    read: tuple[int, ...]
    made: tuple[int, ...]


def estimate_us(found: Convolution, item: ConvolutionSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: the slowest pipe of the busiest core, or the chip's memory."""
    size, table = ITEM_SIZE[found.dtype], chip.constants
    known = _Sizes(
        found.batch.evaluate(sizes),
        found.channels.evaluate(sizes),
        found.outputs.evaluate(sizes),
        tuple(each.evaluate(sizes) for each in found.read),
        tuple(each.evaluate(sizes) for each in found.made),
    )
    tiles = _tiles(item, known)
    depth = known.channels * math.prod(found.kernel)
    count = known.batch * known.made[0] * tiles.of_pixels * tiles.of_outputs * found.groups
    mine = math.ceil(count / chip.aic)
    columns = whole((tiles.rows - 1) * tiles.pitch + tiles.width)
    parts = math.ceil(columns / item.part_n)

    in_steps = math.ceil(depth / item.base_k) * parts
    multiplied = tiles.outputs * columns / 256 * math.ceil(depth / _DEPTH_A_CYCLE[found.dtype])
    multiplied += table["cube.mmad_overhead_cycles"] * in_steps
    loaded = depth * size * tiles.outputs * parts / table["cube.l1_l0a_bytes_per_cycle"]
    loaded += depth * size * columns / table["cube.l1_l0b_bytes_per_cycle"]
    loaded += 2 * table["cube.load_overhead_cycles"] * in_steps

    # Memory: what is read once is missed once; results push each other out of L2.
    x_bytes = known.batch * found.groups * known.channels * math.prod(known.read) * found.phases * size
    again = tiles.of_outputs if not item.outputs_first and x_bytes > chip.l2_bytes else 1
    written = known.batch * found.groups * known.outputs * math.prod(known.made) * size
    weights = found.groups * known.outputs * depth * size
    back = max(0, x_bytes + written - chip.l2_bytes) / (x_bytes + written)
    device = table["gm.hbm_achieved_gbps"] * 1e3 / chip.mhz / chip.aic
    missed = x_bytes * again / count
    pushed = written / count * back * table["gm.write_back_cost"] / device

    copied = _copied(found, item, tiles, known, chip) + missed / table["mte.load_bytes_per_cycle"]
    row_bytes = _moved(tiles.width * size, False)
    stored = tiles.outputs * tiles.rows * row_bytes / table["cube.fixpipe_gm_bytes_per_cycle"]
    stored += table["cube.fixpipe_overhead_cycles"] * tiles.rows

    # Requests of all cores pass L2 one by one.
    asked = (
        depth
        * (tiles.rows if not tiles.run else 1)
        * _requests(
            (tiles.width if not tiles.run else (tiles.rows - 1) * tiles.pitch + tiles.width) * size,
            _is_aligned(found, known, size),
        )
    )
    asked += tiles.outputs * tiles.rows * _requests(tiles.width * size, False)
    if not item.stay:
        asked += tiles.outputs * math.ceil(depth / item.panel_k) * _requests(item.panel_k * size, False)
    asked *= _MEETING * chip.aic / table["gm.requests_per_cycle"]

    # What is fetched ahead hides that copies wait behind results on their way to memory.
    ahead = multiplied * min(1.0, (item.slots - 1) * item.panel_k / depth)
    waits = max(0.0, pushed - ahead)
    if item.parts == 1:
        waits = max(waits, stored)
    else:  # the other part's work of one panel hides that a part waits for its last result
        hidden = multiplied * min(1.0, item.panel_k / depth) / parts
        waits = max(waits, stored / parts - hidden)
    in_device = missed / device + pushed
    tile = max(multiplied + waits, copied, loaded, stored, in_device, asked)
    tile += 0.05 * (multiplied + copied + loaded + stored + asked)
    memory = (x_bytes * again + weights) / (table["gm.hbm_achieved_gbps"] * 1e3)
    memory += back * written * table["gm.write_back_cost"] / (table["gm.hbm_achieved_gbps"] * 1e3)
    first = copied * min(1.0, item.panel_k / depth) + stored
    kept = weights / found.groups / tiles.of_outputs / table["mte.load_bytes_per_cycle"] if item.stay else 0.0
    return float(chip.launch_us + _START_US + max((mine * tile + first + kept) / chip.mhz, memory))


def _copied(found: Convolution, item: ConvolutionSchedule, tiles: _Tiles, known: _Sizes, chip: Chip) -> float:
    """Cycles of the copies into L1 for one tile, all of them found in L2."""
    size, table = ITEM_SIZE[found.dtype], chip.constants
    hit, shortest, burst = (
        table[f"mte.{name}"]
        for name in ("cube_load_hit_bytes_per_cycle", "min_copy_cycles", "min_burst_cycles")
    )
    depth = known.channels * math.prod(found.kernel)
    if tiles.run:
        length = ((tiles.rows - 1) * tiles.pitch + tiles.width) * size
        a_tap = max(
            _moved(length, _is_aligned(found, known, size)) / hit, shortest / _run(found, known.channels)
        )
    else:
        a_tap = max(tiles.rows * max(burst, _moved(tiles.width * size, False) / hit), shortest)
    if item.stay:
        return a_tap * depth
    row = max(burst, _moved(item.panel_k * size, depth * size % _ALIGNED == 0) / hit)
    return a_tap * depth + tiles.outputs * math.ceil(depth / item.panel_k) * row


def _is_aligned(found: Convolution, known: _Sizes, size: int) -> bool:
    return found.kernel[2] == 1 and known.read[2] * size % _ALIGNED == 0


def _moved(nbytes: int, aligned: bool) -> int:
    """Bytes that a copy of one row moves; rows that begin anywhere move pieces whole."""
    return nbytes if aligned else nbytes + _PIECE


def _requests(nbytes: int, aligned: bool) -> float:
    """Pieces that a copy of one row touches, on average over where it begins."""
    return -(-nbytes // _PIECE) if aligned else nbytes / _PIECE + 1


def _run(found: Convolution, channels: int) -> int:
    """Taps along the innermost dimension that has several, which one copy fetches."""
    if found.phases > 1:
        return 1
    return next((taps for taps in reversed(found.kernel) if taps > 1), channels)
