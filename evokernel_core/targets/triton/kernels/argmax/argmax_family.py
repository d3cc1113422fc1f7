"""Family argmax: where the largest or smallest element of a dimension is, and what it is.

Of equal elements the first one counts, and a NaN is better than any number, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evokernel_core.compiler.problems.argmax import ARG_REDUCTIONS, ArgReduction, read_arg_reduction
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels import tiles
from evokernel_core.targets.triton.kernels.function import JitFunction, expression, masked
from evokernel_core.targets.triton.kernels.names import output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily, always, on_any_gpu
from evokernel_core.targets.triton.kernels.text import DTYPES, TritonKernel
from evokernel_core.targets.triton.kernels.tiles import TileSchedule

_MOST_STEPS = (1 << 31) - 1
"""Places are counted in 32 bits."""


def _starts(problem: ArgReduction, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[TileSchedule]:
    outer, steps, lanes = _numbers(problem, sizes)
    return tiles.first(*((outer, steps) if problem.lanes.is_one else (steps, lanes)), gpu)


def _numbers(problem: ArgReduction, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    return problem.outer.evaluate(sizes), problem.steps.evaluate(sizes), problem.lanes.evaluate(sizes)


def _cost_us(problem: ArgReduction, schedule: TileSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    outer, steps, lanes = _numbers(problem, sizes)
    programs = outer * tiles.covered(lanes, schedule.columns)
    rounds = tiles.covered(steps, schedule.lines)
    if problem.lanes.is_one:
        programs, rounds = tiles.covered(outer, schedule.lines), tiles.covered(steps, schedule.columns)
    nbytes = outer * steps * lanes * ITEM_SIZE[problem.dtype] + outer * lanes * 12
    return tiles.tiled_us(gpu, nbytes, programs, schedule, 6.0, rounds)


class _ArgmaxPrinter:
    def __init__(self, problem: ArgReduction, schedule: TileSchedule, name: str) -> None:
        self.problem, self.schedule, self.function = problem, schedule, JitFunction(name)
        self.in_rows = problem.lanes.is_one
        self.block = "COLUMNS" if self.in_rows else "LINES"
        self.along, self.across = ("[None, :]", "[:, None]") if self.in_rows else ("[:, None]", "[None, :]")
        self.axis = 1 if self.in_rows else 0

    def text(self, outputs: tuple[str, ...]) -> TritonKernel:
        function, problem = self.function, self.problem
        self.source = function.tensor(problem.source)
        self.outer, self.steps, self.lanes = (
            function.number(key, getattr(problem, key)) for key in ("outer", "steps", "lanes")
        )
        grid = self._head()
        self._search()
        self._store(outputs)
        requires = (
            () if problem.steps.constant is not None else (f"{expression(problem.steps)} <= {_MOST_STEPS}",)
        )
        return tiles.kernel(function, self.schedule, grid, requires=requires)

    def _head(self) -> str:
        """Which results a program has; the grid."""
        add, problem = self.function.add, self.problem
        if self.in_rows:
            add("rows = program.to(tl.int64) * LINES + tl.arange(0, LINES)")
            add(f"inside = rows < {self.outer}", "results = rows", f"start = rows * {self.steps}")
            return f"cdiv({expression(problem.outer)}, {self.schedule.lines})"
        add(f"tiles = tl.cdiv({self.lanes}, COLUMNS)")
        add("group = (program // tiles).to(tl.int64)")
        add("columns = program % tiles * COLUMNS + tl.arange(0, COLUMNS)")
        add(f"inside = columns < {self.lanes}", f"results = group * {self.lanes} + columns")
        add(f"start = group * {self.steps} * {self.lanes} + columns")
        return f"{expression(problem.outer)} * cdiv({expression(problem.lanes)}, {self.schedule.columns})"

    def _search(self) -> None:
        add = self.function.add
        add(f"places = tl.arange(0, {self.block})")
        add("# each place of the tile keeps the first of its best elements")
        add(f"best = {self._load()}", f"index = tl.zeros((LINES, COLUMNS), tl.int32) + places{self.along}")
        with self.function.block(f"for first in range({self.block}, {self.steps}, {self.block}):"):
            add(f"x = {self._load('first')}")
            add("wins = (x > best) | ((x != x) & (best == best))")
            add("best = tl.where(wins, x, best)")
            add(f"index = tl.where(wins, first + places{self.along}, index)")

    def _load(self, first: str = "") -> str:
        place = f"({first} + places{self.along})" if first else f"places{self.along}"
        step = place if self.in_rows else f"{place}.to(tl.int64) * {self.lanes}"
        largest = self.problem.largest
        mask = masked(
            f"inside{self.across} & ({place} < {self.steps})", 'float("-inf")' if largest else "0.0"
        )
        x = f"tl.load({self.source} + start{self.across} + {step}{mask})"
        if self.problem.dtype != "float32":
            x += ".to(tl.float32)"
        if largest:
            return x
        return f'tl.where({place} < {self.steps}, -{x}, float("-inf"))'

    def _store(self, outputs: tuple[str, ...]) -> None:
        add, axis, steps = self.function.add, self.axis, self.steps
        add("# a NaN is better than any number; else the first of the best")
        add(f"is_nan = (best != best) & (index < {steps})")
        add(f"first_nan = tl.min(tl.where(is_nan, index, {steps}), {axis})")
        add(f'top = tl.max(tl.where(is_nan, float("-inf"), best), {axis})')
        add(f"ties = (best == top{self.across}) & (index < {steps})")
        add(f"first_best = tl.min(tl.where(ties, index, {steps}), {axis})")
        for name, result in zip(outputs, self.problem.results, strict=True):
            pointer = self.function.tensor(name)
            if result == "indices":
                value = f"tl.where(first_nan < {steps}, first_nan, first_best).to(tl.int64)"
            else:
                number = "top" if self.problem.largest else "-top"
                value = (
                    f'tl.where(first_nan < {steps}, float("nan"), {number}).to({DTYPES[self.problem.dtype]})'
                )
            add(f"tl.store({pointer} + results, {value}, mask=inside)")


def _text(problem: ArgReduction, schedule: TileSchedule, task: KernelTask, name: str) -> TritonKernel:
    return _ArgmaxPrinter(problem, schedule, name).text(output_names(task))


FAMILY = GpuFamily(
    name="argmax",
    ops=dict.fromkeys(sorted(ARG_REDUCTIONS), "kernel"),
    read=on_any_gpu(read_arg_reduction),
    schedule_of=TileSchedule.of,
    starts=_starts,
    refusal=tiles.why_not,
    cost_us=_cost_us,
    notes=always((Sentence("Tiles of {lines} x {columns} elements, {warps} warps a program."),)),
    cell=always(Descriptor(Dataflow.STREAMED, "L1", Split.ROWS, Algorithm.SINGLE_PASS)),
    text_of=_text,
)
