"""Family paired: products of complex numbers whose parts lie side by side, as rotary embeddings take them.

Neither operand is taken apart in memory: the parts of each number change places in the unified buffer.
"""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.limits import Sharing, sharing
from evokernel_core.compiler.ops import COMPLEX_MULTIPLY, categories
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.schedule import Range, Scaled, Schedule, Shifted
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Reuse, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, at, read_as, strides, transpose
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    Expr,
    Index,
    Int,
    Size,
    Var,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Kernel
from evokernel_core.targets.ascendc.kernels.built import always, among, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS

_FLOAT = 4
_SQUARE = 128
"""Elements that are transposed at a time; the rest of a tile is gathered."""
_TILES = (512, 1024, 2048, 4096, 6144, 7168)


@frozen
class Paired:
    """The operands' names, and the grid."""

    x: str
    w: str
    grid: Sharing


@frozen
class ComplexMultiplySchedule(Schedule):
    """Most float32 elements of a tile with its factors, and how many tiles are under way."""

    tile: Annotated[int, Range(0, unit=_SQUARE), Scaled("larger tiles", "smaller tiles")]
    buffers: Annotated[int, BUFFERS, Shifted("one more tile under way", "one tile less under way")]


def read_paired(task: KernelTask) -> Paired:
    """The one product of a task. Raises PlanError where the task is anything else."""
    node = only_node(
        task, {COMPLEX_MULTIPLY.name}, Sentence("The kernel is not exactly one product of complex numbers.")
    )
    x, w = node.operands()
    grid = sharing(task.graph.spec(x).shape[:-1], task.graph.spec(w).shape[:-1])
    if grid is None:
        raise PlanError("The factors of a product of complex numbers are shared in no regular way.")
    names = [input_below(task.graph, ref, Sentence("a product of complex numbers")) for ref in (x, w)]
    return Paired(names[0], names[1], grid)


