"""How a schedule tiles a transposed convolution.

``plan`` repeats the arithmetic of ``tiling.py`` for the sizes in the user's file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.schedule import Named, OneOf, Range, Scaled, Schedule, Shifted, Word
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.kernels.conv_transpose.behind import TILE_STEP
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import Sizes, Transposed

_KEPT_BYTES = 8 * 1024
"""Of the unified buffer, what rows of the input leave for masks and constants."""
_POOLED_ROW_BYTES = 16 * 1024
"""Of rows of the input, one of two slots, beside results of several phases."""
_MOST_ROW = most_of("LoadData2D", "repeatTimes") * FRACTAL


STEP_SLOTS = (2, 3)
"""Steps in L0: each takes two of the six events from the matrix unit to its loads."""


def _least_ring(before: ConvTransposeSchedule, after: ConvTransposeSchedule) -> ConvTransposeSchedule:
    return evolve(after, ring=2 + after.turned)


@frozen
class ConvTransposeSchedule(Schedule):
    """Most output channels and pixels of a tile, results in L0C at a time, kilobytes of L1 for one of two
    slabs and one of two panels of weights, and slabs in the ring of a cube core. ``turned``: pixels are
    the rows of the product, and the vector cores turn the result into rows of outputs. ``own_weights``:
    the vector cores of each cube core lay weights out for it alone, and no core waits for all others.
    ``step_slots``: steps of weights and pixels in L0."""

    most_m: Annotated[
        int, Word("channels"), Range(FRACTAL, 256, unit=FRACTAL), Scaled("taller tile", "lower tile")
    ]
    most_n: Annotated[
        int,
        Word("pixels"),
        Range(FRACTAL, unit=FRACTAL),
        Scaled("wider tile"),
        Scaled("somewhat wider tile", "somewhat narrower tile", unit=FRACTAL, more=(5, 4), less=(3, 4)),
        Scaled(down="narrower tile"),
    ]
    c_slots: Annotated[int, OneOf((1, 2)), Named({2: "two results in L0C", 1: "one result in L0C"})] = 1
    slab_kb: Annotated[int, Range(16)] = 160
    panel_kb: Annotated[int, Range(16)] = 80
    ring: Annotated[int, Range(2, 4), Shifted("another slab ahead", "one slab ahead less")] = 2
    turned: Annotated[
        bool, Named({True: "results turned", False: "results stored as they are"}, also=_least_ring)
    ] = False
    own_weights: Annotated[
        bool, Named({True: "weights for each core alone", False: "weights for all cores"})
    ] = False
    step_slots: Annotated[int, OneOf(STEP_SLOTS), Shifted("another step in L0", "one step in L0 less")] = 2

    def step_fractals(self, problem: Transposed) -> int:
        """What a step in L0 holds of each operand."""
        return problem.chip.memory.l0_bytes // self.step_slots // (FRACTAL * BLOCK_BYTES)

    def phases_w(self, problem: Transposed) -> int:
        """Outputs along W that are computed apart from one another."""
        return problem.axes[2].stride if self.turned else 1


@frozen
class ConvTransposePlan:
    """Tiles of one binding of the symbols; see ``tiling.py``. ``rows``: of a slab that are
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


