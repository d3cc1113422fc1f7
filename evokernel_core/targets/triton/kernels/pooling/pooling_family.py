"""Family pooling: windows that combine what is below them, and depthwise convolutions.

A program computes a tile of lines and columns of the result, where a line is a row of some plane; windows of
neighbours share what they read in L1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evokernel_core.compiler.aten import AVERAGE_POOLS, MAX_POOLS
from evokernel_core.compiler.problems.pooling import CONVOLUTIONS, Combine, PoolingAxis, Window, read_window
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.expressions import next_power_of_2
from evokernel_core.targets.triton.kernels import tiles
from evokernel_core.targets.triton.kernels.function import JitFunction, both, expression, masked
from evokernel_core.targets.triton.kernels.names import output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily, always, on_any_gpu
from evokernel_core.targets.triton.kernels.text import DTYPES, TritonKernel
from evokernel_core.targets.triton.kernels.tiles import TileSchedule

_OPS = MAX_POOLS | AVERAGE_POOLS | CONVOLUTIONS
_UNROLLED = 32
"""Taps up to which a window is written out by the compiler."""
_IN_THREAD, _WIDEST = 2, 128
"""Elements to a thread, and columns, of first schedules (docs/results/gpu_search.md)."""
_AXES = ("depth", "rows", "columns")


def _read(task: KernelTask) -> Window:
    return read_window(task, _OPS)


def _lines(window: Window, sizes: Mapping[str, int]) -> int:
    return (
        window.planes.evaluate(sizes)
        * window.depth.result.evaluate(sizes)
        * window.rows.result.evaluate(sizes)
    )


def _starts(window: Window, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[TileSchedule]:
    """Long and low tiles with few elements to a thread: taps of several lines fall into few sets of L1."""
    lines, columns = _lines(window, sizes), window.columns.result.evaluate(sizes)
    for warps in (4, 2, 1):
        elements = warps * gpu.threads_per_warp * _IN_THREAD
        width = min(next_power_of_2(columns), _WIDEST, elements)
        yield TileSchedule(min(next_power_of_2(lines), elements // width), width, warps)


def _cost_us(window: Window, schedule: TileSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    lines, columns = _lines(window, sizes), window.columns.result.evaluate(sizes)
    programs = tiles.covered(lines, schedule.lines) * tiles.covered(columns, schedule.columns)
    read = window.planes.evaluate(sizes) // window.spread
    for axis in window.axes:
        read *= axis.size.evaluate(sizes)
    size = ITEM_SIZE[window.dtype]
    nbytes = read * size + lines * columns * (size * (0 in window.results) + 8 * window.finds)
    return tiles.tiled_us(gpu, nbytes, programs, schedule, 8.0 * window.taps)


class _PoolingPrinter:
    def __init__(self, window: Window, schedule: TileSchedule, name: str) -> None:
        self.window, self.schedule, self.function = window, schedule, JitFunction(name)

    def text(self, outputs: tuple[str, ...]) -> TritonKernel:
        function, window = self.function, self.window
        self.source = function.tensor(window.source)
        self.sizes = {key: function.number(f"{key}_in", getattr(window, key).size) for key in _AXES}
        self.results = {key: function.number(f"{key}_out", getattr(window, key).result) for key in _AXES}
        self._head()
        self._taps()
        self._store(outputs)
        lines = [expression(one) for one in (window.planes, window.depth.result, window.rows.result)]
        grid = tiles.grid(self.schedule, " * ".join(lines), expression(window.columns.result))
        return tiles.kernel(function, self.schedule, grid)

    def _head(self) -> None:
        """Which results a program has, and where their windows begin."""
        function, window = self.function, self.window
        add = function.add
        planes = function.number("planes", window.planes)
        depth, rows, columns = (self.results[key] for key in _AXES)
        add(f"tiles = tl.cdiv({columns}, COLUMNS)")
        add("lines = (program // tiles).to(tl.int64) * LINES + tl.arange(0, LINES)[:, None]")
        add("columns = program % tiles * COLUMNS + tl.arange(0, COLUMNS)[None, :]")
        add(f"inside = (lines < {planes} * {depth} * {rows}) & (columns < {columns})")
        add(f"plane = lines // ({depth} * {rows})")
        add(f"first_depth = {_start(f'(lines // {rows} % {depth}).to(tl.int32)', window.depth)}")
        add(f"first_rows = {_start(f'(lines % {rows}).to(tl.int32)', window.rows)}")
        add(f"first_columns = {_start('columns', window.columns)}")
        plane_size = " * ".join(self.sizes[key] for key in _AXES)
        add(f"start = {self._input_plane()} * {plane_size}")
        if window.weight:
            inner, channels = (
                function.number("inner", window.inner),
                function.number("channels", window.channels),
            )
            number = f"(lines % {rows})" if window.weighs_rows else "plane"
            number = number if inner == "1" else f"{number} // {inner}"
            add(f"channel = {number} % {channels}")

    def _input_plane(self) -> str:
        if self.window.spread == 1:
            return "plane"
        inner = self.function.number("inner", self.window.inner)
        if inner == "1":
            return f"(plane // {self.window.spread})"
        return f"(plane // ({inner} * {self.window.spread}) * {inner} + plane % {inner})"

    def _taps(self) -> None:
        function, window = self.function, self.window
        add = function.add
        zero = 'float("-inf")' if window.combine is Combine.MAX else "0.0"
        if zero == "0.0":
            add("result = tl.zeros((LINES, COLUMNS), tl.float32)")
        else:
            add(f"result = tl.full((LINES, COLUMNS), {zero}, tl.float32)")
        if window.finds:
            add("index = tl.full((LINES, COLUMNS), -1, tl.int32)")
        if window.weight:
            self.weight = function.tensor(window.weight)
        self._nest(list(_AXES), zero)

    def _nest(self, left: list[str], zero: str) -> None:
        """One loop for each dimension that has several taps."""
        if not left:
            self._tap(zero)
            return
        key, axis = left[0], getattr(self.window, left[0])
        if axis.taps == 1:
            self.function.add(f"{key}_at = first_{key}")
            self._nest(left[1:], zero)
            return
        loop = "tl.static_range" if self.window.taps <= _UNROLLED else "range"
        with self.function.block(f"for {key}_tap in {loop}({axis.taps}):"):
            step = f"{key}_tap" if axis.dilation == 1 else f"{key}_tap * {axis.dilation}"
            self.function.add(f"{key}_at = first_{key} + {step}")
            self._nest(left[1:], zero)

    def _tap(self, zero: str) -> None:
        window, add = self.window, self.function.add
        checks = [
            f"({key}_at >= 0) & ({key}_at < {self.sizes[key]})"
            for key in _AXES
            if not getattr(window, key).stays_inside
        ]
        rows, columns = self.sizes["rows"], self.sizes["columns"]
        row = "rows_at.to(tl.int64)" if window.depth.size.is_one else f"(depth_at * {rows} + rows_at)"
        add(f"place = {row} * {columns} + columns_at")
        add(f"seen = {both('inside', *checks)}")
        cast = "" if window.dtype == "float32" else ".to(tl.float32)"
        add(f"x = tl.load({self.source} + start + place{masked('seen', zero)}){cast}")
        if window.combine is Combine.SUM:
            add("result += x")
        elif window.combine is Combine.WEIGHTED:
            cast = "" if window.dtype == "float32" else ".to(tl.float32)"
            add(f"weight = tl.load({self.weight} + channel * {window.taps} + {self._tap_number()}){cast}")
            add("result += x * weight")
        elif window.finds:
            add("# the first of equal elements, and the last NaN, as in PyTorch")
            add("wins = seen & ((x > result) | (x != x) | (index < 0))")
            add("result = tl.where(wins, x, result)", "index = tl.where(wins, place.to(tl.int32), index)")
        else:
            add("result = tl.maximum(result, x, propagate_nan=tl.PropagateNan.ALL)")

    def _tap_number(self) -> str:
        number = "0"
        for key in _AXES:
            taps = getattr(self.window, key).taps
            if taps > 1:
                number = f"{key}_tap" if number == "0" else f"({number}) * {taps} + {key}_tap"
        return number

    def _store(self, outputs: tuple[str, ...]) -> None:
        function, window = self.function, self.window
        if window.combine is Combine.SUM:
            function.add(f"result = result / {self._divisor()}")
        if window.bias:
            cast = "" if window.dtype == "float32" else ".to(tl.float32)"
            function.add(f"result += tl.load({function.tensor(window.bias)} + channel){cast}")
        function.add(f"results = lines * {self.results['columns']} + columns")
        for name, which in zip(outputs, window.results, strict=True):
            value = "index.to(tl.int64)" if which else "result"
            if not which and window.dtype != "float32":
                value = f"result.to({DTYPES[window.dtype]})"
            function.add(f"tl.store({function.tensor(name)} + results, {value}, mask=inside)")

    def _divisor(self) -> str:
        window = self.window
        if window.divisor.fixed is not None:
            return repr(float(window.divisor.fixed))
        factors = []
        for key in _AXES:
            axis: PoolingAxis = getattr(window, key)
            if axis.counts_all(window.divisor.counts_padding):
                if axis.taps > 1:
                    factors.append(repr(float(axis.taps)))
                continue
            self._count(key, axis)
            factors.append(f"{key}_count.to(tl.float32)")
        return f"({' * '.join(factors)})" if factors else "1.0"

    def _count(self, key: str, axis: PoolingAxis) -> None:
        """How many taps of windows count along one dimension."""
        size = self.sizes[key]
        more = axis.padding if self.window.divisor.counts_padding else 0
        last = f"tl.minimum(first_{key} + {axis.taps}, {size} + {more})" if more else (
            f"tl.minimum(first_{key} + {axis.taps}, {size})"
        )  # fmt: skip
        first = f"first_{key}" if more or not axis.padding else f"tl.maximum(first_{key}, 0)"
        self.function.add(f"{key}_count = {last} - {first}")


def _start(number: str, axis: PoolingAxis) -> str:
    text = number if axis.stride == 1 else f"{number} * {axis.stride}"
    return text if axis.padding == 0 else f"{text} - {axis.padding}"


def _text(window: Window, schedule: TileSchedule, task: KernelTask, name: str) -> TritonKernel:
    return _PoolingPrinter(window, schedule, name).text(output_names(task))


FAMILY = GpuFamily(
    name="pooling",
    ops=dict.fromkeys(sorted(_OPS), "kernel"),
    read=on_any_gpu(_read),
    schedule_of=TileSchedule.of,
    starts=_starts,
    refusal=tiles.why_not,
    cost_us=_cost_us,
    notes=always(
        (Sentence("Tiles of {lines} rows and {columns} columns of the result, {warps} warps a program."),)
    ),
    cell=always(Descriptor(Dataflow.OUTPUT_STATIONARY, "L1", Split.TILES, Algorithm.DIRECT)),
    text_of=_text,
)