_NOTE = """\
Products of complex numbers, whose real and imaginary parts lie side by side: a number x times a factor w is
(x.re, x.im) * (w.re, w.re) + (x.im, x.re) * (-w.im, w.im). Rows of a group share their factors, which come
behind the rows of a tile."""
_TURN_NOTE = """\
Both parts of each number change places. Of the transposed squares rows change places, which is only a matter
of addresses; what is left behind the squares is looked up."""
_BLOCK = Constant("BLOCK", BLOCK_BYTES // _FLOAT, "elements of 32 bytes")
_LANES = Constant("LANES", LANES, "elements of one repeat of a vector instruction")
_SIDE = Constant("SIDE", 16, "blocks that one transposition takes, and elements of each row that it gives")
_REAL = Constant("REAL_LANES", 0x5555555555555555, "of each pair the first")
_IMAGINARY = Constant("IMAGINARY_LANES", 0xAAAAAAAAAAAAAAAA)
_MOST_REPEATS = Constant("MOST_REPEATS", most_of("Mul", "repeatTime"))
_FROM_FLOATS = 2**32 // _FLOAT - 1
"""A copy of several rows counts the bytes between them in 32 bits."""


def build(problem: Paired, schedule: ComplexMultiplySchedule) -> Kernel:
    """The kernel of a schedule, whose tile has rows and the factors behind them."""
    tile = Constant("TILE", schedule.tile, "most elements of a tile, with its factors")
    k, grid = Builder(_NOTE), problem.grid
    x, w = (
        k.input(key, parameter(name), "float", _FLOAT) for key, name in (("x", problem.x), ("w", problem.w))
    )
    y = k.output("y", "output", "float", _FLOAT)
    factors = k.param("factors", Size(grid.factors), "rows of factors: group g takes row g % factors")
    groups = k.param("groups", Size(grid.outer) * factors, "of rows that are multiplied by the same factors")
    rows = k.param("rows", Size(grid.rows), "of one group")
    columns = k.param("columns", Size(grid.numbers) * 2, "floats of a row")
    for size in (groups, rows, columns):
        k.require(size, ">=", 1)
    k.require(columns, "<=", _FROM_FLOATS, "copies count the bytes between rows in 32 bits")
    # Of one row a tile takes as much as it holds; of several it takes what repeats can step over.
    half = tile // 2
    narrow = least(half, _MOST_REPEATS * _BLOCK)
    widest = k.param("widest", Choice(rows, "==", Int(1), half, narrow), "most floats of a tile's row")
    across = k.param("tilesOfColumns", ceil_div(columns, widest))
    wide = k.param("tileColumns", ceil_div(ceil_div(columns, across), _BLOCK) * _BLOCK, ctype=U32)
    highest = k.param("highest", least(tile // wide - 1, _MOST_REPEATS), "most rows of a tile")
    down = k.param("tilesOfRows", ceil_div(rows, highest), "of one group")
    high = k.param("tileRows", ceil_div(rows, down), ctype=U32)
    numbers, products = (
        Buffer(name, "float", _FLOAT, tile, schedule.buffers) for name in ("numbers", "products")
    )
    work = _Work(k, numbers, products, tile)
    work.make_table()
    with k.cores("tile", k.param("tiles", groups * down * across)) as number:
        column = k.let("column", number % across * wide, U64)
        above = k.let("above", number // across, U64)
        row = k.let("row", above % down * high, U64)
        group = k.let("group", above // down, U64)
        columns_left = k.let("columnsLeft", columns - column, U64)
        rows_left = k.let("rowsLeft", rows - row, U64)
        width, height = k.let("width", least(columns_left, wide)), k.let("height", least(rows_left, high))
        pitch = k.let("pitch", ceil_div(width, _BLOCK) * _BLOCK)
        place = k.let("place", (group * rows + row) * columns + column, U64)
        k.load(numbers, x, place, width, rows=height, apart=columns, zeros=pitch - width)
        k.load(at(numbers, height * pitch), w, group % factors * columns + column, width, zeros=pitch - width)
        work.multiply(height, pitch)
        k.store(y, place, products, width, rows=height, apart=columns)
    return k.kernel()


class _Work:
    """What is computed of a tile; the products' buffer holds transposed squares before them."""

    def __init__(self, k: Builder, numbers: Buffer, products: Buffer, tile: Constant) -> None:
        self._k, self._numbers, self._products = k, numbers, products
        self._turned = Buffer("turned", "float", _FLOAT, tile)
        self._reals, self._imaginaries = (
            Buffer(name, "float", _FLOAT, tile // 2) for name in ("reals", "imaginaries")
        )
        self._square = _SIDE * _BLOCK
        self._table = Buffer("table", "int32_t", _FLOAT, self._square)

    def make_table(self) -> None:
        """The places that look-ups of a square take."""
        k, table, count = self._k, self._table, self._square
        repeats = count // _LANES
        with k.section("MakeTable", "For each element the place of the other part of its number (bytes)."):
            k.call("CreateVecIndex", table, Converted(Int(0), "int32_t"), count, repeats=repeats)
            k.call("Muls", table, table, Converted(Int(_FLOAT), "int32_t"), count, repeats=repeats)
            real, imaginary = k.lanes("realLanes", _REAL), k.lanes("imaginaryLanes", _IMAGINARY)
            for lanes, step in ((real, _FLOAT), (imaginary, -_FLOAT)):
                self._scaled("Adds", table, table, Converted(Int(step), "int32_t"), lanes, repeats)

    def multiply(self, height: Expr, pitch: Expr) -> None:
        """Rows by the factors behind them."""
        k, x, y, turned = self._k, self._numbers, self._products, self._turned
        with k.section("Turn", _TURN_NOTE):
            self._turn((height + 1) * pitch)
        with k.section("Spread", "Real parts on both lanes of a factor; imaginary ones, the first negative."):
            self._spread(height * pitch, pitch)
        pairs = ((y, x, self._reals), (turned, turned, self._imaginaries))
        with k.when(height, "==", 1):
            for to, taken, factors in pairs:
                k.call("Mul", to, taken, factors, pitch, repeats=ceil_div(pitch, _LANES))
        with k.otherwise(), k.pieces("lane", (0, pitch), _LANES) as (lane, count):
            steps = strides("BinaryRepeatParams", 1, 1, 1, pitch // _BLOCK, pitch // _BLOCK, 0)
            for to, taken, factors in pairs:
                parts = at(to, lane), at(taken, lane), at(factors, lane)
                k.call("Mul", *parts, count, Converted(height, "uint8_t"), steps, repeats=height)
        k.call("Add", y, y, turned, height * pitch, repeats=ceil_div(height * pitch, _LANES))

    def _turn(self, count: Expr) -> None:
        k, square, word = self._k, self._square, Var("k")
        row, half = word // 2, word % 2 * _BLOCK
        squares, rest = k.let("squares", count // square), k.let("rest", count % square)
        with k.when(squares, ">", 0):
            with k.section("ToRows", "Blocks to a row for each element of a block; two rows change places."):
                swapped = at(self._products, (row + 1 - row % 2 * 2) * _SIDE + half)
                taken = at(self._numbers, word * _BLOCK)
                transpose(k, (swapped, _SIDE), (taken, _SIDE), word, squares)
            with k.section("ToBlocks", "Such rows to blocks."):
                taken = at(self._products, word % _BLOCK * _SIDE + word // _BLOCK * _BLOCK)
                made = at(self._turned, (row + half) * _BLOCK)
                transpose(k, (made, _SIDE), (taken, _SIDE), word, squares)
        with k.when(rest, ">", 0):
            begin, places = k.let("begin", squares * square), read_as("uint32_t", self._table)
            to, taken = at(self._turned, begin), at(self._numbers, begin)
            k.call("Gather", to, taken, places, 0, rest, repeats=ceil_div(rest, _LANES))

    def _spread(self, start: Expr, count: Expr) -> None:
        k = self._k
        whole, rest = k.let("whole", count // _LANES), k.let("rest", count % _LANES)
        with k.when(whole, ">", 0):
            self._spread_lanes(start, Int(0), whole, 0)
        with k.when(rest, ">", 0):
            self._spread_lanes(start, whole * _LANES, Int(1), _LANES - rest)

    def _spread_lanes(self, start: Expr, begin: Expr, repeats: Expr, without: Index) -> None:
        """Repeats without the last lanes."""
        k, one = self._k, Converted(Int(1), "float")
        real, imaginary = (
            k.lanes("realLanes", _REAL >> without),
            k.lanes("imaginaryLanes", _IMAGINARY >> without),
        )
        own, other = at(self._numbers, start + begin), at(self._turned, start + begin)
        reals, imaginaries = at(self._reals, begin), at(self._imaginaries, begin)
        self._scaled("Muls", reals, own, one, real, repeats)
        self._scaled("Muls", reals, other, one, imaginary, repeats)
        self._scaled("Muls", imaginaries, other, Converted(Int(-1), "float"), real, repeats)
        self._scaled("Muls", imaginaries, own, one, imaginary, repeats)

    def _scaled(self, key: str, to: Place, taken: Place, by: Converted, lanes: Var, repeats: Expr) -> None:
        """Whole repeats, of each the lanes."""
        steps = strides("UnaryRepeatParams", 1, 1, _LANES // _BLOCK, _LANES // _BLOCK)
        self._k.call(key, to, taken, by, lanes, Converted(repeats, "uint8_t"), steps, repeats=repeats)


FAMILY = SearchingFamily(
    variant=variant_of(build),
    name="paired",
    ops=categories(COMPLEX_MULTIPLY),
    read=on_any_chip(read_paired),
    schedule_of=ComplexMultiplySchedule.of,
    starts=among(ComplexMultiplySchedule(tile, 2) for tile in _TILES),
    notes=always(
        (
            Sentence("Tiles of {tile} elements, {buffers} under way."),
            Sentence("The parts of a number stay together; transpositions let them change places."),
        )
    ),
    cell=always(Descriptor(Dataflow.STREAMED, Reuse.NONE, Split.ELEMENTS, Algorithm.TRANSPOSE)),
)
