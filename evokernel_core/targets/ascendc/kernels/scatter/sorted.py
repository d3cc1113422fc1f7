"""Single elements that the vector unit sorts by their places: one form of put.

A core has a range of the places of a row, or several short rows. The entries that go there are held until no
more fit, and sorted with the tile's own elements in front of those of the same place: the last one of each
place stays, or what belongs to one place lies side by side and is summed there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from evokernel_core.compiler.ops import LAST
from evokernel_core.compiler.problems.scatter import Put
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, as_float, at, read_as, whole
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Cheapest,
    Choice,
    Condition,
    Constant,
    CoreCount,
    Expr,
    Int,
    Param,
    Size,
    State,
    Var,
    ceil_div,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Difference,
    Enumerator,
    Kernel,
    Number,
    Ratio,
    Runs,
    Slice,
    Told,
)
from evokernel_core.targets.ascendc.kernels.built import Sizes
from evokernel_core.targets.ascendc.kernels.merging import (
    NUMBERS,
    PAIR,
    PLACES,
    RUN,
    WAYS,
    Merging,
    keep,
    lengths_of,
    levels_of,
    merge,
)
from evokernel_core.targets.ascendc.kernels.rendering import RAW, parameter
from evokernel_core.targets.ascendc.kernels.scatter.scatter_settings import NEUTRAL, ScatterSchedule
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_FLOAT = 4
_MOST_MERGED = 4032
"""Elements of one sorted run; an instruction merges runs of at most 4095."""
_MOST_EXACT = 1 << 24
"""Places are sorted as floats."""
_UNIT, _LOOKED, _SORTED, _OWN = 2500, 40, 240, 130
"""About what a tile takes: cycles, and hundredths of cycles of each entry that it looks at, of each that it
sorts, and of each element of its own. ComputeTiling cuts rows by them: they are the same on every chip."""
_ALIGNED = Constant("ALIGNED", 16, "elements of whole blocks, of every type")
_BLOCK = Constant("FLOATS_PER_BLOCK", 8)
_REPEAT = Constant("REPEAT_LANES", LANES, "float elements of one repeat")
_TENSORS = Enumerator("SELMODE::VSEL_TENSOR_TENSOR_MODE")
_SCALAR = Enumerator("SELMODE::VSEL_TENSOR_SCALAR_MODE")


def why_illegal(problem: Put, schedule: ScatterSchedule) -> str | None:
    """Why a schedule makes no kernel."""
    width = ITEM_SIZE[problem.dtype]
    if not problem.elements or len(problem.places) != 1 or width not in (2, 4):
        return "Single elements of 2 or 4 bytes with one index each are sorted by their places."
    if problem.kind not in (LAST, "add") or schedule.picks or schedule.owned:
        return "What is sorted by places is replaced or summed there."
    tile = schedule.bytes // _FLOAT
    if (
        tile % LANES
        or not LANES <= tile <= _MOST_MERGED
        or schedule.held % LANES
        or schedule.held > _MOST_MERGED
    ):
        return Sentence(
            "Tiles have {lanes} to {most} elements, and as many entries are sorted, whole repeats.",
            lanes=LANES,
            most=_MOST_MERGED,
        )
    if schedule.runs % LANES or not LANES <= schedule.runs < schedule.held:
        return "Entries are looked at in whole repeats, and more of them are held."
    return None


def ub_bytes(problem: Put, schedule: ScatterSchedule) -> int:
    """Bytes of all buffers, without the kernel."""
    tile, held, width = schedule.bytes // _FLOAT, schedule.held, ITEM_SIZE[problem.dtype]
    entries = 2 * schedule.runs * (ITEM_SIZE[problem.places[0][1]] + width)
    masks = _mask_words(schedule) * (_patterns(problem) + 1)
    rows = schedule.runs if _several(problem) else 0
    work = 6 * tile + 8 * held + 2 * schedule.runs + rows + masks + 3 * LANES
    return entries + (2 * tile + held + RUN.value) * width + work * _FLOAT


def _mask_words(schedule: ScatterSchedule) -> int:
    """Bits of all elements, in whole blocks."""
    return ((schedule.bytes // _FLOAT + schedule.held + schedule.runs) // 256 + 2) * 8


def _patterns(problem: Put) -> int:
    """Patterns that leave out a few elements: one, or as well two and four, less than a block."""
    return 1 if problem.kind == LAST else 3


def _several(problem: Put) -> bool:
    """Whether a tile may have several rows."""
    return not problem.parts and not problem.shared


def build(problem: Put, schedule: ScatterSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return _Sorted(problem, schedule).kernel()


class _Sorted:
    """``elements``: those of the tile, and behind them the values that are held; ``tilePairs``: keys and
    numbers of the tile's own elements, in order; ``runs``: pairs of what is held, and then all pairs. A key
    is a place with its sign changed, since the greatest is sorted to the front."""

    def __init__(self, problem: Put, schedule: ScatterSchedule) -> None:
        ends = "the last one of each place stays" if problem.kind == LAST else "those of one place are summed"
        what = "Entries that go to a tile are sorted by their places, with its own elements in front of those"
        self._problem, self._k = problem, Builder(f"{what}\nof the same place: {ends}.")
        k, width = self._k, ITEM_SIZE[problem.dtype]
        self._width, self._ctype = width, RAW[width] if problem.kind == LAST else CPP_TYPE[problem.dtype]
        tile, held, chunk = schedule.bytes // _FLOAT, schedule.held, schedule.runs
        self._tile = Constant("MOST_TILE", tile, "elements that a core puts values into at a time")
        self._most_held = Constant("MOST_HELD", held, "entries that are sorted at a time")
        self._chunk = Constant("CHUNK", chunk, "entries that are looked at at a time")
        self._most = Constant("MOST", tile + held)
        self._words = Constant("MASK_WORDS", _mask_words(schedule), "whole blocks")
        source, dtype, _ = problem.places[0]
        if problem.source is not None:
            self._source = k.input("source", parameter(problem.source), self._ctype, width)
        self._indices = k.input("indices", parameter(source), CPP_TYPE[dtype], ITEM_SIZE[dtype])
        self._values = k.input("values", parameter(problem.values), self._ctype, width)
        self._output = k.output("output", "output", self._ctype, width)
        self._index = Buffer("index", CPP_TYPE[dtype], ITEM_SIZE[dtype], self._chunk, 2)
        self._value = Buffer("value", self._ctype, width, self._chunk, 2)
        self._elements = Buffer("elements", self._ctype, width, self._most)
        self._result = Buffer("result", self._ctype, width, self._tile + RUN)
        self._patterns, self._several = _patterns(problem), _several(problem)
        self._carve()
        self._mask = Buffer("mask", "uint32_t", _FLOAT, self._words)
        self._held = State("held", 0, "entries, and gaps between them")
        self._kept = State("keptEntries", 0, "of a chunk")
        self._distance = State("distance", 0, "of elements that are added")
        self._same = State("same", 0, "pairs of elements of one place")
        self._size_tiles()

    def _carve(self) -> None:
        """The memory that only the vector unit works on, in one buffer."""
        room, self._half = self._most + _REPEAT, PAIR * self._most_held
        words = self._words * self._patterns
        sizes = [self._half + PAIR * room, PAIR * self._tile, room, self._most]
        sizes += [self._most_held, self._most_held, self._chunk, self._chunk, words]
        sizes += [self._chunk] if self._several else []
        self._work = Buffer(
            "work", "float", _FLOAT, Constant("WORK", sum(size.evaluate({}) for size in sizes))
        )
        starts: list[Expr] = [Int(0)]
        for size in sizes:
            starts.append(starts[-1] + size)
        parts = [at(self._work, start) for start in starts]
        self._runs, self._tile_pairs, self._keys, places, self._held_keys, numbers = parts[:6]
        self._chunk_keys, self._clamped, shifts, self._row_starts = parts[6:10]
        self._places, self._numbers = (read_as("int32_t", choice) for choice in (places, numbers))
        self._shifts = read_as("uint32_t", shifts)
        self._merged, self._moved = at(self._work, self._half), at(self._work, self._half + room)

    # -- how rows are cut -----------------------------------------------------------------------

    def _size_tiles(self) -> None:
        k, problem = self._k, self._problem
        self._outer = k.param("outer", Size(problem.outer), "rows")
        self._size = k.param("size", Size(problem.size), "elements of a row")
        self._count = k.param("count", Size(problem.count), "elements that are put into each row")
        for size in (self._outer, self._size, self._count):
            k.require(size, ">=", 1)
        k.require(self._size, "<", _MOST_EXACT, "places are sorted as floats")
        parts = max(problem.parts, 1)
        self._share = k.param("share", ceil_div(self._count, parts), "of these that one part has")
        results = k.param("results", self._outer * parts)
        self._high: Expr = Int(1)
        if self._several:  # of short rows several, as long as every core has some
            fits = k.param("fits", least(self._tile // self._size, self._chunk // self._count))
            fits = k.param("rowsOfCore", least(fits, ceil_div(self._outer, CoreCount())))
            self._high = k.param("rowsPerTile", greatest(fits, 1), ctype=U32)
        ranges = self._cut(results)
        self._range = k.param("rangeElements", ceil_div(self._size, ranges), "of a row")
        self._ranges = k.param("ranges", ceil_div(self._size, self._range))
        self._units = k.param("units", ceil_div(results, self._high) * self._ranges)

    def _cut(self, results: Param) -> Expr:
        """Ranges of a row: each looks at all of its entries, and sorts its own."""
        k, ranges = self._k, Var("tried", U64)
        fewest = k.param("fewestRanges", ceil_div(self._size, self._tile))
        most: Expr = k.param("mostRanges", least(fewest + CoreCount(), ceil_div(self._size, RUN * 2)))
        if self._several:
            most = Choice(self._high, "==", Int(1), most, fewest)
        looked = self._share * _LOOKED // 100
        mine = ceil_div(self._share, ranges) * _SORTED // 100 + ceil_div(self._size, ranges) * _OWN // 100
        busiest = ceil_div(results * ranges, CoreCount()) * (looked + mine + _UNIT)
        last = greatest(most, fewest)
        return k.param("cheapest", Cheapest(ranges, fewest, last, busiest), "ranges, about")

    # -- tiles ----------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        k, problem = self._k, self._problem
        with k.section("MakePatterns", "What is the same for all tiles."):
            self._make_patterns()
        with k.cores("unit", self._units) as unit:
            begin = k.let("begin", unit % self._ranges * self._range, U64)
            length = k.let("length", least(k.let("left", self._size - begin, U64), self._range))
            group = k.let("group", unit // self._ranges, U64)
            outer, rows, first, end, to = self._rows_of(group)
            elements = k.let("tileElements", rows * length)
            place = k.let("place", to * self._size + begin, U64)
            if problem.parts:
                neutral = Converted(Number("NEUTRAL", NEUTRAL[problem.kind], "changes nothing"), self._ctype)
                self._k.on("Duplicate", self._elements, neutral, count=self._tile)
            else:
                k.load(self._elements, self._source, place, elements)
            if problem.parts:
                with k.when(first, "==", end):  # a part may have none
                    self._copy(self._result, self._elements, elements)
            none = Converted(Int(0), RAW[self._width])
            values = read_as(RAW[self._width], at(self._elements, self._tile))
            self._k.on("Duplicate", values, none, count=self._most_held)  # none is held
            k.assign(self._held, 0)
            with k.pieces("entry", (first, end), self._chunk) as (entry, entries):
                self._take_in(outer, entry, k.let("count", rows * entries), (begin, length))
                is_last = Choice(entry + entries, "==", end, Int(1), Int(0))
                no_more = Choice(self._held + self._chunk, ">=", self._most_held, Int(1), is_last)
                with k.when(k.let("full", no_more), "!=", 0):  # one more is there, which ends the last place
                    self._put_held(elements)
                    with k.when(entry + entries, "!=", end):
                        self._copy(self._elements, self._result, elements)
                    k.assign(self._held, 0)
            k.store(self._output, place, self._result, elements)
        return k.kernel()

    def _rows_of(self, group: Expr) -> tuple[Expr, Expr, Expr, Expr, Expr]:
        """The first row of a tile, how many, the first of its entries and where they end, and the first row
        of the result."""
        k, problem = self._k, self._problem
        if problem.parts:
            outer = k.let("outer", group % self._outer, U64)
            start = k.let("partStart", group // self._outer * self._share, U64)
            first = k.let("firstEntry", least(start, self._count), U64)
            end = k.let("endEntry", least(start + self._share, self._count), U64)
            return outer, Int(1), first, end, group
        outer = k.let("outer", group * self._high, U64)
        rows = k.let("rows", least(k.let("rowsLeft", self._outer - outer, U64), self._high))
        return outer, rows, Int(0), self._count, outer

    def _copy(self, to: Buffer, source: Buffer, count: Expr) -> None:
        self._k.on("DataCopyLocal", to, source, count=round_up(count, _ALIGNED))

    def _make_patterns(self) -> None:
        k, room = self._k, self._most + _REPEAT
        zero = Converted(Int(0), "int32_t")
        self._k.on("CreateVecIndex", self._numbers, Converted(self._tile, "int32_t"), count=self._most_held)
        self._k.on("Duplicate", self._merged, as_float(0), count=PAIR * room)  # whole repeats are compared
        self._k.on("Duplicate", self._keys, as_float(0), count=room)
        self._k.on("CreateVecIndex", self._places, zero, count=self._tile)
        self._k.on("CreateVecIndex", self._keys, as_float(0), count=self._tile)
        self._k.on("Muls", self._keys, self._keys, as_float(-1), count=self._tile)
        taken = read_as("uint32_t", self._places)
        k.call("Sort32", self._tile_pairs, self._keys, taken, self._tile // RUN, repeats=self._tile // LANES)
        clear = Converted(Int(0), RAW[self._width])
        self._k.on("Duplicate", read_as(RAW[self._width], self._elements), clear, count=self._tile)
        if self._several:
            with k.when(self._high, ">", 1):
                self._find_rows()
        self._make_shifts()

    def _find_rows(self) -> None:
        """Which row an entry is of: halves keep what is exact away from rounding."""
        keys, starts = self._chunk_keys, self._row_starts
        self._k.on("CreateVecIndex", keys, Ratio(Int(1), Int(2)), count=self._chunk)
        self._k.on("Muls", keys, keys, Ratio(Int(1), self._count), count=self._chunk)
        self._k.cast(starts, keys, "FLOOR", self._chunk)
        self._k.on("Muls", starts, starts, as_float(self._size), count=self._chunk)

    def _make_shifts(self) -> None:
        """Patterns that leave out the first element, and those that leave out two and four."""
        k, every = self._k, (1 << 32) - 1
        number = Converted(Constant("ALL_BITS", every), U32)
        self._k.on("Duplicate", self._shifts, number, count=self._words * self._patterns)
        first = k.lanes("first", Int(1))
        for place in range(self._patterns):
            bits = Converted(Constant(f"SHIFT{1 << place}", every - ((1 << (1 << place)) - 1)), U32)
            k.call("Duplicate", self._shifts.behind(self._words * place), bits, first, 1, 1, 8, repeats=1)

    # -- entries --------------------------------------------------------------------------------

    def _take_in(self, outer: Expr, entry: Expr, count: Expr, own: tuple[Expr, Expr]) -> None:
        """Keeps the entries of a chunk that have a place in the tile, which has so many from one on."""
        k, problem = self._k, self._problem
        given = k.let("given", outer * self._count + entry, U64)
        k.load(self._index, self._indices, entry if problem.shared else given, count)
        k.load(self._value, self._values, given, count)
        with k.when(self._held, "==", 0):  # keys that no place has, each another one
            self._k.cast(self._held_keys, self._numbers, "NONE", self._most_held)
            self._k.on("Muls", self._held_keys, self._held_keys, as_float(-1), count=self._most_held)
        with k.section("Hold", "The entries of a chunk that have a place in the tile."):
            lanes = k.let("lanes", round_up(count, LANES))
            self._find_keys(count, lanes, *own)
            mask, bits = whole(self._mask), "uint16_t" if self._width == 2 else ""
            likely = ceil_div(count * own[1], self._size)
            values = at(self._elements, self._tile + self._held)
            keep(k, values, self._value, read_as(bits, mask), lanes)
            told = Told(self._kept, likely)
            keep(k, self._held_keys.behind(self._held), self._chunk_keys, mask, lanes, told)
        k.get("known", values, 0, self._ctype)  # waits until the vector unit has said how many there are
        k.assign(self._held, self._held + round_up(self._kept, _ALIGNED))

    def _find_keys(self, count: Expr, lanes: Expr, begin: Expr, length: Expr) -> None:
        """The place of each entry in the tile with its sign changed, and which entries have one: an index
        outside of its dimension puts its element nowhere."""
        k, keys, clamped, bits = self._k, self._chunk_keys, self._clamped, read_as("uint8_t", self._mask)
        with k.when(count, "!=", lanes):  # whole repeats are compared: no place for what is behind
            self._k.on("Duplicate", keys, as_float(1), count=self._chunk)
        mode = "RINT" if self._indices.item_bytes == 8 else "NONE"
        self._k.on("Cast", keys, self._index, _mode(mode), count=count)
        if self._problem.wraps:  # negative ones count from the end
            less = Enumerator("CMPMODE::LT")
            self._k.on("Compares", bits, keys, as_float(0), less, count=lanes, former="CompareScalar")
            self._k.on("Adds", clamped, keys, as_float(self._size), count=count)
            self._k.on("Select", keys, bits, clamped, keys, _TENSORS, count=count)
        self._k.on("Muls", keys, keys, as_float(-1), count=count)
        self._k.on("Adds", keys, keys, as_float(begin), count=count)
        self._k.on("Mins", clamped, keys, as_float(0), count=lanes)
        self._k.on("Maxs", clamped, clamped, Difference(Int(1), length), count=lanes)
        self._k.on("Compare", bits, keys, clamped, Enumerator("CMPMODE::EQ"), count=lanes)
        if self._several:
            with k.when(self._high, ">", 1):
                self._k.on("Sub", keys, keys, self._row_starts, count=count)

    # -- what is put ----------------------------------------------------------------------------

    def _put_held(self, elements: Expr) -> None:
        """Leaves the elements of the tile, with what is put into them, in ``result``."""
        k = self._k
        own = k.let("own", round_up(elements, RUN))
        entries = k.let("heldPairs", self._held // RUN * RUN + RUN)  # what is behind ends the last place
        levels = k.let("levels", levels_of(entries, RUN.value, self._most_held.value, WAYS.value - 1))
        all_pairs = k.let("allPairs", own + entries)
        with k.section("SortHeld", "All pairs, place by place; of one place the tile's is first."):
            self._sort_held(own, entries, levels)
            keep(k, self._keys, self._merged, NUMBERS, all_pairs * PAIR)
            keep(k, read_as("float", self._places), self._merged, PLACES, all_pairs * PAIR)
        if self._problem.kind == LAST:
            with k.section("ChooseLast"):
                self._choose_last(own, all_pairs)
            return
        sums = read_as(self._ctype, self._merged)
        with k.section("SumPlaces", "The first of each place gets the sum of all: of two, four and so on."):
            offsets = read_as("int32_t", self._moved)
            self._k.on("Muls", offsets, self._places, Converted(Int(self._width), "int32_t"), count=all_pairs)
            self._gather(sums, offsets, all_pairs)
            self._sum_places(sums, all_pairs)
        with k.section("TakeFirst", "The tile's own element is the first of its place, where the sum is."):
            self._take_first(sums, all_pairs)

    def _sort_held(self, own: Expr, entries: Expr, levels: Expr) -> None:
        k, taken = self._k, read_as("uint32_t", self._numbers)
        k.call("Sort32", self._runs, self._held_keys, taken, entries // RUN, repeats=ceil_div(entries, LANES))
        Merging(k, self._work, self._half, Int(1), entries).merge(levels)
        with k.when(levels % 2, "!=", 0):  # they lie where all is merged
            self._k.on("DataCopyLocal", self._runs, self._merged, count=entries * PAIR)
        run = k.let("heldRun", RUN << levels * 2)
        lengths, starts = lengths_of(entries, run, WAYS.value - 1)
        slices = (whole(self._tile_pairs), *(self._runs.behind(start) for start in starts))
        runs = Runs(slices, (own, *lengths), ceil_div(entries, run) + 1)
        merge(k, self._merged, runs, own + entries)

    def _shift(self, source: Place, distance: Expr, count: Expr) -> None:
        """What lies so many elements further, a few, beside each element."""
        pattern = self._shifts.behind(distance // 2 * self._words)
        keep(self._k, self._moved, source, pattern, count)

    def _gather(self, to: Place, offsets: Slice, count: Expr) -> None:
        at_bytes = read_as("uint32_t", offsets)
        self._k.call("Gather", to, self._elements, at_bytes, 0, count, repeats=ceil_div(count, LANES))

    def _choose_last(self, own: Expr, count: Expr) -> None:
        chosen, bits = read_as("int32_t", self._merged), read_as("uint8_t", self._mask)
        self._shift(self._keys, Int(1), count)
        differ = Enumerator("CMPMODE::NE")
        self._k.on("Compare", bits, self._keys, self._moved, differ, count=round_up(count, LANES))
        keep(self._k, chosen, self._places, self._mask, count)
        self._k.on("Muls", chosen, chosen, Converted(Int(self._width), "int32_t"), count=own)
        self._gather(self._result, chosen, own)

    def _sum_places(self, sums: Slice, count: Expr) -> None:
        k, bits, distance = self._k, read_as("uint8_t", self._mask), self._distance
        k.assign(distance, 1)
        with k.repeat("sum", Condition(distance, "<", count), 3):
            left = k.let("pairsLeft", count - distance)
            equal, lanes = Enumerator("CMPMODE::EQ"), round_up(left, LANES)
            with k.when(distance, "<", _BLOCK):
                self._shift(self._keys, distance, count)
                self._k.on("Compare", bits, self._keys, self._moved, equal, count=lanes)
            with k.otherwise():
                self._k.on("Compare", bits, self._keys, self._keys.behind(distance), equal, count=lanes)
            keep(k, self._moved, self._keys, self._mask, left, Told(self._same, Int(1)))
            k.get("counted", at(self._mask, 0), 0, U32)
            with k.when(self._same, "==", 0):
                k.assign(distance, count)
            with k.otherwise():
                self._add_moved(sums, left, count)
                k.assign(distance, distance + distance)

    def _add_moved(self, sums: Slice, left: Expr, count: Expr) -> None:
        k, bits, moved = self._k, read_as("uint8_t", self._mask), self._moved
        numbers = read_as("float", sums)
        with k.when(self._distance, "<", _BLOCK):
            self._shift(numbers, self._distance, count)
            self._k.on("Select", moved, bits, moved, as_float(0), _SCALAR, count=left)
        with k.otherwise():
            further = numbers.behind(self._distance)
            self._k.on("Select", moved, bits, further, as_float(0), _SCALAR, count=left)
        self._k.on("Add", sums, sums, read_as(self._ctype, moved), count=left)

    def _take_first(self, sums: Slice, count: Expr) -> None:
        bits, lanes = read_as("uint8_t", self._mask), round_up(count, LANES)
        self._k.on("Duplicate", self._moved.behind(count // LANES * LANES), as_float(0), count=_REPEAT)
        self._k.cast(self._moved, self._places, "NONE", count)
        less = Enumerator("CMPMODE::LT")
        self._k.on(
            "Compares", bits, self._moved, as_float(self._tile), less, count=lanes, former="CompareScalar"
        )
        keep(self._k, self._result, sums, self._mask, count)


def _mode(name: str) -> Enumerator:
    return Enumerator(f"RoundMode::CAST_{name}")


def cost_us(problem: Put, schedule: ScatterSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds of the tiles of the busiest core, which ComputeTiling cuts alike."""
    outer, size, count = (getattr(problem, key).evaluate(sizes) for key in ("outer", "size", "count"))
    parts, width = max(problem.parts, 1), ITEM_SIZE[problem.dtype]
    share, tile = math.ceil(count / parts), schedule.bytes // _FLOAT
    results, least = parts * outer, math.ceil(size / tile)
    fitting = (
        1 if problem.parts or problem.shared else min(tile // max(size, 1), schedule.runs // max(count, 1))
    )
    rows = max(min(fitting, math.ceil(outer / chip.aiv)), 1)
    cuts = range(least, max(min(least + chip.aiv, math.ceil(size / 64)), least) + 1) if rows == 1 else [1]
    units = math.ceil(results / rows)
    work = min(
        math.ceil(units * ranges / chip.aiv) * _tile_cycles(schedule, rows, share, size, ranges, chip)
        for ranges in cuts
    )
    moved = (1 + parts) * outer * size * width + outer * count * (width + 8)
    launched = chip.launch_of(min(units * least, chip.aiv))
    return float(max(work / chip.mhz, moved / chip.gm.memory_bytes_us) + launched)


def _tile_cycles(
    schedule: ScatterSchedule, rows: int, count: int, size: int, ranges: int, chip: Chip
) -> float:
    """Cycles of a tile: what it looks at, chunk by chunk, and what it sorts, flush by flush."""
    looked, mine = rows * count, rows * count / ranges
    own = rows * size / ranges
    chunks = math.ceil(looked / schedule.runs)
    flushes = max(math.ceil(mine / max(schedule.held - schedule.runs // 2, 1)), 1)
    start = chip.vector.startup_cycles
    looking = chunks * (8 * start + 100.0) + looked * _LOOKED / 200
    sorting = flushes * (30 * start + own * _OWN / 100) + mine * _SORTED / 100
    return looking + sorting + chip.mte.load_latency_cycles * 2


def starts() -> Iterator[ScatterSchedule]:
    """Schedules to choose the first one from."""
    for runs in (512, 1024):
        for tile in (1024, 1408, 2048, 2752, 4032):
            for held in (1024, 1536, 2048, 3072):
                yield ScatterSchedule(runs, tile * _FLOAT, held=held)
