"""Schedules of convolutions on the cube cores: which are legal, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from evokernel_core.ascendc.families.conv_geometry import Convolution
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip

FRACTAL = 16
_DEPTH_A_CYCLE = {"float32": 4, "float16": 16, "bfloat16": 16}
"""Depth of one cycle of the matrix unit (hardware.md: fp32 K = 4, half K = 16)."""
_L1_BYTES, _L0_BYTES, _L0C_BYTES = 512 * 1024, 64 * 1024, 128 * 1024
_PIECE = 512
"""Bytes of one request of the copy engine; copies from other addresses than multiples of 128 move such
pieces whole."""
_ALIGNED = 128
_MOST_REPEATED_WEIGHTS = 65535
"""Depth of the largest matrix in L1 that one instruction addresses."""


@frozen
class ConvolutionSchedule:
    """A tile of the result is ``base_m`` output channels by ``parts`` times ``part_n`` pixels; each part
    has its own result in L0C. ``base_k`` is the depth of a step in L0 and ``panel_k`` in L1. Weights
    ``stay`` in L1 or come in panels. ``outputs_first``: neighbouring tiles are other output channels of
    the same pixels."""

    base_m: int
    part_n: int
    parts: int
    base_k: int
    panel_k: int
    stay: bool = False
    outputs_first: bool = False

    @property
    def base_n(self) -> int:
        return self.parts * self.part_n

    @staticmethod
    def of(strategy: Strategy) -> ConvolutionSchedule:
        return ConvolutionSchedule(**dict(strategy.settings))  # type: ignore[arg-type]


def starts(found: Convolution) -> Iterator[ConvolutionSchedule]:
    """Schedules among which a draft chooses."""
    outputs = found.outputs.constant
    rows = {16, 32, 64, 128} | ({whole(min(outputs, 128))} if outputs else set())
    for base_m in sorted(rows):
        for part_n, parts in ((512, 1), (256, 2), (256, 1), (128, 2), (128, 1), (64, 2), (32, 2)):
            for panel_k in (32, 64, 128, 256):
                deepest = _L0_BYTES // 2 // ITEM_SIZE[found.dtype] // max(base_m, part_n)
                base_k = 1 << min(deepest, panel_k).bit_length() - 1
                for stay in (False, True):
                    for outputs_first in (False, True):
                        yield ConvolutionSchedule(base_m, part_n, parts, base_k, panel_k, stay, outputs_first)


def steps(here: ConvolutionSchedule) -> Iterator[tuple[str, ConvolutionSchedule]]:
    """What one named step away is, legal or not."""
    yield "more output channels a tile", evolve(here, base_m=here.base_m * 2)
    yield "fewer output channels a tile", evolve(here, base_m=here.base_m // 2)
    yield "more pixels a part", evolve(here, part_n=here.part_n * 2)
    yield "fewer pixels a part", evolve(here, part_n=here.part_n // 2)
    yield "two parts a tile", evolve(here, parts=2)
    yield "one part a tile", evolve(here, parts=1)
    yield "two parts of half the pixels", evolve(here, parts=2, part_n=here.part_n // 2)
    yield "deeper panel in L1", evolve(here, panel_k=here.panel_k * 2)
    yield "shallower panel in L1", evolve(here, panel_k=here.panel_k // 2)
    yield "deeper step in L0", evolve(here, base_k=here.base_k * 2)
    yield "shallower step in L0", evolve(here, base_k=here.base_k // 2)
    yield "weights come in panels" if here.stay else "weights stay in L1", evolve(here, stay=not here.stay)
    yield "tiles in the other order", evolve(here, outputs_first=not here.outputs_first)


def refusal(found: Convolution, item: ConvolutionSchedule) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    size = ITEM_SIZE[found.dtype]
    lengths = (item.base_m, item.part_n, item.base_k)
    if min(lengths) < FRACTAL or any(length % FRACTAL for length in lengths) or item.panel_k % item.base_k:
        return "Tiles are whole fractals, and panels whole steps."
    if 2 * max(item.base_m, item.part_n) * item.base_k * size > _L0_BYTES:
        return "Two steps of an operand do not fit L0."
    if item.parts * item.base_m * item.part_n * 4 > _L0C_BYTES:
        return "The results do not fit L0C."
    weights = 2 * item.base_m * item.panel_k
    if item.stay:
        depth = (found.channels.constant or 0) * math.prod(found.kernel)
        if not 0 < depth <= _MOST_REPEATED_WEIGHTS:
            return "Weights of a depth that is not known do not stay in L1."
        weights = item.base_m * whole(depth)
    if (weights + 2 * item.base_n * item.panel_k) * size > _L1_BYTES:
        return "The panels do not fit L1."
    return None


def whole(length: int, unit: int = FRACTAL) -> int:
    return -(-length // unit) * unit


@frozen
class _Tiles:
    """Sizes of the tiles at given sizes: rows of the result are cut, or several make a tile."""

    outputs: int
    rows: int
    width: int
    count_m: int
    count_rows: int
    count_width: int


def _tiles(item: ConvolutionSchedule, outputs: int, height: int, width: int) -> _Tiles:
    count_m = math.ceil(outputs / item.base_m)
    tile_m = whole(math.ceil(outputs / count_m))
    if width > item.part_n:
        count = math.ceil(width / item.base_n)
        tile = whole(math.ceil(width / count))
        return _Tiles(tile_m, 1, tile, count_m, height, math.ceil(width / tile))
    most = min(height, item.parts * (item.part_n // whole(width)))
    rows = math.ceil(height / math.ceil(height / most))
    return _Tiles(tile_m, rows, width, count_m, math.ceil(height / rows), 1)


def estimate_us(found: Convolution, item: ConvolutionSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: the slowest pipe of the busiest core, or the chip's memory."""
    size, table = ITEM_SIZE[found.dtype], chip.constants
    batch, channels, outputs = (each.evaluate(sizes) for each in (found.batch, found.channels, found.outputs))
    read = [each.evaluate(sizes) for each in found.read]
    made = [each.evaluate(sizes) for each in found.made]
    taps = math.prod(found.kernel)
    depth = channels * taps
    tiles = _tiles(item, outputs, made[1], made[2])
    pixels = tiles.count_rows * tiles.count_width * made[0] * batch
    count = pixels * tiles.count_m * found.groups
    mine = math.ceil(count / chip.aic)
    columns = tiles.rows * whole(tiles.width)
    parts = math.ceil(columns / item.part_n)
    hit = table["mte.cube_load_hit_bytes_per_cycle"]

    # The matrix unit, and loads into L0.
    in_steps = math.ceil(depth / item.base_k) * parts
    multiplied = tiles.outputs * columns / 256 * math.ceil(depth / _DEPTH_A_CYCLE[found.dtype])
    multiplied += table["cube.mmad_overhead_cycles"] * in_steps
    loaded = depth * size * (tiles.outputs * parts / table["cube.l1_l0a_bytes_per_cycle"])
    loaded += depth * size * columns / table["cube.l1_l0b_bytes_per_cycle"]
    loaded += 2 * table["cube.load_overhead_cycles"] * in_steps

    # Copies into L1: `run` taps with one instruction where a tile is a row.
    run = _run(found, channels) if tiles.rows == 1 else 1
    row_bytes = _moved(tiles.width * size, read[2] * size, found.kernel[2] > 1 or tiles.count_width > 1)
    copied = max(tiles.rows * row_bytes / hit, table["mte.min_copy_cycles"] / run, tiles.rows * 4)
    copied *= depth
    weight_bytes = _moved(item.panel_k * size, depth * size, True)
    if not item.stay:
        copied += tiles.outputs * math.ceil(depth / item.panel_k) * max(4, weight_bytes / hit)
    x_bytes = batch * found.groups * channels * math.prod(read) * found.phases * size
    again = tiles.count_m if not item.outputs_first and x_bytes > chip.l2_bytes else 1
    missed = x_bytes * again * (row_bytes / (tiles.width * size)) / chip.aic
    copied += missed * (1 / table["mte.load_bytes_per_cycle"] - 1 / hit) / max(mine, 1)

    # Results.
    out_bytes = _moved(tiles.width * size, made[2] * size, True)
    stored = tiles.outputs * tiles.rows * out_bytes / table["cube.fixpipe_gm_bytes_per_cycle"]
    stored += table["cube.fixpipe_overhead_cycles"] * tiles.rows
    tile = max(multiplied, copied, loaded, stored)
    if item.parts == 1:
        tile = max(tile, multiplied + stored)
    else:  # a part waits for its last result; the other part's work of one panel hides it
        hidden = multiplied * min(1.0, item.panel_k / depth) / parts
        tile = max(tile, multiplied + max(0.0, stored / parts - hidden))
    written = batch * found.groups * outputs * math.prod(made) * size
    weights = found.groups * outputs * depth * size
    back = max(0, x_bytes + written - chip.l2_bytes) * written / (x_bytes + written)
    memory = (x_bytes * again + weights + back * table["gm.write_back_cost"]) / (
        table["gm.hbm_achieved_gbps"] * 1e3
    )
    first = min(copied, item.panel_k * row_bytes * tiles.rows / table["mte.load_bytes_per_cycle"])
    busy = mine * tile + first + stored + (weights / found.groups / 32 if item.stay else 0)
    return float(chip.launch_us + 3.5 + max(busy / chip.mhz, memory))


def _moved(nbytes: int, pitch: int, unaligned: bool) -> float:
    """Bytes that a copy of one row moves; rows that begin anywhere move pieces whole."""
    if not unaligned and pitch % _ALIGNED == 0:
        return nbytes
    return max(nbytes, nbytes + _PIECE if pitch % _PIECE or unaligned else nbytes)


def _run(found: Convolution, channels: int) -> int:
    """Taps along the innermost dimension that has several."""
    if found.phases > 1:
        return 1
    return next((taps for taps in reversed(found.kernel) if taps > 1), channels)
