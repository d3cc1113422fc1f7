"""The kernel of a convolution whose pixels come in panels: a row of a panel for each channel and tap."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.ascendc.ir.builder import Builder, at, whole
from evokernel_core.ascendc.ir.cube import (
    Fixpipe,
    InitConst,
    LoadData,
    Mmad,
    Nd2Nz,
    Nd2NzMatrices,
    Reach,
    Span,
    Take,
)
from evokernel_core.ascendc.ir.expr import (
    U64,
    Choice,
    Condition,
    Constant,
    Expr,
    Int,
    Param,
    Var,
    ceil_div,
    expr,
    greatest,
    least,
    round_up,
)
from evokernel_core.ascendc.ir.nodes import Buffer, Memory, Node, Region, Ring, Tensor
from evokernel_core.ascendc.kernels.convolution.chunks import framing
from evokernel_core.ascendc.kernels.convolution.fields import WHOLE, Bases, bases_of
from evokernel_core.ascendc.kernels.convolution.geometry import Convolution
from evokernel_core.ascendc.kernels.convolution.padding import is_cut_across
from evokernel_core.ascendc.kernels.convolution.schedule import ConvolutionSchedule, depth_of
from evokernel_core.ascendc.kernels.convolution.tiling import Tiling, tiling_of
from evokernel_core.ascendc.kernels.cube import Behind, CubeKernel
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.lowering.program import camel
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import BLOCK_BYTES

QUANT = {"float32": "", "float16": "F322F16", "bfloat16": "F322BF16"}
"""The modes in which Fixpipe rounds float32."""
_LANE = Var("firstPiece")
"""Which of a tile's results a part is: the number of its piece of the columns."""


@frozen
class Place:
    """Where a tile lies: its number among those of ``chunk`` (none: the images lie as they are), its group,
    output channels, image, plane, row and column."""

    group: Var
    output: Var
    image: Var
    plane: Expr
    row: Var | Int
    column: Var
    chunk: Var | None
    source: Expr


@frozen
class Tile:
    """A tile and its extent: ``pitch`` columns from row to row in L1 and L0, ``columns`` of all rows in whole
    fractals, ``last`` without the gap behind the last."""

    place: Place
    outputs: Var
    rows: Var
    width: Var
    pitch: Var
    last: Var
    columns: Var


@frozen
class Buffers:
    """Of L1, L0A, L0B and L0C; ``biases``: a column of them, for a convolution that has any."""

    weights: Buffer
    pixels: Buffer
    biases: Buffer | None
    left: Buffer
    right: Buffer
    result: Buffer


@frozen
class Design:
    """A convolution, and what its kernel is built of."""

    k: Builder
    found: Convolution
    schedule: ConvolutionSchedule
    bases: Bases
    tiling: Tiling
    x: Tensor
    weight: Tensor
    bias: Tensor | None
    target: Tensor | Ring
    buffers: Buffers

    @property
    def block(self) -> int:
        """Elements of a block, which are the columns of a fractal."""
        return BLOCK_BYTES // self.x.item_bytes


def build(
    found: Convolution,
    schedule: ConvolutionSchedule,
    chip: Chip,
    behind: Behind | None = None,
) -> CubeKernel:
    """The kernel of a legal schedule; ``behind``: what vector cores do to its results."""
    is_handed = behind is not None
    note = "The cube core: products, handed over to the vector cores result by result."
    k = Builder(note if is_handed else "Convolutions as products of weights and shifted pixels.")
    design = _design(k, found, schedule, chip, is_handed=is_handed)
    with k.cores("index", design.tiling.total) as index:
        place = _place(design, k, index)
        if found.frame is None:
            _panels(design, _tile(design, k, place))
        else:
            with k.where(_has_pixels(design, place)):
                _panels(design, _tile(design, k, place))
    frames = design.tiling.frames
    before = None if frames is None else framing(found, frames, chip)
    return CubeKernel(k.kernel(), _takes(design) if is_handed else (), behind, before)


def _design(
    k: Builder, found: Convolution, schedule: ConvolutionSchedule, chip: Chip, *, is_handed: bool
) -> Design:
    ctype, size = CPP_TYPE[found.dtype], ITEM_SIZE[found.dtype]
    bases = bases_of(schedule)
    x = k.input("x", "workspace" if found.frame is not None else camel(found.x), ctype, size)
    weight = k.input("weight", camel(found.weight), ctype, size)
    bias = k.input("bias", camel(found.bias), ctype, size) if found.bias is not None else None
    tiling = tiling_of(k, found, schedule, bases, chip)
    if is_handed:
        places = Constant("HANDED", 2 * schedule.parts, "results of a cube core in the workspace at a time")
        target: Tensor | Ring = k.ring("y", ctype, size, places, bases.m * bases.n)
    else:
        target = k.output("y", "output", ctype, size)
    buffers = _buffers(found, schedule, bases, ctype, size)
    return Design(k, found, schedule, bases, tiling, x, weight, bias, target, buffers)


