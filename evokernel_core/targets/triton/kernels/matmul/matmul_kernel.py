"""The text of matrix products: a tile of the result to a program, panels along k one after another."""

from __future__ import annotations

from evokernel_core.compiler.problems.products import Product, Triangle
from evokernel_core.targets.triton.kernels.function import (
    JitFunction,
    both,
    divides,
    expression,
    masked,
)
from evokernel_core.targets.triton.kernels.matmul.matmul_schedule import MatmulSchedule
from evokernel_core.targets.triton.kernels.matmul.operands import operand
from evokernel_core.targets.triton.kernels.precision import argument
from evokernel_core.targets.triton.kernels.text import DTYPES, TritonKernel
from evokernel_core.targets.triton.launch import Launch, Scratch

_ADDED = 1024
"""Elements of the result to a program that adds the parts of sums."""


def matmul(problem: Product, schedule: MatmulSchedule, output: str, scratch: str, name: str) -> TritonKernel:
    """The kernel of a product without epilogue. ``scratch`` names the parts of split sums."""
    splits = schedule.split_k
    function = JitFunction(name)
    printer = _Printer(problem, schedule, function)
    printer.head()
    printer.sums()
    if problem.relu and splits == 1:
        function.add("sums = tl.maximum(sums, 0.0, propagate_nan=tl.PropagateNan.ALL)")
    if problem.triangle and splits == 1:
        function.add(f"sums = tl.where({_kept(problem.triangle)}, sums, 0.0)")
    printer.store(scratch if splits > 1 else output, "float32" if splits > 1 else problem.out_dtype)
    launch = function.launch(printer.grid(), schedule.warps, schedule.stages)
    if splits == 1:
        return TritonKernel((function.text(),), (launch,))
    elements = expression(problem.batch.times(problem.m).times(problem.n))
    adding, second = _adding(problem, splits, scratch, output, f"{name}_sum")
    memory = Scratch(scratch, "float32", f"{splits} * {elements}")
    return TritonKernel((function.text(), adding), (launch, second), scratch=(memory,))


