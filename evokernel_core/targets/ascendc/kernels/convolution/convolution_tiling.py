"""What ComputeTiling computes for convolutions whose pixels come in panels."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.problems.convolution import Convolution
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import Expr, Param, Size
from evokernel_core.targets.ascendc.kernels.convolution.chunks import Frames, chunks_of, framed_width
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import ConvolutionSchedule
from evokernel_core.targets.ascendc.kernels.convolution.fields import (
    Bases,
    ConvTiles,
    Counts,
    TapStrides,
    counts_of,
    steps_of,
    tiles_of,
)


@frozen
class ConvTiling:
    """All of them; ``frames`` where images are framed; ``of_outputs`` counts the tiles of the same output
    channels, of a chunk where there are any, ``total`` all."""

    counts: Counts
    steps: TapStrides
    tiles: ConvTiles
    of_outputs: Expr
    total: Param
    frames: Frames | None


def tiling_of(
    k: Builder, problem: Convolution, schedule: ConvolutionSchedule, bases: Bases, chip: Chip
) -> ConvTiling:
    """The fields; tiles of framed images need the pitch of their rows, and chunks of them the tiles."""
    counts = counts_of(k, problem)
    if problem.frame is None:
        width: Expr = Size(problem.read[2])
        row = k.param("rowStride", width * problem.phases, "elements of x from row to row")
        tiles = tiles_of(k, problem, schedule, bases, counts, row)
        frames: Frames | None = None
        height: Expr = Size(problem.read[1])
        depth: Expr = Size(problem.read[0])
        of_outputs = counts.batch * k.param("tilesOfImage", counts.made[0] * tiles.down * tiles.across)
        total = k.param("tiles", problem.groups * tiles.of_outputs * of_outputs)
    else:
        framed = framed_width(problem, counts.made[2]) * problem.phases
        pitch = k.param("framedStride", framed, "of rows in a frame")
        tiles = tiles_of(k, problem, schedule, bases, counts, pitch)
        frames = chunks_of(k, problem, schedule.chunk_kib, (counts, tiles), pitch, chip)
        depth, height, width = frames.made
        of_outputs = frames.images * frames.of_piece
        row = k.param("rowStride", width * problem.phases, "elements of x from row to row")
        total = k.param("tiles", frames.chunks * frames.of_chunk)
    plane = k.param("planeStride", height * row, "from plane to plane, and from channel to channel")
    channel = k.param("channelStride", depth * plane)
    return ConvTiling(
        counts, steps_of(k, problem, counts, width, (row, plane, channel)), tiles, of_outputs, total, frames
    )
