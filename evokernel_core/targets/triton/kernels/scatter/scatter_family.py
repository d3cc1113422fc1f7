"""Family scatter: values that are written where indices say so.

Where the last of several values stays, a first launch finds which one that is, by the largest number of an
entry. Sums are atomic additions, in whatever order programs come, as PyTorch's own on CUDA; extremes do not
depend on the order: those of floats are extremes of integers in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evokernel_core.compiler.ops import LAST, SCATTER, SCATTER_PARTS, categories
from evokernel_core.compiler.problems.scatter import Put, read_put
from evokernel_core.compiler.shapes.sizes import Extent
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels import tiles
from evokernel_core.targets.triton.kernels.function import JitFunction, JitText, expression, factor
from evokernel_core.targets.triton.kernels.names import free_name, output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily, always, on_any_gpu
from evokernel_core.targets.triton.kernels.text import TritonKernel
from evokernel_core.targets.triton.kernels.tiles import TileSchedule
from evokernel_core.targets.triton.launch import Launch, Scratch

_NEUTRAL: Mapping[tuple[str, bool], str] = {
    ("add", True): "0.0",
    ("add", False): "0",
    ("max", True): 'float("-inf")',
    ("min", True): 'float("inf")',
}
"""What changes nothing, by kind and whether numbers are floats."""
_EXTREMES = ("max", "min")


def _read(task: KernelTask) -> Put:
    problem = read_put(task)
    if problem.kind not in (LAST, "add", *_EXTREMES):
        raise PlanError("Products at indices are not covered: no atomic operation multiplies.")
    is_float = problem.dtype == "float32"
    if problem.parts and (problem.kind, is_float) not in _NEUTRAL:
        raise PlanError("Extremes of integers in parts are not covered.")
    return problem


def _entries(problem: Put, sizes: Mapping[str, int]) -> int:
    return problem.outer.evaluate(sizes) * problem.count.evaluate(sizes)


def _starts(problem: Put, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[TileSchedule]:
    return tiles.first(_entries(problem, sizes), problem.run.evaluate(sizes), gpu)


def _cost_us(problem: Put, schedule: TileSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    entries, run, size = _entries(problem, sizes), problem.run.evaluate(sizes), ITEM_SIZE[problem.dtype]
    places = problem.outer.evaluate(sizes) * problem.size.evaluate(sizes) * max(problem.parts, 1)
    programs = tiles.covered(entries, schedule.lines) * tiles.covered(run, schedule.columns)
    touched = 2 * max(run * size, 32)  # an atomic operation reads and writes a sector at least
    put = tiles.tiled_us(gpu, entries * (run * size + touched + 8), programs, schedule, 4.0)
    return put + tiles.tiled_us(gpu, 2 * places * run * size, tiles.covered(places, schedule.lines), schedule)


class _Writer:
    """The launches of one problem."""

    def __init__(self, problem: Put, schedule: TileSchedule, task: KernelTask, name: str) -> None:
        self.problem, self.schedule, self.name = problem, schedule, name
        (self.output,) = output_names(task)
        self.is_float = problem.dtype == "float32"
        self.places = problem.outer.times(problem.size).times(Extent(max(problem.parts, 1)))
        by_keys = problem.kind in _EXTREMES and self.is_float
        self.memory = free_name(task, "keys" if by_keys else "winners")
        self.by_keys = by_keys

    def kernel(self) -> TritonKernel:
        if self.problem.kind == LAST:
            return self._last()
        made = [self._initial(), self._combine()]
        scratch: tuple[Scratch, ...] = ()
        if self.by_keys:
            made.append(self._decode())
            elements = expression(self.places.times(self.problem.run))
            scratch = (Scratch(self.memory, "int32", elements),)
        return TritonKernel(
            tuple(text for text, _ in made), tuple(launch for _, launch in made), scratch=scratch
        )

    # -- the last one stays -------------------------------------------------------------------

    def _last(self) -> TritonKernel:
        find, put = self._find(), self._put()
        memory = Scratch(self.memory, "int32", expression(self.places), zeroed=True)
        return TritonKernel((find[0], put[0]), (find[1], put[1]), scratch=(memory,))

    def _find(self) -> tuple[JitText, Launch]:
        """Each place's last entry, counted from 1."""
        function = JitFunction(f"{self.name}_winners")
        function.add("entries = program.to(tl.int64) * LINES + tl.arange(0, LINES)")
        self._chosen(function)
        number = f"entries % {factor(function.number('count', self.problem.count))} + 1"
        function.add(
            f"tl.atomic_max({function.tensor(self.memory)} + place, ({number}).to(tl.int32), mask=inside)"
        )
        lines = max(self.schedule.lines, 128)
        function.constant("LINES", lines)
        entries = expression(self.problem.outer.times(self.problem.count))
        return function.jit_text(), function.launch(f"cdiv({entries}, {lines})", self.schedule.warps)

    def _put(self) -> tuple[JitText, Launch]:
        """Each place's value, or what was there."""
        problem, function = self.problem, JitFunction(self.name)
        grid = self._tiles(function, self.places, "places")
        run = function.number("run", problem.run)
        function.add(f"winner = tl.load({function.tensor(self.memory)} + places, mask=inside, other=0)")
        group = f"places // {factor(function.number('size', problem.size))}"
        count = function.number("count", problem.count)
        function.add(f"entry = {group} * {count} + winner.to(tl.int64) - 1")
        function.add("is_put = (winner > 0)[:, None] & mask")
        values, output = function.tensor(problem.values), function.tensor(self.output)
        function.add(f"x = tl.load({values} + entry[:, None] * {run} + columns[None, :], mask=is_put)")
        assert problem.source is not None
        at = f"places[:, None] * {run} + columns[None, :]"
        kept = "mask & (winner == 0)[:, None]"
        function.add(f"before = tl.load({function.tensor(problem.source)} + {at}, mask={kept})")
        function.add(f"tl.store({output} + {at}, tl.where(is_put, x, before), mask=mask)")
        return function.jit_text(), function.launch(grid, self.schedule.warps)

    # -- all of them count --------------------------------------------------------------------

    def _initial(self) -> tuple[JitText, Launch]:
        """What is there before anything is put."""
        problem, function = self.problem, JitFunction(f"{self.name}_start")
        grid = self._tiles(function, self.places, "places")
        run = function.number("run", problem.run)
        at = f"places[:, None] * {run} + columns[None, :]"
        if problem.source is None:
            neutral = _NEUTRAL[problem.kind, self.is_float]
            kind = "tl.float32" if self.is_float else f"tl.{problem.dtype}"
            function.add(f"x = tl.full((LINES, COLUMNS), {neutral}, {kind})")
        else:
            function.add(f"x = tl.load({function.tensor(problem.source)} + {at}, mask=mask)")
        to = self.memory if self.by_keys else self.output
        value = self._key(function) if self.by_keys else "x"
        function.add(f"tl.store({function.tensor(to)} + {at}, {value}, mask=mask)")
        return function.jit_text(), function.launch(grid, self.schedule.warps)

    def _combine(self) -> tuple[JitText, Launch]:
        """What is put, by atomic operations."""
        problem, function = self.problem, JitFunction(self.name)
        grid = self._tiles(function, problem.outer.times(problem.count), "entries")
        self._chosen(function)
        run = function.number("run", problem.run)
        function.add("mask = inside[:, None] & mask")
        if problem.parts > 1:
            size = expression(problem.outer.times(problem.size))
            function.add(f"# entries are dealt to {problem.parts} results, so that fewer meet at one place")
            function.add(f"place += entries % {problem.parts} * {function.computed('places_of_part', size)}")
        at = f"entries[:, None] * {run} + columns[None, :]"
        function.add(f"x = tl.load({function.tensor(problem.values)} + {at}, mask=mask)")
        to = function.tensor(self.memory if self.by_keys else self.output)
        value = self._key(function) if self.by_keys else "x"
        at = f"{to} + place[:, None] * {run} + columns[None, :]"
        function.add(f"tl.atomic_{problem.kind}({at}, {value}, mask=mask)")
        return function.jit_text(), function.launch(grid, self.schedule.warps)

    def _key(self, function: JitFunction) -> str:
        """An integer for the float ``x`` whose order is that of floats, with a NaN as the best."""
        best = "0x7FFFFFFF" if self.problem.kind == "max" else "-0x80000000"
        function.add("bits = x.to(tl.int32, bitcast=True)")
        function.add("key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)")
        return f"tl.where(x != x, {best}, key)"

    def _decode(self) -> tuple[JitText, Launch]:
        """Floats of the integers."""
        function = JitFunction(f"{self.name}_end")
        grid = self._tiles(function, self.places, "places")
        run = function.number("run", self.problem.run)
        at = f"places[:, None] * {run} + columns[None, :]"
        function.add(f"key = tl.load({function.tensor(self.memory)} + {at}, mask=mask, other=0)")
        function.add("bits = tl.where(key < 0, key ^ 0x7FFFFFFF, key)")
        value = "bits.to(tl.float32, bitcast=True)"
        function.add(f"tl.store({function.tensor(self.output)} + {at}, {value}, mask=mask)")
        return function.jit_text(), function.launch(grid, self.schedule.warps)

    # -- common -------------------------------------------------------------------------------

    def _tiles(self, function: JitFunction, lines: Extent, name: str) -> str:
        """Lines and columns of a program; the grid."""
        schedule, run = self.schedule, function.number("run", self.problem.run)
        count = function.number(f"all_{name}", lines)
        function.add(f"tiles = tl.cdiv({run}, COLUMNS)")
        function.add(f"{name} = (program // tiles).to(tl.int64) * LINES + tl.arange(0, LINES)")
        function.add("columns = program % tiles * COLUMNS + tl.arange(0, COLUMNS)")
        function.add(f"inside = {name} < {count}")
        function.add(f"mask = inside[:, None] & (columns[None, :] < {run})")
        function.constant("LINES", schedule.lines)
        function.constant("COLUMNS", schedule.columns)
        return tiles.grid(schedule, expression(lines), expression(self.problem.run))

    def _chosen(self, function: JitFunction) -> None:
        """The place of each entry, and which entries there are."""
        problem, add = self.problem, function.add
        count = function.number("count", problem.count)
        outer = function.number("outer", problem.outer)
        add(f"inside = entries < {outer} * {factor(count)}")
        add(f"number = entries % {factor(count)}" if problem.shared else "number = entries")
        add(
            "place = tl.zeros((LINES,), tl.int64)"
            if problem.outer.is_one
            else f"place = entries // {factor(count)}"
        )
        for place, (indices, _, size) in enumerate(problem.places):
            most = function.number(f"size_{place}", size)
            load = f"tl.load({function.tensor(indices)} + number, mask=inside, other=0)"
            add(f"chosen = {load}.to(tl.int64)")
            if problem.wraps:
                add(f"chosen = tl.where(chosen < 0, chosen + {most}, chosen)")
            add(f"inside &= (chosen >= 0) & (chosen < {most})", f"place = place * {most} + chosen")


def _text(problem: Put, schedule: TileSchedule, task: KernelTask, name: str) -> TritonKernel:
    return _Writer(problem, schedule, task, name).kernel()


FAMILY = GpuFamily(
    name="scatter",
    ops=categories(SCATTER, SCATTER_PARTS),
    read=on_any_gpu(_read),
    schedule_of=TileSchedule.of,
    starts=_starts,
    refusal=tiles.why_not,
    cost_us=_cost_us,
    notes=always((Sentence("{lines} entries of {columns} elements at a time, {warps} warps a program."),)),
    cell=always(Descriptor(Dataflow.PICKED, "NONE", Split.ELEMENTS, Algorithm.DIRECT)),
    text_of=_text,
)
