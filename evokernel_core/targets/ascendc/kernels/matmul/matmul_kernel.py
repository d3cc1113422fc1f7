"""The kernel of a product: tiles of the result, panels along k in L1, steps of them in L0, sums in L0C.

Where k is cut, or a triangle is kept, a sum may be one over nothing: its only panel has no depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from evokernel_core.compiler.problems.products import Product, Triangle
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Condition,
    Constant,
    Expr,
    Int,
    Var,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.epilogue.regions import HandedRegion, HandedTile, Walk
from evokernel_core.targets.ascendc.kernels.matmul.matmul_design import (
    MatmulDesign,
    MatmulTile,
    ResultPart,
    design_of,
)
from evokernel_core.targets.ascendc.kernels.matmul.matmul_schedule import MatmulSchedule
from evokernel_core.targets.ascendc.kernels.stage import KernelStage, with_vectors

_LANE = Var("firstPiece")
"""Which of a tile's results a part is: the number of its piece of the columns."""


Taker = Callable[[MatmulDesign, Walk], Kernel]
"""The vector cores behind a product, which take results up in the loop of a walk."""


def build(problem: Product, schedule: MatmulSchedule, behind: Taker | None = None) -> KernelStage:
    """The kernel of a legal schedule; ``behind``: what vector cores do to its results."""
    is_handed = behind is not None
    note = "The cube core: products, passed to the vector cores result by result."
    k = Builder(note if is_handed else "Products of matrices.")
    design = design_of(k, problem, schedule, is_handed=is_handed)
    with k.cores("index", design.tiling.tiles) as index:
        tile = design.tile(k, index)
        _sums(design, tile)
    if problem.triangle is not None:
        k.deal_apart(_is_dropped(tile, problem.triangle))
    if behind is None:
        return KernelStage(k.kernel())
    return with_vectors(k.kernel(), behind(design, partial(taking, design)))


@contextmanager
def taking(design: MatmulDesign, k: Builder) -> Iterator[HandedTile]:
    """The loop in which vector cores take results up."""
    sizes = design.tiling
    with k.cores("index", sizes.tiles, with_cube=True) as index:
        tile = design.tile(k, index)

        def result(number: Expr) -> HandedRegion:
            first = k.let("firstColumn", number * sizes.part_n)
            columns = least(tile.columns - first, sizes.part_n)
            return HandedRegion(tile.matrix * sizes.m + tile.row, tile.column + first, tile.rows, columns)

        yield HandedTile(ceil_div(tile.columns, sizes.part_n), tile.rows, sizes.part_n, result)


def _sums(design: MatmulDesign, tile: MatmulTile) -> None:
    """The sums of a tile: results beside each other take turns at each panel, so that one is stored while
    the next is computed."""
    k, most = design.k, design.bases.panel_k
    begin, end = _range(design, tile)
    panels = k.let("panels", _unless_empty(design, begin, end, ceil_div(end - begin, most), 1), U64)
    with k.loop("panel", panels, U64) as panel:
        start = k.let("start", begin + panel * most, U64)
        depth = k.let("depth", _unless_empty(design, start, end, least(end - start, most), 0))
        if design.bias is not None:
            with k.when(panel + 1, "==", panels):
                design.load_bias(tile)
        if _may_be_empty(design):
            with k.when(depth, ">", 0):
                design.load(tile, start, depth)
        else:
            design.load(tile, start, depth)
        with k.pieces("first", (0, tile.columns), design.tiling.part_n) as (first, columns):
            _results(design, tile, ResultPart(panel, panels, depth, first, columns))


def _may_be_empty(design: MatmulDesign) -> bool:
    return bool(design.problem.splits) or design.problem.triangle is not None


def _unless_empty(design: MatmulDesign, begin: Expr, end: Expr, value: Expr, otherwise: int) -> Expr:
    """A value that is another one where nothing lies between the two."""
    return Choice(begin, "<", end, value, Int(otherwise)) if _may_be_empty(design) else value


def _range(design: MatmulDesign, tile: MatmulTile) -> tuple[Expr, Expr]:
    """Where the sums of a tile begin and end along k."""
    k, sizes, triangle = design.k, design.tiling, design.problem.triangle
    if sizes.splits is not None and sizes.k_part is not None:
        begin = k.let("begin", tile.matrix % sizes.splits * sizes.k_part, U64)
        return begin, k.let("end", least(begin + sizes.k_part, sizes.k), U64)
    if triangle is None:
        return Int(0), sizes.k
    dropped = _is_dropped(tile, triangle)
    return Int(0), k.let("end", Choice(dropped.left, dropped.sign, dropped.right, Int(0), sizes.k), U64)


