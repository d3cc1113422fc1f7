"""The kernel of a search: what lanes keep while elements pass, and how they are compared in the end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from evokernel_core.compiler.problems.argmax import ArgReduction
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, at, clear_behind, read_as, strides
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    CoreCount,
    Expr,
    Int,
    Size,
    ceil_div,
    greatest,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Enumerator,
    Fields,
    Kernel,
    Number,
    Operand,
)
from evokernel_core.targets.ascendc.kernels.argmax.argmax_schedule import ArgSchedule
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_REPEAT = Constant("REPEAT_LANES", 64, "float elements of one repeat")
_BLOCK = Constant("BLOCK_LANES", 8, "of one block, and blocks of a repeat")
_MASK_BITS = Constant("MASK_BITS_PER_WORD", 16)
_MOST_PITCH = Constant(
    "MOST_PITCH", most_of("Compare", "src0RepStride") * 8 // 64 * 64, "that repeats step over"
)
_MOST_COUNTED = Constant("MOST_COUNTED", 1 << 24, "whole numbers that float32 counts without gaps")
_MOST_COLUMNS = Constant("MOST_COLUMNS", 0x7FFFFFFF, "an index is counted in 32 bits before it is widened")
_MOST_APART = Constant("MOST_APART", 2**30 - 1, "a copy counts the bytes between steps in 32 bits")
_BEHIND = Number("BEHIND", 3e9, "further than any place")
_ZERO, _ONE = Converted(Int(0), "float"), Converted(Int(1), "float")
_NOTES = {
    "lanes": "Every lane of every step of a tile keeps its best value so far and the step where it was;\n"
    "in the end the steps of a tile are compared with each other. Lanes never meet.",
    "short": "A tile has several rows. Each of the 64 lanes of a row keeps its best value so far and the\n"
    "repeat where it was; in the end the lanes of a row are compared with each other.",
    "long": "A row passes in tiles. Each lane of the tiles keeps its best value so far and the tile where\n"
    "it was; in the end the lanes are compared with each other.",
}


def build(problem: ArgReduction, schedule: ArgSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    k = Builder(_NOTES[schedule.form])
    return {"lanes": _lanes, "short": _short, "long": _long}[schedule.form](k, problem, schedule)


def _lanes(k: Builder, problem: ArgReduction, schedule: ArgSchedule) -> Kernel:
    wide = Constant("TILE_LANES", schedule.lanes, "of one tile")
    high = Constant("TILE_STEPS", schedule.steps, "that travel together")
    outer = k.param("outer", Size(problem.outer))
    steps = k.param("steps", Size(problem.steps), "which are searched")
    lanes = k.param("lanes", Size(problem.lanes), "behind them, side by side")
    for size in (outer, steps, lanes):
        k.require(size, ">=", 1)
    k.require(steps, "<=", _MOST_COUNTED)
    k.require(lanes, "<=", _MOST_APART)
    positions = k.param("positions", outer * lanes)
    share = _repeats_of(ceil_div(positions, CoreCount())) * _REPEAT
    share = k.param("share", share, "positions of a core, whose chunks end where an outer row ends")
    work = _ArgSearch(k, problem, schedule, high * wide, wide)
    with k.cores("core", k.param("shares", ceil_div(positions, share))) as core:
        begin = k.let("begin", core * share, U64)
        end = k.let("end", least(positions, begin + share), U64)
        top = k.let("top", begin // lanes, U64)
        with k.loop("row", ceil_div(end, lanes) - top, U64) as row:
            above = k.let("above", (top + row) * lanes, U64)
            first = k.let("first", greatest(begin, above), U64)
            last = k.let("last", least(end, above + lanes), U64)
            with k.pieces("position", (first, last), wide) as (position, count):
                _search_lanes(k, schedule, work, (above, position, count), (steps, lanes, high))
    return k.kernel()


def _search_lanes(
    k: Builder,
    schedule: ArgSchedule,
    work: _ArgSearch,
    chunk: tuple[Expr, Expr, Expr],
    sizes: tuple[Expr, Expr, Constant],
) -> None:
    """``chunk``: the positions of its row and its own, and its length."""
    (above, position, count), (steps, lanes, high) = chunk, sizes
    pitch = k.let("pitch", _repeats_of(count) * _REPEAT)
    beside = k.let("beside", Choice(pitch, "==", count, count, Int(0)))  # what lies without gaps
    work.reset(high * pitch)
    with k.pieces("step", (0, steps), high) as (step, number):
        place = (above * steps + step * lanes) + (position - above)
        with k.when(beside, "==", lanes):
            k.load(work.taken, work.source, place, number * pitch)
        with k.otherwise():
            k.load(work.taken, work.source, place, count, rows=number, apart=lanes, pitch=pitch)
        work.keep_best(number * pitch, count, number, pitch, step)
    if schedule.steps > 1:
        work.merge_steps(high, schedule.steps.bit_length() - 1, pitch)
    work.store(position, count, work.best, work.place)


def _short(k: Builder, problem: ArgReduction, schedule: ArgSchedule) -> Kernel:
    high = Constant("TILE_ROWS", schedule.rows, "most rows of one tile")
    size = Constant("TILE", schedule.elements, "most elements of a tile")
    rows = k.param("rows", Size(problem.outer))
    columns = k.param("columns", Size(problem.steps), "which are searched", U32)
    k.require(rows, ">=", 1)
    k.require(columns, ">=", 1)
    share = k.param("share", ceil_div(rows, CoreCount()), "rows of a core")
    if schedule.chunked:  # as many rows as a core has, in equal tiles, and of each as much as fits
        k.require(columns, "<=", _MOST_COUNTED)
        tall = k.param("tileRows", ceil_div(share, ceil_div(share, high)), ctype=U32)
        room = k.param("room", least(size // tall, _MOST_PITCH) // _REPEAT * _REPEAT, "for a row")
        piece = ceil_div(columns, ceil_div(columns, room))
        pitch = k.param("pitch", _repeats_of(piece) * _REPEAT, "of a row at a time", U32)
    else:
        pitch = k.param("pitch", _repeats_of(columns) * _REPEAT, "a row in whole repeats", U32)
        k.require(pitch, "<=", least(size, _MOST_PITCH))
        fitting = k.param("fittingRows", least(size // pitch, high))
        tall = k.param("tileRows", ceil_div(share, ceil_div(share, fitting)), "equal tiles", U32)
    work = _ArgSearch(k, problem, schedule, size, high, lanes=high * _REPEAT)
    with k.cores("tile", k.param("tiles", ceil_div(rows, tall))) as tile:
        first = k.let("first", tile * tall, U64)
        left = k.let("left", rows - first, U64)
        count = k.let("count", least(left, tall))
        work.reset(count * _REPEAT)
        with _pieces(k, schedule, columns, pitch) as (start, length):
            place = first * columns + start
            k.load(work.taken, work.source, place, length, rows=count, apart=columns, pitch=pitch)
            work.keep_best_of_rows(start, length, count, pitch)
        work.choose(count)
        work.store_rows(first, count, work.row_place)
    return k.kernel()


@contextmanager
def _pieces(k: Builder, schedule: ArgSchedule, columns: Expr, pitch: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The columns of rows piece by piece, or whole."""
    if not schedule.chunked:
        yield Int(0), columns
        return
    with k.pieces("start", (0, columns), pitch) as piece:
        yield piece


