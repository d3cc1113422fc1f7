"""Sizes, steps in memory and tiles of convolutions whose pixels come in panels: fields of the tiling."""

from __future__ import annotations

import math

from attrs import frozen

from evokernel_core.compiler.problems.convolution import Convolution
from evokernel_core.hardware.ascend.isa import FRACTAL
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.cube import MOST_PITCH
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    Choice,
    Constant,
    Expr,
    Int,
    Param,
    Size,
    ceil_div,
    equal,
    round_up,
)
from evokernel_core.targets.ascendc.kernels.convolution.convolution_rows_schedule import RowsSchedule
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import ConvolutionSchedule

WHOLE = Constant("FRACTAL", FRACTAL)


@frozen
class Bases:
    """The numbers of a schedule; ``panel_k``: the depth of a panel, or of what lies in L1 for all tiles."""

    m: Constant
    n: Constant
    parts: Constant
    k: Constant
    panel_k: Constant


@frozen
class Counts:
    """Sizes of a group: images, channels, output channels, and of the result; its pixels, and the depth of
    the product."""

    batch: Param
    channels: Param
    outputs: Param
    made: tuple[Param, Param, Param]
    pixels: Param
    depth: Param


@frozen
class TapStrides:
    """Elements of x from row to row, plane to plane and channel to channel; from tap to tap, across, down and
    behind; how many taps at equal distances one copy fetches, and how far they lie from each other."""

    row: Param
    plane: Param
    channel: Param
    across: Param
    down: Param
    behind: Param
    run: Param
    run_step: Param


@frozen
class ConvTiles:
    """A tile: output channels, rows and their width, ``pitch`` columns apart where they are so in memory too,
    else 0; parts of it; how many there are."""

    m: Param
    width: Param
    rows: Param
    pitch: Param
    part_rows: Param
    part_columns: Param
    of_outputs: Param
    down: Param
    across: Param


def bases_of(schedule: ConvolutionSchedule | RowsSchedule, panel_k: Constant) -> Bases:
    return Bases(
        Constant("BASE_M", schedule.base_m, "output channels of one tile"),
        Constant("PART_N", schedule.part_n, "pixels of one result in L0C"),
        Constant("PARTS", schedule.parts, "results in L0C, side by side in one tile"),
        Constant("BASE_K", schedule.base_k, "depth of one step in L0A and L0B"),
        panel_k,
    )


def counts_of(k: Builder, problem: Convolution) -> Counts:
    batch, channels, outputs = (
        k.param(name, Size(getattr(problem, name)), note)
        for name, note in (("batch", ""), ("channels", "of a group"), ("outputs", "of a group"))
    )
    depth, height, width = (
        k.param(name, Size(size)) for name, size in zip(("outD", "outH", "outW"), problem.made, strict=True)
    )
    for size in (batch, channels, outputs, depth, height, width):
        k.require(size.value, ">=", 1)
    pixels = k.param("pixels", depth * height * width, "of a channel of the result")
    taps = k.param("depth", channels * math.prod(problem.kernel), "channels and taps")
    return Counts(batch, channels, outputs, (depth, height, width), pixels, taps)


def tiles_of(
    k: Builder,
    problem: Convolution,
    schedule: ConvolutionSchedule,
    bases: Bases,
    counts: Counts,
    row: Param,
) -> ConvTiles:
    """Wide rows are cut; of narrow ones several make a tile."""
    (_, height, width), n, parts = counts.made, bases.n, bases.parts

    def wide(cut: Expr, uncut: Expr) -> Expr:
        return Choice(width, ">", n, cut, uncut)

    m = k.param("tileM", round_up(equal(counts.outputs, bases.m), WHOLE), "", U32)
    of_outputs = k.param("tilesM", ceil_div(counts.outputs, m), "", U32)
    flat: Expr = Int(0)
    if schedule.flat and problem.stride[1] == 1:  # rows that begin on fractals by themselves are one run
        flat = Choice(row % WHOLE, "==", Int(0), Choice(row, "<=", n, row, Int(0)), Int(0))
    note = "columns from row to row where they are those of memory, else 0"
    pitch = k.param("panelPitch", wide(Int(0), flat), note, U32)
    own = Choice(pitch, ">", Int(0), pitch, round_up(width, WHOLE))
    held = k.param("rowPitch", own, "columns from row to row", U32)
    most = k.param("mostRows", n // held, "of a part", U32)
    is_far = Choice(row * problem.stride[1], ">", MOST_PITCH, Int(1), equal(height, parts * most))
    tile_w = k.param("tileW", wide(round_up(equal(width, parts * n), WHOLE), width), "", U32)
    rows = k.param("tileRows", wide(Int(1), is_far), "of the result in one tile, each from a fractal on", U32)
    part_rows = k.param("partRows", wide(Int(1), equal(rows, most)), "", U32)
    cut = Choice(tile_w, ">", n, round_up(ceil_div(tile_w, parts), WHOLE), tile_w)
    note = "columns of a part, the gaps between rows included"
    columns = k.param("partColumns", wide(cut, part_rows * held), note, U32)
    down = k.param("tilesRows", ceil_div(height, rows), "", U32)
    across = k.param("tilesW", ceil_div(width, tile_w), "", U32)
    return ConvTiles(m, tile_w, rows, pitch, part_rows, columns, of_outputs, down, across)


def steps_of(
    k: Builder, problem: Convolution, counts: Counts, width: Expr, strides: tuple[Param, Param, Param]
) -> TapStrides:
    row, plane, channel = strides
    down = k.param("tapStepH", Size(problem.dilation[1]) * row, "elements of x from tap to tap")
    behind = k.param("tapStepD", Size(problem.dilation[0]) * plane)
    kernel, phases, gap = problem.kernel, problem.phases, problem.dilation[2]
    if phases > 1:
        apart = gap.constant or 1
        across = k.param("tapStepW", apart % phases * width + apart // phases)
        # Taps lie at equal distances as long as their phases do not wrap around.
        number: Expr = Int(kernel[2] if (kernel[2] - 1) * (apart % phases) < phases else 1)
        step = across
    else:
        across = k.param("tapStepW", Size(gap))
        number, step = _run(problem, counts, (behind, down, across), channel)
    many = Choice(step, ">", MOST_PITCH, Int(1), number)
    run = k.param("run", many, "taps that one copy can fetch", U32)
    return TapStrides(row, plane, channel, across, down, behind, run, k.param("runStep", step))


def _run(
    problem: Convolution, counts: Counts, steps: tuple[Param, Param, Param], channel: Param
) -> tuple[Expr, Param]:
    """Taps that lie at equal distances: of a row, else of a column, else behind each other, else channels."""
    kernel = problem.kernel
    if problem.rows_first:
        return Int(kernel[2]), steps[2]
    for axis in (2, 1, 0):
        if kernel[axis] > 1:
            return Int(kernel[axis]), steps[axis]
    return counts.channels, channel
