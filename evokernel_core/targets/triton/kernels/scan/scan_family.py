"""Family scan: running sums, products, maxima, minima and log-sum-exps along any dimension.

A program goes along its scans tile by tile and carries what all before the tile combine to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evokernel_core.compiler.ops import SCAN, categories
from evokernel_core.compiler.problems.scan import Scan, read_scan
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

_STEP_US = 0.6
"""Assumed: a tile from its load to its store, with nothing ahead."""
_INFINITY = 'float("inf")'
_IDENTITY = {
    "sum": "0.0",
    "prod": "1.0",
    "max": f"-{_INFINITY}",
    "min": _INFINITY,
    "logaddexp": f"-{_INFINITY}",
}
_COMBINED = {
    "sum": "sum_of_two",
    "prod": "multiplied",
    "max": "larger_of_two",
    "min": "smaller_of_two",
    "logaddexp": "log_of_sum",
}
"""The function that combines two elements."""


def _numbers(scan: Scan, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    return scan.outer.evaluate(sizes), scan.length.evaluate(sizes), scan.inner.evaluate(sizes)


def _starts(scan: Scan, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[TileSchedule]:
    outer, length, inner = _numbers(scan, sizes)
    for tile in tiles.first(*((outer, length) if scan.in_rows else (length, inner)), gpu):
        yield tile
        if scan.in_rows and tile.lines == 1:
            yield TileSchedule(1, min(4 * tile.columns, 4096), 4 * tile.warps)
            yield TileSchedule(1, min(2 * tile.columns, 4096), tile.warps)


def _cost_us(scan: Scan, schedule: TileSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    outer, length, inner = _numbers(scan, sizes)
    programs, steps = outer * tiles.covered(inner, schedule.columns), tiles.covered(length, schedule.lines)
    if scan.in_rows:
        programs, steps = tiles.covered(outer, schedule.lines), tiles.covered(length, schedule.columns)
    nbytes = outer * length * inner * (2 * ITEM_SIZE[scan.dtype] + bool(scan.mask))
    total = tiles.tiled_us(gpu, nbytes, programs, schedule, 12.0, steps)
    rounds = tiles.covered(programs, gpu.multiprocessors * max(1, 32 // schedule.warps))
    return max(total, rounds * steps * _STEP_US + gpu.launch_us)


class _ScanPrinter:
    def __init__(self, scan: Scan, schedule: TileSchedule, name: str) -> None:
        self.scan, self.schedule, self.function = scan, schedule, JitFunction(name)
        self.along, self.across = ("[None, :]", "[:, None]") if scan.in_rows else ("[:, None]", "[None, :]")
        self.block, self.other = ("COLUMNS", "LINES") if scan.in_rows else ("LINES", "COLUMNS")
        self.axis = 1 if scan.in_rows else 0
        self.combine = _COMBINED[scan.op]

    def text(self, output: str) -> TritonKernel:
        grid = self._head()
        self._loop(self.function.tensor(output))
        return tiles.kernel(self.function, self.schedule, grid, 2, helpers=frozenset({self.combine}))

    def _head(self) -> str:
        function, scan = self.function, self.scan
        add = function.add
        self.source = function.tensor(scan.input)
        self.length = function.number("length", scan.length)
        outer, self.inner = function.number("outer", scan.outer), function.number("inner", scan.inner)
        if scan.in_rows:
            add("rows = program.to(tl.int64) * LINES + tl.arange(0, LINES)")
            add(f"inside = rows < {outer}", f"start = rows * {self.length}")
            return f"cdiv({expression(scan.outer)}, {self.schedule.lines})"
        add(f"tiles = tl.cdiv({self.inner}, COLUMNS)")
        add("lanes = program % tiles * COLUMNS + tl.arange(0, COLUMNS)")
        add(f"inside = lanes < {self.inner}")
        add(f"start = (program // tiles).to(tl.int64) * {self.length} * {self.inner} + lanes")
        return f"{expression(scan.outer)} * cdiv({expression(scan.inner)}, {self.schedule.columns})"

    def _loop(self, output: str) -> None:
        function, scan = self.function, self.scan
        add, identity = function.add, _IDENTITY[scan.op]
        add(f"places = tl.arange(0, {self.block}){self.along}")
        add(f"carry = tl.full(({self.other},), {identity}, tl.float32)")
        with function.block(f"for first in range(0, {self.length}, {self.block}):"):
            add("number = first + places")
            read = "number"
            if scan.exclusive:
                add("# what is before an element: nothing at the first one")
                add("before = number - 1")
                read = "before"
            at = f"{self.length} - 1 - {read}" if scan.reverse else read
            low = f" & ({read} >= 0)" if scan.exclusive else ""
            mask = f"inside{self.across} & ({read} < {self.length}){low}"
            cast = "" if scan.dtype == "float32" else ".to(tl.float32)"
            places = self._at(at)
            add(f"x = tl.load({self.source} + {places}{masked(mask, identity)}){cast}")
            if scan.mask:
                pointer = function.tensor(scan.mask)
                add(f"x *= tl.load({pointer} + {places}{masked(mask, '0')}).to(tl.float32)")
            add(f"running = {self._running()}")
            add(f"running = {self.combine}(carry{self.across}, running)")
            add("# what stands last in the tile is all up to there: elements behind the end change nothing")
            add(f"carry = tl.sum(tl.where(places == {self.block} - 1, running, 0.0), {self.axis})")
            at = f"{self.length} - 1 - number" if scan.reverse else "number"
            value = "running" if scan.dtype == "float32" else f"running.to({DTYPES[scan.dtype]})"
            mask = f"inside{self.across} & (number < {self.length})"
            add(f"tl.store({output} + {self._at(at)}, {value}{masked(mask)})")

    def _at(self, number: str) -> str:
        if self.scan.in_rows:
            return (
                f"start{self.across} + {number}" if " " not in number else f"start{self.across} + ({number})"
            )
        return f"start{self.across} + ({number}).to(tl.int64) * {self.inner}"

    def _running(self) -> str:
        if self.scan.op == "sum":
            return f"tl.cumsum(x, {self.axis})"
        return f"tl.associative_scan(x, {self.axis}, {self.combine})"


def _text(scan: Scan, schedule: TileSchedule, task: KernelTask, name: str) -> TritonKernel:
    (output,) = output_names(task)
    return _ScanPrinter(scan, schedule, name).text(output)


FAMILY = GpuFamily(
    name="scan",
    ops=categories(SCAN),
    read=on_any_gpu(read_scan),
    schedule_of=TileSchedule.of,
    starts=_starts,
    refusal=tiles.why_not,
    cost_us=_cost_us,
    notes=always((Sentence("Tiles of {lines} x {columns} elements with a carry, {warps} warps a program."),)),
    cell=always(Descriptor(Dataflow.STREAMED, "L1", Split.ROWS, Algorithm.ONLINE)),
    text_of=_text,
)
