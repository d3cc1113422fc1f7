"""The kernel of a convolution whose pixels come in panels: a row of a panel for each channel and tap."""

from __future__ import annotations

from functools import partial

from evokernel_core.compiler.problems.convolution import Convolution
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.builder import Builder, at, whole
from evokernel_core.targets.ascendc.ir.cube import LoadData, Mmad, Nd2Nz, Nd2NzMatrices, Reach
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Condition,
    Constant,
    CubeSpan,
    Expr,
    Int,
    Var,
    ceil_div,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Memory, Region
from evokernel_core.targets.ascendc.kernels.convolution.chunks import framing, workspace_bytes
from evokernel_core.targets.ascendc.kernels.convolution.convolution_design import (
    LANE,
    ConvDesign,
    ConvTile,
    TapOffset,
    buffers_of,
    end_with_biases,
    extent_of,
    keep_biases,
    operands,
    store,
    taking,
    tap_of,
)
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import (
    ConvolutionSchedule,
    depth_of,
)
from evokernel_core.targets.ascendc.kernels.convolution.convolution_tiling import tiling_of
from evokernel_core.targets.ascendc.kernels.convolution.epilogue import Taker
from evokernel_core.targets.ascendc.kernels.convolution.fields import WHOLE, bases_of
from evokernel_core.targets.ascendc.kernels.convolution.padding import is_cut_across
from evokernel_core.targets.ascendc.kernels.stage import KernelStage, with_vectors
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE


def build(
    problem: Convolution,
    schedule: ConvolutionSchedule,
    chip: Chip,
    behind: Taker | None = None,
) -> KernelStage:
    """The kernel of a legal schedule; ``behind``: what vector cores do to its results."""
    is_handed = behind is not None
    note = "The cube core: products, passed to the vector cores result by result."
    k = Builder(note if is_handed else "Convolutions as products of weights and shifted pixels.")
    design = _design(k, problem, schedule, chip, is_handed=is_handed)

    def tile_of(builder: Builder, index: Var) -> ConvTile:
        return extent_of(design, builder, _place(design, schedule, builder, index))

    with k.cores("index", design.tiling.total) as index:
        place = _place(design, schedule, k, index)
        if problem.frame is None:
            _panels(design, schedule, extent_of(design, k, place))
        else:
            with k.where(_has_pixels(design, place)):
                _panels(design, schedule, extent_of(design, k, place))
    frames = design.tiling.frames
    if behind is not None:
        return with_vectors(k.kernel(), behind(design, partial(taking, tile_of, design)))
    if frames is None:
        return KernelStage(k.kernel())
    size = workspace_bytes(problem, frames)
    return KernelStage(k.kernel(), framing(problem, frames, chip), size)


def _design(
    k: Builder, problem: Convolution, schedule: ConvolutionSchedule, chip: Chip, *, is_handed: bool
) -> ConvDesign:
    bases = bases_of(schedule, Constant("PANEL_K", schedule.panel_k, "depth of one step in L1"))
    x, weight, bias, target = operands(k, problem, bases, is_handed=is_handed)
    tiling = tiling_of(k, problem, schedule, bases, chip)
    ctype, size = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
    weights, stages = bases.m * bases.panel_k, schedule.slots
    if schedule.stay:
        weights, stages = bases.m * round_up(_depth(problem), WHOLE), 1
    pixels = bases.parts * bases.n * bases.panel_k
    buffers = buffers_of(
        problem,
        bases,
        Buffer("weights", ctype, size, weights, stages, memory=Memory.L1),
        Buffer("pixels", ctype, size, pixels, schedule.slots, memory=Memory.L1),
    )
    return ConvDesign(k, problem, bases, tiling, x, weight, bias, target, buffers)


def _depth(problem: Convolution) -> Constant:
    return Constant("DEPTH", depth_of(problem), "of all weights of an output channel")


# -- tiles ----------------------------------------------------------------------------------------


