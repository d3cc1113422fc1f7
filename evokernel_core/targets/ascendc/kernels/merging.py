"""Sorted runs of pairs, a number and its place, that become one: four by four, with the greatest first."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, at
from evokernel_core.targets.ascendc.ir.expr import Choice, Constant, Expr, Int, ceil_div, least
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Enumerator,
    Fields,
    Kept,
    Operand,
    Runs,
    Told,
)

RUN = Constant("RUN", 32, "elements that one instruction sorts at a time")
PAIR = Constant("PAIR", 2, "floats that a number and its place take")
WAYS = Constant("WAYS", 4, "runs that one instruction merges")
NUMBERS = Constant("FIRST_OF_PAIR", 1, "pattern of GatherMask")
PLACES = Constant("SECOND_OF_PAIR", 2, "pattern of GatherMask")


def levels_of(length: Expr, run: int, most: int, left: int = 1) -> Expr:
    """How often four runs become one until at most so many are ``left`` of a length, which is at most
    ``most``."""
    levels: Expr = Int(0)
    while run * left < most:
        levels = levels + Choice(length, ">", Int(run * left), Int(1), Int(0))
        run *= WAYS.value
    return levels


def merge(k: Builder, to: Place, runs: Runs, count: Expr) -> None:
    """So many pairs of runs become one."""
    k.call("MrgSort", to, runs, repeats=ceil_div(count, LANES))


def pick(k: Builder, to: Place, source: Place, pattern: Operand, repeats: Expr, apart: Expr) -> None:
    """The elements of repeats, so many blocks apart, that a pattern of GatherMask's own says."""
    how = gathering(repeats, apart)
    k.call("GatherMask", to, source, pattern, Enumerator("false"), 0, how, Kept(), repeats=repeats)


def keep(
    k: Builder, to: Place, source: Place, pattern: Operand | Buffer, count: Expr, told: Told | None = None
) -> None:
    """Of so many elements those that a pattern, or bits, say; how many, where it is asked for."""
    operands = (pattern, Enumerator("true"), count, gathering(Int(1), Int(0)), told or Kept())
    k.call("GatherMask", to, source, *operands, repeats=ceil_div(count, LANES))


def gathering(repeats: Expr, apart: Expr) -> Fields:
    """How GatherMask goes on from repeat to repeat."""
    fields = (("src0BlockStride", Int(1)), ("repeatTimes", repeats), ("src0RepeatStride", apart))
    values = dict((*fields, ("src1RepeatStride", Int(0))))
    return Fields("GatherMaskParams", values, dict.fromkeys(values, "uint16_t"), is_short=True)


@frozen
class Merging:
    """``rows`` of ``pitch`` pairs each, in sorted runs of 32, that a buffer holds; runs go from its first
    half, of ``half`` floats, to the second and back."""

    k: Builder
    buffer: Buffer
    half: Expr
    rows: Expr
    pitch: Expr

    def merge(self, levels: Expr) -> None:
        """Four runs of each row become one, so often; what is left over at its end are fewer."""
        k = self.k
        with k.loop("level", levels) as level:
            run = k.let("run", RUN << level * 2)
            source = k.let("runsAt", level % 2 * self.half)
            to = k.let("mergedAt", (level + 1) % 2 * self.half)
            groups = k.let("groups", self.pitch // (run * WAYS))
            merged = k.let("wholeGroups", groups * run * WAYS)
            if self.rows == Int(1):
                self._row(to, source, run, groups, merged)
            else:
                self._rows(to, source, run, groups, merged)

    def _rows(self, to: Expr, source: Expr, run: Expr, groups: Expr, merged: Expr) -> None:
        k = self.k
        with k.when(merged, "==", self.pitch):
            self._groups(to, source, run, self.rows * groups)
        with k.otherwise(), k.loop("line", self.rows) as line:
            start = k.let("start", line * self.pitch * PAIR)
            self._row(to + start, source + start, run, groups, merged)

    def _row(self, to: Expr, source: Expr, run: Expr, groups: Expr, merged: Expr) -> None:
        k = self.k
        with k.when(groups, "!=", 0):
            self._groups(to, source, run, groups)
        rest = k.let("rest", merged * PAIR)
        left = k.let("pairsLeft", self.pitch - merged)
        with k.when(left, "!=", 0):
            self._rest(to + rest, source + rest, run, left)

    def _groups(self, to: Expr, source: Expr, run: Expr, groups: Expr) -> None:
        runs = tuple(at(self.buffer, source + run * PAIR * place) for place in range(4))
        merge(self.k, at(self.buffer, to), Runs(runs, (run,) * 4, WAYS, groups), run * WAYS * groups)

    def _rest(self, to: Expr, source: Expr, run: Expr, count: Expr) -> None:
        """Up to four runs, of which the last may be shorter."""
        k = self.k
        with k.when(count, "<=", run):
            copied = count * PAIR
            target, taken = at(self.buffer, to), at(self.buffer, source)
            k.call("DataCopyLocal", target, taken, copied, repeats=ceil_div(copied, LANES))
        with k.otherwise():
            lengths, starts = lengths_of(count, run, 4)
            runs = tuple(at(self.buffer, source + start) for start in starts)
            merge(k, at(self.buffer, to), Runs(runs, lengths, ceil_div(count, run)), count)


def lengths_of(count: Expr, run: Expr, ways: int) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The pairs of each of the runs that so many pairs are cut into, and where each begins; 0 where there are
    fewer."""
    starts = [run * place for place in range(1, ways)]
    lengths = (Choice(count, ">", one, least(count - one, run), Int(0)) for one in starts)
    places = (Choice(count, ">", one, one * PAIR, Int(0)) for one in starts)
    return (least(count, run), *lengths), (Int(0), *places)
