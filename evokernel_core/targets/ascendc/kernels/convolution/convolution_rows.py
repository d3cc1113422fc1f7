"""The kernel of a convolution whose rows stay in L1 for all rows of the kernel that they meet: each core goes
down its strips, so that a tile finds the rows that it shares with the one above."""

from __future__ import annotations

from functools import partial

from attrs import frozen

from evokernel_core.compiler.problems.convolution import Convolution
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import FRACTAL
from evokernel_core.targets.ascendc.ir.builder import Builder, at, whole
from evokernel_core.targets.ascendc.ir.cube import MOST_PITCH, LoadData, Mmad, Nd2Nz, Nd2NzMatrices
from evokernel_core.targets.ascendc.ir.expr import (
    FIRST_OF_CORE,
    U32,
    U64,
    Choice,
    Condition,
    Constant,
    CubeSpan,
    Expr,
    Int,
    Param,
    Size,
    Var,
    ceil_div,
    equal,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Memory, Region
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
from evokernel_core.targets.ascendc.kernels.convolution.convolution_rows_schedule import RowsSchedule, halo
from evokernel_core.targets.ascendc.kernels.convolution.convolution_tiling import ConvTiling
from evokernel_core.targets.ascendc.kernels.convolution.epilogue import Taker
from evokernel_core.targets.ascendc.kernels.convolution.fields import (
    WHOLE,
    Bases,
    ConvTiles,
    Counts,
    bases_of,
    counts_of,
    steps_of,
)
from evokernel_core.targets.ascendc.kernels.stage import KernelStage, with_vectors
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_TURNS = 2
"""Tiles whose rows L1 holds."""


@frozen
class _Ring:
    """The ring of rows: ``inner`` channels and taps of one row of the kernel, ``height`` in whole fractals;
    ``below``: rows below a row that its taps reach. ``rows`` of it; ``is_run``: they are as far apart in
    memory; ``at_once``: those that one copy fetches."""

    inner: Constant
    height: Constant
    taps: Constant
    below: Constant
    rows: Param
    is_run: Param
    at_once: Param


def build(problem: Convolution, schedule: RowsSchedule, behind: Taker | None = None) -> KernelStage:
    """The kernel of a legal schedule; ``behind``: what vector cores do to its results."""
    is_handed = behind is not None
    note = "The cube core: products, passed to the vector cores result by result."
    k = Builder(note if is_handed else "Convolutions whose rows stay in L1 for all rows of the kernel.")
    design, ring = _design(k, problem, schedule, is_handed=is_handed)

    def tile_of(builder: Builder, index: Var) -> ConvTile:
        return extent_of(design, builder, _place(design, builder, index))

    with k.cores("index", design.tiling.total, in_a_row=True) as index:
        tile = tile_of(k, index)
        with k.loop("panel", 1, U64) as panel:
            _turn(design, ring, tile, (index, panel))
    if behind is None:
        return KernelStage(k.kernel())
    return with_vectors(k.kernel(), behind(design, partial(taking, tile_of, design, in_a_row=True)))


def _design(
    k: Builder, problem: Convolution, schedule: RowsSchedule, *, is_handed: bool
) -> tuple[ConvDesign, _Ring]:
    height = Constant("HEIGHT", -(-problem.inner // FRACTAL) * FRACTAL, "of a panel, in whole fractals")
    bases = bases_of(schedule, height)
    x, weight, bias, target = operands(k, problem, bases, is_handed=is_handed)
    tiling, ring = _tiling(k, problem, schedule, bases)
    ctype, size = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
    held = Constant("RING_N", schedule.ring_n, "pixels that L1 holds for each channel and tap of a row")
    weights = bases.m * ring.taps * height
    pixels = held // _TURNS * height
    buffers = buffers_of(
        problem,
        bases,
        Buffer("weights", ctype, size, weights, memory=Memory.L1),
        Buffer("pixels", ctype, size, pixels, _TURNS, memory=Memory.L1, joined=True),
    )
    return ConvDesign(k, problem, bases, tiling, x, weight, bias, target, buffers), ring


# -- the tiling -----------------------------------------------------------------------------------


def _tiling(
    k: Builder, problem: Convolution, schedule: RowsSchedule, bases: Bases
) -> tuple[ConvTiling, _Ring]:
    counts = counts_of(k, problem)
    width = Size(problem.read[2])
    row = k.param("rowStride", width * problem.phases, "elements of x from row to row")
    tiles, ring = _tiles(k, problem, schedule, bases, counts, row)
    of_outputs = counts.batch * k.param("tilesOfImage", counts.made[0] * tiles.down * tiles.across)
    total = k.param("tiles", problem.groups * tiles.of_outputs * of_outputs)
    note = "from plane to plane, and from channel to channel"
    plane = k.param("planeStride", Size(problem.read[1]) * row, note)
    channel = k.param("channelStride", Size(problem.read[0]) * plane)
    steps = steps_of(k, problem, counts, width, (row, plane, channel))
    return ConvTiling(counts, steps, tiles, of_outputs, total, None), ring


def _tiles(
    k: Builder, problem: Convolution, schedule: RowsSchedule, bases: Bases, counts: Counts, row: Param
) -> tuple[ConvTiles, _Ring]:
    """Wide rows are cut; of narrow ones several make a tile. L1 holds the rows of two tiles."""
    below = Constant("HALO", halo(problem), "rows below a row that its taps reach")
    most = schedule.ring_n // (_TURNS * (1 + below.value)) // FRACTAL * FRACTAL
    widest = Constant("WIDEST", min(schedule.base_n, most), "columns of a tile of one row")
    narrow = Constant("NARROW", min(schedule.part_n, most), "columns of a row of which a tile has several")
    (_, height, width), n, parts = counts.made, bases.n, bases.parts
    m = k.param("tileM", round_up(equal(counts.outputs, bases.m), WHOLE), "", U32)
    of_outputs = k.param("tilesM", ceil_div(counts.outputs, m), "", U32)
    fits = Choice(row, "<=", narrow, Int(1), Int(0))
    run = Choice(row % WHOLE, "==", Int(0), fits, Int(0))
    is_run = k.param("isRun", run, "rows as far apart in memory", U32)
    own = k.param("rowPitch", Choice(is_run, ">", Int(0), row, round_up(width, WHOLE)), "of whole rows", U32)

    def wide(cut: Expr, uncut: Expr) -> Expr:
        return Choice(own, ">", narrow, cut, uncut)

    tile_w = k.param("tileW", wide(round_up(equal(width, widest), WHOLE), width), "", U32)
    pitch = k.param("panelPitch", wide(tile_w, own), "columns from row to row in L1", U32)
    held = Constant("RING_N", schedule.ring_n, "pixels that L1 holds for each channel and tap of a row")
    of_part = k.param("mostRows", n // pitch, "of a part", U32)
    of_tile = k.param("mostTileRows", least(parts * of_part, held // pitch // _TURNS - below), "", U32)
    rows = k.param("tileRows", wide(Int(1), equal(height, of_tile)), "of the result in one tile", U32)
    part_rows = k.param("partRows", wide(Int(1), equal(rows, of_part)), "", U32)
    cut = Choice(tile_w, ">", n, round_up(ceil_div(tile_w, parts), WHOLE), tile_w)
    note = "columns of a part, the gaps between rows included"
    columns = k.param("partColumns", wide(cut, part_rows * pitch), note, U32)
    down = k.param("tilesRows", ceil_div(height, rows), "", U32)
    across = k.param("tilesW", ceil_div(width, tile_w), "", U32)
    ring_rows = k.param("ringRows", _TURNS * (rows + below), "rows that L1 holds", U32)
    at_once = k.param("rowsAtOnce", Choice(row, ">", MOST_PITCH, Int(1), ring_rows), "of one copy", U32)
    inner = Constant("INNER", problem.inner, "channels and taps of one row of the kernel")
    taps = Constant("KERNEL_H", problem.kernel[1])
    ring = _Ring(inner, bases.panel_k, taps, below, ring_rows, is_run, at_once)
    return ConvTiles(m, tile_w, rows, pitch, part_rows, columns, of_outputs, down, across), ring


# -- tiles ----------------------------------------------------------------------------------------


def _place(design: ConvDesign, k: Builder, index: Var) -> TapOffset:
    """Tiles of a strip follow each other."""
    tiles, counts, steps, problem = (
        design.tiling.tiles,
        design.tiling.counts,
        design.tiling.steps,
        design.problem,
    )
    row = k.let("row", index % tiles.down * tiles.rows, U64)
    strip = k.let("strip", index // tiles.down, U64)
    column = k.let("column", strip % tiles.across * tiles.width, U64)
    planes = k.let("planes", strip // tiles.across, U64)
    plane = k.let("plane", planes % counts.made[0], U64)
    images = k.let("images", planes // counts.made[0], U64)
    image = k.let("image", images % counts.batch, U64)
    rest = k.let("rest", images // counts.batch, U64)
    output = k.let("output", rest % tiles.of_outputs * tiles.m, U64)
    group = k.let("group", rest // tiles.of_outputs, U64)
    source = (
        (image * problem.groups + group) * counts.channels * steps.channel
        + plane * problem.stride[0] * steps.plane
        + column
    )
    return TapOffset(group, output, image, plane, row, column, None, source)


def _turn(design: ConvDesign, ring: _Ring, tile: ConvTile, turn: tuple[Var, Var]) -> None:
    """One tile: the rows that the one above had not are loaded, and all rows of the kernel multiplied."""
    k, (index, panel), counts = design.k, turn, design.tiling.counts
    place = tile.place
    # Strips lie in the ring as if one were below the other, behind as many rows as tiles share: so the second
    # tile's rows end where the ring does, and fewer copies are cut there.
    strips = index // design.tiling.tiles.down
    ring_row = k.let("ringRow", (strips * (counts.made[1] + ring.below) + ring.below + place.row) % ring.rows)
    is_first = Choice(index, "==", FIRST_OF_CORE, Int(0), Choice(place.row, "==", Int(0), Int(0), ring.below))
    known = k.let("known", is_first)
    channel = place.group * counts.outputs + place.output
    _keep_weights(design, ring, tile, channel)
    keep_biases(design, tile, channel)
    _fetch_rows(design, ring, tile, ring_row, known)
    with k.pieces("first", (0, tile.columns), design.tiling.tiles.part_columns) as (first, columns):
        with k.sum(panel, LANE):
            _add_rows(design, ring, tile, ring_row, (first, columns))
            if design.buffers.biases is not None:
                with k.where(_is_cut(ring, tile, ring_row)):
                    k.fence("M")
                end_with_biases(design, tile, columns)
        with k.stored():
            store(design, tile, first)


# -- loads ----------------------------------------------------------------------------------------


def _keep_weights(design: ConvDesign, ring: _Ring, tile: ConvTile, channel: Expr) -> None:
    """For each row of the kernel a matrix as deep as a whole number of fractals."""
    k, weights = design.k, design.buffers.weights
    with k.kept(weights, channel), k.loop("down", ring.taps) as down:
        target = at(weights, down * ring.height * round_up(tile.outputs, WHOLE))
        source = Region(design.weight, (channel * ring.taps + down) * ring.inner)
        k.do(Nd2Nz(target, source, tile.outputs, ring.inner, ring.taps * ring.inner))


def _fetch_rows(design: ConvDesign, ring: _Ring, tile: ConvTile, ring_row: Var, known: Var) -> None:
    """Rows of the input that the tile needs, but for those that the tile above had: once more where they go
    on at the start of the ring."""
    k = design.k
    note = "Rows of the input that the tile needs and the tile above had not."
    with k.section("FetchRows", note):
        needed = k.let("needed", tile.rows + ring.below - known)
        start = k.let("startRow", (ring_row + known) % ring.rows)
        before = k.let("beforeEnd", least(needed, ring.rows - start))
        with k.loop("round", Choice(before, "<", needed, Int(2), Int(1))) as round_:
            count = k.let("count", Choice(round_, "==", Int(0), before, needed - before))
            place = k.let("place", Choice(round_, "==", Int(0), start, Int(0)))
            row = k.let("inputRow", tile.place.row + known + round_ * before, U64)
            with k.pieces("line", (0, count), ring.at_once) as (line, rows):
                _copy_rows(design, ring, tile, row + line, (place + line, rows))


def _copy_rows(design: ConvDesign, ring: _Ring, tile: ConvTile, row: Expr, target: tuple[Expr, Var]) -> None:
    k, steps, (place, rows), one = design.k, design.tiling.steps, target, Int(1)
    with k.loop("ofRuns", ceil_div(ring.inner, steps.run)) as number:
        inner = k.let("inner", number * steps.run)
        taps = k.let("taps", least(ring.inner - inner, steps.run))
        source = tile.place.source + row * steps.row + tap_of(design, inner, in_row=True)
        from_ = Region(design.x, k.let("source", source, U64))
        panel = at(design.buffers.pixels, place * tile.pitch * ring.height + inner * design.block)
        with k.when(Choice(rows, "==", one, one, ring.is_run), ">", 0):  # one run of memory
            columns = k.let("columnsOf", (rows - 1) * tile.pitch + tile.width)
            step = Choice(taps, ">", one, steps.run_step, columns)
            k.do(Nd2NzMatrices(panel, from_, one, taps, columns, Int(0), step, ring.height, one, Int(0)))
        with k.otherwise():
            apart = Choice(taps, ">", one, steps.run_step, Int(0))
            row_step = tile.pitch // design.block * ring.height
            figures = (taps, rows, tile.width, apart, steps.row, ring.height, row_step, one)
            k.do(Nd2NzMatrices(panel, from_, *figures))


# -- products -------------------------------------------------------------------------------------


def _add_rows(design: ConvDesign, ring: _Ring, tile: ConvTile, ring_row: Var, part: tuple[Var, Var]) -> None:
    """Each row of the kernel, step by step."""
    k, (first, columns) = design.k, part
    gap = design.problem.dilation[1].constant or 1
    note = "Each row of the kernel, step by step, into one of the sums."
    with k.section("AddRows", note), k.loop("down", ring.taps) as down:
        row = k.let("partRow", (ring_row + down * gap + first // tile.pitch) % ring.rows)
        start = k.let("startPixel", row * tile.pitch + first % tile.pitch)
        before = k.let("before", least(ring.rows * tile.pitch - start, columns))
        with k.pieces("place", (0, ring.inner), design.bases.k) as (place, count):
            _add_step(design, ring, tile, (ring_row, down, start), (before, columns, place, count))


def _add_step(
    design: ConvDesign,
    ring: _Ring,
    tile: ConvTile,
    at_: tuple[Var, Var, Var],
    part: tuple[Var, Var, Var, Var],
) -> None:
    """Pixels that go on at the start of the ring are loaded and multiplied apart."""
    k, buffers, (ring_row, down, start), (before, columns, place, count) = design.k, design.buffers, at_, part
    outputs = CubeSpan(Int(0), tile.outputs, tile.outputs)
    across = CubeSpan(down * ring.height + place, count, ring.taps * ring.height)
    along = CubeSpan(place, count, ring.height)
    behind = columns - before
    k.do(LoadData(whole(buffers.left), whole(buffers.weights), outputs, across, turned=False))
    pixels = at(buffers.pixels, start * ring.height)
    k.do(LoadData(whole(buffers.right), pixels, along, CubeSpan(Int(0), before, before), turned=True))
    rest = at(buffers.right, before * round_up(count, WHOLE))
    with k.when(before, "<", columns):
        k.do(LoadData(rest, whole(buffers.pixels), along, CubeSpan(Int(0), behind, behind), turned=True))
    operands_ = whole(buffers.result), whole(buffers.left), whole(buffers.right)
    k.do(Mmad(*operands_, tile.outputs, before, count))
    with k.where(_is_cut(ring, tile, ring_row)):
        k.fence("M")
    with k.when(before, "<", columns):
        target = at(buffers.result, before * round_up(tile.outputs, WHOLE))
        k.do(Mmad(target, whole(buffers.left), rest, tile.outputs, behind, count))
        k.fence("M")


def _is_cut(ring: _Ring, tile: ConvTile, ring_row: Var) -> Condition:
    """Whether rows of a tile go on at the start of the ring: those of the next row of the kernel are cut
    elsewhere, so that a product waits for those in front of it."""
    return Condition(ring_row + tile.rows + ring.below, ">", ring.rows)
