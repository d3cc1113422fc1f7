"""Folds of rows of integers: tiles of a row lane by lane, then one half of the lanes with the other.

What is left of a row, a block of lanes, waits until there are as many rows as a repeat has lanes: those are
transposed, so that rows become lanes, which are folded once more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from evokernel_core.ascendc.ir.builder import Builder, at, read_as, whole
from evokernel_core.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    CoreCount,
    Expr,
    Int,
    Param,
    Size,
    Var,
    ceil_div,
    least,
)
from evokernel_core.ascendc.ir.nodes import Buffer, Kernel, Slice
from evokernel_core.ascendc.kernels.integers.instructions import (
    PAIR,
    Places,
    Registers,
    Source,
    Tiles,
    Writer,
    number,
    pick,
)
from evokernel_core.ascendc.kernels.integers.problem import IntegerRows, RowsSchedule, combination
from evokernel_core.ascendc.kernels.rendering import parameter
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.legalization.limbs import Word
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.isa import LANES

_NOTE = """\
The {} of each row: tiles lane by lane, then one half of the lanes with the other. Rows become lanes
themselves where a block is left of each. A core has rows that lie one behind the other."""
_BLOCK = Constant("BLOCK_LANES", 8, "of 32 bytes")
_BATCH = Constant("BATCH", 32, "rows whose results are computed at a time")
_WORD = 4
_ANY_NUMBER = 64
"""Of registers, until it is known how many a combination takes."""

Limbs = dict[str, Slice]
"""Where the low words lie, and the high ones where integers have eight bytes."""


class Fold:
    """One kernel; ``taken`` registers are those that it has once it is built."""

    def __init__(self, problem: IntegerRows, schedule: RowsSchedule, registers: int) -> None:
        self.k, self._problem = Builder(_NOTE.format(problem.what)), problem
        ctype, size = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
        self._names = ("low", "high") if problem.is_wide else ("low",)
        self._tile = Constant("TILE", schedule.tile, "most elements of a tile")
        self._tiles = Tiles(self._tile, registers)
        self._registers = Registers(self._tiles.new)
        self._x = self.k.input("x", parameter(problem.source), ctype, size)
        self._y = self.k.output("y", "output", ctype, size)
        self._taken = Buffer("taken", ctype, size, self._tile, schedule.buffers)
        self._made = Buffer("made", ctype, size, _BATCH)
        self._sums = self._limbs("sums", self._tile)
        self._lanes = self._limbs("lanes", _BATCH * _BLOCK)
        self._turned = self._limbs("turned", _BATCH * _BLOCK)
        lanes, bits = _BATCH * _BLOCK, _BATCH.value.bit_length() - 1
        self._lane_places = Places("LanePlaces", lanes, bits, _BLOCK * _WORD)
        self._pair_places = Places("PairPlaces", _BATCH * PAIR, 1, lanes * _WORD)

    @property
    def taken(self) -> int:
        return self._tiles.taken

    def _limbs(self, name: str, count: Expr) -> Limbs:
        buffer = Buffer(name, "int32_t", 4, count * len(self._names))
        return {limb: at(buffer, count * place) for place, limb in enumerate(self._names)}

    def kernel(self) -> Kernel:
        """All of it."""
        k = self.k
        rows = k.param("rows", Size(self._problem.rows))
        columns = k.param("columns", Size(self._problem.columns))
        for size in (rows, columns):
            k.require(size, ">=", 1)
        share = k.param("rowsPerCore", ceil_div(rows, CoreCount()))
        tiles = k.param("tiles", ceil_div(columns, self._tile), "of a row")
        rounds = self._rounds(columns)
        width = k.param("width", _BLOCK << rounds, "lanes in use")
        self._prepare()
        with k.cores("core", k.param("coresUsed", ceil_div(rows, share)), even=True) as core:
            first = k.let("first", core * share, U64)
            mine = k.let("mine", least(k.let("left", rows - first, U64), share), U64)
            with k.loop("turn", k.let("turns", mine * tiles, U64), U64) as turn:
                row, piece = k.let("row", turn // tiles, U64), k.let("piece", turn % tiles, U64)
                column = k.let("column", piece * self._tile, U64)
                count = k.let("count", least(k.let("behind", columns - column, U64), self._tile))
                k.load(self._taken, self._x, (first + row) * columns + column, count)
                with k.when(piece, "==", 0, share=tiles, even=True):
                    self._start(self._sums, width)
                    self._take(count)
                with k.otherwise():
                    self._combine(self._sums, self._loaded, count)
                with k.when(piece, "==", tiles - 1, share=tiles, even=True):
                    slot = k.let("slot", row % _BATCH)
                    self._fold_lanes(rounds, width, slot)
                    end = Choice(row + 1, "==", mine, slot, _BATCH - 1)
                    with k.when(slot, "==", end, share=least(mine, _BATCH), even=True):
                        self._finish()
                        k.store(self._y, first + row - slot, self._made, slot + 1)
        return k.kernel()

    def _rounds(self, columns: Expr) -> Param:
        """How often one half of the lanes is combined with the other until a block is left."""
        most = (self._tile.value // _BLOCK.value).bit_length() - 1
        total: Expr = Int(0)
        for halves in range(most):
            total = total + Choice(columns, ">", _BLOCK << halves, Int(1), Int(0))
        return self.k.param("rounds", total, "that halve the lanes of a row", "uint32_t")

    def _prepare(self) -> None:
        """What Gather is told, and lanes of rows that a short batch has not."""
        turned = self._turned["low"].buffer
        self._lane_places.make(self.k, turned)
        if self._problem.is_wide:
            self._pair_places.make(self.k, turned)
        self._start(self._lanes, _BATCH * _BLOCK)

    def _start(self, limbs: Limbs, count: Expr) -> None:
        """Integers that change nothing."""
        writer = self._writer(count)
        for limb, word in zip(self._names, self._problem.neutral, strict=True):
            writer.call("Duplicate", limbs[limb], number(word))

    def _take(self, count: Expr) -> None:
        """The first tile of a row."""
        writer, taken = self._writer(count), whole(self._taken)
        for limb, place in self._sums.items():
            if self._problem.is_wide:
                pick(writer, place, taken, limb)
            else:
                writer.call("Adds", place, taken, number(0))

    def _fold_lanes(self, rounds: Expr, width: Expr, slot: Expr) -> None:
        """A block of lanes of the row, which goes to the others of its batch."""
        k = self.k
        with k.section("FoldLanes"):
            with k.loop("round", rounds, each=True) as turn:
                half = k.let("half", width >> (turn + 1))
                self._combine_halves(self._sums, half)
            writer = self._writer(_BLOCK)
            for limb in self._names:
                lanes = self._lanes[limb]
                place = at(lanes.buffer, slot * _BLOCK + lanes.offset)
                writer.call("Adds", place, self._sums[limb], number(0))

    def _finish(self) -> None:
        """The results of a batch of rows."""
        k, turned = self.k, self._turned
        with k.section("Finish", "Rows of a block of lanes each become lanes themselves."):
            for limb in self._names:
                writer = self._writer(_BATCH * _BLOCK)
                self._lane_places.gather(writer, turned[limb], self._lanes[limb])
            with k.loop("round", _BLOCK.value.bit_length() - 1, each=True) as turn:
                half = k.let("half", (_BATCH * _BLOCK) >> (turn + 1))
                self._combine_halves(turned, half)
            writer, made = self._writer(_BATCH), whole(self._made)
            if self._problem.is_wide:
                self._pair_places.gather(writer, read_as("int32_t", made), turned["low"], PAIR)
            else:
                writer.call("Adds", made, turned["low"], number(0))

    # -- combinations -------------------------------------------------------------------------

    def _writer(self, count: Expr, leaf: Callable[[Word, Writer], Source] | None = None) -> Writer:
        return Writer(self.k, count, self._registers, leaf or _no_leaf)

    def _combine_halves(self, limbs: Limbs, half: Var) -> None:
        def other(limb: str, word: Word, writer: Writer) -> Slice:
            item = limbs[limb]
            return at(item.buffer, item.offset + half)

        self._combine(limbs, other, half)

    def _loaded(self, limb: str, word: Word, writer: Writer) -> Slice:
        """A word of the tile that was loaded last."""
        taken = whole(self._taken)
        if not self._problem.is_wide:
            return taken
        target = writer.own(word)
        pick(writer, target, taken, limb)
        return target

    def _combine(self, limbs: Limbs, other: Callable[[str, Word, Writer], Slice], count: Expr) -> None:
        """Integers with others, into the places of the first ones."""

        def leaf(word: Word, writer: Writer) -> Source:
            mine, limb = word.detail.split()
            return limbs[limb] if mine == "one" else other(limb, word, writer)

        results = combination(self._problem.kind, self._problem.dtype)
        self._writer(count, leaf).update(zip(results, limbs.values(), strict=True))


def _no_leaf(word: Word, writer: Writer) -> Source:
    raise AssertionError(f"No word is read, but {word.op}.")


@cache
def _registers(kind: str, dtype: str) -> int:
    """How many registers a combination takes."""
    draft = Fold(IntegerRows("x", kind, False, dtype), RowsSchedule(LANES, 1), _ANY_NUMBER)
    draft.kernel()
    return draft.taken


def build(problem: IntegerRows, schedule: RowsSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return Fold(problem, schedule, _registers(problem.kind, problem.dtype)).kernel()
