"""What kernels of products are made of: fields of the tiling, buffers, tiles, and what is done with them."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.problems.products import QUANT, Product, Side
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.ir.builder import Builder, at, whole
from evokernel_core.targets.ascendc.ir.cube import Fixpipe, InitConst, LoadData, Mmad, Nd2Nz
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Constant,
    CubeSpan,
    Expr,
    Function,
    Index,
    Int,
    Param,
    Size,
    Var,
    ceil_div,
    expr,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Memory, Region, Ring, Tensor
from evokernel_core.targets.ascendc.kernels.matmul.matmul_schedule import MatmulSchedule
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE
from evokernel_core.targets.ascendc.lowering.program import camel

_FRACTAL = Constant("FRACTAL", FRACTAL)
_SLOTS = 2
"""One panel or step is filled while the other is used."""


@frozen
class Bases:
    """The numbers of a schedule."""

    m: Constant
    n: Constant
    k: Constant
    panel_k: Constant
    parts: Constant
    strip: Constant


@frozen
class MatmulTiling:
    """What ComputeTiling computes: sizes, the tiles that they are cut into, how many tiles there are, and
    where k is cut, how deep a part is and how many there are."""

    m: Param
    n: Param
    k: Param
    tiles_m: Param
    tiles_n: Param
    tile_m: Param
    tile_n: Param
    part_n: Param
    strip: Param
    tiles: Param
    splits: Constant | None
    k_part: Param | None


@frozen
class OperandPanels:
    """One side: its tensor, elements from row to row, where its matrix begins (none where there is one
    alone), and where it lies in L1 and in L0."""

    side: Side
    tensor: Tensor
    pitch: Param
    start: Function | None
    panel: Buffer
    step: Buffer


@frozen
class BiasPanel:
    """The numbers with which the columns of a result begin, and where they lie in L1: a row of fractals."""

    tensor: Tensor
    panel: Buffer


@frozen
class MatmulTile:
    """One tile of the result."""

    matrix: Var
    row: Var
    column: Var
    rows: Var
    columns: Var


@frozen
class ResultPart:
    """A turn of the panels along k, and those columns of a tile that are one of its results."""

    panel: Var
    panels: Var
    depth: Var
    first: Var
    columns: Var


@frozen
class MatmulDesign:
    """A product, and what its kernel is built of."""

    k: Builder
    problem: Product
    tiling: MatmulTiling
    bases: Bases
    a: OperandPanels
    b: OperandPanels
    bias: BiasPanel | None
    result: Buffer
    target: Tensor | Ring

    def tile(self, k: Builder, index: Var) -> MatmulTile:
        """Tiles run down a strip and then to the right, so that those at work at a time share rows and
        columns."""
        sizes = self.tiling
        of_matrix = sizes.tiles_m * sizes.tiles_n
        matrix = k.let("matrix", index // of_matrix, U64)
        place = k.let("place", index % of_matrix, U64)
        top = k.let("top", place // (sizes.strip * sizes.tiles_n) * sizes.strip, U64)
        inside = k.let("inside", place - top * sizes.tiles_n, U64)
        height = k.let("height", least(sizes.tiles_m - top, sizes.strip), U64)
        row = k.let("row", (top + inside % height) * sizes.tile_m, U64)
        column = k.let("column", inside // height * sizes.tile_n, U64)
        rows = k.let("rows", least(sizes.m - row, sizes.tile_m))
        return MatmulTile(matrix, row, column, rows, k.let("columns", least(sizes.n - column, sizes.tile_n)))

    def load(self, tile: MatmulTile, start: Var, depth: Var) -> None:
        """A panel of each operand into L1. Rows of memory run along k, or across it."""
        k, a, b = self.k, self.a, self.b
        across = (start, depth, tile.row, tile.rows)
        along = (tile.row, tile.rows, start, depth)
        row, rows, column, columns = across if a.side.transposed else along
        k.do(Nd2Nz(whole(a.panel), self._place(a, tile, row, column), rows, columns, a.pitch))
        if not b.side.transposed:
            source = self._place(b, tile, start, tile.column)
            k.do(Nd2Nz(whole(b.panel), source, depth, tile.columns, b.pitch))
            return
        with k.pieces("first", (0, tile.columns), self.tiling.part_n) as (first, count):
            source = self._place(b, tile, tile.column + first, start)
            k.do(Nd2Nz(at(b.panel, first * self.bases.panel_k), source, count, depth, b.pitch))

    def load_bias(self, tile: MatmulTile) -> None:
        """The numbers of a tile's columns, unless the stage holds them."""
        if self.bias is not None:
            with self.k.kept(self.bias.panel, tile.column):
                source = Region(self.bias.tensor, tile.column)
                self.k.do(Nd2Nz(whole(self.bias.panel), source, Int(1), tile.columns, tile.columns))

    def end_with_bias(self, tile: MatmulTile, part: ResultPart) -> None:
        """A sum ends with the numbers of its columns in every row: small terms that were added to them would
        be lost one by one."""
        k, one = self.k, CubeSpan(Int(0), Int(1), Int(1))
        assert self.bias is not None
        note = "The product of a column of ones with the row of biases is added to the steps."
        with k.section("EndWithBias", note):
            k.do(InitConst(whole(self.a.step), ceil_div(tile.rows, _FRACTAL), 1))
            some = CubeSpan(part.first, part.columns, tile.columns)
            k.do(LoadData(whole(self.b.step), whole(self.bias.panel), one, some, turned=True))
            operands = whole(self.result), whole(self.a.step), whole(self.b.step)
            turned = self.a.side.transposed
            k.do(Mmad(*operands, tile.rows, part.columns, Int(1), turned, ends=True))

    def _place(self, operand: OperandPanels, tile: MatmulTile, row: Expr, column: Expr) -> Region:
        """Where a row and a column of memory lie in the matrix of a tile."""
        place = row * operand.pitch + column
        if operand.start is not None:
            splits = self.tiling.splits
            place = operand.start(tile.matrix if splits is None else tile.matrix // splits) + place
        return Region(operand.tensor, place)

    def add_steps(self, tile: MatmulTile, part: ResultPart) -> None:
        """The panels of a turn are added to a sum."""
        note = "The panels of a turn, step by step, into one of the sums."
        steps = self.k.pieces("place", (0, part.depth), self.bases.k)
        with self.k.section("AddSteps", note), steps as (place, count):
            self._load_step(tile, CubeSpan(place, count, part.depth), part)
            self._multiply(tile, part, count)

    def _load_step(self, tile: MatmulTile, along: CubeSpan, part: ResultPart) -> None:
        k, a, b = self.k, self.a, self.b
        rows = CubeSpan(Int(0), tile.rows, tile.rows)
        sides = (along, rows) if a.side.transposed else (rows, along)
        k.do(LoadData(whole(a.step), whole(a.panel), *sides, turned=a.side.transposed))
        if b.side.transposed:
            every = CubeSpan(Int(0), part.columns, part.columns)
            place = at(b.panel, part.first * self.bases.panel_k)
            k.do(LoadData(whole(b.step), place, every, along, turned=False))
        else:
            some = CubeSpan(part.first, part.columns, tile.columns)
            k.do(LoadData(whole(b.step), whole(b.panel), along, some, turned=True))

    def _multiply(self, tile: MatmulTile, part: ResultPart, depth: Index) -> None:
        operands = whole(self.result), whole(self.a.step), whole(self.b.step)
        self.k.do(Mmad(*operands, tile.rows, part.columns, expr(depth), self.a.side.transposed))

    def add_zeros(self, name: str, tile: MatmulTile, part: ResultPart) -> None:
        """A sum over nothing, as a method under a name."""
        with self.k.section(name, "A sum over nothing: the product of one fractal of zeros."):
            for operand, count in ((self.a, tile.rows), (self.b, part.columns)):
                self.k.do(InitConst(whole(operand.step), ceil_div(count, _FRACTAL)))
            self._multiply(tile, part, BLOCK_BYTES // self.a.tensor.item_bytes)

    def store(self, tile: MatmulTile, part: ResultPart) -> None:
        """A whole result."""
        self._store(tile, part, tile.rows, part.columns, Int(0))

    def store_row(self, tile: MatmulTile, part: ResultPart, row: Var, columns: Expr) -> None:
        """The first columns of one row of a result."""
        self._store(tile, part, Int(1), columns, row)

    def _store(self, tile: MatmulTile, part: ResultPart, rows: Expr, columns: Expr, row: Expr) -> None:
        offset, pitch, sizes = expr(0), columns, self.tiling
        if isinstance(self.target, Tensor):
            pitch = sizes.n
            offset = (tile.matrix * sizes.m + tile.row + row) * sizes.n + tile.column + part.first
        quant, relu = QUANT[self.problem.out_dtype], self.problem.relu
        source, target = at(self.result, row * _FRACTAL), Region(self.target, offset)
        self.k.do(Fixpipe(target, source, rows, columns, tile.rows, pitch, quant, relu))


def design_of(k: Builder, problem: Product, schedule: MatmulSchedule, *, is_handed: bool) -> MatmulDesign:
    """What the kernel of a schedule is built of; ``is_handed``: vector cores take its results."""
    bases = Bases(
        Constant("BASE_M", schedule.base_m, "rows of one result in L0C"),
        Constant("BASE_N", schedule.base_n),
        Constant("BASE_K", schedule.base_k, "depth of one step in L0A and L0B"),
        Constant("PANEL_K", schedule.panel_k, "depth of one step in L1"),
        Constant("PARTS", schedule.parts, "results beside each other that make up a tile"),
        Constant("STRIP", schedule.strip, "tiles below each other that are computed one after the other"),
    )
    tiling = _tiling(k, problem, bases)
    a = _operand(k, problem, problem.a, ("a", Memory.L0A), (Int(1), bases.m, bases))
    b = _operand(k, problem, problem.b, ("b", Memory.L0B), (bases.parts, bases.n, bases))
    result = Buffer("result", "float", 4, bases.m * bases.n, schedule.results, memory=Memory.L0C)
    target = _target(k, problem, schedule, bases, is_handed=is_handed)
    return MatmulDesign(k, problem, tiling, bases, a, b, _bias(k, problem, bases), result, target)


def _bias(k: Builder, problem: Product, bases: Bases) -> BiasPanel | None:
    if problem.bias is None:
        return None
    ctype, size = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
    tensor = k.input("bias", camel(problem.bias), ctype, size)
    panel = Buffer("biasPanel", ctype, size, bases.parts * bases.n * _FRACTAL, _SLOTS, memory=Memory.L1)
    return BiasPanel(tensor, panel)


def _tiling(k: Builder, problem: Product, bases: Bases) -> MatmulTiling:
    m, n, depth = (k.param(name, Size(getattr(problem, name))) for name in ("m", "n", "k"))
    batch = Int(1) if problem.batch.is_one else Size(problem.batch)
    for size in (m, n, depth, *([batch] if isinstance(batch, Size) else [])):
        k.require(size, ">=", 1)
    splits, k_part = None, None
    if problem.splits:
        splits = Constant("SPLITS", problem.splits, "parts of k, each with a sum of its own")
        k_part = k.param("kPart", round_up(ceil_div(depth, splits), bases.k), "depth of one split")
    tiles_m = k.param("tilesM", ceil_div(m, bases.m))
    tiles_n = k.param("tilesN", ceil_div(n, bases.parts * bases.n))
    tile_m = k.param("tileM", _equal(m, tiles_m), "equal tiles in whole fractals", U32)
    tile_n = k.param("tileN", _equal(n, tiles_n), "", U32)
    parts = k.param("partsN", ceil_div(tile_n, bases.n), "results of a tile", U32)
    part_n = k.param("partN", _equal(tile_n, parts), "columns of one result", U32)
    strip = k.param("strip", least(bases.strip, tiles_m))
    tiles = k.param("tiles", batch * (splits or 1) * tiles_m * tiles_n)
    return MatmulTiling(m, n, depth, tiles_m, tiles_n, tile_m, tile_n, part_n, strip, tiles, splits, k_part)


def _equal(length: Param, count: Param) -> Expr:
    """The length of so many equal parts, in whole fractals."""
    return round_up(ceil_div(length, count), _FRACTAL)


def _operand(
    k: Builder,
    problem: Product,
    side: Side,
    name: tuple[str, Memory],
    width: tuple[Expr, Constant, Bases],
) -> OperandPanels:
    (letter, memory), (parts, base, bases) = name, width
    ctype, size = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
    tensor = k.input(letter, camel(side.name), ctype, size)
    pitch = k.param(f"{letter}Pitch", Size(side.pitch), "elements from one row of memory to the next")
    panel = Buffer(f"{letter}Panel", ctype, size, parts * base * bases.panel_k, _SLOTS, memory=Memory.L1)
    step = Buffer(f"{letter}Step", ctype, size, base * bases.k, _SLOTS, memory=memory)
    return OperandPanels(side, tensor, pitch, start_of(k, side, letter), panel, step)


def start_of(k: Builder, side: Side, letter: str) -> Function | None:
    """Where the matrix of a product begins, whose operand has a name in camel case; None where there is one
    alone."""
    matrix, place = Var("matrix", U64), expr(0)
    for index, loop in enumerate(side.loops):
        number: Expr = matrix
        if not loop.within.is_one:
            note = "products that share the matrix"
            number = number // k.param(f"{letter}Within{index}", Size(loop.within), note)
        if loop.wraps:
            note = "matrices before the first comes again"
            number = number % k.param(f"{letter}Count{index}", Size(loop.size), note)
        note = "elements from one matrix to the next"
        place = place + number * k.param(f"{letter}Stride{index}", Size(loop.stride), note)
    if not side.loops:
        return None
    note = "Where the matrix of a product begins."
    return Function(f"StartOf{letter[0].upper()}{letter[1:]}", (matrix,), place, note, U64)


def _target(
    k: Builder, problem: Product, schedule: MatmulSchedule, bases: Bases, *, is_handed: bool
) -> Tensor | Ring:
    ctype, size = CPP_TYPE[problem.out_dtype], ITEM_SIZE[problem.out_dtype]
    if not is_handed:
        return k.output("c", "output", ctype, size)
    places = Constant("HANDED", 2 * schedule.parts, "results of a cube core in the workspace at a time")
    return k.ring("c", ctype, size, places, bases.m * bases.n)