def _place(design: ConvDesign, schedule: ConvolutionSchedule, k: Builder, index: Var) -> TapOffset:
    """Tiles of the same output channels follow each other, or those of the same pixels."""
    tiling, frames = design.tiling, design.tiling.frames
    tiles, counts = tiling.tiles, tiling.counts
    chunk = None
    number: Expr = index
    if frames is not None:
        chunk = k.let("chunk", index // frames.of_chunk, U64)
        number = k.let("number", index % frames.of_chunk, U64)
    if schedule.outputs_first:
        down, rest = number % tiles.of_outputs, number // tiles.of_outputs
    else:
        of_outputs = k.let("ofOutputs", tiling.of_outputs, U64)
        down = number // of_outputs % tiles.of_outputs
        rest = number % of_outputs + number // (of_outputs * tiles.of_outputs) * of_outputs
    output = k.let("output", down * tiles.m, U64)
    rest = k.let("rest", rest, U64)
    if chunk is not None:
        return _place_in_chunk(design, k, output, rest, chunk)
    column = k.let("column", rest % tiles.across * tiles.width, U64)
    rows = k.let("rowsBelow", rest // tiles.across, U64)
    row = k.let("row", rows % tiles.down * tiles.rows, U64)
    planes = k.let("planes", rows // tiles.down, U64)
    plane = k.let("plane", planes % counts.made[0], U64)
    images = k.let("images", planes // counts.made[0], U64)
    image = k.let("image", images % counts.batch, U64)
    group = k.let("group", images // counts.batch, U64)
    steps, problem = tiling.steps, design.problem
    source = (
        (image * problem.groups + group) * counts.channels * steps.channel
        + plane * problem.stride[0] * steps.plane
        + row * problem.stride[1] * steps.row
        + column
    )
    return TapOffset(group, output, image, plane, row, column, None, source)


def _place_in_chunk(design: ConvDesign, k: Builder, output: Var, rest: Var, chunk: Var) -> TapOffset:
    """Chunks are whole images or pieces of one; its pixels lie in a ring of chunks."""
    tiling, frames, problem = design.tiling, design.tiling.frames, design.problem
    assert frames is not None
    tiles, counts, steps = tiling.tiles, tiling.counts, tiling.steps
    piece = k.let("piece", chunk % frames.pieces * frames.piece_tiles, U64)
    in_piece = rest % frames.piece_tiles
    row: Var | Int
    if is_cut_across(problem):
        plane: Expr = Int(0)
        row = Int(0)
        column = k.let("column", (piece + in_piece) * tiles.width, U64)
        rest = k.let("pieces", rest // frames.piece_tiles, U64)
        inside = column - piece * tiles.width
    else:
        column = k.let("column", rest % tiles.across * tiles.width, U64)
        rest = k.let("rowsBelow", rest // tiles.across, U64)
        row = k.let("row", (piece + rest % frames.piece_tiles) * tiles.rows, U64)
        rest = k.let("pieces", rest // frames.piece_tiles, U64)
        plane = k.let("plane", rest % counts.made[0], U64)
        rest = k.let("images", rest // counts.made[0], U64)
        inside = (row - piece * tiles.rows) * problem.stride[1] * steps.row + column
    own = k.let("own", rest % frames.images, U64)
    group = k.let("group", rest // frames.images, U64)
    source = (
        chunk % frames.ring * frames.chunk_elements
        + (own * problem.groups + group) * counts.channels * steps.channel
        + plane * problem.stride[0] * steps.plane
        + inside
    )
    image = k.let("image", own + chunk // frames.pieces * frames.images, U64)
    return TapOffset(group, output, image, plane, row, column, chunk, source)


def _has_pixels(design: ConvDesign, place: TapOffset) -> Condition:
    """Pieces of images end beyond them, and the last chunk has fewer of them."""
    counts, (_, height, width) = design.tiling.counts, design.tiling.counts.made
    inside: Expr = Choice(place.column, "<", width, Int(1), Int(0))
    if isinstance(place.row, Var):
        inside = Choice(place.row, "<", height, inside, Int(0))
    return Condition(Choice(place.image, "<", counts.batch, inside, Int(0)), "==", Int(1))


# -- panels ---------------------------------------------------------------------------------------


def _panels(design: ConvDesign, schedule: ConvolutionSchedule, tile: ConvTile) -> None:
    """Results beside each other take turns at each panel, so that one is stored while the next is
    computed."""
    k, most, depth = design.k, design.bases.panel_k, design.tiling.counts.depth
    with k.loop("panel", ceil_div(depth, most), U64) as panel:
        start = k.let("start", panel * most, U64)
        count = k.let("depth", least(depth - start, most))
        _load(design, schedule, tile, panel, (start, count))
        with k.pieces("first", (0, tile.columns), design.tiling.tiles.part_columns) as (first, columns):
            with k.sum(panel, LANE):
                _add_steps(design, schedule, tile, (start, count), (first, columns))
                if design.buffers.biases is not None:
                    with k.when(panel + 1, "==", ceil_div(depth, most)):
                        end_with_biases(design, tile, columns)
            with k.stored():
                store(design, tile, first)


def _load(
    design: ConvDesign, schedule: ConvolutionSchedule, tile: ConvTile, panel: Var, along: tuple[Var, Var]
) -> None:
    k, tiling, place, buffers = design.k, design.tiling, tile.place, design.buffers
    start, count = along
    channel = place.group * tiling.counts.outputs + place.output
    depth = tiling.counts.depth
    if place.chunk is not None and tiling.frames is not None:
        k.do(Reach(place.chunk, tiling.frames.chunks))
    if schedule.stay:
        with k.kept(buffers.weights, channel):
            source = Region(design.weight, channel * depth)
            k.do(Nd2Nz(whole(buffers.weights), source, tile.outputs, depth, depth))
    if buffers.biases is not None:
        with k.when(panel + 1, "==", ceil_div(depth, design.bases.panel_k)):
            keep_biases(design, tile, channel)
    if not schedule.stay:
        source = Region(design.weight, channel * depth + start)
        k.do(Nd2Nz(whole(buffers.weights), source, tile.outputs, count, depth))
    _load_pixels(design, tile, start, count)


def _load_pixels(design: ConvDesign, tile: ConvTile, start: Var, count: Var) -> None:
    """A row of the panel for each channel and tap, those at equal distances in one copy."""
    k, run = design.k, design.tiling.steps.run
    note = "One row of the panel for each channel and tap: the pixels that the tap meets."
    with k.section("LoadPixels", note):
        height = k.let("height", round_up(count, WHOLE))
        before = k.let("runsBefore", start // run, U64)
        with k.loop("ofRuns", ceil_div(start + count, run) - before, U64) as number:
            place = k.let("place", greatest(start, (before + number) * run), U64)
            end = k.let("end", least(start + count, (before + number + 1) * run), U64)
            taps = k.let("taps", end - place)
            source = k.let("source", tile.place.source + tap_of(design, place), U64)
            _copy_taps(design, tile, (place - start) * design.block, source, taps, height)


def _copy_taps(design: ConvDesign, tile: ConvTile, place: Expr, source: Var, taps: Var, height: Var) -> None:
    """Taps at equal distances: rows of the panel below each other."""
    k, steps, panel = design.k, design.tiling.steps, at(design.buffers.pixels, place)
    problem, one = design.problem, Int(1)
    is_run = Choice(tile.rows, "==", one, one, design.tiling.tiles.pitch)
    from_ = Region(design.x, source)
    with k.when(is_run, ">", 0):  # one run of memory
        step = Choice(taps, ">", one, steps.run_step, tile.last)
        k.do(Nd2NzMatrices(panel, from_, one, taps, tile.last, Int(0), step, height, one, Int(0)))
    with k.otherwise():
        apart = Choice(taps, ">", one, steps.run_step, Int(0))
        pitch, row_step = steps.row * problem.stride[1], tile.pitch // design.block * height
        k.do(Nd2NzMatrices(panel, from_, taps, tile.rows, tile.width, apart, pitch, height, row_step, one))


# -- products -------------------------------------------------------------------------------------


def _add_steps(
    design: ConvDesign,
    schedule: ConvolutionSchedule,
    tile: ConvTile,
    along: tuple[Var, Var],
    part: tuple[Var, Var],
) -> None:
    """The panels of a turn, step by step."""
    k, buffers, (start, depth), (first, columns) = design.k, design.buffers, along, part
    note = "The panels of a turn, step by step, into one of the sums."
    with k.section("AddSteps", note), k.pieces("place", (0, depth), design.bases.k) as (place, count):
        rows = CubeSpan(Int(0), tile.outputs, tile.outputs)
        if schedule.stay:
            across = CubeSpan(k.let("along", start + place), count, _depth(design.problem))
        else:
            across = CubeSpan(place, count, depth)
        k.do(LoadData(whole(buffers.left), whole(buffers.weights), rows, across, turned=False))
        pixels = at(buffers.pixels, first * round_up(depth, WHOLE))
        down, all_ = CubeSpan(place, count, depth), CubeSpan(Int(0), columns, columns)
        k.do(LoadData(whole(buffers.right), pixels, down, all_, turned=True))
        operands = whole(buffers.result), whole(buffers.left), whole(buffers.right)
        k.do(Mmad(*operands, tile.outputs, columns, count))
