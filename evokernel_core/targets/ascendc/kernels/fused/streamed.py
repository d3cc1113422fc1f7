"""Rows longer than the unified buffer: for each row its passes, for each pass its tiles.

The first tile of a pass is loaded while the lanes of the pass before are combined.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.targets.ascendc.ir.expr import U64, Choice, Constant, Expr, Int, Var, ceil_div, least
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.kernels.fused import access
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.passes import Pass, in_passes
from evokernel_core.targets.ascendc.kernels.fused.places import row_of
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram
from evokernel_core.targets.ascendc.kernels.fused.row_passes import RowPasses, RowTile
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.lowering.program import Lowerer

_NOTE = """\
Rows longer than the unified buffer: each pass over a row reads its tiles, and keeps a partial result in
every lane, so that the slow reduction runs once a row."""
_ALIGNED = Constant("ALIGNED_ELEMENTS", 128, "of the narrowest float type in 256 bytes")
"""Tiles that start there are copied faster."""


class Streamed(RowPasses):
    """One kernel of rows that are one run of memory each."""

    note = _NOTE

    @classmethod
    def _in_passes(cls, plan: Plan, schedule: Schedule) -> tuple[Kernel, list[Pass], TileProgram]:
        return in_passes(plan, schedule, Lowerer(plan, False, schedule.eager_rounding))

    def build(self) -> IRKernel:
        k = self.k
        rows, self._columns = self.sizes()
        per_core = k.param("rowsPerCore", ceil_div(rows, self.cores()))
        self.loops()
        self.define_lanes()
        self.read_numbers(lambda number: not access.varies(number), lambda _: Int(0))
        with k.cores("row", rows, run=per_core) as row:
            self.read_numbers(access.varies, lambda number: row_of(self.plan, number, row))
            self._skew = self._skew_of(row)
            self._number = k.let("tiles", ceil_div(self._columns + self._skew, self.tile), U64)
            self.take_row(row)
        return k.kernel()

    def _skew_of(self, row: Var) -> Expr:
        """Elements that a row's first tile is shorter by, so that the others are aligned."""
        columns = self.plan.inner.constant
        if columns is not None and columns % _ALIGNED.value == 0:
            return Int(0)
        return self.k.let("skew", row * self._columns % _ALIGNED, U64)

    @contextmanager
    def tiles(self, row: Var, program: TileProgram) -> Iterator[RowTile]:
        k, columns, skew = self.k, self._columns, self._skew
        with k.loop("tile", self._number, U64, preloaded=self.schedule.ahead) as tile:
            start: Expr = tile * self.tile
            end = least((tile + 1) * self.tile - skew, columns)
            if skew != Int(0):
                start = Choice(tile, ">", Int(0), start - skew, Int(0))
            column = k.let("column", start, U64)
            count = k.let("count", end - column)
            for operand in self.queued(program):
                self.load(operand, self._place(operand, row, column), count)
            yield RowTile(tile, count, row * columns + column)

    def _place(self, operand: PlanInput, row: Var, column: Var) -> Expr:
        index = row_of(self.plan, operand, row)
        return index * self._columns + column if operand.inner else index

    def lanes(self) -> Expr:
        return least(self._columns, self.tile)

    def elements(self) -> Expr:
        return self._columns
