"""The text of matrix products: a tile of the result to a program, panels along k one after another."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.problems.products import Product, Triangle
from evokernel_core.targets.triton.kernels.epilogue import Epilogue, EpiloguePrinter, Place, RowIndex
from evokernel_core.targets.triton.kernels.function import (
    JitFunction,
    JitText,
    both,
    divides,
    expression,
    masked,
)
from evokernel_core.targets.triton.kernels.matmul.matmul_schedule import MatmulSchedule
from evokernel_core.targets.triton.kernels.matmul.operands import operand, scaled
from evokernel_core.targets.triton.kernels.precision import argument
from evokernel_core.targets.triton.kernels.text import DTYPES, TritonKernel
from evokernel_core.targets.triton.launch import Launch, Scratch

_ADDED = 256
"""Elements of the result to a program that adds the parts of sums."""


@frozen
class ProductOutput:
    """Where results go: the ``outputs``, behind an ``epilogue`` where there is one; ``scratch`` names the
    parts of split sums."""

    outputs: tuple[str, ...]
    scratch: str
    epilogue: Epilogue | None = None


def matmul(problem: Product, schedule: MatmulSchedule, results: ProductOutput, name: str) -> TritonKernel:
    """The kernel of a product."""
    splits = schedule.split_k
    printer = _MatmulPrinter(problem, schedule, JitFunction(name))
    printer.head()
    printer.sums()
    if splits > 1:
        printer.store_plain(results.scratch, "float32")
    else:
        printer.finish(results)
    printer.constants()
    launch = printer.function.launch(printer.grid(), schedule.warps, schedule.stages)
    text = printer.function.jit_text()
    if splits == 1:
        return TritonKernel((text,), (launch,), frozenset(printer.helpers))
    elements = expression(problem.batch.times(problem.m).times(problem.n))
    adding, second, helpers = _adding(problem, splits, results, f"{name}_sum")
    memory = Scratch(results.scratch, "float32", f"{splits} * {elements}")
    return TritonKernel((text, adding), (launch, second), frozenset(helpers), scratch=(memory,))


class _MatmulPrinter:
    def __init__(self, problem: Product, schedule: MatmulSchedule, function: JitFunction) -> None:
        self.problem, self.schedule, self.function = problem, schedule, function
        self.parts = schedule.split_k * max(problem.splits, 1)
        self.helpers: set[str] = set()
        self.whole_k = divides(schedule.block_k * self.parts, problem.k)
        self.batched = not problem.batch.is_one

    def head(self) -> None:
        """Which tile a program computes."""
        function, problem = self.function, self.problem
        self.left = operand(function, problem.a, "a", "batch")
        self.right = operand(function, problem.b, "b", "batch")
        self.m, self.n, self.k = (function.number(key, getattr(problem, key)) for key in ("m", "n", "k"))
        self.row_mask = "" if divides(self.schedule.block_m, problem.m) else "in_rows"
        self.column_mask = "" if divides(self.schedule.block_n, problem.n) else "in_columns"
        add = function.add
        add(f"tiles_m = tl.cdiv({self.m}, BLOCK_M)", f"tiles_n = tl.cdiv({self.n}, BLOCK_N)")
        add("tile = program % (tiles_m * tiles_n)")
        if self.batched or self.parts > 1:
            add("rest = program // (tiles_m * tiles_n)")
        if self.batched:
            add(
                f"batch = (rest // {self.parts}).to(tl.int64)"
                if self.parts > 1
                else "batch = rest.to(tl.int64)"
            )
        if self.parts > 1:
            add(f"part = rest % {self.parts}" if self.batched else "part = rest")
        add("# GROUP_M rows of tiles go column by column: programs at work share operands in L2")
        add("first_m = tile // (GROUP_M * tiles_n) * GROUP_M")
        add("group_m = min(tiles_m - first_m, GROUP_M)")
        add("tile_m = first_m + tile % (GROUP_M * tiles_n) % group_m")
        add("tile_n = tile % (GROUP_M * tiles_n) // group_m")
        add("rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)")
        add("columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)")
        add("depth = tl.arange(0, BLOCK_K)")
        if self.row_mask:
            add(f"in_rows = rows[:, None] < {self.m}")
        if self.column_mask:
            add(f"in_columns = columns[None, :] < {self.n}")

    def sums(self) -> None:
        """The loop along k."""
        function, problem = self.function, self.problem
        first, last = self._share()
        self._pointers(first)
        swapped = self.schedule.swapped
        function.add(
            f"sums = tl.zeros({'(BLOCK_N, BLOCK_M)' if swapped else '(BLOCK_M, BLOCK_N)'}, tl.float32)"
        )
        if problem.triangle:
            last = self._last_of_triangle(last)
        with function.block(f"for at in range({first}, {last}, BLOCK_K):"):
            left = both(self.row_mask, "" if self.whole_k else f"depth[None, :] < {last} - at")
            right = both("" if self.whole_k else f"depth[:, None] < {last} - at", self.column_mask)
            function.add(
                f"a = tl.load(left{masked(left, '0.0')})", f"b = tl.load(right{masked(right, '0.0')})"
            )
            precision = argument(self.schedule.precision, problem.dtype)
            factors = "tl.trans(b), tl.trans(a)" if swapped else "a, b"
            function.add(f"sums = tl.dot({factors}, sums{precision})")
            function.add(f"left += {_step(self.left.column)}", f"right += {_step(self.right.row)}")
        if swapped:
            function.add("sums = tl.trans(sums)")

    def _share(self) -> tuple[str, str]:
        """Where a program's share of k begins and ends."""
        if self.parts == 1:
            return "0", self.k
        self.function.add(f"share = BLOCK_K * tl.cdiv({self.k}, BLOCK_K * {self.parts})")
        self.function.add("begin = part * share", f"end = min(begin + share, {self.k})")
        return "begin", "end"

    def _pointers(self, first: str) -> None:
        for name, side, rows, columns in (
            ("left", self.left, "rows[:, None].to(tl.int64)", "depth[None, :]"),
            ("right", self.right, "depth[:, None]", "columns[None, :].to(tl.int64)"),
        ):
            base = f"{side.pointer} + {side.start}" if side.start else side.pointer
            if first != "0":
                base += f" + {scaled(f'{first}.to(tl.int64)', side.column if name == 'left' else side.row)}"
            self.function.add(f"{name} = {base} + {side.at(rows, columns)}")

    def _last_of_triangle(self, last: str) -> str:
        triangle = self.problem.triangle
        assert triangle is not None
        self.function.add("# a tile of which nothing is kept takes no sums")
        if triangle.upper:
            kept = f"tile_n * BLOCK_N + BLOCK_N - 1 - tile_m * BLOCK_M >= {triangle.diagonal}"
        else:
            kept = f"tile_n * BLOCK_N - (tile_m * BLOCK_M + BLOCK_M - 1) <= {triangle.diagonal}"
        self.function.add(f"last = tl.where({kept}, {last}, 0)")
        return "last"

    def finish(self, results: ProductOutput) -> None:
        """What is done to sums on their way to the outputs, and their stores."""
        problem, function = self.problem, self.function
        if results.epilogue is not None:
            row = f"(batch * {self.m} + rows[:, None])" if self.batched else "rows[:, None].to(tl.int64)"
            inner = RowIndex(problem.m, "rows[:, None].to(tl.int64)", self.row_mask)
            rows = (RowIndex(problem.batch, "batch"), inner)
            place = Place(row, "columns[None, :]", rows, self.row_mask, self.column_mask)
            printer = EpiloguePrinter(results.epilogue, function, place)
            printer.store("sums", results.outputs)
            self.helpers |= printer.helpers
            return
        _simple_epilogue(problem, function, "columns[None, :]", "rows[:, None]")
        (output,) = results.outputs
        self.store_plain(output, problem.out_dtype)

    def store_plain(self, output: str, dtype: str) -> None:
        """Writes the tile, whose matrix is dense."""
        function = self.function
        matrix = "batch" if self.batched else ""
        if self.parts > 1:
            matrix = "part.to(tl.int64)"
            if self.batched:
                matrix += f" * {function.number('batch_size', self.problem.batch)} + batch"
        pointer = function.tensor(output)
        base = f"{pointer} + ({matrix}) * {self.m} * {self.n}" if matrix else pointer
        value = "sums" if dtype == "float32" else f"sums.to({DTYPES[dtype]})"
        function.add(f"places = rows[:, None].to(tl.int64) * {self.n} + columns[None, :]")
        function.add(f"tl.store({base} + places, {value}{masked(both(self.row_mask, self.column_mask))})")

    def constants(self) -> None:
        """The blocks of the schedule."""
        for key, number in self.schedule.constants().items():
            self.function.constant(key, number)

    def grid(self) -> str:
        """Programs of the launch."""
        tiles = f"cdiv({expression(self.problem.m)}, {self.schedule.block_m})"
        tiles += f" * cdiv({expression(self.problem.n)}, {self.schedule.block_n})"
        return f"{expression(self.problem.batch)} * {self.parts} * {tiles}"


