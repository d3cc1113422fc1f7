"""What both forms of convolution have: tensors, buffers, tiles, what a sum begins with, and results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import frozen

from evokernel_core.compiler.problems.convolution import Convolution
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, whole
from evokernel_core.targets.ascendc.ir.cube import Fixpipe, InitConst, LoadData, Mmad, Nd2Nz
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    CubeSpan,
    Expr,
    Int,
    Var,
    ceil_div,
    expr,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Memory, Region, Ring, Tensor
from evokernel_core.targets.ascendc.kernels.convolution.convolution_tiling import ConvTiling
from evokernel_core.targets.ascendc.kernels.convolution.fields import WHOLE, Bases
from evokernel_core.targets.ascendc.kernels.epilogue.regions import HandedRegion, HandedTile
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE
from evokernel_core.targets.ascendc.lowering.program import camel

QUANT = {"float32": "", "float16": "F322F16", "bfloat16": "F322BF16"}
"""The modes in which Fixpipe rounds float32."""
LANE = Var("firstPiece")
"""Which of a tile's results a part is: the number of its piece of the columns."""


@frozen
class TapOffset:
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
class ConvTile:
    """A tile and its extent: ``pitch`` columns from row to row in L1 and L0, ``columns`` of all rows in whole
    fractals, ``last`` without the gap behind the last."""

    place: TapOffset
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
class ConvDesign:
    """A convolution, and what its kernel is built of."""

    k: Builder
    problem: Convolution
    bases: Bases
    tiling: ConvTiling
    x: Tensor
    weight: Tensor
    bias: Tensor | None
    target: Tensor | Ring
    buffers: Buffers

    @property
    def block(self) -> int:
        """Elements of a block, which are the columns of a fractal."""
        return BLOCK_BYTES // self.x.item_bytes


def operands(
    k: Builder, problem: Convolution, bases: Bases, *, is_handed: bool
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | Ring]:
    """x, weights, biases, and where results go; ``is_handed``: vector cores take them."""
    ctype, size = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
    x = k.input("x", "workspace" if problem.frame is not None else camel(problem.x), ctype, size)
    weight = k.input("weight", camel(problem.weight), ctype, size)
    bias = k.input("bias", camel(problem.bias), ctype, size) if problem.bias is not None else None
    if not is_handed:
        return x, weight, bias, k.output("y", "output", ctype, size)
    places = Constant("HANDED", 2 * bases.parts.value, "results of a cube core in the workspace at a time")
    return x, weight, bias, k.ring("y", ctype, size, places, bases.m * bases.n)


