"""The kernel of bags: of rows side by side in the unified buffer halves are combined until one is left."""

from __future__ import annotations

import math

from evokernel_core.compiler.problems.embedding_bag import Bag
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, at
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    CoreCount,
    Expr,
    Function,
    Int,
    Size,
    State,
    Var,
    ceil_div,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel, Number, Ratio, Tensor
from evokernel_core.targets.ascendc.kernels.embedding_bag.embedding_bag_settings import (
    MOST_RUN,
    EmbeddingBagSchedule,
)
from evokernel_core.targets.ascendc.kernels.indexed import Indices
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_NOTES = {
    "sum": "Sums of rows that indices choose, bag by bag.",
    "mean": "Means of rows that indices choose, bag by bag.",
    "max": "Largest elements of rows that indices choose, bag by bag.",
}
_BAGS = Constant("MOST_BAGS", 64, "whose offsets are known at a time")
_SIGNED = "int64_t"
_OFFSET, _ENTRIES = Var("offset", _SIGNED), Var("entries", _SIGNED)
_AMONG = Function(
    "Among",
    (_OFFSET, _ENTRIES),
    Choice(_OFFSET, "<", Int(0), Int(0), least(_OFFSET, _ENTRIES)),
    "An offset outside of the entries means the nearest end of them.",
    U64,
)


