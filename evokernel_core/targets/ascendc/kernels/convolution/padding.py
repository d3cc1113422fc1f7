"""Images that the vector cores of a convolution frame, chunk by chunk, ahead of the cube cores."""

from __future__ import annotations

import math

from attrs import frozen

from evokernel_core.compiler.problems.convolution import Convolution
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import FRACTAL
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import whole

TABLE_BYTES = 8 * 1024
"""Of what says which elements are picked."""
_A_TILE = 200
"""Cycles from tile to tile that no copy hides (as in family phases)."""


def is_cut_across(problem: Convolution) -> bool:
    """Whether pieces of an image are pieces of its only row."""
    return problem.made[0].is_one and problem.made[1].is_one


@frozen
class Framing:
    """Chunks of the images; microseconds that vector cores take for all, and those of them between chunks, in
    which nothing is read from memory."""

    chunks: int
    busy_us: float
    between_us: float


def frame_tile_bytes(chip: Chip) -> int:
    """What a vector core frames at once: a power of two, of which the unified buffer holds four."""
    return 1 << ((chip.ub_bytes - TABLE_BYTES) // 4).bit_length() - 1


def framed_sizes(problem: Convolution, made: tuple[int, ...]) -> tuple[int, ...]:
    """Rows and columns of a framed image that a result of ``made`` pixels reads; the width is one phase's."""
    depth, height, width = (
        (size - 1) * step + (taps - 1) * (gap.constant or 1) + 1
        for size, step, taps, gap in zip(made, problem.stride, problem.kernel, problem.dilation, strict=True)
    )
    reach = (problem.kernel[2] - 1) * (problem.dilation[2].constant or 1) // problem.phases
    return depth, height, whole(width if problem.phases == 1 else made[2] + reach, FRACTAL)


def framing_of(
    problem: Convolution,
    batch: int,
    planes: int,
    made: tuple[int, ...],
    size: int,
    chunk_bytes: int,
    chip: Chip,
) -> Framing:
    """What framing costs: ``planes`` channels of ``batch`` images, ``size`` bytes an element."""
    depth, height, width = framed_sizes(problem, made)
    image = planes * depth * height * width * problem.phases * size
    pieces = math.ceil(image / chunk_bytes)
    reach = (problem.kernel[1] - 1) * (problem.dilation[1].constant or 1)
    if is_cut_across(problem):
        image += planes * (pieces - 1) * (width - made[2]) * problem.phases * size
    else:  # rows that neighbouring pieces share
        image += planes * depth * (pieces - 1) * reach * width * problem.phases * size
    images = max(1, chunk_bytes // image)
    chunks = math.ceil(batch / images) * pieces
    total = image * batch
    row = width * problem.phases * size
    most = frame_tile_bytes(chip)
    tile = min(most // row * row or most, height * row)
    tiles = math.ceil(total / chunks / tile / chip.aiv) * chunks
    rows = max(1.0, tile / row)
    loaded = max(tile / chip.mte.load_bytes_per_cycle, rows * chip.mte.min_burst_cycles)
    stored = tile / chip.mte.store_bytes_per_cycle
    stored = max(stored, rows * problem.phases * chip.mte.min_burst_cycles)
    picked = 0.0
    if problem.phases > 1:
        lanes = chip.vector.elements_per_cycle.of("gather_mask", size * 8)
        picked = problem.phases * (tile / size / lanes + chip.vector.startup_cycles)
    first = chip.mte.load_latency_cycles + loaded + stored + picked + 4 * chip.sync.cross_core_cycles
    busy = tiles * (max(loaded, stored, picked) + _A_TILE) + chunks * first
    return Framing(chunks, busy / chip.mhz, chunks * first / chip.mhz)