def buffers_of(problem: Convolution, bases: Bases, weights: Buffer, pixels: Buffer) -> Buffers:
    """Those of L1 that are given, and what both forms have beside them."""
    ctype, size = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]

    def of(name: str, elements: Expr, stages: int, memory: Memory) -> Buffer:
        return Buffer(name, ctype, size, elements, stages, memory=memory)

    biases = of("biases", bases.m * (BLOCK_BYTES // size), pixels.stages, Memory.L1)
    return Buffers(
        weights,
        pixels,
        None if problem.bias is None else biases,
        of("weightStep", bases.m * bases.k, 2, Memory.L0A),
        of("pixelStep", bases.n * bases.k, 2, Memory.L0B),
        Buffer("result", "float", 4, bases.m * bases.n, bases.parts.value, memory=Memory.L0C),
    )


def extent_of(design: ConvDesign, k: Builder, place: TapOffset) -> ConvTile:
    """The tile at a place: at the ends of a result there is less of it."""
    tiling, tiles = design.tiling, design.tiling.tiles
    _, height, width = tiling.counts.made
    outputs = k.let("outputs", least(tiling.counts.outputs - place.output, tiles.m))
    rows = k.let("rows", least(height - place.row, tiles.rows))
    wide = k.let("width", least(width - place.column, tiles.width))
    pitch = k.let("pitch", Choice(tiles.pitch, ">", Int(0), tiles.pitch, round_up(wide, WHOLE)))
    last = k.let("lastColumn", (rows - 1) * pitch + wide)
    return ConvTile(place, outputs, rows, wide, pitch, last, k.let("columns", round_up(last, WHOLE)))


def tap_of(design: ConvDesign, place: Var, *, in_row: bool = False) -> Expr:
    """Where a channel's tap lies from the first pixel on; ``in_row``: of those in a row of the kernel."""
    k, problem, steps = design.k, design.problem, design.tiling.steps
    depth, height, width = problem.kernel
    down: Expr = Int(0)
    if problem.rows_first and not in_row:
        of_row = k.let("ofRow", design.tiling.counts.channels * (depth * width), U64)
        down = place // of_row
        place = k.let("placeInRow", place % of_row, U64)
    if problem.rows_first:
        height = 1
    tap = k.let("tap", place % (depth * height * width))
    channel = place // (depth * height * width)
    behind = tap // (height * width)
    if not problem.rows_first:
        down = tap // width % height
    across: Expr = tap % width * steps.across
    if problem.phases > 1:
        right = k.let("right", tap % width * (problem.dilation[2].constant or 1))
        across = right % problem.phases * (steps.row // problem.phases) + right // problem.phases
    return channel * steps.channel + behind * steps.behind + down * steps.down + across


def keep_biases(design: ConvDesign, tile: ConvTile, channel: Expr) -> None:
    """Those of a tile's output channels, unless the stage holds them."""
    biases = design.buffers.biases
    if biases is not None and design.bias is not None:
        with design.k.kept(biases, channel):
            source = Region(design.bias, channel)
            design.k.do(Nd2Nz(whole(biases), source, tile.outputs, Int(1), Int(1)))


def end_with_biases(design: ConvDesign, tile: ConvTile, columns: Var) -> None:
    """A sum ends with the biases of its output channels in so many columns: small terms that were added to
    them would be lost one by one."""
    k, buffers, one = design.k, design.buffers, CubeSpan(Int(0), Int(1), Int(1))
    assert buffers.biases is not None
    note = "The product of the column of biases with a row of ones is added to the steps."
    with k.section("EndWithBiases", note):
        rows = CubeSpan(Int(0), tile.outputs, tile.outputs)
        k.do(LoadData(whole(buffers.left), whole(buffers.biases), rows, one, turned=False))
        k.do(InitConst(whole(buffers.right), columns // WHOLE, 1))
        operands = whole(buffers.result), whole(buffers.left), whole(buffers.right)
        k.do(Mmad(*operands, tile.outputs, columns, Int(1), ends=True))


# -- results --------------------------------------------------------------------------------------


@frozen
class Pixels:
    """Pixels of one result: some rows of a tile, or a part of its only row."""

    row: Var
    column: Var
    rows: Var
    width: Var


def _pixels(design: ConvDesign, k: Builder, tile: ConvTile, first: Var) -> Pixels:
    tiles = design.tiling.tiles
    columns = tiles.part_columns

    def cut(one: Expr, several: Expr) -> Expr:
        return Choice(tile.width, ">", columns, one, several)

    row = k.let("firstRow", cut(Int(0), first // tile.pitch))
    column = k.let("firstColumn", cut(first, Int(0)))
    rows = k.let("rowsOf", cut(Int(1), least(tile.rows - row, tiles.part_rows)))
    return Pixels(row, column, rows, k.let("widthOf", cut(least(tile.width - first, columns), tile.width)))


def _pixel(design: ConvDesign, tile: ConvTile, part: Pixels) -> tuple[Expr, Expr]:
    """The channel over all images, and the first pixel."""
    place, counts = tile.place, design.tiling.counts
    channel = (place.image * design.problem.groups + place.group) * counts.outputs + place.output
    row = place.plane * counts.made[1] + place.row + part.row
    return channel, row * counts.made[2] + place.column + part.column


def store(design: ConvDesign, tile: ConvTile, first: Var) -> None:
    """One result, without the gaps between rows."""
    k, problem, counts = design.k, design.problem, design.tiling.counts
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
        k.do(Fixpipe(target, source, *sizes, QUANT[problem.dtype], problem.relu, *shape))


@contextmanager
def taking(
    tile_of: Callable[[Builder, Var], ConvTile], design: ConvDesign, k: Builder, *, in_a_row: bool = False
) -> Iterator[HandedTile]:
    """The loop in which vector cores take results up."""
    columns = design.tiling.tiles.part_columns
    with k.cores("index", design.tiling.total, in_a_row=in_a_row, with_cube=True) as index:
        tile = tile_of(k, index)

        def result(number: Expr) -> HandedRegion:
            part = _pixels(design, k, tile, k.let("first", number * columns))
            return HandedRegion(*_pixel(design, tile, part), tile.outputs, part.rows * part.width)

        yield HandedTile(ceil_div(tile.columns, columns), tile.outputs, columns, result, is_dense=True)