def build(problem: Bag, schedule: EmbeddingBagSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return _Combining(problem, schedule).kernel()


class _Combining:
    """Indices stay known from bag to bag as far as there is room for them."""

    def __init__(self, problem: Bag, schedule: EmbeddingBagSchedule) -> None:
        self._problem, self._k = problem, Builder(_NOTES[problem.mode])
        k, width, ctype = self._k, ITEM_SIZE[problem.dtype], CPP_TYPE[problem.dtype]
        self._block = Constant("BLOCK", BLOCK_BYTES // width, "elements")
        self._known = Constant("TILE_INDICES", schedule.runs, "that are known at a time")
        self._most = Constant("TILE_ELEMENTS", schedule.bytes // width)
        self._segment = Constant("MOST_RUN", MOST_RUN, "elements of a row that are combined at a time")
        self._halvings = Constant("HALVINGS", (schedule.bytes // BLOCK_BYTES - 1).bit_length(), "of a tile")
        self._neutral = Number("NEUTRAL", -math.inf if problem.mode == "max" else 0.0, "changes nothing")
        self._table = k.input("table", parameter(problem.table), ctype, width)
        self._indices = Indices(k, [(*problem.indices, problem.rows)], self._known, wraps=False, clamps=True)
        if problem.offsets:
            self._starts = self._numbers("offsets", *problem.offsets, _BAGS + 8)
        if problem.weights:
            self._weights = self._numbers("weights", problem.weights, "float32", self._known)
        self._result = k.output("result", "output", ctype, width)
        self._tile = Buffer("tile", ctype, width, self._most, 2)
        self._made = Buffer("made", ctype, width, self._segment, 2)
        self._wide, self._total = self._tile, self._made
        if width == 2:
            self._wide = Buffer("wide", "float", 4, self._most)
            self._total = Buffer("total", "float", 4, self._segment)
        self._window = State("window", 0, "the first entry whose index is known")
        self._behind = State("behind", 0, "the first one behind the window")
        self._counted = State("counted", 0, "rows of a bag that are no padding")

    def _numbers(self, name: str, tensor: str, dtype: str, count: Expr) -> tuple[Tensor, Buffer]:
        ctype, width = CPP_TYPE[dtype], ITEM_SIZE[dtype]
        return self._k.input(f"{name}In", parameter(tensor), ctype, width), Buffer(name, ctype, width, count)

    def kernel(self) -> Kernel:
        k, problem = self._k, self._problem
        self._run = k.param("run", Size(problem.run), "elements of a row")
        bags = k.param("bags", Size(problem.bags))
        self._count = k.param("count", Size(problem.count), "indices of all bags")
        for size in (*self._indices.sizes, self._run, bags):
            k.require(size, ">=", 1)
        self._length = k.param("length", self._count // bags, "indices of a bag, on average")
        segments = k.param("segments", ceil_div(self._run, self._segment))
        share = k.param("bagsPerUnit", least(ceil_div(bags * segments, CoreCount()), _BAGS))
        ranges = k.param("ranges", ceil_div(bags, share))
        with k.cores("unit", k.param("units", ranges * segments)) as unit:
            self._begin = k.let("begin", unit % segments * self._segment, U64)
            left = k.let("left", self._run - self._begin, U64)
            self._elements = k.let("elements", least(left, self._segment))
            self._pitch = k.let("pitch", round_up(self._elements, self._block))
            self._high = k.let("rowsPerTile", least(self._most // self._pitch, self._known))
            first = k.let("first", unit // segments * share, U64)
            number = k.let("number", least(k.let("bagsLeft", bags - first, U64), share))
            self._tiles_of_a_window = self._share_of_tiles(number)
            known = self._load_offsets(first, number, bags)
            with k.loop("i", number) as i:
                bag = k.let("bag", first + i, U64)
                self._combine(bag, *self._entries_of(bag, i, known))
        return k.kernel()

    def _share_of_tiles(self, bags: Expr) -> Expr:
        """How many tiles of so many bags there are for each window of indices, about."""
        length = greatest(self._length, 1)
        tiles, windows = bags * ceil_div(length, self._high), ceil_div(bags * length, self._known)
        return greatest(tiles // windows, 2)

    def _load_offsets(self, first: Expr, number: Expr, bags: Expr) -> Expr:
        """Those of the bags of a unit, and the one behind them where there is one; how many these are."""
        if not self._problem.offsets:
            return Int(0)
        k, (tensor, buffer) = self._k, self._starts
        more: Expr = Int(1)
        if not self._problem.whole:
            more = Choice(first + number, "<", bags, Int(1), Int(0))
        known = k.let("known", number + more)
        k.load(buffer, tensor, first, known)
        return known

    def _entries_of(self, bag: Expr, i: Expr, known: Expr) -> tuple[Expr, Expr]:
        """The first entry of a bag, and the first behind it; the last bag ends with the entries."""
        k, problem = self._k, self._problem
        if not problem.offsets:
            return bag * self._length, (bag + 1) * self._length
        buffer = self._starts[1]
        begin = k.get("given", at(buffer, i), bag * self._length, _SIGNED)
        end = k.get("next", at(buffer, least(i + 1, known - 1)), (bag + 1) * self._length, _SIGNED)
        entry = k.let("from", _AMONG(begin, self._count), U64)
        last = _AMONG(Choice(i + 1, "<", known, end, self._count), self._count)
        return entry, greatest(entry, k.let("last", last, U64))

    def _combine(self, bag: Expr, entry: Expr, end: Expr) -> None:
        k, problem = self._k, self._problem
        end = k.let("end", end, U64)
        self._k.on("Duplicate", self._total, self._neutral, count=self._elements)
        if problem.padding >= 0:
            k.assign(self._counted, end - entry)
        with k.pieces("entry", (entry, end), self._high) as (start, rows):
            self._see_indices(start, rows)
            with k.section("CopyRows"), k.loop("row", rows) as row:
                place = self._indices.place(start - self._window + row)
                k.load(
                    at(self._tile, row * self._pitch),
                    self._table,
                    place * self._run + self._begin,
                    self._elements,
                )
            self._fold(start, rows)
        self._finish(end - entry if problem.padding < 0 else self._counted)
        k.store(self._result, bag * self._run + self._begin, self._made, self._elements)

    def _see_indices(self, entry: Expr, rows: Expr) -> None:
        """Makes the indices of some entries known, and those behind them as far as there is room."""
        k = self._k
        behind = Choice(entry, "<", self._window, Int(0), self._behind)
        with k.when(behind, "<", entry + rows, share=self._tiles_of_a_window):
            k.assign(self._window, entry)
            k.assign(self._behind, least(entry + self._known, self._count))
            number = k.let("inWindow", self._behind - self._window)
            self._indices.load(entry, number)
            if self._problem.weights:
                k.load(self._weights[1], self._weights[0], entry, number)
                k.get("firstWeight", at(self._weights[1], 0), 1, "float")
            self._indices.given(Int(0))  # read here, so that it is here that the scalar unit waits

    def _fold(self, entry: Expr, rows: Expr) -> None:
        """Combines halves of the rows until one is left, and that with the total."""
        k, problem, wide, pitch = self._k, self._problem, self._wide, self._pitch
        with k.section("Fold"):
            if wide is not self._tile:
                self._k.cast(wide, self._tile, "NONE", rows * pitch)
            if problem.weights:
                with k.loop("row", rows) as row:
                    weight = k.get("weight", at(self._weights[1], entry - self._window + row), 1, "float")
                    self._k.on("Muls", at(wide, row * pitch), at(wide, row * pitch), weight, count=pitch)
            if problem.padding >= 0:
                self._leave_padding_out(entry, rows)
            with k.loop("round", self._halvings) as turn:
                left = k.let("held", (rows - 1 >> turn) + 1)
                kept = k.let("kept", (rows - 1 >> turn + 1) + 1)
                with k.when(kept, "<", left):
                    self._k.on(self._key, wide, wide, at(wide, kept * pitch), count=(left - kept) * pitch)
            self._k.on(self._key, self._total, self._total, wide, count=self._elements)

    def _leave_padding_out(self, entry: Expr, rows: Expr) -> None:
        k, pitch = self._k, self._pitch
        with k.loop("row", rows) as row:
            index = self._indices.given(entry - self._window + row)
            with k.when(index, "==", self._problem.padding, share=self._indices.places):
                self._k.on("Duplicate", at(self._wide, row * pitch), self._neutral, count=pitch)
                k.assign(self._counted, self._counted - 1)

    def _finish(self, counted: Expr) -> None:
        """What becomes of the total of a bag, an empty one among them."""
        total, count = self._total, self._elements
        if self._problem.mode == "mean":
            self._k.on("Muls", total, total, Ratio(Int(1), greatest(counted, 1)), count=count)
        elif self._problem.mode == "max":
            with self._k.when(counted, "==", 0):
                self._k.on("Duplicate", total, Number("ZERO", 0.0), count=count)
        if total is not self._made:
            self._k.cast(self._made, total, "RINT", count)

    @property
    def _key(self) -> str:
        return "Max" if self._problem.mode == "max" else "Add"