def _adding(
    problem: Product, parts: int, results: ProductOutput, name: str
) -> tuple[JitText, Launch, set[str]]:
    """The second launch of split sums, in the order of their parts."""
    function = JitFunction(name)
    pointer = function.tensor(results.scratch)
    elements = problem.batch.times(problem.m).times(problem.n)
    count = function.number("elements", elements)
    mask = "" if divides(_ADDED, elements) else f"places < {count}"
    function.add("places = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)")
    function.add("sums = tl.zeros((BLOCK,), tl.float32)")
    with function.block(f"for part in tl.static_range({parts}):"):
        function.add(f"sums += tl.load({pointer} + places{masked(mask, '0.0')})")
        function.add(f"{pointer} += {count}")
    helpers: set[str] = set()
    if results.epilogue is not None or problem.triangle is not None:
        n = function.number("n", problem.n)
        function.add(f"rows = places // {n}", f"columns = places % {n}")
    if results.epilogue is not None:
        printer = EpiloguePrinter(results.epilogue, function, Place("rows", "columns", (), mask, mask))
        printer.store("sums", results.outputs)
        helpers = printer.helpers
    else:
        row = "rows" if problem.batch.is_one else f"rows % {function.number('m', problem.m)}"
        _simple_epilogue(problem, function, "columns", row)
        value = "sums" if problem.out_dtype == "float32" else f"sums.to({DTYPES[problem.out_dtype]})"
        (output,) = results.outputs
        function.add(f"tl.store({function.tensor(output)} + places, {value}{masked(mask)})")
    function.constant("BLOCK", _ADDED)
    return function.jit_text(), function.launch(f"cdiv({expression(elements)}, {_ADDED})", 4), helpers


def _simple_epilogue(problem: Product, function: JitFunction, columns: str, rows: str) -> None:
    """The ReLU and the triangle that a product has of its own."""
    if problem.relu:
        function.add("sums = tl.maximum(sums, 0.0, propagate_nan=tl.PropagateNan.ALL)")
    if problem.triangle:
        kept = _kept(problem.triangle, columns, rows)
        function.add(f"sums = tl.where({kept}, sums, 0.0)")


def _kept(triangle: Triangle, columns: str, rows: str) -> str:
    return f"{columns} - {rows} {'>=' if triangle.upper else '<='} {triangle.diagonal}"


def _step(stride: str) -> str:
    return "BLOCK_K" if stride == "1" else f"BLOCK_K * {stride}"
