"""Family triangle: the upper or lower triangle of matrices, row by row."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from evokernel_core.compiler.problems.products import TRIANGLES
from evokernel_core.compiler.problems.tril import TriangleOfMatrices, read_triangle
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Reuse, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.ir.builder import Builder, read_as
from evokernel_core.targets.ascendc.ir.expr import U64, Choice, Constant, Expr, Int, Size, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Kernel
from evokernel_core.targets.ascendc.kernels.built import always, among, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.layout.copy import CopySchedule, starts
from evokernel_core.targets.ascendc.kernels.rendering import RAW, parameter

_FILL_BYTES = 16384


@frozen
class TrilSchedule(CopySchedule):
    """That of a copy, of what is kept of each row."""

    family: ClassVar[str] = "triangle"


def _read(task: KernelTask) -> TriangleOfMatrices:
    problem = read_triangle(task)
    if ITEM_SIZE[problem.dtype] > 4:
        raise PlanError("A triangle of {dtype} is not covered.", dtype=problem.dtype)
    return problem


def build(problem: TriangleOfMatrices, schedule: TrilSchedule) -> Kernel:
    """The kernel of a schedule. What lies beside the triangle is not read, so that it may be anything."""
    width, upper = ITEM_SIZE[problem.dtype], problem.triangle.upper
    ctype, first = RAW[width], problem.triangle.diagonal + (not upper)
    tile, fill = Constant("TILE", schedule.tile_bytes // width), Constant("FILL", _FILL_BYTES // width)
    which = "upper" if upper else "lower"
    k = Builder(f"Keeps the {which} triangle of matrices; the rest becomes zero and is never read.")
    source = k.input("source", parameter(problem.source), ctype, width)
    result = k.output("result", "output", ctype, width)
    height = k.param("height", Size(problem.height), "of one matrix")
    columns = k.param("columns", Size(problem.columns))
    rows = k.param("rows", Size(problem.matrices) * height, "of all matrices")
    k.require(rows, ">=", 1)
    k.require(columns, ">=", 1)
    run = Buffer("run", ctype, width, tile, schedule.buffers)
    zeros = Buffer("zeros", ctype, width, fill)
    halves = read_as("uint16_t", zeros)
    k.call("Duplicate", halves, Converted(Int(0), "uint16_t"), _FILL_BYTES // 2, repeats=_FILL_BYTES // 256)
    with k.cores("row", rows) as row:
        start = k.let("start", row * columns, U64)
        second = k.let("second", _second(row % height, first), U64)
        border = k.let("border", least(second, columns), U64)
        kept, lost = ((border, columns), (0, border)) if upper else ((0, border), (border, columns))
        with k.pieces("column", kept, tile) as (column, count):
            k.load(run, source, start + column, count)
            k.store(result, start + column, run, count)
        with k.section("Fill"), k.pieces("column", lost, fill) as (column, count):
            k.store(result, start + column, zeros, count)
    return k.kernel()


def _second(row: Expr, first: int) -> Expr:
    """The column where the second part of a row begins, were rows long enough."""
    shift = Constant("SHIFT", abs(first), "columns from the diagonal to the second part of a row")
    return row + shift if first >= 0 else Choice(row, ">", shift, row - shift, Int(0))


FAMILY = SearchingFamily(
    variant=variant_of(build),
    name="triangle",
    ops=dict.fromkeys(sorted(TRIANGLES), "kernel"),
    read=on_any_chip(_read),
    schedule_of=TrilSchedule.of,
    starts=among(TrilSchedule(start.tile_bytes, start.buffers) for start in starts()),
    notes=always(
        (
            Sentence("The kept part of each row is copied in tiles of {bytes} bytes, the rest is zeros."),
            Sentence("{buffers} tiles are in flight."),
        )
    ),
    cell=always(Descriptor(Dataflow.STREAMED, Reuse.NONE, Split.ROWS, Algorithm.COPY)),
)
