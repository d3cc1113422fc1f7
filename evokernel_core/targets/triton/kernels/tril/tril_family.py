"""Family tril: the upper or lower triangle of matrices; what lies beside it is not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evokernel_core.compiler.problems.products import TRIANGLES
from evokernel_core.compiler.problems.tril import TriangleOfMatrices, read_triangle
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels import tiles
from evokernel_core.targets.triton.kernels.function import JitFunction, expression, factor
from evokernel_core.targets.triton.kernels.names import output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily, always, on_any_gpu
from evokernel_core.targets.triton.kernels.text import TritonKernel
from evokernel_core.targets.triton.kernels.tiles import TileSchedule


def _starts(problem: TriangleOfMatrices, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[TileSchedule]:
    rows, columns = problem.rows.evaluate(sizes), problem.columns.evaluate(sizes)
    return tiles.first(rows, columns, gpu)


def _cost_us(
    problem: TriangleOfMatrices, schedule: TileSchedule, sizes: Mapping[str, int], gpu: Gpu
) -> float:
    rows, columns = problem.rows.evaluate(sizes), problem.columns.evaluate(sizes)
    programs = tiles.covered(rows, schedule.lines) * tiles.covered(columns, schedule.columns)
    nbytes = 1.5 * rows * columns * ITEM_SIZE[problem.dtype]  # half of the elements are read
    return tiles.tiled_us(gpu, nbytes, programs, schedule, 6.0)


def _text(problem: TriangleOfMatrices, schedule: TileSchedule, task: KernelTask, name: str) -> TritonKernel:
    function = JitFunction(name)
    (output,) = output_names(task)
    source, result = function.tensor(problem.source), function.tensor(output)
    rows, height, columns = (
        function.number(key, getattr(problem, key)) for key in ("rows", "height", "columns")
    )
    sign = ">=" if problem.triangle.upper else "<="
    function.add(f"tiles = tl.cdiv({columns}, COLUMNS)")
    function.add("line = (program // tiles).to(tl.int64) * LINES + tl.arange(0, LINES)[:, None]")
    function.add("column = program % tiles * COLUMNS + tl.arange(0, COLUMNS)[None, :]")
    function.add(f"kept = column - line % {factor(height)} {sign} {problem.triangle.diagonal}")
    function.add(f"inside = (line < {rows}) & (column < {columns})")
    function.add(f"place = line * {factor(columns)} + column")
    function.add(f"x = tl.load({source} + place, mask=inside & kept, other=0)")
    function.add(f"tl.store({result} + place, x, mask=inside)")
    grid = tiles.grid(schedule, expression(problem.rows), expression(problem.columns))
    return tiles.kernel(function, schedule, grid)


FAMILY = GpuFamily(
    name="tril",
    ops=dict.fromkeys(sorted(TRIANGLES), "kernel"),
    read=on_any_gpu(read_triangle),
    schedule_of=TileSchedule.of,
    starts=_starts,
    refusal=tiles.why_not,
    cost_us=_cost_us,
    notes=always((Sentence("Tiles of {lines} x {columns} elements, {warps} warps a program."),)),
    cell=always(Descriptor(Dataflow.BLOCKS, "NONE", Split.TILES, Algorithm.COPY)),
    text_of=_text,
)