def _results(design: MatmulDesign, tile: MatmulTile, part: ResultPart) -> None:
    """One of a tile's results in one turn."""
    triangle = design.problem.triangle
    if triangle is None:
        _whole(design, tile, part)
    elif triangle.upper:
        _upper(design, tile, part, triangle)
    else:
        _lower(design, tile, part, triangle)


def _whole(design: MatmulDesign, tile: MatmulTile, part: ResultPart) -> None:
    k = design.k
    with k.sum(part.panel, _LANE):
        design.add_steps(tile, part)
        if design.bias is not None:
            with k.when(part.panel + 1, "==", part.panels):
                design.end_with_bias(tile, part)
        if _may_be_empty(design):
            with k.when(part.depth, "==", 0):
                design.add_zeros("AddZeros", tile, part)
    with k.stored():
        design.store(tile, part)


# -- triangles ------------------------------------------------------------------------------------


def _edge(triangle: Triangle) -> tuple[Expr, Expr]:
    """What is added to columns and to rows so that both are equal on the edge, neither being below 0."""
    diagonal = Constant("DIAGONAL", abs(triangle.diagonal), "columns or rows from the main one to the edge")
    return (Int(0), diagonal) if triangle.diagonal > 0 else (diagonal, Int(0))


def _is_dropped(tile: MatmulTile, triangle: Triangle) -> Condition:
    """Whether nothing of a tile is kept: not even the last column of its first row, or the first of its
    last."""
    across, down = _edge(triangle)
    if triangle.upper:
        return Condition(tile.column + tile.columns + across, "<", tile.row + down + 1)
    return Condition(tile.column + across + 1, ">", tile.row + tile.rows + down)


def _is_cut(tile: MatmulTile, part: ResultPart, triangle: Triangle) -> Condition:
    """Whether some of a result is dropped: the first column of its last row, or the last of its first."""
    across, down = _edge(triangle)
    column = tile.column + part.first + across
    if triangle.upper:
        return Condition(column + 1, "<", tile.row + tile.rows + down)
    return Condition(column + part.columns, ">", tile.row + down + 1)


def _upper(design: MatmulDesign, tile: MatmulTile, part: ResultPart, triangle: Triangle) -> None:
    """A result, and then zeros over what is dropped of it: Fixpipe stores from a first column on."""
    k = design.k
    _whole(design, tile, part)
    is_last = k.when(part.panel + 1, "==", part.panels)
    with k.when(part.depth, ">", 0), is_last, k.where(_is_cut(tile, part, triangle)):
        with k.sum(lane=_LANE):
            design.add_zeros("BeginWithZeros", tile, part)
        with k.stored():
            _store_fronts(design, tile, part, triangle)


def _lower(design: MatmulDesign, tile: MatmulTile, part: ResultPart, triangle: Triangle) -> None:
    """Zeros where some of a result is dropped, while its operands travel, and then what is kept."""
    k, is_cut = design.k, _is_cut(tile, part, triangle)
    with k.when(part.panel, "==", 0), k.where(is_cut):
        with k.sum(lane=_LANE):
            design.add_zeros("BeginWithZeros", tile, part)
        with k.stored():
            design.store(tile, part)
    with k.when(part.depth, ">", 0):
        with k.sum(part.panel, _LANE):
            design.add_steps(tile, part)
        with k.stored():
            with k.where(is_cut):
                _store_fronts(design, tile, part, triangle)
            with k.otherwise():
                design.store(tile, part)


def _store_fronts(design: MatmulDesign, tile: MatmulTile, part: ResultPart, triangle: Triangle) -> None:
    k, (across, down) = design.k, _edge(triangle)
    note = "Of each row what lies before the edge, over what was stored before."
    with k.section("StoreFronts", note):
        k.fence()
        with k.loop("line", tile.rows) as line:
            edge = k.let("edge", tile.column + part.first + across, U64)
            behind = k.let("behind", tile.row + line + down + (0 if triangle.upper else 1), U64)
            with k.when(behind, ">", edge):
                design.store_row(tile, part, line, k.let("count", least(behind - edge, part.columns)))
