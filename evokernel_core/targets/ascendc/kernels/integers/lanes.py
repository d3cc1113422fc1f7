"""Reductions of short rows of integers: rows are lanes, and a tile's columns are gathered one after another.

A row that is longer than a tile is one lane, tile by tile: right, but nothing to choose.
"""

from __future__ import annotations

from evokernel_core.compiler.problems.integers import IntegerRows
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.ir.builder import read_as
from evokernel_core.targets.ascendc.ir.expr import U64, Constant, Expr, Int, ceil_div, greatest, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Kernel, Slice
from evokernel_core.targets.ascendc.kernels.integers.instructions import WORD, Writer, number
from evokernel_core.targets.ascendc.kernels.integers.integers_settings import IntegerRowsSchedule
from evokernel_core.targets.ascendc.kernels.integers.reduction import Reduction
from evokernel_core.targets.ascendc.legalization.limbs import Word

_NOTE = """\
The {} of each row, which are short: rows are lanes, for which a tile's columns are gathered one after
another. A core has rows that lie one behind the other."""


class Lanes(Reduction):
    """One kernel."""

    def __init__(self, problem: IntegerRows, schedule: IntegerRowsSchedule) -> None:
        self._most = Constant("MOST_ROWS", schedule.rows, "of a tile")
        most = self._most
        super().__init__(problem, schedule, _NOTE, lanes=most, batch=most, apart=most)
        self._begins = Buffer("begins", "int32_t", 4, most)
        self._scratch = Buffer("scratch", "int32_t", 4, most * 2)

    def kernel(self) -> Kernel:
        """All of it."""
        k = self.k
        rows, columns, share, tiles = self.sizes()
        fit = k.param("fit", greatest(least(self.tile // columns, self._most), 1), "rows in a tile")
        high = k.param("rowsPerTile", ceil_div(share, ceil_div(share, fit)))
        self._prepare(columns)
        with k.cores("core", k.param("coresUsed", ceil_div(rows, share)), even=True) as core:
            first = k.let("first", core * share, U64)
            mine = self.part("mine", rows, first, share, U64)
            turns = k.let("turns", ceil_div(mine, high) * tiles, U64)
            with k.loop("turn", turns, U64) as turn:
                row, piece = k.let("row", turn // tiles * high, U64), k.let("piece", turn % tiles, U64)
                column = k.let("column", piece * self.tile, U64)
                count = self.part("count", mine, row, high)
                width = self.part("width", columns, column, self.tile)
                k.load(self.taken, self.x, (first + row) * columns + column, count * width)
                with k.when(piece, "==", 0, share=tiles, even=True):
                    for limb, place in self.sums.items():
                        self._gather(self.writer(count), place, limb, Int(0))
                with k.otherwise():
                    self._combine_column(Int(0), count)
                with k.loop("behind", width - 1) as behind:
                    self._combine_column(behind + 1, count)
                with k.when(piece, "==", tiles - 1, share=tiles, even=True):
                    self.join(self.sums, count)
                    k.store(self.y, first + row, self.made, count)
        return k.kernel()

    def _prepare(self, columns: Expr) -> None:
        """Where each row of a tile begins, in bytes."""
        self.prepare(self._scratch)
        repeats = ceil_div(self._most, LANES)
        self.k.call("CreateVecIndex", self._begins, number(0), self._most, repeats=repeats)
        step = Converted(columns * self.size, "int32_t")
        self.k.call("Muls", self._begins, self._begins, step, self._most, repeats=repeats)

    def _combine_column(self, column: Expr, count: Expr) -> None:
        def other(limb: str, word: Word, writer: Writer) -> Slice:
            target = writer.own(word)
            self._gather(writer, target, limb, column)
            return target

        self.combine(self.sums, other, count)

    def _gather(self, writer: Writer, target: Slice, limb: str, column: Expr) -> None:
        """The words of a column; the high ones lie behind the low ones."""
        base = column * self.size + (WORD if limb == "high" else 0)
        taken, begins = read_as("int32_t", self.taken), read_as("uint32_t", self._begins)
        writer.call("Gather", target, taken, begins, base)


def build(problem: IntegerRows, schedule: IntegerRowsSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return Lanes(problem, schedule).kernel()