def plan(
    problem: Transposed, schedule: ConvTransposeSchedule, symbols: Mapping[str, int]
) -> ConvTransposePlan | None:
    """The tiles, None where no tile fits the buffers or the sizes leave no output."""
    sizes = problem.sizes(symbols)
    if min(*sizes.outputs, sizes.images, sizes.channels, sizes.results) < 1:
        return None
    blocks = -(-sizes.channels // (BLOCK_BYTES // ITEM_SIZE[problem.dtype]))
    padded = whole(sizes.results)
    tile_m = whole(-(-padded // -(-padded // schedule.most_m)))
    tile, is_flat, is_dense = _first_tile(problem, schedule, sizes, tile_m)
    while True:
        slab, plane = _slab(problem, schedule, sizes, tile, is_flat)
        if plane * BLOCK_BYTES <= schedule.slab_kb * 1024:
            break
        smaller = _halved(tile, is_flat)
        if smaller is None:
            return None
        tile = smaller
    spread = 1 if schedule.turned else problem.axes[2].stride
    pitch = slab[2] + FRACTAL * spread
    load = whole(-(-slab[2] // spread))
    held = min(memory_of(problem, schedule)[0] // ((pitch + load) * BLOCK_BYTES), slab[0] * slab[1])
    if held < 1 or load > _MOST_ROW:
        return None
    new_rows = tile[0] * slab[1] if problem.sweeps_depth else tile[1]
    shared = new_rows if blocks % 2 == 0 else -(-new_rows // 2)
    panel = schedule.panel_kb * 1024 // (tile_m * BLOCK_BYTES)
    most = min(blocks, schedule.slab_kb * 1024 // (plane * BLOCK_BYTES), panel)
    chunk = -(-blocks // -(-blocks // most))
    chunks = -(-blocks // chunk)
    taps = math.prod(sizes.kernel)
    rows = -(-padded // tile_m)
    steps = [-(-out // axis.stride) for out, axis in zip(sizes.outputs[:2], problem.axes[:2], strict=True)]
    steps.append(-(-sizes.outputs[2] // schedule.phases_w(problem)))
    counts = [-(-length // part) for length, part in zip(steps, tile, strict=True)]
    tiles = sizes.images * math.prod(counts)
    # A sweep begins anew where the core before leaves off.
    sweeps = max(tiles / counts[0 if problem.sweeps_depth else 1], problem.chip.aic)
    anew = min(1.0, sweeps / tiles)
    fractals = fractals_of(tile, slab[2], is_flat or is_dense)
    return ConvTransposePlan(
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
        schedule.step_fractals(problem) // max(fractals, tile_m // FRACTAL),
        -(-shared // -(-shared // held)),
        anew * slab[0] * slab[1] + (1 - anew) * new_rows,
    )


def memory_of(problem: Transposed, schedule: ConvTransposeSchedule) -> tuple[int, int]:
    """Bytes of the unified buffer: of one slot of the input's rows and of one of turned results."""
    if problem.behind is not None:
        return problem.behind.row_bytes, problem.behind.turn_bytes
    rows = _row_bytes(problem)
    if problem.is_pooled:
        step = FRACTAL * FRACTAL * ITEM_SIZE[problem.dtype]
        left = problem.chip.ub_bytes - _KEPT_BYTES - 2 * _POOLED_ROW_BYTES
        return _POOLED_ROW_BYTES, left // (2 * math.prod(problem.strides) + 2) // step * step
    return (rows // 2, rows // 4) if schedule.turned else (rows, 0)


def _row_bytes(problem: Transposed) -> int:
    """Of the input's rows, one of two slots, where the unified buffer holds nothing else."""
    return (problem.chip.ub_bytes - _KEPT_BYTES) // 2 // BLOCK_BYTES * BLOCK_BYTES


def turned_outputs(problem: Transposed, schedule: ConvTransposeSchedule) -> int:
    """Outputs of 16 channels that vector cores turn at a time, at most."""
    if problem.behind is not None:
        return problem.behind.outputs
    return memory_of(problem, schedule)[1] // (FRACTAL * ITEM_SIZE[problem.dtype])


def fractals_of_piece(problem: Transposed) -> int:
    """Of 16 channels, in what vector cores turn at a time."""
    return 1 if problem.behind is None else problem.behind.fractals


def joined_lines(
    problem: Transposed, schedule: ConvTransposeSchedule, sizes: Sizes, planned: ConvTransposePlan
) -> int:
    """Rows of each phase along the height that vector cores turn at a time, 0 where less than one; see
    ``turns`` in ``tiling.py``."""
    out_w, (depths, stride, phases) = sizes.made[2], problem.alternating
    if planned.is_flat or planned.tile[2] * phases < out_w:
        return 0
    held = turned_outputs(problem, schedule)
    pitch = planned.slab[2] if planned.is_dense else whole(planned.tile[2])
    tail = FRACTAL if out_w % FRACTAL else 0
    step = TILE_STEP if problem.behind is not None else FRACTAL

    def taken(lines: int) -> int:
        pixels = whole((lines - 1) * pitch + planned.tile[2] + tail)
        return max(stride * phases * pixels, whole(lines * stride * out_w, step))

    height = planned.tile[1]
    most = max((lines for lines in range(1, height + 1) if taken(lines) <= held), default=0)
    if most == 0:
        return 0
    parts = -(-height // most)
    parts_m = whole(sizes.results) // (FRACTAL * fractals_of_piece(problem))
    beside = parts_m * planned.tile[0] * depths
    parts += parts * beside % 2 if parts < height else 0
    return -(-height // parts)


def whole(value: int, unit: int = FRACTAL) -> int:
    return -(-value // unit) * unit


def fractals_of(tile: tuple[int, int, int], pitch: int, is_dense: bool) -> int:
    """Of pixels in a tile, whose rows lie ``pitch`` apart in the slab and, where it is dense, in L0."""
    depth, height, width = tile
    plane = whole((height - 1) * pitch + width) if is_dense else height * whole(width)
    return depth * plane // FRACTAL


def _first_tile(
    problem: Transposed, schedule: ConvTransposeSchedule, sizes: Sizes, tile_m: int
) -> tuple[tuple[int, int, int], bool, bool]:
    """The largest tile, whether it is flat and whether it is dense."""
    held = problem.chip.memory.l0c_bytes // (schedule.c_slots * tile_m * 4) // FRACTAL * FRACTAL
    most = min(schedule.most_n, held, schedule.step_fractals(problem) * FRACTAL)
    out_d, out_h, out_w = sizes.outputs
    axis_d, axis_h, axis_w = problem.axes
    depths, heights = -(-out_d // axis_d.stride), -(-out_h // axis_h.stride)
    shares_zeros = axis_w.padding == axis_w.output_padding == 0
    phases = schedule.phases_w(problem)
    is_flat = shares_zeros and axis_h.stride == phases == 1 and out_w * 2 <= most
    is_dense = is_flat and schedule.turned
    if is_flat:
        width = out_w
    elif schedule.turned:
        halo = axis_w.highest - axis_w.lowest(sizes.kernel[2])
        width, is_dense = _turned_width(-(-out_w // phases), heights, most, halo)
    else:
        width = _width(out_w, heights, most)
    pitch = width + halo if is_dense and not is_flat else width
    rows = (most - width) // pitch + 1
    height = -(-heights // -(-heights // min(rows, heights)))
    plane = fractals_of((1, height, width), pitch, is_dense) * FRACTAL
    planes = 1 if is_flat else min(most // plane, depths)
    return (-(-depths // -(-depths // planes)), height, width), is_flat, is_dense


@lru_cache(maxsize=1024)  # most schedules of a problem ask for one of few widths
def _width(out_w: int, heights: int, most: int) -> int:
    """The width of a tile, in whole fractals, that wastes least."""
    fewest = -(-out_w // most)

    def waste(count: int) -> int:
        width = whole(-(-out_w // count))
        pixels = min(most // width, heights) * width
        return count * (width + 32) * (pixels + 64) * 64 // pixels

    return whole(-(-out_w // min(range(fewest, 2 * fewest + 8), key=waste)))


@lru_cache(maxsize=1024)
def _turned_width(columns: int, heights: int, most: int, halo: int) -> tuple[int, bool]:
    """The width that wastes least, and whether rows are dense."""
    fewest = -(-columns // most)

    def waste(item: tuple[int, bool]) -> int:
        count, dense = item
        width = -(-columns // count) if dense else whole(-(-columns // count))
        pitch = width + halo if dense else width
        rows = min((most - width) // pitch + 1, heights)
        pixels = whole((rows - 1) * pitch + width)
        return count * -(-heights // rows) * (pixels + rows * (32 if dense else 48) + 64)

    options = [(count, dense) for count in range(fewest, 2 * fewest + 8) for dense in (False, True)]
    count, is_dense = min(options, key=waste)
    return -(-columns // count) if is_dense else whole(-(-columns // count)), is_dense


def _slab(
    problem: Transposed,
    schedule: ConvTransposeSchedule,
    sizes: Sizes,
    tile: tuple[int, int, int],
    is_flat: bool,
) -> tuple[tuple[int, int, int], int]:
    axis = problem.axes[2] if schedule.turned else evolve(problem.axes[2], stride=1)
    halo = axis.highest - axis.lowest(sizes.kernel[2])
    depth, height = (
        tile[i] + problem.axes[i].highest - problem.axes[i].lowest(sizes.kernel[i]) for i in range(2)
    )
    width = sizes.outputs[2] if is_flat else tile[2] + halo
    return (depth, height, width), depth * height * width + halo + FRACTAL


def _halved(tile: tuple[int, int, int], is_flat: bool) -> tuple[int, int, int] | None:
    depth, height, width = tile
    if depth > 1:
        return -(-depth // 2), height, width
    if height > 1:
        return depth, -(-height // 2), width
    return None if is_flat or width <= FRACTAL else (depth, height, whole(-(-width // 2)))