def _buffers(
    found: Convolution, schedule: ConvolutionSchedule, bases: Bases, ctype: str, size: int
) -> Buffers:
    def of(name: str, elements: Expr, stages: int, memory: Memory) -> Buffer:
        return Buffer(name, ctype, size, elements, stages, memory=memory)

    slots, depth = schedule.slots, Constant("DEPTH", depth_of(found), "of all weights of an output channel")
    if schedule.stay:
        weights = of("weights", bases.m * round_up(depth, WHOLE), 1, Memory.L1)
    else:
        weights = of("weights", bases.m * bases.panel_k, slots, Memory.L1)
    block = BLOCK_BYTES // size
    return Buffers(
        weights,
        of("pixels", bases.parts * bases.n * bases.panel_k, slots, Memory.L1),
        None if found.bias is None else of("biases", bases.m * block, slots, Memory.L1),
        of("weightStep", bases.m * bases.k, 2, Memory.L0A),
        of("pixelStep", bases.n * bases.k, 2, Memory.L0B),
        Buffer("result", "float", 4, bases.m * bases.n, schedule.parts, memory=Memory.L0C),
    )


# -- tiles ----------------------------------------------------------------------------------------


def _place(design: Design, k: Builder, index: Var) -> Place:
    """Tiles of the same output channels follow each other, or those of the same pixels."""
    tiling, frames = design.tiling, design.tiling.frames
    tiles, counts = tiling.tiles, tiling.counts
    chunk = None
    number: Expr = index
    if frames is not None:
        chunk = k.let("chunk", index // frames.of_chunk, U64)
        number = k.let("number", index % frames.of_chunk, U64)
    if design.schedule.outputs_first:
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
    steps, found = tiling.steps, design.found
    source = (
        (image * found.groups + group) * counts.channels * steps.channel
        + plane * found.stride[0] * steps.plane
        + row * found.stride[1] * steps.row
        + column
    )
    return Place(group, output, image, plane, row, column, None, source)


def _place_in_chunk(design: Design, k: Builder, output: Var, rest: Var, chunk: Var) -> Place:
    """Chunks are whole images or pieces of one; its pixels lie in a ring of chunks."""
    tiling, frames, found = design.tiling, design.tiling.frames, design.found
    assert frames is not None
    tiles, counts, steps = tiling.tiles, tiling.counts, tiling.steps
    piece = k.let("piece", chunk % frames.pieces * frames.piece_tiles, U64)
    in_piece = rest % frames.piece_tiles
    row: Var | Int
    if is_cut_across(found):
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
        inside = (row - piece * tiles.rows) * found.stride[1] * steps.row + column
    own = k.let("own", rest % frames.images, U64)
    group = k.let("group", rest // frames.images, U64)
    source = (
        chunk % frames.ring * frames.chunk_elements
        + (own * found.groups + group) * counts.channels * steps.channel
        + plane * found.stride[0] * steps.plane
        + inside
    )
    image = k.let("image", own + chunk // frames.pieces * frames.images, U64)
    return Place(group, output, image, plane, row, column, chunk, source)


def _has_pixels(design: Design, place: Place) -> Condition:
    """Pieces of images end beyond them, and the last chunk has fewer of them."""
    counts, (_, height, width) = design.tiling.counts, design.tiling.counts.made
    inside: Expr = Choice(place.column, "<", width, Int(1), Int(0))
    if isinstance(place.row, Var):
        inside = Choice(place.row, "<", height, inside, Int(0))
    return Condition(Choice(place.image, "<", counts.batch, inside, Int(0)), "==", Int(1))


def _tile(design: Design, k: Builder, place: Place) -> Tile:
    tiling, tiles = design.tiling, design.tiling.tiles
    _, height, width = tiling.counts.made
    outputs = k.let("outputs", least(tiling.counts.outputs - place.output, tiles.m))
    rows = k.let("rows", least(height - place.row, tiles.rows))
    wide = k.let("width", least(width - place.column, tiles.width))
    pitch = k.let("pitch", Choice(tiles.pitch, ">", Int(0), tiles.pitch, round_up(wide, WHOLE)))
    last = k.let("lastColumn", (rows - 1) * pitch + wide)
    return Tile(place, outputs, rows, wide, pitch, last, k.let("columns", round_up(last, WHOLE)))


# -- panels ---------------------------------------------------------------------------------------


def _panels(design: Design, tile: Tile) -> None:
    """Results beside each other take turns at each panel, so that one is stored while the next is
    computed."""
    k, most, depth = design.k, design.bases.panel_k, design.tiling.counts.depth
    with k.loop("panel", ceil_div(depth, most), U64) as panel:
        start = k.let("start", panel * most, U64)
        count = k.let("depth", least(depth - start, most))
        _load(design, tile, panel, start, count)
        with k.pieces("first", (0, tile.columns), design.tiling.tiles.part_columns) as (first, columns):
            with k.sum(panel, _LANE):
                if design.buffers.biases is not None:
                    with k.when(panel, "==", 0):
                        _begin_with_biases(design, tile, columns)
                _add_steps(design, tile, (start, count), first, columns)
            with k.stored():
                _store(design, tile, first)


def _load(design: Design, tile: Tile, panel: Var, start: Var, count: Var) -> None:
    k, tiling, place, buffers = design.k, design.tiling, tile.place, design.buffers
    channel = place.group * tiling.counts.outputs + place.output
    depth = tiling.counts.depth
    if place.chunk is not None and tiling.frames is not None:
        k.do(Reach(place.chunk, tiling.frames.chunks))
    if design.schedule.stay:
        with k.kept(buffers.weights, channel):
            source = Region(design.weight, channel * depth)
            k.do(Nd2Nz(whole(buffers.weights), source, tile.outputs, depth, depth))
    if buffers.biases is not None and design.bias is not None:
        with k.when(panel, "==", 0), k.kept(buffers.biases, channel):
            k.do(Nd2Nz(whole(buffers.biases), Region(design.bias, channel), tile.outputs, Int(1), Int(1)))
    if not design.schedule.stay:
        source = Region(design.weight, channel * depth + start)
        k.do(Nd2Nz(whole(buffers.weights), source, tile.outputs, count, depth))
    _load_pixels(design, tile, start, count)


def _load_pixels(design: Design, tile: Tile, start: Var, count: Var) -> None:
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
            source = k.let("source", tile.place.source + _tap(design, place), U64)
            _copy_taps(design, tile, (place - start) * design.block, source, taps, height)


def _tap(design: Design, place: Var) -> Expr:
    """Where a channel's tap lies from the first pixel on."""
    k, found, steps = design.k, design.found, design.tiling.steps
    depth, height, width = found.kernel
    if found.rows_first:
        of_row = k.let("ofRow", design.tiling.counts.channels * (depth * width), U64)
        down = place // of_row
        channel = place % of_row // (depth * width)
        tap = k.let("tap", place % (depth * width))
        behind = tap // width
    else:
        channel = place // (depth * height * width)
        tap = k.let("tap", place % (depth * height * width))
        behind = tap // (height * width)
        down = tap // width % height
    across: Expr = tap % width * steps.across
    if found.phases > 1:
        right = k.let("right", tap % width * (found.dilation[2].constant or 1))
        across = right % found.phases * (steps.row // found.phases) + right // found.phases
    return channel * steps.channel + behind * steps.behind + down * steps.down + across


def _copy_taps(design: Design, tile: Tile, place: Expr, source: Var, taps: Var, height: Var) -> None:
    """Taps at equal distances: rows of the panel below each other."""
    k, steps, panel = design.k, design.tiling.steps, at(design.buffers.pixels, place)
    found, one = design.found, Int(1)
    is_run = Choice(tile.rows, "==", one, one, design.tiling.tiles.pitch)
    from_ = Region(design.x, source)
    with k.when(is_run, ">", 0):  # one run of memory
        step = Choice(taps, ">", one, steps.run_step, tile.last)
        k.do(Nd2NzMatrices(panel, from_, one, taps, tile.last, Int(0), step, height, one, Int(0)))
    with k.otherwise():
        apart = Choice(taps, ">", one, steps.run_step, Int(0))
        pitch, row_step = steps.row * found.stride[1], tile.pitch // design.block * height
        k.do(Nd2NzMatrices(panel, from_, taps, tile.rows, tile.width, apart, pitch, height, row_step, one))


# -- products -------------------------------------------------------------------------------------


def _add_steps(design: Design, tile: Tile, along: tuple[Var, Var], first: Var, columns: Var) -> None:
    """The panels of a turn, step by step."""
    k, buffers, (start, depth) = design.k, design.buffers, along
    note = "The panels of a turn, step by step, into one of the sums."
    with k.section("AddSteps", note), k.pieces("place", (0, depth), design.bases.k) as (place, count):
        rows = Span(Int(0), tile.outputs, tile.outputs)
        if design.schedule.stay:
            of = Constant("DEPTH", depth_of(design.found), "of all weights of an output channel")
            across = Span(k.let("along", start + place), count, of)
        else:
            across = Span(place, count, depth)
        k.do(LoadData(whole(buffers.left), whole(buffers.weights), rows, across, turned=False))
        pixels = at(buffers.pixels, first * round_up(depth, WHOLE))
        down, all_ = Span(place, count, depth), Span(Int(0), columns, columns)
        k.do(LoadData(whole(buffers.right), pixels, down, all_, turned=True))
        operands = whole(buffers.result), whole(buffers.left), whole(buffers.right)
        k.do(Mmad(*operands, tile.outputs, columns, count))


def _begin_with_biases(design: Design, tile: Tile, columns: Var) -> None:
    k, buffers, one = design.k, design.buffers, Span(Int(0), Int(1), Int(1))
    assert buffers.biases is not None
    note = "The product of the column of biases with a row of ones, onto which the steps add."
    with k.section("BeginWithBiases", note):
        rows = Span(Int(0), tile.outputs, tile.outputs)
        k.do(LoadData(whole(buffers.left), whole(buffers.biases), rows, one, turned=False))
        k.do(InitConst(whole(buffers.right), columns // WHOLE, 1))
        operands = whole(buffers.result), whole(buffers.left), whole(buffers.right)
        k.do(Mmad(*operands, tile.outputs, columns, Int(1), begins=True))


# -- results --------------------------------------------------------------------------------------


@frozen
class Pixels:
    """Pixels of one result: some rows of a tile, or a part of its only row."""

    row: Var
    column: Var
    rows: Var
    width: Var


def _pixels(design: Design, k: Builder, tile: Tile, first: Var) -> Pixels:
    tiles = design.tiling.tiles
    columns: Param = tiles.part_columns

    def cut(one: Expr, several: Expr) -> Expr:
        return Choice(tile.width, ">", columns, one, several)

    row = k.let("firstRow", cut(Int(0), first // tile.pitch))
    column = k.let("firstColumn", cut(first, Int(0)))
    rows = k.let("rowsOf", cut(Int(1), least(tile.rows - row, tiles.part_rows)))
    return Pixels(row, column, rows, k.let("widthOf", cut(least(tile.width - first, columns), tile.width)))


def _pixel(design: Design, tile: Tile, part: Pixels) -> tuple[Expr, Expr]:
    """The channel over all images, and the first pixel."""
    place, counts = tile.place, design.tiling.counts
    channel = (place.image * design.found.groups + place.group) * counts.outputs + place.output
    row = place.plane * counts.made[1] + place.row + part.row
    return channel, row * counts.made[2] + place.column + part.column


def _store(design: Design, tile: Tile, first: Var) -> None:
    """One result, without the gaps between rows."""
    k, found, counts = design.k, design.found, design.tiling.counts
    with k.section("StorePixels", "One result, without the gaps between rows."):
        part = _pixels(design, k, tile, first)
        if isinstance(design.target, Ring):
            offset, pitch = expr(0), part.rows * part.width
        else:
            channel, pixel = _pixel(design, tile, part)
            offset, pitch = channel * counts.pixels + pixel, counts.pixels
        sizes = (tile.outputs, part.width, tile.outputs, pitch)
        shape = (part.rows, tile.pitch, part.width)
        target, source = Region(design.target, offset), whole(design.buffers.result)
        k.do(Fixpipe(target, source, *sizes, QUANT[found.dtype], found.relu, *shape))


def _takes(design: Design) -> tuple[Node, ...]:
    """The loops in which vector cores take results up."""
    k = Builder("")
    with k.cores("index", design.tiling.total) as index:
        tile = _tile(design, k, _place(design, k, index))
        with k.pieces("first", (0, tile.columns), design.tiling.tiles.part_columns) as (first, _):
            part = _pixels(design, k, tile, first)
            k.do(Take(*_pixel(design, tile, part), tile.outputs, part.rows * part.width))
    return k.kernel().body
