"""Rows whose columns lie in pieces, as in batch and group norm: each pass reads the tiles of all pieces.

The pieces of a row lie apart in memory, or have numbers of their own (the weight of a channel).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import define

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.compiler.lowering.values import Operand, Value
from evokernel_core.compiler.shapes.sizes import product
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Constant,
    Expr,
    Int,
    Size,
    Var,
    ceil_div,
    expr,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.floats import float_var
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.passes import Pass, in_passes
from evokernel_core.targets.ascendc.kernels.fused.places import MID, outer_index, outer_loop
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram
from evokernel_core.targets.ascendc.kernels.fused.row_passes import RowPasses, RowTile
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.lowering.program import Lowerer, camel

_NOTE = """\
Rows whose columns lie in pieces: each pass over a row reads the tiles of all of its pieces, and keeps a
partial result in every lane."""
_STEP = Constant("STEP", 128, "elements, so that copies are aligned")


@define
class PieceLowerer(Lowerer):
    """Inputs without columns of their own are numbers, of the row or of the piece."""

    def scalar(self, operand: Operand) -> Expr | None:
        operand = self.plain(operand)
        if isinstance(operand, Value) and operand.op == "load" and not self.inputs[operand.index].inner:
            return float_var(f"{camel(self.inputs[operand.index].name)}Value")
        return super().scalar(operand)


class Pieces(RowPasses):
    """One kernel of rows in pieces."""

    note = _NOTE

    @classmethod
    def _in_passes(cls, plan: Plan, schedule: Schedule) -> tuple[Kernel, list[Pass], TileProgram]:
        return in_passes(plan, schedule, PieceLowerer(plan, packed=False, eager=schedule.eager_rounding))

    def build(self) -> IRKernel:
        k = self.k
        rows, self._columns = self.sizes()
        self.cut()
        per_core = k.param("rowsPerCore", ceil_div(rows, self.cores()))
        self.loops()
        self.define_lanes()
        self.read_numbers(lambda one: not one.mid and not any(one.outer), lambda _: Int(0))
        with k.cores("row", rows, run=per_core) as row:
            self.read_numbers(
                lambda one: not one.mid and any(one.outer),
                lambda one: self.place_of(one, row, Int(0), Int(0)),
            )
            self.take_row(row)
        return k.kernel()

    def cut(self) -> None:
        """Fields for the pieces of a row, and for their tiles, which are the same in every piece."""
        k, plan, columns = self.k, self.plan, self._columns
        self._pieces = k.param("pieces", Size(product((plan.leading, plan.mid))))
        k.param("mid", Size(plan.mid))
        k.require(self._pieces, ">=", 1)
        few = ceil_div(columns, self.tile)
        self._size = k.param("tileElements", round_up(ceil_div(columns, few), _STEP))
        self._per_piece = k.param("tilesPerPiece", ceil_div(columns, self._size))
        self._number = k.param("tiles", self._pieces * self._per_piece)

    @contextmanager
    def tiles(self, row: Var, program: TileProgram) -> Iterator[RowTile]:
        with self.tiles_from(Int(0), self._number, row, program) as tile:
            yield tile

    @contextmanager
    def tiles_from(self, first: Expr, number: Expr, row: Var, program: TileProgram) -> Iterator[RowTile]:
        """So many tiles of a row."""
        k = self.k
        with k.loop("tile", number, U64, preloaded=self.schedule.ahead) as tile:
            piece = k.let("piece", (first + tile) // self._per_piece, U64)
            column = k.let("column", (first + tile) % self._per_piece * self._size, U64)
            count = k.let("count", least(self._columns - column, self._size))
            for operand in self.queued(program):
                self.load(operand, self.place_of(operand, row, piece, column), count)
            self.read_numbers(
                lambda one: one.mid and one in program.inputs,
                lambda one: self.place_of(one, row, piece, Int(0)),
            )
            every = [True] * len(self.plan.outer)
            yield RowTile(tile, count, self._index(every, row, piece) * self._columns + column)

    def place_of(self, operand: PlanInput, row: Var, piece: Expr, column: Expr) -> Expr:
        """Where a tile of an input begins."""
        index = self._index(operand.outer, row, piece if operand.mid else None)
        return index * self._columns + column if operand.inner else index

    def _index(self, outer: Sequence[bool], row: Var, piece: Expr | None) -> Expr:
        """The index of a piece among those of a tensor that has some of the outer loops."""
        plan, made = self.plan, expr(0)
        before, behind = not plan.leading.is_one, not plan.mid.is_one
        if piece is not None and before:
            made = piece // MID if behind else piece
        for axis, has in enumerate(outer):
            if has:
                made = made * outer_loop(axis) + outer_index(plan, axis, row)
        if piece is not None and behind:
            made = made * MID + (piece % MID if before else piece)
        return made

    def lanes(self) -> Expr:
        return least(self._columns, self._size)

    def elements(self) -> Expr:
        return self._pieces * self._columns
