"""Family triangle: the upper or lower triangle of matrices, row by row."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Reuse, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import literal
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

OPS = frozenset({"aten.triu.default", "aten.tril.default"})
_FILL_BYTES = 16384


@frozen
class Triangle:
    """``matrices`` of ``height`` rows and ``columns``, of which row 0 keeps (``upper``) or loses what lies
    from column ``first`` on."""

    source: str
    upper: bool
    first: int
    matrices: Extent
    height: Extent
    columns: Extent
    width: int


@frozen
class TrilSchedule(CopySchedule):
    """That of a copy, of what is kept of each row."""

    family: ClassVar[str] = "triangle"


def read_triangle(task: KernelTask) -> Triangle:
    """The one triangle of a task. Raises PlanError where the task is anything else."""
    node = only_node(task, OPS, Sentence("The kernel is more than one triangle of matrices."))
    source = input_below(task.graph, next(iter(node.operands())), Sentence("a triangle of matrices"))
    spec = node.outputs[0]
    width = ITEM_SIZE[spec.dtype]
    if width > 4:
        raise PlanError("A triangle of {dtype} is not covered.", dtype=spec.dtype)
    shift = literal(node.args[1]) if len(node.args) > 1 else literal(dict(node.kwargs).get("diagonal", 0))
    upper = node.op == "aten.triu.default"
    sizes = tuple(map(extent, spec.shape))
    return Triangle(source, upper, shift + (not upper), product(sizes[:-2]), sizes[-2], sizes[-1], width)


def build(problem: Triangle, schedule: TrilSchedule) -> Kernel:
    """The kernel of a schedule. What lies beside the triangle is not read, so that it may be anything."""
    width, ctype = problem.width, RAW[problem.width]
    tile, fill = Constant("TILE", schedule.tile_bytes // width), Constant("FILL", _FILL_BYTES // width)
    which = "upper" if problem.upper else "lower"
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
        second = k.let("second", _second(row % height, problem.first), U64)
        border = k.let("border", least(second, columns), U64)
        kept, lost = ((border, columns), (0, border)) if problem.upper else ((0, border), (border, columns))
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
    ops=dict.fromkeys(sorted(OPS), "kernel"),
    read=on_any_chip(read_triangle),
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
