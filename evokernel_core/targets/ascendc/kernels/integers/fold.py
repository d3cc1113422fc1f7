"""Folds of rows of integers: tiles of a row lane by lane, then one half of the lanes with the other.

What is left of a row, a block of lanes, waits until there is a batch of rows: those are transposed, so that
rows become lanes, which are folded once more.
"""

from __future__ import annotations

from evokernel_core.compiler.problems.integers import IntegerRows
from evokernel_core.targets.ascendc.ir.builder import at, whole
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    Expr,
    Int,
    Param,
    Var,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Kernel, Slice
from evokernel_core.targets.ascendc.kernels.integers.instructions import WORD, Places, Writer, number, pick
from evokernel_core.targets.ascendc.kernels.integers.integers_settings import IntegerRowsSchedule, is_wide
from evokernel_core.targets.ascendc.kernels.integers.reduction import Limbs, Reduction
from evokernel_core.targets.ascendc.legalization.limbs import Word

_NOTE = """\
The {} of each row: tiles lane by lane, then one half of the lanes with the other. Rows become lanes
themselves where a block is left of each. A core has rows that lie one behind the other."""
_BLOCK = Constant("BLOCK_LANES", 8, "of 32 bytes")
_BATCH = Constant("BATCH", 32, "rows whose results are computed at a time")


class Fold(Reduction):
    """One kernel."""

    def __init__(self, problem: IntegerRows, schedule: IntegerRowsSchedule) -> None:
        tile = Constant("TILE", schedule.tile, "most elements of a tile")
        super().__init__(problem, schedule, _NOTE, lanes=tile, batch=_BATCH, apart=_BATCH * _BLOCK)
        every, bits = _BATCH * _BLOCK, _BATCH.value.bit_length() - 1
        self._lanes, self._turned = self.limbs("lanes", every), self.limbs("turned", every)
        self._places = Places("LanePlaces", every, bits, _BLOCK * WORD)

    def kernel(self) -> Kernel:
        """All of it."""
        k = self.k
        rows, columns, share, tiles = self.sizes()
        rounds = self._rounds(columns)
        width = k.param("width", _BLOCK << rounds, "lanes in use")
        self._prepare()
        with k.cores("core", k.param("coresUsed", ceil_div(rows, share)), even=True) as core:
            first = k.let("first", core * share, U64)
            mine = self.part("mine", rows, first, share, U64)
            with k.loop("turn", k.let("turns", mine * tiles, U64), U64) as turn:
                row, piece = k.let("row", turn // tiles, U64), k.let("piece", turn % tiles, U64)
                column = k.let("column", piece * self.tile, U64)
                count = self.part("count", columns, column, self.tile)
                k.load(self.taken, self.x, (first + row) * columns + column, count)
                with k.when(piece, "==", 0, share=tiles, even=True):
                    self.start(self.sums, width)
                    self._take(count)
                with k.otherwise():
                    self.combine(self.sums, self._loaded, count)
                with k.when(piece, "==", tiles - 1, share=tiles, even=True):
                    slot = k.let("slot", row % _BATCH)
                    self._fold_lanes(rounds, width, slot)
                    end = Choice(row + 1, "==", mine, slot, _BATCH - 1)
                    with k.when(slot, "==", end, share=least(mine, _BATCH), even=True):
                        self._finish()
                        k.store(self.y, first + row - slot, self.made, slot + 1)
        return k.kernel()

    def _rounds(self, columns: Expr) -> Param:
        """How often one half of the lanes is combined with the other until a block is left."""
        most = (self.tile.value // _BLOCK.value).bit_length() - 1
        total: Expr = Int(0)
        for halves in range(most):
            total = total + Choice(columns, ">", _BLOCK << halves, Int(1), Int(0))
        return self.k.param("rounds", total, "that halve the lanes of a row", "uint32_t")

    def _prepare(self) -> None:
        """What Gather is told, and lanes of rows that a short batch has not."""
        turned = self._turned["low"].buffer
        self._places.make(self.k, turned)
        self.prepare(turned)
        self.start(self._lanes, _BATCH * _BLOCK)

    def _take(self, count: Expr) -> None:
        """The first tile of a row."""
        writer, taken = self.writer(count), whole(self.taken)
        for limb, place in self.sums.items():
            if is_wide(self.problem):
                pick(writer, place, taken, limb)
            else:
                writer.call("Adds", place, taken, number(0))

    def _fold_lanes(self, rounds: Expr, width: Expr, slot: Expr) -> None:
        """A block of lanes of the row, which goes to the others of its batch."""
        k = self.k
        with k.section("FoldLanes"):
            with k.loop("round", rounds, each=True) as turn:
                half = k.let("half", width >> (turn + 1))
                self._combine_halves(self.sums, half)
            writer = self.writer(_BLOCK)
            for limb in self.names:
                lanes = self._lanes[limb]
                place = at(lanes.buffer, slot * _BLOCK + lanes.offset)
                writer.call("Adds", place, self.sums[limb], number(0))

    def _finish(self) -> None:
        """The results of a batch of rows."""
        k, turned = self.k, self._turned
        with k.section("Finish", "Rows of a block of lanes each become lanes themselves."):
            for limb in self.names:
                writer = self.writer(_BATCH * _BLOCK)
                self._places.gather(writer, turned[limb], self._lanes[limb])
            with k.loop("round", _BLOCK.value.bit_length() - 1, each=True) as turn:
                half = k.let("half", (_BATCH * _BLOCK) >> (turn + 1))
                self._combine_halves(turned, half)
            self.join(turned, _BATCH)

    def _combine_halves(self, limbs: Limbs, half: Var) -> None:
        def other(limb: str, word: Word, writer: Writer) -> Slice:
            item = limbs[limb]
            return at(item.buffer, item.offset + half)

        self.combine(limbs, other, half)

    def _loaded(self, limb: str, word: Word, writer: Writer) -> Slice:
        """A word of the tile that was loaded last."""
        taken = whole(self.taken)
        if not is_wide(self.problem):
            return taken
        target = writer.own(word)
        pick(writer, target, taken, limb)
        return target


def build(problem: IntegerRows, schedule: IntegerRowsSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return Fold(problem, schedule).kernel()