class _Printer:
    def __init__(self, problem: Product, schedule: MatmulSchedule, function: JitFunction) -> None:
        self.problem, self.schedule, self.function = problem, schedule, function
        self.parts = schedule.split_k * max(problem.splits, 1)
        self.whole_m = divides(schedule.block_m, problem.m)
        self.whole_n = divides(schedule.block_n, problem.n)
        self.whole_k = divides(schedule.block_k * self.parts, problem.k)
        self.batched = not problem.batch.is_one

    def head(self) -> None:
        """Which tile a program computes."""
        function, problem = self.function, self.problem
        self.left = operand(function, problem.a, "a", "batch")
        self.right = operand(function, problem.b, "b", "batch")
        self.m, self.n, self.k = (function.number(key, getattr(problem, key)) for key in ("m", "n", "k"))
        add = function.add
        add(f"tiles_m = tl.cdiv({self.m}, BLOCK_M)", f"tiles_n = tl.cdiv({self.n}, BLOCK_N)")
        add("program = tl.program_id(0)")
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

    def sums(self) -> None:
        """The loop along k."""
        function, problem = self.function, self.problem
        first, last = self._share()
        self._pointers(first)
        function.add("sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)")
        if problem.triangle:
            last = self._last_of_triangle(last)
        with function.block(f"for at in range({first}, {last}, BLOCK_K):"):
            behind = "" if self.whole_k else f"depth {{}} < {last} - at"
            rows = "" if self.whole_m else f"rows[:, None] < {self.m}"
            columns = "" if self.whole_n else f"columns[None, :] < {self.n}"
            left = masked(both(rows, behind.replace(" {}", "[None, :]")), "0.0")
            right = masked(both(behind.replace(" {}", "[:, None]"), columns), "0.0")
            function.add(f"a = tl.load(left{left})", f"b = tl.load(right{right})")
            precision = argument(self.schedule.precision, problem.dtype)
            function.add(f"sums = tl.dot(a, b, sums{precision})")
            function.add(f"left += {_step(self.left.column)}", f"right += {_step(self.right.row)}")

    def _share(self) -> tuple[str, str]:
        """Where a program's share of k begins and ends."""
        if self.parts == 1:
            return "0", self.k
        self.function.add(f"share = tl.cdiv(tl.cdiv({self.k}, BLOCK_K), {self.parts}) * BLOCK_K")
        self.function.add("begin = part * share", f"end = min(begin + share, {self.k})")
        return "begin", "end"

    def _pointers(self, first: str) -> None:
        for name, side, rows, columns in (
            ("left", self.left, "rows[:, None]", "depth[None, :]"),
            ("right", self.right, "depth[:, None]", "columns[None, :]"),
        ):
            base = f"{side.pointer} + {side.start}" if side.start else side.pointer
            if first != "0":
                base += f" + {_times(f'{first}.to(tl.int64)', side.column if name == 'left' else side.row)}"
            places = (f"{part}.to(tl.int64)" if part[0] in "rc" else part for part in (rows, columns))
            self.function.add(f"{name} = {base} + {side.at(*places)}")

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

    def store(self, output: str, dtype: str) -> None:
        """Writes the tile, whose matrix is dense."""
        function = self.function
        matrix = []
        if self.batched:
            matrix.append("batch")
        if self.parts > 1:
            matrix = [f"part.to(tl.int64) * {function.number('batch_size', self.problem.batch)} + batch"
                      if self.batched else "part.to(tl.int64)"]  # fmt: skip
        pointer = function.tensor(output)
        base = f"{pointer} + ({matrix[0]}) * {self.m} * {self.n}" if matrix else pointer
        for key, number in self.schedule.constants().items():
            function.constant(key, number)
        mask = both(
            "" if self.whole_m else f"rows[:, None] < {self.m}",
            "" if self.whole_n else f"columns[None, :] < {self.n}",
        )
        value = "sums" if dtype == "float32" else f"sums.to({DTYPES[dtype]})"
        function.add(f"places = rows[:, None].to(tl.int64) * {self.n} + columns[None, :]")
        function.add(f"tl.store({base} + places, {value}{masked(mask)})")

    def grid(self) -> str:
        """Programs of the launch."""
        tiles = f"cdiv({expression(self.problem.m)}, {self.schedule.block_m})"
        tiles += f" * cdiv({expression(self.problem.n)}, {self.schedule.block_n})"
        return f"{expression(self.problem.batch)} * {self.parts} * {tiles}"


def _adding(problem: Product, parts: int, scratch: str, output: str, name: str) -> tuple[str, Launch]:
    """The second launch of split sums, in the order of their parts."""
    function = JitFunction(name)
    pointer, to = function.tensor(scratch), function.tensor(output)
    elements = problem.batch.times(problem.m).times(problem.n)
    count = function.number("elements", elements)
    mask = "" if divides(_ADDED, elements) else f"places < {count}"
    function.constant("BLOCK", _ADDED)
    function.add("places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)")
    function.add("sums = tl.zeros((BLOCK,), tl.float32)")
    with function.block(f"for part in range({parts}):"):
        function.add(f"sums += tl.load({pointer} + places{masked(mask, '0.0')})")
        function.add(f"{pointer} += {count}")
    if problem.relu:
        function.add("sums = tl.maximum(sums, 0.0, propagate_nan=tl.PropagateNan.ALL)")
    if problem.triangle:
        m, n = function.number("m", problem.m), function.number("n", problem.n)
        function.add(f"rows = places // {n} % {m}", f"columns = places % {n}")
        function.add(f"sums = tl.where({_kept(problem.triangle, plain=True)}, sums, 0.0)")
    value = "sums" if problem.out_dtype == "float32" else f"sums.to({DTYPES[problem.out_dtype]})"
    function.add(f"tl.store({to} + places, {value}{masked(mask)})")
    return function.text(), function.launch(f"cdiv({expression(elements)}, {_ADDED})", 4)


def _kept(triangle: Triangle, plain: bool = False) -> str:
    sign = ">=" if triangle.upper else "<="
    columns, rows = ("columns", "rows") if plain else ("columns[None, :]", "rows[:, None]")
    return f"{columns} - {rows} {sign} {triangle.diagonal}"


def _step(stride: str) -> str:
    return "BLOCK_K" if stride == "1" else f"BLOCK_K * {stride}"


def _times(text: str, factor: str) -> str:
    return text if factor == "1" else f"{text} * {factor}"
