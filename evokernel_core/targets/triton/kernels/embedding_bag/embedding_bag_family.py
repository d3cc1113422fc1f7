"""Family embedding_bag: sums, means and maxima of the rows that the indices of a bag choose.

A program combines some columns of one bag, several rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evokernel_core.compiler.ops import EMBEDDING_BAG, categories
from evokernel_core.compiler.problems.embedding_bag import Bag, read_bag
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.expressions import next_power_of_2
from evokernel_core.targets.triton.kernels import tiles
from evokernel_core.targets.triton.kernels.function import JitFunction, expression
from evokernel_core.targets.triton.kernels.names import output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily, always, on_any_gpu
from evokernel_core.targets.triton.kernels.text import DTYPES, TritonKernel
from evokernel_core.targets.triton.kernels.tiles import TileSchedule


def _starts(problem: Bag, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[TileSchedule]:
    width = next_power_of_2(problem.run.evaluate(sizes))
    length = problem.count.evaluate(sizes) // max(problem.bags.evaluate(sizes), 1)
    for warps in (1, 2, 4):
        for lines in (1, 4, 8, 16):
            if lines <= next_power_of_2(length):
                yield TileSchedule(lines, min(width, warps * 256 // lines), warps)


def _cost_us(problem: Bag, schedule: TileSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    bags, count, run = (getattr(problem, key).evaluate(sizes) for key in ("bags", "count", "run"))
    across = tiles.covered(run, schedule.columns)
    size = ITEM_SIZE[problem.dtype]
    read = count * (run * size + 8 * across)
    steps = tiles.covered(tiles.covered(count, max(bags, 1)), schedule.lines)
    return tiles.tiled_us(gpu, read + bags * run * size, bags * across, schedule, 4.0, steps)


class _BagPrinter:
    def __init__(self, problem: Bag, schedule: TileSchedule, name: str) -> None:
        self.problem, self.schedule, self.function = problem, schedule, JitFunction(name)
        self.run = self.function.number("run", problem.run)

    def text(self, output: str) -> TritonKernel:
        function, problem = self.function, self.problem
        function.add(f"tiles = tl.cdiv({self.run}, COLUMNS)", "bag = (program // tiles).to(tl.int64)")
        function.add("columns = program % tiles * COLUMNS + tl.arange(0, COLUMNS)")
        self._ends()
        self._loop()
        self._store(output)
        grid = f"{expression(problem.bags)} * cdiv({expression(problem.run)}, {self.schedule.columns})"
        return tiles.kernel(function, self.schedule, grid, 2)

    def _ends(self) -> None:
        """Which entries a bag has."""
        function, problem = self.function, self.problem
        count, bags = function.number("count", problem.count), function.number("bags", problem.bags)
        if problem.offsets is None:
            length = f"({count}) // ({bags})"
            function.add(f"begin = bag * ({length})", f"end = begin + {length}")
            return
        offsets = function.tensor(problem.offsets[0])
        function.add(f"begin = tl.load({offsets} + bag).to(tl.int64)")
        if problem.whole:
            function.add(f"end = tl.load({offsets} + bag + 1).to(tl.int64)")
        else:
            inside = f"bag + 1 < {bags}"
            function.add(f"end = tl.load({offsets} + bag + 1, mask={inside}, other={count}).to(tl.int64)")

    def _loop(self) -> None:
        function, problem = self.function, self.problem
        is_max = problem.mode == "max"
        start = 'tl.full((LINES, COLUMNS), float("-inf"), tl.float32)'
        function.add(f"result = {start if is_max else 'tl.zeros((LINES, COLUMNS), tl.float32)'}")
        function.add("kept = tl.zeros((LINES,), tl.int32)")
        indices = function.tensor(problem.indices[0])
        rows = function.number("rows", problem.rows)
        with function.block("for first in range(begin, end, LINES):"):
            function.add("entries = first + tl.arange(0, LINES)")
            function.add(f"chosen = tl.load({indices} + entries, mask=entries < end, other=-1).to(tl.int64)")
            function.add(f"counts = (chosen >= 0) & (chosen < {rows})")
            if problem.padding >= 0:
                function.add(f"counts &= chosen != {problem.padding}")
            cast = "" if problem.dtype == "float32" else ".to(tl.float32)"
            place = f"chosen[:, None] * {self.run} + columns[None, :]"
            mask = f"counts[:, None] & (columns[None, :] < {self.run})"
            function.add(f"mask = {mask}")
            other = 'float("-inf")' if is_max else "0.0"
            function.add(
                f"x = tl.load({function.tensor(problem.table)} + {place}, mask=mask, other={other}){cast}"
            )
            if problem.weights is not None:
                weights = function.tensor(problem.weights)
                function.add(f"weight = tl.load({weights} + entries, mask=counts, other=0.0).to(tl.float32)")
                function.add("x *= weight[:, None]")
            if is_max:
                function.add("result = tl.maximum(result, x)")
            else:
                function.add("result += x")
            function.add("kept += counts.to(tl.int32)")

    def _store(self, output: str) -> None:
        function, mode = self.function, self.problem.mode
        function.add("number = tl.sum(kept, 0)")
        if mode == "max":
            function.add("total = tl.where(number > 0, tl.max(result, 0), 0.0)")
        elif mode == "mean":
            function.add("total = tl.sum(result, 0) / tl.maximum(number, 1).to(tl.float32)")
        else:
            function.add("total = tl.sum(result, 0)")
        dtype = self.problem.dtype
        value = "total" if dtype == "float32" else f"total.to({DTYPES[dtype]})"
        at = f"{function.tensor(output)} + bag * {self.run} + columns"
        function.add(f"tl.store({at}, {value}, mask=columns < {self.run})")


def _text(problem: Bag, schedule: TileSchedule, task: KernelTask, name: str) -> TritonKernel:
    (output,) = output_names(task)
    return _BagPrinter(problem, schedule, name).text(output)


FAMILY = GpuFamily(
    name="embedding_bag",
    ops=categories(EMBEDDING_BAG),
    read=on_any_gpu(read_bag),
    schedule_of=TileSchedule.of,
    starts=_starts,
    refusal=tiles.why_not,
    cost_us=_cost_us,
    notes=always((Sentence("{lines} rows of {columns} elements at a time, {warps} warps a program."),)),
    cell=always(Descriptor(Dataflow.PICKED, "NONE", Split.ROWS, Algorithm.DIRECT)),
    text_of=_text,
)
