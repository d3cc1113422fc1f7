"""The kernel of a sort: pairs of a number and its place, the greatest number first.

A tile is sorted 32 pairs at a time, and four sorted runs of it become one until one is left. Rows that a tile
holds are done then. Of longer ones the best so far are merged with each tile, or all tiles become runs in the
workspace, of which four become one, slice by slice, as far as their numbers say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evokernel_core.compiler.problems.sort import RESULTS, Sort
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, at, read_as, whole
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Condition,
    Constant,
    CoreCount,
    Expr,
    Int,
    Size,
    State,
    ceil_div,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Enumerator,
    Kernel,
    Number,
    Operand,
    Runs,
    Slice,
    Told,
)
from evokernel_core.targets.ascendc.kernels.merging import (
    NUMBERS,
    PAIR,
    PLACES,
    RUN,
    WAYS,
    Merging,
    levels_of,
    merge,
    pick,
)
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.sort.sort_settings import SortSchedule, is_long, is_short
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_BLOCK = Constant("FLOATS_PER_BLOCK", 8)
_MOST = Constant("MOST_COLUMNS", 1 << 30, "places are counted in 30 bits")
_NAN = Constant("NAN_BIT", 30, "of an element's place, since its number is not itself")
_ALL = Constant("ALL_LANES", (1 << 64) - 1)
_LEAST, _GREATEST = Number("LEAST", float("-inf")), Number("GREATEST", float("inf"))
_ZERO, _OPPOSITE = Converted(Int(0), "float"), Converted(Int(-1), "float")
_TENSORS = Enumerator("SELMODE::VSEL_TENSOR_TENSOR_MODE")
_SCALAR = Enumerator("SELMODE::VSEL_TENSOR_SCALAR_MODE")
_WORD = 4


def build(problem: Sort, schedule: SortSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return _Sorting(problem, schedule).kernel()


class _Sorting:
    """``pairs``: those of a tile, twice, so that runs go from one half to the other; before and behind that
    the half that is not used has the places of what is sorted."""

    def __init__(self, problem: Sort, schedule: SortSchedule) -> None:
        what = "Pairs of a number and its place are sorted, the greatest number first"
        signs = "" if problem.descending else ", for which numbers change their sign"
        self._k, self._problem, self._item = Builder(f"{what}{signs}."), problem, schedule
        k, ctype, width = self._k, CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
        self._short, self._long, self._ascending = (
            is_short(problem, schedule),
            is_long(schedule),
            not problem.descending,
        )
        self._tile = Constant("TILE_ELEMENTS", schedule.elements)
        self._best = Constant("BEST", schedule.best, "most elements that are kept of a row")
        self._slice = Constant("SLICE", schedule.elements // 4, "pairs of each run that are merged at a time")
        self._half = PAIR * self._tile
        self._x = k.input("x", parameter(problem.source, RESULTS), ctype, width)
        self._taken = Buffer("taken", ctype, width, self._tile, schedule.buffers)
        self._wide = self._taken if width == _WORD else Buffer("wide", "float", _WORD, self._tile)
        if problem.numbers:
            self._given = k.input("given", parameter(problem.numbers, RESULTS), "int64_t", 8)
            self._numbers = Buffer("numbers", "int64_t", 8, self._tile, schedule.buffers)
        most = self._tile if self._short or not schedule.best else self._best
        types = {"values": (ctype, width), "indices": ("int64_t", 8)}
        self._outputs = {name: k.output(name, name, *types[name]) for name in problem.results}
        self._made = {name: Buffer(f"{name}Tile", *types[name], most) for name in problem.results}
        self._places = Buffer("places", "int32_t", _WORD, self._tile * (2 if self._ascending else 1))
        self._pairs = Buffer("pairs", "float", _WORD, self._half * 2, cleared=True)
        self._mask = Buffer("mask", "uint8_t", 1, self._tile // 8)
        self._kept = Buffer("best", "float", _WORD, PAIR * self._best * 4)
        self._size()

    def _size(self) -> None:
        """Rows of a tile: as many as fit, but no more than every core's share."""
        k, problem, tile = self._k, self._problem, self._tile
        self._rows, self._columns = (
            k.param("rows", Size(problem.rows)),
            k.param("columns", Size(problem.columns)),
        )
        self._keep = k.param("keep", Size(problem.keep), "the first of a row, which are results")
        for size in (self._rows, self._keep):
            k.require(size, ">=", 1)
        k.require(self._keep, "<=", self._columns)
        k.require(self._columns * problem.parts, "<=", _MOST)
        whole_runs = k.param("pairsOfRow", round_up(self._columns, RUN))
        self._high: Expr = Int(1)
        self._pieces: Expr = Int(1)
        if self._short:
            fits = least(tile // whole_runs, ceil_div(self._rows, CoreCount()))
            if self._long:
                fits = Choice(self._columns, "<=", tile, fits, Int(1))
            self._high = k.param("rowsPerTile", fits)
        if self._long:
            self._pieces = k.param("tilesOfRow", ceil_div(self._columns, tile))
        else:
            k.require(self._columns, "<=", tile)
        if self._item.merges:
            own = k.param("rowFloats", PAIR * whole_runs)
            self._scratch = k.workspace("scratch", "float", _WORD, own * 2)
            self._row = own
            levels = levels_of(self._columns, self._item.elements, _MOST.value)
            self._row_levels = k.param("rowLevels", levels, "in which four runs become one")
            self._merging = Buffer("slices", "float", _WORD, self._half)
            self._merged = Buffer("merged", "float", _WORD, self._half)
        self._slot = least(whole_runs, tile) if self._long else whole_runs

    def kernel(self) -> Kernel:
        k, problem = self._k, self._problem
        self._number_places()
        with self._tiles() as (unit, piece):
            row = k.let("row", unit * self._high, U64)
            column = k.let("column", piece * self._tile, U64)
            left = k.let("rowsLeft", self._rows - row, U64)
            rows = k.let("rows", least(left, self._high))
            left = k.let("columnsLeft", self._columns - column, U64)
            width = k.let("width", least(left, self._tile) if self._long else left)
            pitch = k.let("pitch", round_up(width, RUN))
            levels = k.let("levels", levels_of(pitch, RUN.value, self._item.elements))
            at_end = k.let("sortedAt", levels % 2 * self._half)
            spare = k.let("spareAt", (levels + 1) % 2 * self._half)
            where = {"rows": rows, "apart": width, "pitch": pitch}
            k.load(self._taken, self._x, row * self._columns + column, width, **where)
            if problem.numbers:
                k.load(self._numbers, self._given, row * self._columns + column, width, **where)
            self._sort(row, column, rows, width, pitch, levels)
            self._finish(row, piece, rows, pitch, at(self._pairs, at_end), spare)
        return k.kernel()

    @contextmanager
    def _tiles(self) -> Iterator[tuple[Expr, Expr]]:
        """Tile by tile of the rows of a core: those that share a tile, or those of one row in their order."""
        k = self._k
        units = k.param("units", ceil_div(self._rows, self._high))
        if not self._long:
            with k.cores("unit", units) as unit:
                yield unit, Int(0)
            return
        share = k.param("unitsPerCore", ceil_div(units, CoreCount()))
        with k.cores("core", k.param("coresUsed", ceil_div(units, share)), even=True) as core:
            first = k.let("first", core * share, U64)
            left = k.let("left", units - first, U64)
            with k.loop("turn", k.let("turns", least(left, share) * self._pieces, U64), U64) as turn:
                yield (
                    k.let("unit", first + turn // self._pieces, U64),
                    k.let("piece", turn % self._pieces, U64),
                )

    # -- a tile ---------------------------------------------------------------------------------

    def _number_places(self) -> None:
        if not self._problem.numbers:
            with self._k.loop("line", self._high) as line:
                self._count_from(line * self._slot, Int(0), self._slot)

    def _count_from(self, place: Expr, first: Expr, count: Expr) -> None:
        self._k.on("CreateVecIndex", at(self._places, place), Converted(first, "int32_t"), count=count)

    def _sort(self, row: Expr, column: Expr, rows: Expr, width: Expr, pitch: Expr, levels: Expr) -> None:
        """Leaves the sorted pairs of each row in a half of ``pairs``."""
        k, problem = self._k, self._problem
        first: Expr = column if self._long and not problem.numbers else Int(0)
        with k.section("Sort", "Sorted pairs of each row."):
            if problem.numbers:
                self._widen(self._places, self._numbers, rows, width, pitch)
            elif problem.parts > 1:
                with k.loop("line", rows) as line:  # what part of a longer row each one is
                    self._count_from(line * pitch, (row + line) % problem.parts * self._columns, pitch)
            if self._wide is not self._taken:
                self._widen(self._wide, self._taken, rows, width, pitch)
            self._fill(rows, width, pitch)
            count = k.let("count", rows * pitch)
            scores, spare = whole(self._wide), at(self._pairs, self._half)
            places = whole(self._places)
            if self._ascending or self._long:
                places = read_as("int32_t", spare)
                self._k.on("Adds", places, self._places, Converted(first, "int32_t"), count=count)
            if self._ascending:
                self._turn_signs(scores, places, count)
            repeats = count // RUN
            taken = read_as("uint32_t", places)
            k.call("Sort32", self._pairs, scores, taken, repeats, repeats=count // LANES + 1)
            Merging(k, self._pairs, self._half, rows, pitch).merge(levels)

    def _widen(self, to: Buffer, source: Buffer, rows: Expr, width: Expr, pitch: Expr) -> None:
        k, mode = self._k, Enumerator("RoundMode::CAST_NONE")
        with k.loop("line", rows) as line:
            self._k.on("Cast", at(to, line * pitch), at(source, line * pitch), mode, count=width)

    def _fill(self, rows: Expr, width: Expr, pitch: Expr) -> None:
        """What lies behind the columns of a row is less than they are, or behind its equals."""
        k = self._k
        with k.when(width, "!=", pitch):
            begun = k.let("begun", width // _BLOCK * _BLOCK)
            behind = k.lanes("behind", (_ALL << (width - begun)) - (_ALL << (pitch - begun)))
            with k.loop("line", rows) as line:
                value = _GREATEST if self._ascending else _LEAST
                places: list[tuple[Buffer, Operand]] = [(self._wide, value)]
                if self._problem.numbers:
                    places.append((self._places, Converted(Int(0), "int32_t")))
                for buffer, filler in places:
                    place = at(buffer, line * pitch + begun)
                    k.call("Duplicate", place, filler, behind, 1, 1, _BLOCK, repeats=1)

    def _turn_signs(self, scores: Slice, places: Slice, count: Expr) -> None:
        """What is not a number is the greatest of all, so it is last."""
        k, bit = self._k, Converted(Int(1) << _NAN, "int32_t")
        marked, mask = at(self._places, self._tile), self._mask
        lanes = k.let("lanes", round_up(count, LANES))
        self._k.on("Adds", marked, places, bit, count=count)
        with k.when(count, "!=", lanes):  # whole repeats are compared
            self._k.on("Duplicate", scores.behind(count), _ZERO, count=lanes - count)
        self._k.on("Compare", mask, scores, scores, Enumerator("CMPMODE::EQ"), count=lanes)
        self._k.on("Muls", scores, scores, _OPPOSITE, count=count)
        self._k.on("Select", scores, mask, scores, _LEAST, _SCALAR, count=count)
        numbers = at(self._pairs, self._half)
        self._k.on("Select", numbers, mask, numbers, read_as("float", marked), _TENSORS, count=count)

    # -- what becomes of it ---------------------------------------------------------------------

    def _finish(self, row: Expr, piece: Expr, rows: Expr, pitch: Expr, tile: Slice, spare: Expr) -> None:
        k, target = self._k, row * self._keep
        if not self._long:
            self._store(target, rows, self._keep, tile, spare, pitch)
            return
        after = self._keep_best if self._item.best else self._keep_run
        if not self._short:
            after(target, piece, pitch, tile)
            return
        with k.when(self._pieces, "==", 1):
            self._store(target, rows, self._keep, tile, spare, pitch)
        with k.otherwise():
            after(target, piece, pitch, tile)

    def _keep_best(self, target: Expr, piece: Expr, pitch: Expr, tile: Slice) -> None:
        """The best of a row that tiles cut: each sorted tile is merged with the best so far."""
        k, room = self._k, PAIR * self._best * 2
        with k.when(piece, "==", 0):
            self._k.on("DataCopyLocal", self._kept, tile, count=self._best * PAIR)
        with k.otherwise():
            taken = least(pitch, self._best)
            best, better = (at(self._kept, (piece + turn) % 2 * room) for turn in (1, 0))
            runs = Runs((best, tile, tile, tile), (self._best, taken, Int(0), Int(0)), Int(2))
            merge(k, better, runs, self._best + taken)
        with k.when(piece, "==", self._pieces - 1):
            kept = at(self._kept, piece % 2 * room)
            self._store(target, Int(1), self._keep, kept, Int(0))

    def _keep_run(self, target: Expr, piece: Expr, pitch: Expr, tile: Slice) -> None:
        """Sorted tiles of a row become runs in the workspace, and four runs become one until one is left."""
        k = self._k
        self._k.on("DataCopyLocal", self._merged, tile, count=pitch * PAIR)
        k.store(self._scratch, piece * self._half, self._merged, pitch * PAIR)
        with k.when(piece, "==", self._pieces - 1):
            k.fence("ALL")
            with k.section("MergeRow", "Four runs of the workspace become one until one is left."):
                self._merge_row()
            last = k.let("rowAt", self._row_levels % 2 * self._row, U64)
            with k.pieces("kept", (0, self._keep), self._tile) as (first, count):
                pairs = k.let("keptPitch", round_up(count, RUN))
                k.load(self._merging, self._scratch, last + first * PAIR, pairs * PAIR)
                self._store(target + first, Int(1), count, whole(self._merging), Int(0))
            k.fence("ALL")

    def _store(
        self, target: Expr, rows: Expr, keep: Expr, tile: Slice, spare: Expr, pitch: Expr | None = None
    ) -> None:
        """The first elements of each sorted row, in whole runs. ``spare``: the half of ``pairs`` that has
        room; ``pitch``: pairs from row to row; only one row where none is given."""
        k = self._k
        kept = k.let("wholeRuns", round_up(keep, RUN))
        name = "TakeApart" if pitch is not None else "TakeRowApart"
        with k.section(name, "Numbers and places of the first pairs of each row."):
            count = k.let("count", rows * kept)
            places = at(self._pairs, spare)
            problem, values = read_as("int32_t", places), self._made.get("values")
            self._take(places, tile, rows, kept, pitch, PLACES)
            numbers = values if values is not None and self._wide is self._taken else self._wide
            if values is not None:
                self._take(whole(numbers), tile, rows, kept, pitch, NUMBERS)
            if self._ascending:
                self._restore(numbers if values is not None else None, places, count)
            if values is not None and numbers is not values:
                self._k.cast(values, numbers, "RINT", count)
            if "indices" in self._made:
                mode = Enumerator("RoundMode::CAST_NONE")
                self._k.on("Cast", self._made["indices"], problem, mode, count=count)
        for name, tensor in self._outputs.items():
            k.store(tensor, target, self._made[name], keep, rows=rows, apart=keep, pitch=kept)

    def _take(self, to: Slice, tile: Slice, rows: Expr, kept: Expr, pitch: Expr | None, half: Expr) -> None:
        """One half of the first pairs of each row, side by side."""
        k = self._k

        if pitch is None:
            pick(k, to, tile, half, kept // RUN, _BLOCK)
            return
        with k.when(kept, "==", pitch):
            pick(k, to, tile, half, rows * kept // RUN, _BLOCK)
        with k.otherwise():
            with k.when(kept, "==", RUN):
                pick(k, to, tile, half, rows, pitch * PAIR // _BLOCK)
            with k.otherwise(), k.loop("line", rows) as line:
                source = tile.behind(line * pitch * PAIR)
                pick(k, to.behind(line * kept), source, half, kept // RUN, _BLOCK)

    def _restore(self, numbers: Buffer | None, places: Slice, count: Expr) -> None:
        """Numbers with their own sign, and NaN where the place says so."""
        k, problem = self._k, read_as("int32_t", places)
        marked = places.behind(self._tile)
        marks, other = read_as("int32_t", marked), at(self._places, self._tile)
        self._k.on("ShiftRight", marks, problem, Converted(_NAN, "int32_t"), count=count)
        self._k.on("Muls", other, marks, Converted(Int(1) << _NAN, "int32_t"), count=count)
        self._k.on("Sub", problem, problem, other, count=count)
        if numbers is None:
            return
        lanes = k.let("lanes", round_up(count, LANES))
        self._k.on("Muls", numbers, numbers, _OPPOSITE, count=count)
        self._k.cast(marked, marks, "NONE", count)
        equal = (_ZERO, Enumerator("CMPMODE::EQ"))
        self._k.on("Compares", self._mask, marked, *equal, count=lanes, former="CompareScalar")
        self._k.on("Sub", marked, numbers, numbers, count=count)  # of infinities this is NaN
        self._k.on("Select", numbers, self._mask, numbers, marked, _TENSORS, count=count)

    # -- in the workspace -----------------------------------------------------------------------

    def _merge_row(self) -> None:
        k = self._k
        with k.loop("rowLevel", self._row_levels) as level:
            run = k.let("rowRun", self._half << level * 2, U64)
            source = k.let("from", level % 2 * self._row, U64)
            to = k.let("to", (level + 1) % 2 * self._row, U64)
            with k.loop("group", ceil_div(self._row, run * WAYS), U64) as group:
                start = k.let("start", group * run * WAYS, U64)
                behind = k.let("behindGroup", start + run * WAYS, U64)
                _Merging(self, source, to).group(start, k.let("end", least(behind, self._row), U64), run)
            k.fence("ALL")


class _Merging:
    """Up to four runs of the workspace become one. How much of each is next depends on its numbers: slices
    are merged until one of them is used up. Places count floats from ``source`` and from ``to`` on."""

    def __init__(self, around: _Sorting, source: Expr, to: Expr) -> None:
        self._k, self._around, self._source, self._to = around._k, around, source, to
        self._next = [State(f"next{place}", 0, "of a run that is merged") for place in range(4)]
        self._end = [State(f"end{place}", 0, "of the run") for place in range(4)]
        self._taken = [State(f"taken{place}", 0, "of its slice", "uint16_t") for place in range(4)]
        self._runs = State("runs", 0, "that are not used up")
        self._written = State("written", 0, "of the merged run")

    def group(self, start: Expr, end: Expr, run: Expr) -> None:
        k = self._k
        for place in range(4):
            k.assign(self._next[place], least(start + run * place, end))
            k.assign(self._end[place], least(start + run * (place + 1), end))
        k.assign(self._runs, ceil_div(end - start, run))
        k.assign(self._written, start)
        likely = ceil_div(end - start, self._around._half)
        with k.repeat("slices", Condition(self._written, "<", end), likely):
            with k.when(self._runs, ">", 1), k.section("MergeSlices", "Until one of them is used up."):
                self._merge_slices()
            with k.otherwise(), k.section("CopyRest"):
                self._copy_rest()

    def _merge_slices(self) -> None:
        k, around = self._k, self._around
        most = PAIR * around._slice
        lengths = [
            k.let(f"length{place}", least(self._end[place] - self._next[place], most)) for place in range(4)
        ]
        for place, length in enumerate(lengths):
            with k.when(length, "!=", 0):
                to = at(around._merging, most * place)
                k.load(to, around._scratch, self._source + self._next[place], length)
        runs = tuple(at(around._merging, most * place) for place in range(4))
        pairs = tuple(length // PAIR for length in lengths)
        told = tuple(map(Told, self._taken, pairs))
        merge(k, around._merged, Runs(runs, pairs, self._runs, Int(1), told), around._half)
        taken = [
            k.let(f"used{place}", Choice(length, "!=", Int(0), self._taken[place] * PAIR, Int(0)))
            for place, length in enumerate(lengths)
        ]
        count = k.let("count", taken[0] + taken[1] + taken[2] + taken[3])
        k.store(around._scratch, self._to + self._written, around._merged, count)
        k.assign(self._written, self._written + count)
        for state, used in zip(self._next, taken, strict=True):
            k.assign(state, state + used)
        self._close_up()

    def _close_up(self) -> None:
        """Runs that are not used up stand in front of those that are."""
        k = self._k
        with k.section("CloseUp", "Runs that are not used up stand in front of those that are."):
            for place in (2, 1, 0):
                with k.when(self._next[place], "==", self._end[place]):
                    for other in range(place, 3):
                        for state in (self._next, self._end):
                            k.assign(state[other], state[other + 1])
                    k.assign(self._next[3], self._end[3])
        runs: Expr = Int(0)
        for one, end in zip(self._next, self._end, strict=True):
            runs = runs + Choice(one, "<", end, Int(1), Int(0))
        k.assign(self._runs, runs)

    def _copy_rest(self) -> None:
        k, around = self._k, self._around
        count = k.let("restCount", least(self._end[0] - self._next[0], around._half))
        k.load(around._merging, around._scratch, self._source + self._next[0], count)
        around._k.on("DataCopyLocal", around._merged, around._merging, count=round_up(count, _BLOCK))
        k.store(around._scratch, self._to + self._written, around._merged, count)
        k.assign(self._next[0], self._next[0] + count)
        k.assign(self._written, self._written + count)
