"""Planes that are resized along both dimensions, or along columns: eight at a time.

Transposed so that elements of eight planes at one place are a block, a column is a matter of addresses.
Where the ratio is regular, each phase of a period is a weighted sum of blocks a constant step apart; else
blocks are gathered for each tap and weighted by a block of equal weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import evolve

from evokernel_core.compiler.problems.resize import SMOOTH, Resize
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Place, at, read_as, strides, transpose
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Constant,
    CoreCount,
    Expr,
    Index,
    Int,
    Var,
    ceil_div,
    expr,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Fields, Kernel, Number, Slice
from evokernel_core.targets.ascendc.kernels.resize.axis import (
    Phases,
    ends_of,
    most_ahead,
    phases_of,
    window_of,
)
from evokernel_core.targets.ascendc.kernels.resize.resize_common import (
    REPEAT,
    ResizeSchedule,
    Resizing,
    start_of,
)
from evokernel_core.targets.ascendc.kernels.resize.tables import LANES, Tables

BLOCK = 8
"""float32 elements of a block, and planes that are resized together."""
SIDE = 16
"""Blocks that one transposition takes, and elements of each plane in it."""
_GATHERED = 256
"""Columns that are gathered together, of several rows where one has fewer: beyond it little is gained."""
PLANES = Constant("PLANES", BLOCK, "that are resized together: a block has an element of each")
_SIDE = Constant("SIDE", SIDE, "elements of each plane that a transposition takes")
_MOST_REPEATS = Constant("MOST_REPEATS", most_of("TransDataTo5HD", "repeatTimes"))
_NOTE = """\
Resizes planes. Eight of them are transposed so that their elements at one place are a block: columns are then
a matter of addresses, and rows are long runs that numbers weigh."""


def whole(count: int, unit: int) -> int:
    """The least multiple of ``unit`` that is no less."""
    return -(-count // unit) * unit


class Planes(Resizing):
    """``step``: elements from row to row of the source in a tile, of which those behind a row repeat its last
    one and the first of the next row; ``lead``: elements in front of the first row, which repeat its first
    one; ``pitch``: blocks from row to row where columns are those of results."""

    def __init__(self, problem: Resize, schedule: ResizeSchedule, note: str = _NOTE) -> None:
        super().__init__(note, problem, schedule)
        axis = problem.columns
        length = min(schedule.columns, axis.results)
        self.part, self.phases = window_of(axis, length), phases_of(axis)
        self.is_wide = length == axis.results
        if axis.kind in SMOOTH and not (self.is_wide and self.part.span == axis.sources):
            self.phases = None  # the outermost results of a part would have other weights
        self.is_whole = self.is_wide and self.phases is None and self.part.span * 4 >= axis.sources * 3
        """Whether rows of the source lie in a tile as in memory, one behind the other."""
        reach = axis.sources if self.is_whole else self.part.span
        self.reach = Constant("REACH", reach, "columns of the source that a tile needs")
        self._lay_out(length)
        self.wide = Constant("TILE_COLUMNS", length, "columns of results in a tile")
        self.high = Constant("JOINED", schedule.joined, "rows that are stored at a time")
        self.out = Constant("OUT", self._out(schedule, length), "elements of each plane then")
        self.columns = Tables(self.k, "column", axis, whole(length, BLOCK))
        self._make_buffers(schedule)

    def _out(self, schedule: ResizeSchedule, length: int) -> int:
        return whole(schedule.joined * length, SIDE)

    def _lay_out(self, length: int) -> None:
        axis, phases = self.problem.columns, self.phases
        self.lead, step, pitch = 0, self.reach.value, whole(length, BLOCK)
        if phases is not None:
            before, behind = phases.overhang(axis)
            self.lead = whole(max(1, before), self.block)
            step = whole(before + step + behind, self.block * phases.q)
            pitch = step * phases.p // phases.q
        elif not self.is_whole:
            step = whole(step, self.block)
        self.step = Constant("STEP", step, "from row to row of the source in a tile")
        self.pitch = Constant("PITCH", pitch, "blocks of a row of results")
        together = max(1, min(_GATHERED // pitch, self.span.value))
        self.together = Constant(
            "TOGETHER", together, "rows of the source whose columns are gathered together"
        )
        flat = whole(self.lead + self.span.value * step, SIDE)
        self.flat = Constant("FLAT", flat, "elements of each plane in a tile")

    def _make_buffers(self, schedule: ResizeSchedule) -> None:
        table, axis, phases = self.columns, self.problem.columns, self.phases
        elements, results = PLANES * self.flat, PLANES * self.out
        self.taken = Buffer("taken", self.ctype, self.width, elements, schedule.buffers)
        self.made = Buffer("made", self.ctype, self.width, results, 2)
        self.source = self.taken if self.is_float else Buffer("source", "float", 4, elements)
        self.sums = self.made if self.is_float else Buffer("sums", "float", 4, results)
        # Repeats of a phase work on blocks behind the last row, which nobody stores.
        more = further = 0
        if phases is not None:
            behind = max(0, most_ahead(axis, phases, self.part)) + max(phases.offsets) + phases.taps
            more, further = self.lead + behind + 8 * phases.q, 8 * phases.p
        self._make_blocks(more, further)
        self.mixed = Buffer("mixed", "float", 4, results)
        entries = self.together * self.pitch
        self.gathered = Buffer("gathered", "float", 4, PLANES * entries)
        self.place = Buffer("place", "int32_t", 4, table.length)
        self.places = Buffer("places", "int32_t", 4, entries * axis.taps)
        self.spread = Buffer("spread", "float", 4, entries * axis.taps * BLOCK)

    def _make_blocks(self, more: int, further: int) -> None:
        """The buffers of blocks, with room behind them for what instructions on whole repeats work on."""
        self.turned = Buffer("turned", "float", 4, PLANES * (self.flat + more))
        rows = self.span * self.pitch + SIDE + further
        self.stretched = Buffer("stretched", "float", 4, PLANES * rows)

    def lasting(self) -> tuple[Buffer, ...]:
        """The buffers that hold something at the same time."""
        tables = (self.places, self.spread) if self.phases is None else ()
        return (self.taken, self.made, self.turned, self.stretched, *tables, *self.row_tables)

    # -- tables of columns ----------------------------------------------------------------------

    def _tabulate(self, first: Expr, start: Expr) -> None:
        """For each tap of a column, and each of the rows that are gathered together, the place of its block,
        in bytes, and a block of its weight."""
        k, axis, table = self.k, self.problem.columns, self.columns
        table.compute(first)
        less, place = k.let("less", start, "int32_t"), at(self.place, 0)
        with k.section("SpreadColumns", "A block for each tap: where it lies in a row, and what it weighs."):
            for tap in range(axis.taps):
                self._count("Adds", place, table.first, Int(tap))
                if axis.shift:
                    self._count("Maxs", place, place, Int(axis.shift))
                    self._count("Adds", place, place, Int(-axis.shift))
                self._count("Mins", place, place, Int(axis.sources - 1))
                self._count("Adds", place, place, Int(0) - less)
                # Entries behind the last column are not stored, but must not read elsewhere.
                self._count("Mins", place, place, self.reach - 1)
                self._count("Muls", place, place, Int(BLOCK_BYTES))
                self._spread(tap)

    def _spread(self, tap: int) -> None:
        """The entries of a tap for every row that is gathered together."""
        k, count, groups = self.k, self.pitch, self.pitch // BLOCK
        steps = Fields(
            "BrcbRepeatParams", {"dstBlkStride": Int(1), "dstRepStride": Int(BLOCK)}, is_short=True
        )
        weights = at(self.columns.weights, self.columns.length * tap)
        with k.loop("together", self.together) as row:
            to = (self.together * tap + row) * self.pitch
            below = Converted(row * self.step * BLOCK_BYTES, "int32_t")
            k.call("Adds", at(self.places, to), self.place, below, count, repeats=ceil_div(count, LANES))
            if self.problem.columns.is_weighted:
                times = Converted(groups, "uint8_t")
                k.call("Brcb", at(self.spread, to * BLOCK), weights, times, steps, repeats=groups)

    def _count(self, key: str, to: Place, x: Place, by: Expr) -> None:
        count = self.columns.length
        self.k.call(key, to, x, Converted(by, "int32_t"), count, repeats=count // LANES)

    # -- tiles ----------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """Of each part of the columns a core has a run of tiles, for which it makes tables once."""
        k, problem = self.k, self.problem
        self.table.compute(0)
        groups = k.param("groups", ceil_div(self.planes, PLANES))
        across = k.param("parts", ceil_div(self.result_columns, self.wide), "of the columns")
        down = k.param("tilesOfRows", ceil_div(self.result_rows, self.tile_rows))
        every = k.param("tilesOfPart", groups * down)
        share = k.param("share", ceil_div(every * across, CoreCount()), "tiles of a core")
        units = k.param("unitsOfPart", ceil_div(every, share))
        with k.cores("unit", k.param("units", across * units)) as unit:
            part = k.let("part", unit // units, U64)
            column = k.let("column", part * self.wide, U32)
            count = k.let("count", least(self.result_columns - column, self.wide))
            start = Int(0) if self.is_whole else start_of(problem.columns, self.part, part)
            begin = k.let("begin", start, U32)
            if self.phases is None:
                self._tabulate(column, begin)
            first = k.let("first", unit % units * share, U64)
            left = k.let("left", every - first, U64)
            with k.loop("turn", least(left, share), U64) as turn:
                band = k.let("band", (first + turn) % down, U64)
                plane = k.let("plane", (first + turn) // down * PLANES, U64)
                self._tile(plane, band, (column, count, begin))
        return k.kernel()

    def _tile(self, plane: Expr, band: Expr, columns: tuple[Expr, Expr, Expr]) -> None:
        k, (column, count, begin) = self.k, columns
        row = k.let("row", band * self.tile_rows, U32)
        start = self.start_of_tile(band)
        rows = k.let("rows", least(self.result_rows - row, self.tile_rows))
        planes_left = k.let("planesLeft", self.planes - plane, U64)
        planes = k.let("tilePlanes", least(planes_left, PLANES))
        self._load(plane * self.source_plane + begin, planes, (row, rows, start))
        if not self.is_float:
            self.cast(self.source, self.taken, PLANES * self.flat, "NONE")
        self._to_blocks(at(self.turned, 0))
        if self.phases is None:
            self._gather_columns()
        else:
            self._phase_columns(self.phases, column, begin)
        self._mix(plane, planes, (row, rows, start), (column, count))

    def _to_blocks(self, target: Slice) -> None:
        word = Var("k")
        taken = word % BLOCK * self.flat + word // BLOCK * BLOCK
        made = (word % 2 * BLOCK + word // 2) * BLOCK
        with self.k.section("ToBlocks", "The elements of all planes at one place become a block."):
            source = at(self.source, 0)
            self._transpose((target, made, SIDE), (source, taken, 2), self.flat, self.flat.value)

    def _load(self, place: Expr, planes: Expr, rows: tuple[Expr, Expr, Expr]) -> None:
        k = self.k
        if self.is_whole and not self.is_sparse:
            count = self.span * self.source_columns
            first = place + rows[2] * self.source_columns
            k.load(self.taken, self.x, first, count, rows=planes, apart=self.source_plane, pitch=self.flat)
            return
        with k.loop("p", planes) as p:
            target = at(self.taken, p * self.flat + self.lead)
            self.load_rows(target, place + p * self.source_plane, rows, self.reach, self.step)

    # -- as many columns as results -------------------------------------------------------------

    def _gather_columns(self) -> None:
        """As many rows at a time as one instruction takes."""
        k, axis, together = self.k, self.problem.columns, self.together
        note = "Rows of the source, tap by tap."
        with k.pieces("sourceRow", (0, self.span), together) as (row, rows), k.section("Stretch", note):
            taken = at(self.turned, row * self.step * BLOCK)
            target = at(self.stretched, row * self.pitch * BLOCK)
            for tap in range(axis.taps):
                entries = together * self.pitch * tap
                if not axis.is_weighted:
                    self._gather(target, taken, entries, rows)
                    continue
                self._gather(at(self.gathered, 0), taken, entries, rows)
                count, key = rows * self.pitch * BLOCK, "MulAddDst" if tap else "Mul"
                weights = at(self.spread, entries * BLOCK)
                k.call(key, target, self.gathered, weights, count, repeats=ceil_div(count, REPEAT))

    def _gather(self, to: Place, taken: Place, entries: Expr, rows: Expr) -> None:
        values = {"dstBlkStride": Int(1), "dstRepStride": Int(BLOCK)}
        repeats = rows * self.pitch // BLOCK
        self.k.call(
            "Gatherb",
            read_as("uint32_t", to),
            read_as("uint32_t", taken),
            read_as("uint32_t", at(self.places, entries)),
            Converted(repeats, "uint8_t"),
            Fields("GatherRepeatParams", values, is_short=True),
            repeats=repeats,
        )

    def _phase_columns(self, phases: Phases, column: Expr, begin: Expr) -> None:
        """All rows at a time: they are so far apart that a period goes on from one to the next."""
        self._repeat_ends(phases, self.span)
        ahead = self._ahead(phases, column, begin)
        source = at(self.turned, ahead * BLOCK)
        self._stretch(phases, source, self.span, self.span.value)
        if self.problem.columns.kind in SMOOTH:
            self._make_ends(phases, source, self.span)

    def _ahead(self, phases: Phases, column: Expr, begin: Expr) -> Expr:
        """The block of a row where the first period of a tile begins."""
        return self.k.let("ahead", column // phases.p * phases.q + self.lead - begin)

    def _stretch(self, phases: Phases, source: Slice, rows: Expr, most: int) -> None:
        """The columns of so many rows, at most ``most``, of which the first period of the first one is
        given."""
        k = self.k
        with k.section("Stretch", "Each phase of a period, tap by tap."):
            repeats = ceil_div(rows * self.pitch, BLOCK * phases.p)
            steps = strides("UnaryRepeatParams", phases.p, phases.q, phases.p * BLOCK, phases.q * BLOCK)
            bound = -(-most * self.pitch.value // (BLOCK * phases.p))
            with self._repeated("repeat", repeats, bound) as (repeat, count):
                for phase in range(phases.p):
                    to = at(self.stretched, (repeat * (BLOCK * phases.p) + phase) * BLOCK)
                    for tap in range(phases.taps):
                        weight = phases.weights[phase][tap]
                        place = repeat * (BLOCK * phases.q) + (phases.offsets[phase] + tap)
                        number = Number(f"WEIGHT_{phase}_{tap}", weight)
                        key = "Axpy" if tap else "Muls"
                        times = Converted(count, "uint8_t")
                        taken = source.behind(place * BLOCK)
                        k.call(key, to, taken, number, REPEAT, times, steps, repeats=count)

    def _repeat_ends(self, phases: Phases, rows: Index) -> None:
        """The first and the last column beyond the ends, for so many rows."""
        before, behind = phases.overhang(self.problem.columns)
        last = self.lead + self.reach - 1
        with self.k.section("RepeatEnds", "The first and the last column go on beyond the ends."):
            for less in range(before):
                self._copy_column(Int(self.lead - 1 - less), Int(self.lead), rows)
            for more in range(behind):
                self._copy_column(last + (more + 1), last, rows)

    def _make_ends(self, phases: Phases, source: Slice, lines: Expr) -> None:
        """The columns some of whose taps lie beyond the ends, of eight rows at a time."""
        k = self.k
        ends = tuple(ends_of(self.problem.columns, phases))
        if not ends:
            return
        values: dict[str, Expr] = {"dstBlkStride": self.pitch, "srcBlkStride": self.step}
        values |= {"dstRepStride": Int(BLOCK), "srcRepStride": Int(BLOCK)}
        types = dict.fromkeys(values, "uint16_t") | {"dstRepStride": "uint8_t", "srcRepStride": "uint8_t"}
        steps = Fields("UnaryRepeatParams", values, types, is_short=True)
        note = "The columns some of whose taps lie beyond the ends."
        with k.section("MakeEnds", note), k.pieces("end", (0, lines), BLOCK) as (row, rows):
            for end in ends:
                target = at(self.stretched, (row * self.pitch + end.result) * BLOCK)
                for turn, (column, weight) in enumerate(end.weights):
                    place = source.offset + (row * self.step + column) * BLOCK
                    number = Number(f"END_{end.result}_{turn}", weight)
                    times = Converted(Int(1), "uint8_t")
                    key, taken = "Axpy" if turn else "Muls", at(source.buffer, place)
                    k.call(key, target, taken, number, rows * BLOCK, times, steps, repeats=1)

    def _copy_column(self, to: Expr, source: Expr, rows: Index) -> None:
        steps = {
            "dstStride": Int(1),
            "srcStride": Int(1),
            "dstRepeatSize": self.step,
            "srcRepeatSize": self.step,
        }
        types = dict.fromkeys(steps, "uint16_t")
        fields = Fields("CopyRepeatParams", steps, types, is_short=True)
        target, taken = at(self.turned, to * BLOCK), at(self.turned, source * BLOCK)
        times = Converted(expr(rows), "uint8_t")
        self.k.call("Copy", target, taken, BLOCK, times, fields, repeats=ceil_div(expr(rows), BLOCK))

    # -- rows of results ------------------------------------------------------------------------

    def _mix(
        self, plane: Expr, planes: Expr, rows: tuple[Expr, Expr, Expr], columns: tuple[Expr, Expr]
    ) -> None:
        """Rows of results, so many at a time."""
        k = self.k
        (row, high, start), (column, count) = rows, columns
        with k.pieces("line", (0, high), self.high) as (line, lines):
            mixed = at(self.mixed, 0)
            if self.schedule.joined == 1 and not self.problem.rows.is_weighted:
                slot = self.slot_of(0, self.first_of(row + line), line, (row, start))
                mixed = at(self.stretched, slot * self.pitch * BLOCK)
            else:
                with k.loop("i", lines) as i:
                    to = at(self.mixed, i * self.wide * BLOCK)
                    pitch = self.pitch * BLOCK
                    self.weigh(to, line + i, (row, start), pitch, self.stretched, count * BLOCK)
            with k.section("ToPlanes", "Blocks to elements of every plane."):
                self._to_planes(
                    at(self.sums, 0), mixed, lines * self.wide, self.schedule.joined * self.wide.value
                )
            if not self.is_float:
                self.cast(self.made, self.sums, PLANES * self.out, "RINT")
            place = plane * self.result_plane + (row + line) * self.result_columns + column
            self._store(place, planes, lines, count)

    def _store(self, place: Expr, planes: Expr, lines: Expr, count: Expr) -> None:
        k = self.k
        if self.is_wide or self.schedule.joined == 1:
            run = lines * count
            k.store(self.y, place, self.made, run, rows=planes, apart=self.result_plane, pitch=self.out)
            return
        with k.loop("p", planes) as p:
            k.store(
                self.y,
                place + p * self.result_plane,
                at(self.made, p * self.out),
                count,
                rows=lines,
                apart=self.result_columns,
                pitch=self.wide,
            )

    # -- transpositions -------------------------------------------------------------------------

    def _to_planes(self, to: Slice, source: Slice, count: Index, most: int) -> None:
        word = Var("k")
        made = word // 2 * self.out + word % 2 * BLOCK
        self._transpose((to, made, 2), (source, word * BLOCK, SIDE), count, most)

    @contextmanager
    def _repeated(self, name: str, count: Expr, most: int) -> Iterator[tuple[Expr, Expr]]:
        """So many repeats, at most ``most``, in pieces that an instruction takes where one does not: what a
        loop makes is taken to be needed for all turns of those around it."""
        if most <= _MOST_REPEATS.value:
            yield Int(0), self.k.let(f"{name}Count", count)
            return
        with self.k.pieces(name, (0, count), _MOST_REPEATS) as piece:
            yield piece

    def _transpose(
        self, to: tuple[Slice, Expr, int], source: tuple[Slice, Expr, int], count: Index, most: int
    ) -> None:
        """Squares of ``count`` elements, at most ``most``; each operand with the place of its k-th block and
        the blocks that a square is behind the one before."""
        k, word = self.k, Var("k")
        squares = ceil_div(count, _SIDE)
        with self._repeated("square", squares, -(-most // SIDE)) as (square, repeats):
            made, taken = (
                (evolve(item, offset=item.offset + place + square * blocks * BLOCK), blocks)
                for item, place, blocks in (to, source)
            )
            transpose(k, made, taken, word, repeats)