def _long(k: Builder, problem: ArgReduction, schedule: ArgSchedule) -> Kernel:
    size = Constant("TILE", schedule.elements, "of a row that are searched at a time")
    rows = k.param("rows", Size(problem.outer))
    columns = k.param("columns", Size(problem.steps), "which are searched")
    for length in (rows, columns):
        k.require(length, ">=", 1)
    k.require(columns, "<=", _MOST_COLUMNS)
    work = _ArgSearch(k, problem, schedule, size, _REPEAT)
    with k.cores("row", rows) as row:
        work.reset(size)
        with k.pieces("column", (0, columns), size) as (column, count):
            k.load(work.taken, work.source, row * columns + column, count)
            work.keep_best(_repeats_of(count) * _REPEAT, count, Int(1), _REPEAT, column // size)
        work.choose(size // _REPEAT)
        work.store_rows(row, Int(1), work.index_in_row(size))
    return k.kernel()


def _repeats_of(count: Expr) -> Expr:
    return ceil_div(count, _REPEAT)


class _ArgSearch:
    """What is computed of a tile of ``size`` elements, of which ``lanes`` keep their best values, for
    ``results`` rows or lanes. Of equal values the first stays, and so does the first NaN: it compares false
    with every value."""

    def __init__(
        self,
        k: Builder,
        problem: ArgReduction,
        schedule: ArgSchedule,
        size: Expr,
        results: Expr,
        lanes: Expr | None = None,
    ) -> None:
        self._k, self._problem, self._is_long = k, problem, schedule.form == "long"
        self._is_broad = schedule.form == "lanes" and schedule.lanes > _MOST_PITCH.value
        ctype, width = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
        self.source = k.input("x", parameter(problem.source, problem.results), ctype, width)
        types = {"values": (ctype, width), "indices": ("int64_t", 8)}
        self._outputs = {name: k.output(name, name, *types[name]) for name in problem.results}
        self._results = {name: Buffer(f"{name}Tile", *types[name], results) for name in problem.results}
        lanes = size if lanes is None else lanes
        self.taken = Buffer("taken", ctype, width, size, schedule.buffers)
        self._wide = Buffer("wide", "float", 4, size) if width < 4 else self.taken
        self.best, self.place, self._flag = (
            Buffer(name, "float", 4, lanes) for name in ("best", "place", "undefined")
        )
        self._keep, self._other = (Buffer(name, "uint8_t", 1, lanes // 8) for name in ("keep", "other"))
        self.row_best, self.row_flag, self.row_place = (
            Buffer(name, "float", 4, results, cleared=True)
            for name in ("rowBest", "rowUndefined", "rowPlace")
        )
        worst = -math.inf if problem.largest else math.inf
        self._worst, self._unbeaten = Number("WORST", worst), Number("UNBEATEN", -worst, "nothing beats NaN")
        self._reduces = "Max" if problem.largest else "Min"
        self._sign = "GE" if problem.largest else "LE"
        self._numbers = Buffer("lanes", "float", 4, size if self._is_long else _REPEAT)
        if schedule.form != "lanes":
            count = self._numbers.elements
            k.call("CreateVecIndex", self._numbers, _ZERO, count, repeats=_repeats_of(count))

    # -- while elements pass --------------------------------------------------------------------

    def reset(self, count: Expr) -> None:
        for buffer, value in ((self.best, self._worst), (self.place, _ZERO)):
            self._k.call("Duplicate", buffer, value, count, repeats=_repeats_of(count))

    def keep_best(self, count: Expr, width: Expr, rows: Expr, pitch: Expr, place: Expr) -> None:
        """Of each lane the better of what it has and what was loaded: ``count`` elements, in rows a pitch
        apart with ``width`` of them."""
        k = self._k
        with k.section("Update"):
            value = self._widened(count)
            if self._is_broad:
                with k.loop("line", rows) as row:
                    clear_behind(k, at(value, row * pitch), width, Int(1), _REPEAT)
            else:
                # Lanes of a long row are compared with each other: what lies behind it never wins.
                clear_behind(k, value, width, rows, pitch, self._worst if self._is_long else None)
            self._hold(self._keep, self.best, value, count)
            self._select(self.best, self.best, value, count)
            self._select(self.place, self.place, Converted(place, "float"), count)

    def keep_best_of_rows(self, start: Expr, length: Expr, rows: Expr, pitch: Expr) -> None:
        """The same of rows a pitch apart, 64 columns at a time; ``start``: the column of the first."""
        k, times = self._k, Converted(rows, "uint8_t")
        with k.section("Update"):
            value = self._widened(rows * pitch)
            clear_behind(k, value, length, rows, pitch)
            with k.pieces("column", (0, length), _REPEAT) as (column, width):
                apart = strides("BinaryRepeatParams", 1, 1, 1, _BLOCK, _BLOCK, pitch // _BLOCK)
                beside = strides("BinaryRepeatParams", 1, 1, 1, _BLOCK, _BLOCK, _BLOCK)
                keeps, taken = self._mode(self._sign), at(value, column)
                k.call("Compare", self._keep, self.best, taken, keeps, _REPEAT, times, apart, repeats=rows)
                self._or_undefined(self._keep, self.best, rows * _REPEAT)
                place = Converted(start + column, "float")
                self._select_rows(self.best, taken, (width, times, apart), rows)
                self._select_rows(self.place, place, (width, times, beside), rows)

    def _widened(self, count: Expr) -> Buffer:
        """What was loaded, as float."""
        if self._wide is not self.taken:
            mode = Enumerator("RoundMode::CAST_NONE")
            self._k.call("Cast", self._wide, self.taken, mode, count, repeats=_repeats_of(count))
        return self._wide

    # -- in the end -----------------------------------------------------------------------------

    def merge_steps(self, high: Expr, rounds: int, pitch: Expr) -> None:
        """Compares the steps of a tile, half with half. Where both halves hold, the earlier counts."""
        k = self._k
        mine = Buffer("holds", "uint8_t", 1, self._keep.elements)
        note = "Half with half. Where both halves hold, the earlier counts."
        with k.section("MergeSteps", note), k.loop("round", rounds) as turn:
            half = k.let("half", high >> (turn + 1))
            count = k.let("elements", half * pitch)
            best, place = at(self.best, count), at(self.place, count)
            k.call("Adds", place, place, Converted(half, "float"), count, repeats=_repeats_of(count))
            self._hold(self._keep, self.best, best, count)
            self._hold(mine, best, self.best, count)
            self._select(self.best, self.best, best, count)
            self._select(self.place, self.place, _BEHIND, count)
            self._select(place, place, _BEHIND, count, mine)
            k.call("Min", self.place, self.place, place, count, repeats=_repeats_of(count))

    def choose(self, repeats: Expr) -> None:
        """The first place of a row's best value, or of its first NaN."""
        k, count = self._k, repeats * _REPEAT
        with k.section("Choose", "The first place of a row's best value, or of its first NaN."):
            if not self._is_long:
                beside = strides("BinaryRepeatParams", 1, 1, 1, _BLOCK, _BLOCK, 0)
                times = Converted(repeats, "uint8_t")
                k.call("Add", self.place, self.place, self._numbers, _REPEAT, times, beside, repeats=repeats)
            self._compare(self._keep, self.best, self.best, "EQ", count)
            self._select(self.best, self.best, self._unbeaten, count)
            k.call("Duplicate", self._flag, _ZERO, count, repeats=repeats)
            self._select(self._flag, self._flag, _ONE, count)
            self._reduce(self._reduces, self.row_best, self.best, repeats)
            self._reduce("Max", self.row_flag, self._flag, repeats)
            self._find(self._keep, self.best, self.row_best, repeats)
            self._find(self._other, self._flag, self.row_flag, repeats)
            self._join("And", self._keep, self._other, count)
            self._select(self.place, self.place, _BEHIND, count)
            self._reduce("Min", self.row_place, self.place, repeats)

    def index_in_row(self, size: Constant) -> Buffer:
        """The index of a row's best value: its tile is known, and of that the first lane is looked for."""
        k, eight = self._k, _BLOCK
        index, lane = (Buffer(name, "int32_t", 4, eight) for name in ("index", "laneIndex"))
        repeats, mode = size // _REPEAT, Enumerator("RoundMode::CAST_RINT")
        with k.section("Index"):
            k.call("Cast", index, self.row_place, mode, eight, repeats=1)
            k.call("Muls", index, index, Converted(size, "int32_t"), eight, repeats=1)
            self._find(self._keep, self.place, self.row_place, repeats)
            self._select(self.place, self._numbers, _BEHIND, size)
            self._reduce("Min", self.row_place, self.place, repeats)
            k.call("Cast", lane, self.row_place, mode, eight, repeats=1)
            k.call("Add", index, index, lane, eight, repeats=1)
        return index

    def store_rows(self, offset: Expr, count: Expr, places: Buffer) -> None:
        """Where a row has a NaN its best is infinite, and the difference of infinities is NaN."""
        k, rows = self._k, self.row_flag.elements
        if self._problem.values:
            operands = self._keep, self.row_flag, _ZERO, self._mode("EQ"), rows
            k.call("Compares", *operands, repeats=_repeats_of(rows), former="CompareScalar")
            k.call("Sub", self.row_flag, self.row_best, self.row_best, count, repeats=_repeats_of(count))
            self._select(self.row_best, self.row_best, self.row_flag, count)
        self.store(offset, count, self.row_best, places)

    def store(self, offset: Expr, count: Expr, best: Buffer, places: Buffer) -> None:
        """The results from an offset on."""
        k, repeats = self._k, _repeats_of(count)
        mode = Enumerator("RoundMode::CAST_RINT")
        index_mode = mode if places.ctype == "float" else Enumerator("RoundMode::CAST_NONE")
        k.call("Cast", self._results["indices"], places, index_mode, count, repeats=repeats * 2)
        if self._problem.values:
            values = self._results["values"]
            if values.ctype == "float":
                k.call("Adds", values, best, _ZERO, count, repeats=repeats)
            else:
                k.call("Cast", values, best, mode, count, repeats=repeats)
        for name, tensor in self._outputs.items():
            k.store(tensor, offset, self._results[name], count)

    # -- instructions ---------------------------------------------------------------------------

    def _mode(self, sign: str) -> Enumerator:
        return Enumerator(f"CMPMODE::{sign}")

    def _compare(self, mask: Place, left: Place, right: Place, sign: str, count: Expr) -> None:
        self._k.call("Compare", mask, left, right, self._mode(sign), count, repeats=_repeats_of(count))

    def _hold(self, mask: Buffer, value: Place, other: Place, count: Expr) -> None:
        """Where a value is at least as good as another, or NaN."""
        self._compare(mask, value, other, self._sign, count)
        self._or_undefined(mask, value, count)

    def _or_undefined(self, mask: Buffer, value: Place, count: Expr) -> None:
        self._compare(self._other, value, value, "NE", count)
        self._join("Or", mask, self._other, count)

    def _join(self, key: str, mask: Buffer, other: Buffer, count: Expr) -> None:
        mine, another = read_as("uint16_t", mask), read_as("uint16_t", other)
        words = count // _MASK_BITS
        self._k.call(key, mine, mine, another, words, repeats=ceil_div(words, _REPEAT * 2))

    def _select(
        self, to: Place, kept: Place, otherwise: Operand | Buffer, count: Expr, mask: Buffer | None = None
    ) -> None:
        """``kept`` where the mask says so."""
        form = _select_mode(otherwise)
        self._k.call(
            "Select", to, mask or self._keep, kept, otherwise, form, count, repeats=_repeats_of(count)
        )

    def _select_rows(
        self, to: Buffer, otherwise: Operand | Buffer, tail: tuple[Operand, ...], rows: Expr
    ) -> None:
        form = _select_mode(otherwise)
        self._k.call("Select", to, self._keep, to, otherwise, form, *tail, repeats=rows)

    def _reduce(self, op: str, to: Buffer, source: Buffer, repeats: Expr) -> None:
        """One number a repeat, or of all repeats where they are of one row."""
        k, order = self._k, Enumerator("ReduceOrder::ORDER_ONLY_VALUE")
        each = Buffer("partial", "float", 4, _REPEAT, cleared=True) if self._is_long else to
        name, times = f"WholeReduce{op}", Converted(repeats, "uint8_t")
        tail = (Int(1), Int(1), _BLOCK, order)
        k.call("ReduceRepeat", each, source, _REPEAT, times, *tail, repeats=repeats, former=name)
        if self._is_long:
            k.call("ReduceRepeat", to, each, repeats, 1, *tail, repeats=1, former=name)

    def _find(self, mask: Buffer, source: Buffer, numbers: Buffer, repeats: Expr) -> None:
        """Where the lanes of a row are the row's number, a block of which is made for all of its blocks."""
        k = self._k
        groups = Int(1) if self._is_long else ceil_div(repeats, _BLOCK)
        size = _BLOCK * _BLOCK if self._is_long else numbers.elements * _BLOCK
        blocks = Buffer("blocks", "float", 4, size)
        steps = Fields("BrcbRepeatParams", {"dstBlkStride": Int(1), "dstRepStride": _BLOCK}, is_short=True)
        k.call("Brcb", blocks, numbers, Converted(groups, "uint8_t"), steps, repeats=groups)
        spread = strides("BinaryRepeatParams", 1, 1, 0, _BLOCK, _BLOCK, 0 if self._is_long else 1)
        tail = (self._mode("EQ"), _REPEAT, Converted(repeats, "uint8_t"), spread)
        k.call("Compare", mask, source, blocks, *tail, repeats=repeats)


def _select_mode(otherwise: Operand | Buffer) -> Enumerator:
    is_scalar = isinstance(otherwise, (Converted, Number))
    return Enumerator(f"SELMODE::VSEL_TENSOR_{'SCALAR' if is_scalar else 'TENSOR'}_MODE")
