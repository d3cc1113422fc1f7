"""Long rows that several cores share, which tell each other their partial results through device memory.

As many rows are worked on at a time as L2 keeps: a row is read from device memory once, by the first pass,
and by later passes from L2. Cores that have no row of their own take part of another's. All cores meet
after each pass that reduces; the two places where they leave their numbers alternate, so that a core that
is ahead overwrites nothing that another still reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define

from evokernel_core.compiler.lowering.plan import Plan, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.ir.builder import at
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    Expr,
    Int,
    State,
    Var,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.floats import FLOAT, Arithmetic, AsFloat, Least, Negative
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Slice
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.passes import LOWEST, Accumulation, Pass, in_passes
from evokernel_core.targets.ascendc.kernels.fused.pieces import PieceLowerer, Pieces
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram
from evokernel_core.targets.ascendc.kernels.fused.row_passes import RowTile
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.fused.shared import MOST_SHARERS, in_pieces, point_bytes
from evokernel_core.targets.ascendc.kernels.text import REDUCTION_NAMES

_NOTE = """\
Cores share rows, as many at a time as L2 keeps; after each pass they meet, and put their results together."""
_SHARERS = Constant("MOST_SHARERS", MOST_SHARERS, "cores of a row")


@define
class SharedLowerer(PieceLowerer):
    """Numbers of a row outlive the part of a turn in which they are read."""

    def number_of(self, name: str) -> Var | State:
        return State(name, ctype=FLOAT)


class Shares(Pieces):
    """One kernel of shared rows."""

    note = _NOTE

    @classmethod
    def _in_passes(cls, plan: Plan, schedule: Schedule) -> tuple[Kernel, list[Pass], TileProgram]:
        pieces = in_pieces(plan)
        return in_passes(pieces, schedule, SharedLowerer(pieces, packed=False, eager=schedule.eager_rounding))

    def build(self) -> IRKernel:
        k, kernel = self.k, self.kernel
        rows, self._columns = self.sizes()
        self.cut()
        self._most = Constant("MOST_EXCHANGED", kernel.exchanged, "numbers of a row after a pass")
        self._divide(rows)
        self._exchanged = Buffer("exchanged", "float", 4, self._most * _SHARERS, by_events=True)
        elements = self._at_once * 2 * self._most * _SHARERS
        self._exchange = k.common("exchange", "float", 4, elements)
        self.loops()
        self.define_lanes()
        self.read_numbers(lambda one: not one.mid and not any(one.outer), lambda _: Int(0))
        with k.cores("core", self._at_once * self._sharers) as core:
            member = k.let("member", core // self._sharers, U64)
            self._share = k.let("share", core % self._sharers, U64)
            self._first = k.let("firstTile", self._share * self._per_share, U64)
            self._end = k.let("endTile", least(self._first + self._per_share, self._number), U64)
            with k.loop("turn", self._turns, U64) as turn:
                row = k.let("row", turn * self._at_once + member, U64)
                known = k.let("knownRow", least(row, rows - 1), U64)
                self.read_numbers(
                    lambda one: not one.mid and any(one.outer),
                    lambda one: self.place_of(one, known, Int(0), Int(0)),
                )
                self._turn(turn, member, row, rows)
        return k.kernel()

    def _divide(self, rows: Expr) -> None:
        """As many rows at a time as L2 keeps; cores without a row of their own share in others."""
        k, schedule = self.k, self.schedule
        at_once = Constant("BYTES_AT_ONCE", schedule.at_once, "of rows that L2 keeps")
        point = Constant("BYTES_PER_POINT", point_bytes(self.plan), "read and written")
        size = k.on_host("rowBytes", self._pieces * self._columns * point)
        kept = k.on_host("kept", Choice(size, "<", at_once, at_once // size, Int(1)))
        cores = self.cores()
        together = k.on_host("together", least(least(rows, kept), cores))
        self._turns = k.param("turns", ceil_div(rows, together))
        self._at_once = k.param("rowsAtOnce", ceil_div(rows, self._turns))
        most = least(least(cores // self._at_once, self._number), _SHARERS)
        self._per_share = k.param("tilesPerShare", ceil_div(self._number, k.on_host("mostShares", most)))
        self._sharers = k.param("sharers", ceil_div(self._number, self._per_share))

    # -- turns --------------------------------------------------------------------------------

    def _turn(self, turn: Var, member: Var, row: Var, rows: Expr) -> None:
        """A row of each core, of which the last turn may have fewer."""
        k = self.k
        for number, step in enumerate(self.steps):
            with k.when(row, "<", rows):
                if number:
                    self._take(self.steps[number - 1])
                self.reduce_row(row, step)
            meeting = turn * len(self.steps) + number
            self._meet(meeting % 2 * self._at_once + member, self._numbers_of(step), row, rows)
        with k.when(row, "<", rows):
            self._take(self.steps[-1])
            self.finish_row(row)

    def _meet(self, slot: Expr, numbers: int, row: Var, rows: Expr) -> None:
        """Every core leaves its numbers of a row beside those of the row's other cores, and takes all."""
        k = self.k
        place = slot * self._most * _SHARERS
        k.fence("ALL")
        with k.when(row, "<", rows):
            for number in range(numbers):
                offset = place + number * _SHARERS + self._share
                k.store(self._exchange, offset, self._of(number), 1)
        k.fence("CORES")
        with k.when(row, "<", rows):
            for number in range(numbers):
                offset = place + number * _SHARERS
                k.load(self._of(number), self._exchange, offset, self._sharers)
        k.fence("ALL")

    def _of(self, number: int) -> Slice:
        """Where the cores' numbers lie."""
        return at(self._exchanged, Int(number) * _SHARERS)

    def _numbers_of(self, step: Pass) -> int:
        return len(step.accumulations) + sum(pair.is_moments for pair in step.pairs)

    def _count_of(self, step: Pass, one: Accumulation) -> Slice:
        """Where the elements that each core took lie, by the sum of squares that needs them."""
        moments = [pair.total for pair in step.pairs if pair.is_moments]
        return self._of(len(step.accumulations) + moments.index(one.value))

    # -- a core's part ------------------------------------------------------------------------

    @contextmanager
    def tiles(self, row: Var, program: TileProgram) -> Iterator[RowTile]:
        with self.tiles_from(self._first, self._end - self._first, row, program) as tile:
            yield tile

    def elements(self) -> Expr:
        return self._before(self._end) - self._before(self._first)

    def _before(self, tile: Expr) -> Expr:
        """Elements of a row in front of a tile."""
        return tile // self._per_piece * self._columns + tile % self._per_piece * self._size

    def numbers_at(self, step: Pass, one: Accumulation) -> Slice:
        return self._of(step.accumulations.index(one))

    def top_of(self, step: Pass, largest: Accumulation) -> Expr:
        top = super().top_of(step, largest)
        pair = next(pair for pair in step.pairs if pair.first is largest.value)
        return Least(top, LOWEST) if pair.is_exposed else top

    def leave(self, step: Pass) -> None:
        """How many elements the numbers of this core stand for."""
        one = Int(1)
        for accumulation in step.accumulations:
            pair = step.pair_of(accumulation)
            if pair is not None and pair.is_moments:
                place, count = self._count_of(step, accumulation), AsFloat(self.elements())
                self.selector(one, one).call("Duplicate", place, count, count=one)

    # -- all cores' parts ---------------------------------------------------------------------

    def _take(self, step: Pass) -> None:
        """The numbers of all cores of a row to those of the row."""
        for one in step.accumulations:
            here, pair = self.numbers_at(step, one), step.pair_of(one)
            if pair is not None:
                first = step.first_of(pair)
                there = self.numbers_at(step, first)
                if pair.is_moments:
                    self._join_squares(step, one, first)
                else:
                    self._join_sums(first, here, there)
            self.reduce(REDUCTION_NAMES[one.value.op], self.place(one.row), here, self._sharers)

    def _join_sums(self, first: Accumulation, here: Slice, there: Slice) -> None:
        """The cores' sums to the common maximum."""
        top = self.k.get(f"{first.row}Common", self.place(first.row), 0, FLOAT)
        cores = self.selector(self._sharers, Int(1))
        cores.call("Adds", there, there, Negative(top), count=self._sharers)
        cores.call("Exp", there, there, count=self._sharers)
        cores.call("Mul", here, here, there, count=self._sharers)

    def _join_squares(self, step: Pass, one: Accumulation, first: Accumulation) -> None:
        """Squares around each core's mean become squares around the row's: more by the count times the
        square of the means' difference."""
        here, there = self.numbers_at(step, one), self.numbers_at(step, first)
        apart, counts = self.place(one.row), self._count_of(step, one)
        total = self.k.get(f"{one.row}Common", self.place(first.row), 0, FLOAT)
        mean = Arithmetic("/", total, AsFloat(self._before(self._number)))
        cores, count = self.selector(self._sharers, Int(1)), self._sharers
        cores.call("Muls", apart, counts, Negative(mean), count=count)
        cores.call("Add", apart, apart, there, count=count)
        cores.call("Mul", apart, apart, apart, count=count)
        cores.call("Div", apart, apart, counts, count=count)
        cores.call("Add", here, here, apart, count=count)

    def store(self, output: PlanOutput, offset: Expr, count: Expr) -> None:
        """What all cores of a row know the first of them stores."""
        if output.domain is Domain.FULL:
            super().store(output, offset, count)
            return
        with self.k.when(self._share, "==", 0):
            super().store(output, offset, count)
