"""What windowed kernels share, whatever their lanes are: tensors, sizes, instructions, squares that are
turned, and what averages of fewer taps divide by."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from evokernel_core.compiler.problems.pooling import Combine, PoolingAxis, Window
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, transpose
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Expr,
    Index,
    Int,
    Param,
    Size,
    Var,
    expr,
    greatest,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Enumerator, Number, Slice, Tensor
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

BLOCK = 8
"""float32 elements of a block, and rows or planes of one half of a group."""
GROUP = 16
"""Rows or planes that are turned together."""
MOST_STEPS = most_of("Max", "src0RepStride")
"""Blocks that a repeat steps over."""
MOST_REPEATED = MOST_STEPS // BLOCK
"""Blocks between columns up to which one instruction takes all columns: eight of them are a repeat stride."""
WORD = Var("i")
_MOST_REPEATS = most_of("TransDataTo5HD", "repeatTimes")
Turn = tuple[Expr, Expr]
"""Which of the slices of a window is loaded, and the tap that reads it."""
_NOTES = {
    Combine.MAX: "The largest element of each window.",
    Combine.SUM: "The sum or the average of each window.",
    Combine.WEIGHTED: "The sum of each window's elements times the weights of its channel.",
}


class LaneKernel(ABC):
    """A kernel that turns sixteen rows or planes at a time: eight values fill a block, in each half of them.
    ``unit``: elements that fill whole blocks before and after a cast."""

    first_slice: Expr
    depth_in: Expr
    depth_out: Expr

    def __init__(self, window: Window) -> None:
        self.k, self.window = Builder(_NOTES[window.combine]), window
        self.ctype, self.width = CPP_TYPE[window.dtype], ITEM_SIZE[window.dtype]
        self.is_float = self.ctype == "float"
        self.weighted = window.combine is Combine.WEIGHTED
        self.key = "Max" if window.combine is Combine.MAX else "Add"
        outside = float("-inf") if window.combine is Combine.MAX else 0.0
        self.outside = Number("OUTSIDE", outside, "what lies beyond the input")
        self.unit = max(BLOCK_BYTES // self.width, BLOCK)
        self._tensors()

    def _tensors(self) -> None:
        """``outputs``: by the number of the result, 0 the values, 1 where the maxima lie."""
        k, window = self.k, self.window
        kinds = [("y", "output", self.ctype, self.width), ("indices", "indices", "int64_t", 8)]
        names = {"x": window.source, "weight": window.weight, "bias": window.bias}
        addresses = [kinds[index][1] for index in window.results]
        result = {
            name: k.input(name, parameter(source, addresses), self.ctype, self.width)
            for name, source in names.items()
            if source
        }
        self.x, self.weight, self.bias = result["x"], result.get("weight"), result.get("bias")
        self.outputs: dict[int, Tensor] = {index: k.output(*kinds[index]) for index in window.results}

    def sizes(self) -> None:
        """Parameters of the input's and the result's sizes."""
        k, window = self.k, self.window
        self.planes = k.param("planes", Size(window.planes), "of the result: images times channels")
        k.require(self.planes, ">=", 1)
        if not window.depth.is_plain:
            self.depth_in, self.depth_out = self._sizes("depth", window.depth)
        self.rows_in, self.rows_out = self._sizes("rows", window.rows)
        self.columns_in, self.columns_out = self._sizes("columns", window.columns)
        if self.weighted:
            self.channels = k.param("channels", Size(window.channels))
            self.inner = k.param("inner", Size(window.inner), "planes or rows in a row of one channel")

    def _sizes(self, name: str, axis: PoolingAxis) -> tuple[Param, Param]:
        """Of the input and of the result."""
        k = self.k
        result = k.param(f"{name}In", Size(axis.size)), k.param(f"{name}Out", Size(axis.result))
        k.require(result[1], ">=", 1)
        return result

    def channel(self, number: Expr) -> Expr:
        """Of a plane or row of the result."""
        return number // self.inner % self.channels

    # -- instructions ---------------------------------------------------------------------------

    def cast(self, to: Slice, source: Slice, count: Expr, mode: str) -> None:
        self.k.on("Cast", to, source, Enumerator(f"RoundMode::CAST_{mode}"), count=count)

    def first(self, turn: Turn | None) -> AbstractContextManager[None]:
        """Only for the first slice of a window."""
        return nullcontext() if turn is None else self.k.when(turn[0], "==", 0)

    # -- squares that are turned ----------------------------------------------------------------

    def turn_in(self, to: Slice, half: Expr, rows: tuple[Slice, Expr, Expr], blocks: Expr, most: int) -> None:
        """Turns up to 16 rows of so many blocks, at most ``most``: where they begin, elements from one to the
        next, how many they are. A short group repeats its last row."""
        source, apart, count = rows
        origin = source.behind(least(WORD, count - 1) * apart)
        target = to.behind(WORD % 2 * half + WORD // 2 * BLOCK)
        self._turn(target, (origin, 1), BLOCK, blocks, most)

    def turn_out(self, rows: tuple[Slice, Expr, int], lanes: Slice, half: Expr, halves: Expr) -> None:
        """Turns rows back: where they begin, elements from one to the next, and most of these."""
        to, apart, most = rows
        with self.k.loop("side", halves) as side:
            origin = lanes.behind(side * half + WORD * BLOCK)
            target = to.behind((side * BLOCK + WORD // 2) * apart + WORD % 2 * BLOCK)
            self._turn(target, (origin, GROUP), 2, apart // GROUP, most // GROUP)

    def _turn(self, to: Slice, source: tuple[Slice, int], step: int, repeats: Expr, most: int) -> None:
        """Transposes squares of 16 blocks, of which the next lies so many blocks further."""
        origin, behind = source
        with self.repeated(self.k.let("repeats", repeats), most) as (done, times):
            made, taken = (
                (item.behind(done * by * BLOCK), by) for item, by in ((to, step), (origin, behind))
            )
            transpose(self.k, made, taken, WORD, times)

    @contextmanager
    def repeated(self, repeats: Expr, most: int) -> Iterator[tuple[Expr, Expr]]:
        """So many repeats, at most ``most``, in pieces that an instruction takes."""
        if most <= _MOST_REPEATS:
            yield Int(0), repeats
        else:
            with self.k.pieces("repeat", (0, repeats), _MOST_REPEATS) as piece:
                yield piece

    # -- averages -------------------------------------------------------------------------------

    @property
    def divides(self) -> bool:
        """Whether sums are divided by something."""
        return self.window.combine is Combine.SUM and self._divisor != 1

    @property
    def _divisor(self) -> int:
        return self.window.divisor.fixed or self.window.taps

    def divide(self, result: Slice, count: Expr) -> None:
        """Sums of windows by what all but those at the borders count."""
        if self.divides:
            self.k.on("Muls", result, result, Number("SCALE", 1 / self._divisor), count=count)

    def divides_less(self, *axes: PoolingAxis) -> bool:
        """Whether averages count fewer taps of these axes somewhere."""
        divisor = self.window.divisor
        averages = self.window.combine is Combine.SUM and not divisor.fixed
        return averages and not all(axis.counts_all(divisor.counts_padding) for axis in axes)

    def counted_rows(self, row: Expr) -> tuple[Expr, Expr]:
        """The taps that a row's windows count but for their columns, and most of them."""
        depth, rows, _ = self.window.axes
        begin = self.k.let("windowRow", row * rows.stride, U64)
        counted = self._counted(begin, rows, self.rows_in)
        if not depth.is_plain:
            counted = self._counted(self.first_slice, depth, self.depth_in) * counted
        return self.k.let("counted", counted), Int(depth.taps * rows.taps)

    def counted_columns(self, column: Expr) -> tuple[Expr, Expr]:
        """The same of a column."""
        axis = self.window.columns
        begin = self.k.let("windowColumn", column * axis.stride, U64)
        return self.k.let("counted", self._counted(begin, axis, self.columns_in)), Int(axis.taps)

    def _counted(self, begin: Expr, axis: PoolingAxis, size: Expr) -> Expr:
        """Taps that an average counts from ``begin`` on, which counts what lies in front of the input."""
        if self.window.divisor.counts_padding:
            return least(begin + axis.taps, size + 2 * axis.padding) - begin
        return least(begin + axis.taps, size + axis.padding) - greatest(begin, axis.padding)


def padded(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def clipped(begin: Index, axis: PoolingAxis) -> Expr:
    """Where the input begins of what windows read from ``begin`` on, which counts what lies in front."""
    return greatest(begin, axis.padding) - axis.padding if axis.padding else expr(begin)


def in_front(begin: Index, axis: PoolingAxis) -> Expr:
    """Elements of that which lie in front of the input."""
    return greatest(begin, axis.padding) - begin if axis.padding else Int(0)
