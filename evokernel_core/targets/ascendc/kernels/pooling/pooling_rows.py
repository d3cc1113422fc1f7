"""Windows whose lanes are rows: rows of a window are combined as they lie in memory, and its columns after 16
rows at a time were turned, so that any distance along a row is one in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from evokernel_core.compiler.problems.pooling import PoolingAxis, Window
from evokernel_core.hardware.ascend.isa import LANES, LINE_BYTES
from evokernel_core.targets.ascendc.ir.builder import at, strides
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    CoreCount,
    Expr,
    Index,
    Int,
    Var,
    ceil_div,
    expr,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Element,
    Kernel,
    Number,
    Operand,
    Ratio,
    Slice,
    Tensor,
)
from evokernel_core.targets.ascendc.kernels.pooling.lanes import (
    BLOCK,
    GROUP,
    MOST_REPEATED,
    MOST_STEPS,
    LaneKernel,
    Turn,
    clipped,
    in_front,
    padded,
)
from evokernel_core.targets.ascendc.kernels.pooling.pooling_rows_schedule import WindowSchedule

_TURN = 128
"""float32 elements of one turn over the bank groups (architecture page 2201: 16 groups of 32 bytes)."""


_BANK = 65536
"""Bytes of a bank of the unified buffer (README of bank_conflict_ub): in one an instruction may not read and
write the same bank group at a time."""


class PoolingRows(LaneKernel):
    """A kernel whose tiles are rows and columns of a slice of the result. ``lead``: most columns that are
    loaded in front of a tile's first window, to start at an aligned address; ``pitch``: most elements from
    row to row of the input; ``apart_out``: elements from row to row of the result."""

    apart_out: Expr

    def __init__(self, window: Window, schedule: WindowSchedule) -> None:
        super().__init__(window)
        self.schedule, self.across = schedule, window.is_across
        self.lead = LINE_BYTES // self.width - 1 if self.across else 0
        self.reach = (schedule.columns - 1) * window.columns.stride + window.columns.reach
        self.pitch = padded(self.lead + self.reach, self.unit)
        rows = window.rows
        self.folds = not (self.across and window.depth.is_plain and rows.taps == rows.stride == 1)
        self.turns_slab = self.weighted and self.across and not window.weighs_rows
        self.params()
        self.buffers()

    # -- what it works on -----------------------------------------------------------------------

    def params(self) -> None:
        k, schedule = self.k, self.schedule
        self.sizes()
        step = min(32, schedule.columns) if self.across else self.unit
        tiles = ceil_div(self.rows_out, Constant("TILE_ROWS", schedule.rows))
        self.tile_rows = k.param("tileRows", ceil_div(self.rows_out, tiles), "all tiles are equal", U32)
        tiles = ceil_div(self.columns_out, Constant("TILE_COLUMNS", schedule.columns))
        self.tile_columns = k.param("tileColumns", round_up(ceil_div(self.columns_out, tiles), step), "", U32)
        self.row_tiles = k.param("rowTiles", ceil_div(self.rows_out, self.tile_rows))
        self.column_tiles = k.param("columnTiles", ceil_div(self.columns_out, self.tile_columns))
        if self.across:
            line = LINE_BYTES // self.width
            unit = Choice(self.columns_in % line, "==", Int(0), Int(line), Int(1))
            self.alignment = k.param("alignment", unit, "columns, from where copies lose nothing", U32)

    def buffers(self) -> None:
        """What instructions read and what they write begin half a turn over the bank groups apart."""
        schedule, rows = self.schedule, self.window.rows
        slab = padded(((schedule.rows - 1) * rows.stride + rows.reach) * self.pitch, 2 * _TURN)
        self.taken = Buffer("taken", self.ctype, self.width, Constant("TAKEN", slab), schedule.buffers)
        self.slab = self.taken if self.is_float else Buffer("slab", "float", 4, Constant("TAKEN", slab))
        self.result_pitch = padded(schedule.columns, GROUP) if self.across else self.pitch
        high = padded(schedule.rows, GROUP) if self.across else schedule.rows
        made = Constant("MADE", padded(high * self.result_pitch, 2 * _TURN) + 2 * _TURN)
        self.made = Buffer("made", self.ctype, self.width, made, schedule.buffers)
        result = self.made if self.is_float else Buffer("result", "float", 4, made)
        self.result = at(result, Constant("SHIFT", LANES, "half a turn over the bank groups"))
        self.folded = self.result
        if self.across:
            folded = Constant("FOLDED", padded(schedule.rows * self.pitch, 2 * _TURN) + 2 * _TURN)
            is_kept = (self.folds or self.weighted) and not self.turns_slab
            kept = at(Buffer("folded", "float", 4, folded), self.result.offset)
            self.folded = kept if is_kept else at(self.slab, 0)
            self.lanes()

    # -- tiles ----------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        k, depth = self.k, self.window.depth
        per_plane = self.row_tiles * self.column_tiles
        slices = self.planes if depth.is_plain else self.planes * self.depth_out
        tiles = k.param("tiles", slices * per_plane)
        share = k.param("share", ceil_div(tiles, CoreCount()), "tiles of a core")
        with k.cores("tile", tiles, run=share) as tile:
            plane = k.let("plane", tile // self.column_tiles // self.row_tiles, U64)
            self.column = k.let("column", tile % self.column_tiles * self.tile_columns, U64)
            self.row = k.let("row", tile // self.column_tiles % self.row_tiles * self.tile_rows, U64)
            self.columns = k.let("columns", least(self.columns_out - self.column, self.tile_columns))
            self.rows = k.let("rows", least(self.rows_out - self.row, self.tile_rows))
            self.place_rows()
            self.place_columns()
            if depth.is_plain:
                self.plane = plane
                self.load(self.source_plane(), self.held)
                self.combine(self.held, None)
            else:
                self.plane = k.let("ofPlane", plane // self.depth_out, U64)
                self.slices(k.let("slice", plane % self.depth_out, U64))
            self.finish()
            self.store(plane)
        return k.kernel()

    def place_rows(self) -> None:
        """``above``: rows that the first window has in front of the input; ``held``: those that exist."""
        axis = self.window.rows
        self.top, self.down, self.above = self.reached("Row", self.row, self.rows, axis)
        exist = greatest(self.rows_in, self.top) - self.top
        held = self.down if axis.stays_inside else least(exist, self.down - self.above)
        self.held = self.k.let("held", held)

    def place_columns(self) -> None:
        """``before``: columns that the first window has in front of the input; ``wide``: those that are
        loaded from ``left`` on, ``ahead`` of them in front of the first window; ``span``: of all windows."""
        k, axis = self.k, self.window.columns
        self.left, self.wide = self.column, self.columns
        if self.across:
            begin, self.span, self.before = self.reached("Column", self.column, self.columns, axis)
            self.ahead = k.let("ahead", begin % self.alignment)
            self.left = k.let("left", begin - self.ahead, U64)
            wanted = self.ahead + self.span - self.before
            exist = greatest(self.columns_in, self.left) - self.left
            self.wide = k.let("wide", wanted if axis.stays_inside else least(exist, wanted))
        self.step = k.let("step", round_up(self.wide, self.unit))
        if self.turns_slab:
            reached = greatest(self.ahead + self.span, self.before + round_up(self.wide, BLOCK))
            needed = greatest(ceil_div(reached, axis.stride), round_up(self.columns, GROUP))
            self.line = k.let("line", round_up(needed, BLOCK))

    def reached(self, name: str, place: Expr, count: Expr, axis: PoolingAxis) -> tuple[Expr, Expr, Expr]:
        """What windows from ``place`` on read: where it begins on the input, how long it is, and how much of
        that lies in front of the input."""
        k = self.k
        first = k.let(f"first{name}", place * axis.stride, U64)
        span = k.let(f"span{name}", (count - 1) * axis.stride + axis.reach)
        before = k.let(f"before{name}", least(in_front(first, axis), span)) if axis.padding else Int(0)
        return k.let(f"begin{name}", clipped(first, axis), U64), span, before

    def source_plane(self) -> Expr:
        """The plane of the input that belongs to that of the result."""
        if self.window.spread == 1:
            return self.plane
        return self.plane // (self.inner * self.window.spread) * self.inner + self.plane % self.inner

    def load(self, plane: Expr, held: Expr) -> None:
        """The rows that exist."""
        place = (plane * self.rows_in + self.top) * self.columns_in + self.left
        target = at(self.taken, self.above * self.step)
        inside = nullcontext() if self.window.stays_inside else self.k.when(held * self.wide, ">", 0)
        with inside:
            self.k.load(target, self.x, place, self.wide, rows=held, apart=self.columns_in, pitch=self.step)

    def slices(self, number: Expr) -> None:
        """The slices of the input below a slice of the result, one after another."""
        k, axis = self.k, self.window.depth
        first = self.first_slice = k.let("firstSlice", number * axis.stride, U64)
        skipped: Expr = Int(0)
        turns: Expr = Int(axis.taps)
        if not axis.stays_inside:
            skipped = least(ceil_div(in_front(first, axis), axis.dilation), axis.taps - 1)
            skipped = k.let("skipped", skipped)
            behind = ceil_div(greatest(self.depth_in + axis.padding, first) - first, axis.dilation)
            turns = k.let("turns", greatest(least(behind, axis.taps), skipped + 1) - skipped)
        with k.loop("turn", turns) as turn:
            tap = k.let("sliceTap", skipped + turn)
            place = k.let("place", first + tap * axis.dilation, U64)
            depth = k.let("depth", clipped(place, axis), U64)
            held = self.held
            if not axis.stays_inside:
                exists = Choice(depth, "<", self.depth_in, self.held, Int(0))
                held = k.let("exist", Choice(place, "<", Int(axis.padding), Int(0), exists))
                depth = k.let("inside", least(depth, self.depth_in - 1), U64)
            self.load(self.source_plane() * self.depth_in + depth, held)
            self.combine(held, (turn, tap))

    def store(self, plane: Expr) -> None:
        place = (plane * self.rows_out + self.row) * self.columns_out + self.column
        source = self.result if self.is_float else at(self.made, 0)
        apart, pitch = self.columns_out, self.apart_out
        self.k.store(self.outputs[0], place, source, self.columns, rows=self.rows, apart=apart, pitch=pitch)

    # -- rows -----------------------------------------------------------------------------------

    def by_rows(
        self, key: str, to: Slice, *sources: tuple[Slice, int], number: Operand | None = None
    ) -> None:
        """An instruction on all rows of the result, each source with how many rows apart its own lie: on all
        elements where rows follow one another, else on 64 columns of all rows or on one row at a time."""
        k, most = self.k, max(apart for _, apart in sources)
        numbers = () if number is None else (number,)
        if most == 1:
            self.k.on(key, to, *(item for item, _ in sources), *numbers, count=self.rows * self.step)
            return
        blocks = self.step // BLOCK
        steep = self.rows * BLOCK
        if self.pitch // BLOCK * most > MOST_STEPS:
            steep = Choice(blocks * most, ">", Int(MOST_STEPS), Int(0), steep)
        with k.when(blocks, ">", steep), k.loop("line", self.rows) as row:
            parts = (item.behind(row * apart * self.step) for item, apart in sources)
            self.k.on(key, to.behind(row * self.step), *parts, *numbers, count=self.step)
        with k.otherwise(), k.pieces("part", (0, self.step), LANES) as (column, count):
            kind = "BinaryRepeatParams" if len(sources) > 1 else "UnaryRepeatParams"
            ones = (1,) * (1 + len(sources))
            steps = strides(kind, *ones, blocks, *(blocks * apart for _, apart in sources))
            parts = (item.behind(column) for item, _ in sources)
            times = Converted(self.rows, "uint8_t")
            k.call(key, to.behind(column), *parts, *numbers, count, times, steps, repeats=self.rows)

    def lanes(self) -> None:
        """The buffers of turned rows: ``near`` as they came, ``far`` or ``turned`` with windows combined.
        What is read of one and what comes of it lie in banks apart, with all that is loaded between."""
        columns, schedule = self.window.columns, self.schedule
        self.doubles = (
            columns.stride == 1
            and columns.taps > 3
            and (self.key == "Max" or columns.taps & (columns.taps - 1) == 0)
            and not self.weighted
        )
        beyond = columns.stride * BLOCK + columns.reach
        latest = self.lead + columns.reach - 1
        self.start = padded(latest - BLOCK, GROUP) + BLOCK if latest > BLOCK else BLOCK
        groups = padded(schedule.rows, GROUP) // GROUP
        before = self.start if self.weighted else self.lead
        self.half = Constant("HALF", padded(before + self.reach + beyond + GROUP, GROUP) * BLOCK)
        self.turned_half = Constant("TURNED_HALF", self.result_pitch * BLOCK)
        near, turned = 2 * self.half.value, (2 * groups if self.weighted else 2) * self.turned_half.value
        if self.turns_slab:
            apart = max(-(-(self.lead + self.reach + BLOCK) // columns.stride), self.result_pitch)
            lanes = 2 * groups * padded(apart, BLOCK)
            near = padded(self.start + lanes * columns.stride + beyond, GROUP) * BLOCK
            turned = lanes * BLOCK
        between = tuple(dict.fromkeys((self.taken, self.slab, self.made, self.folded.buffer)))
        room = _BANK - sum(buffer.bytes * buffer.stages for buffer in between)
        self.near = Buffer("near", "float", 4, Constant("NEAR", max(near, room // 4)))
        other = ("far", near) if self.doubles else ("turned", turned)
        self.other = Buffer(other[0], "float", 4, Constant(other[0].upper(), other[1]))
        self.k.lay_out(self.near, *between, self.other)
        doublings = len(list(_spans(columns.taps)))
        self.lanes_of = self.near if self.doubles and doublings % 2 == 0 else self.other

    def combine(self, held: Expr, turn: Turn | None) -> None:
        """What becomes of a loaded tile. ``turn``: which of the slices of a window it is, and its tap."""
        if not self.is_float:
            self.cast(at(self.slab, 0), at(self.taken, 0), self.down * self.step, "NONE")
        self.fill_rows(held)
        if self.turns_slab:
            self.weigh_turned(turn)
        elif self.weighted:
            self.weigh(turn)
        elif self.folds:
            with self.k.section("FoldRows", "Of each window the rows."):
                self.fold_rows(turn)

    def finish(self) -> None:
        k = self.k
        self.apart_out = self.step
        if self.across:
            self.apart_out = k.let("resultStep", round_up(self.columns, GROUP))
            with k.loop("group", ceil_div(self.rows, GROUP)) as group:
                self.count = k.let("count", least(self.rows - group * GROUP, GROUP))
                self.fold_group(group)
        everything = self.rows * self.apart_out
        self.divide(self.result, everything)
        if self.divides_less(*self.window.axes[:2]):
            self.scale_rows()
        if self.bias is not None:
            self.add_bias(everything)
        if not self.is_float:
            self.cast(at(self.made, 0), self.result, everything, "RINT")

    def fill_rows(self, held: Expr) -> None:
        if self.window.rows.stays_inside and self.window.depth.stays_inside:
            return
        slab = at(self.slab, 0)
        with self.k.section("FillRows", "Rows that lie outside of the input."):
            if self.window.rows.padding:
                self.fill(slab, Int(0), self.above, self.step)
            self.fill(slab, self.k.let("behind", self.above + held), self.down, self.step)

    def fill(self, to: Slice, begin: Expr, end: Expr, unit: Expr | int) -> None:
        """What lies outside of the input, if anything does, gets its value; it is so many units."""
        with self.k.when(begin, "<", end):
            self.k.on("Duplicate", to.behind(begin * unit), self.outside, count=(end - begin) * unit)

    def fold_rows(self, turn: Turn | None) -> None:
        k, taps = self.k, self.window.rows.taps
        with self.first(turn):
            self.first_rows()
        if turn is not None:
            with k.otherwise(), k.loop("early", min(2, taps)) as tap:
                self.by_rows(self.key, self.folded, (self.folded, 1), self.row_of(tap))
        if taps > 2:
            with k.loop("tap", taps - 2) as tap:
                self.by_rows(self.key, self.folded, (self.folded, 1), self.row_of(tap + 2))

    def first_rows(self) -> None:
        if self.window.rows.taps > 1:
            self.by_rows(self.key, self.folded, self.row_of(0), self.row_of(1))
        else:
            self.by_rows("Adds", self.folded, self.row_of(0), number=Converted(Int(0), "float"))

    def row_of(self, tap: Index) -> tuple[Slice, int]:
        """The rows that a tap of each window reads, with how many rows apart they lie."""
        axis = self.window.rows
        return at(self.slab, expr(tap) * axis.dilation * self.step), axis.stride

    # -- columns --------------------------------------------------------------------------------

    def to_lanes(
        self, to: Slice, half: Expr, rows: tuple[Slice, Expr, Expr], shown: tuple[Expr, Expr]
    ) -> None:
        """Turns up to 16 rows: where they begin, elements from one to the next, how many they are. ``shown``:
        the columns that windows read of them, of which those outside of the input get their value."""
        k = self.k
        target = to.behind(self.before * BLOCK)
        with k.section("ToLanes", "Eight values of a column fill a block, in each half of a group."):
            self.turn_in(target, half, rows, ceil_div(self.wide, BLOCK), self.pitch // BLOCK)
            if not self.window.columns.stays_inside:
                self.fill_columns(to, half, shown)

    def fill_columns(self, to: Slice, half: Expr, shown: tuple[Expr, Expr]) -> None:
        k = self.k
        first, last = (k.let(name, place) for name, place in zip(("first", "last"), shown, strict=True))
        end = k.let("end", self.before + self.wide)
        with k.loop("side", 2) as side:
            lanes = to.behind(side * half)
            if self.window.columns.padding:
                self.fill(lanes, first, self.before, BLOCK)
            self.fill(lanes, end, last, BLOCK)

    def by_columns(
        self,
        key: str,
        to: Slice,
        *sources: tuple[Slice, int],
        number: Operand | None = None,
        columns: Expr | None = None,
    ) -> None:
        """An instruction on columns in the lanes, each source with how many blocks apart its own lie."""
        k, apart = self.k, max(step for _, step in sources)
        columns = self.columns if columns is None else columns
        numbers = () if number is None else (number,)
        if apart == 1:
            self.k.on(key, to, *(item for item, _ in sources), *numbers, count=columns * BLOCK)
        elif apart > MOST_REPEATED:  # too far apart for one instruction
            with k.loop("block", columns) as column:
                parts = (item.behind(column * step * BLOCK) for item, step in sources)
                self.k.on(key, to.behind(column * BLOCK), *parts, *numbers, count=BLOCK)
        else:
            most = to.buffer.bytes // (LANES * 4)
            with self.repeated(ceil_div(columns, BLOCK), most) as (done, times):
                kind = "BinaryRepeatParams" if len(sources) > 1 else "UnaryRepeatParams"
                each = [step for _, step in sources]
                steps = strides(kind, 1, *each, BLOCK, *(step * BLOCK for step in each))
                parts = (item.behind(done * step * LANES) for item, step in sources)
                short = Converted(times, "uint8_t")
                k.call(key, to.behind(done * LANES), *parts, *numbers, LANES, short, steps, repeats=times)

    def fold_group(self, group: Expr) -> None:
        """The columns of 16 rows, which are rows of the result then."""
        k = self.k
        halves = k.let("halves", ceil_div(self.count, BLOCK))
        place: Expr = Int(0)
        half: Expr = self.half if self.doubles else self.turned_half
        if self.turns_slab:
            place, half = group * 2 * self.line * BLOCK, self.line * BLOCK
        elif self.weighted:
            place = group * 2 * self.turned_half
        else:
            rows = self.folded.behind(group * GROUP * self.step)
            shown = self.ahead, self.ahead + self.span
            self.to_lanes(at(self.near, 0), self.half, (rows, self.step, self.count), shown)
            with k.section("FoldColumns", "Of each window the columns."), k.loop("side", halves) as side:
                self.fold_columns(side)
            self.scale_columns(halves)
        result = self.result.behind(group * GROUP * self.apart_out)
        lanes = at(self.lanes_of, place)
        with k.section("FromLanes", "Eight rows at a time."):
            self.turn_out((result, self.apart_out, self.result_pitch), lanes, half, halves)

    def fold_columns(self, side: Expr) -> None:
        k, axis = self.k, self.window.columns
        if self.doubles:
            self.double(side)
            return
        near, to = side * self.half + self.ahead * BLOCK, at(self.other, side * self.turned_half)
        taps = [(at(self.near, near + tap * axis.dilation * BLOCK), axis.stride) for tap in range(axis.taps)]
        if axis.taps == 1:
            self.by_columns("Adds", to, taps[0], number=Converted(Int(0), "float"))
            return
        self.by_columns(self.key, to, taps[0], taps[1])
        if axis.taps > 2:
            with k.loop("tap", axis.taps - 2) as tap:
                place = near + (tap + 2) * (axis.dilation * BLOCK)
                self.by_columns(self.key, to, (to, 1), (at(self.near, place), axis.stride))

    def double(self, side: Expr) -> None:
        """Windows of 2, 4, 8 ... columns, each from two of half the width."""
        axis, (source, to) = self.window.columns, (self.near, self.other)
        begin = side * self.half + self.ahead * BLOCK
        for width, shift in _spans(axis.taps):
            count = (self.columns + (axis.taps - width) * axis.dilation) * BLOCK
            other = at(source, begin + shift * axis.dilation * BLOCK)
            self.k.on(self.key, at(to, side * self.half), at(source, begin), other, count=count)
            source, to, begin = to, source, side * self.half

    # -- weights --------------------------------------------------------------------------------

    def number(self, name: str, tensor: Tensor, place: Expr) -> Var:
        return self.k.let(name, Element(tensor, place), "float")

    def first_weight(self, turn: Turn | None) -> Expr:
        """The first weight of a slice of the window."""
        window = self.window
        channel = self.channel(self.plane)
        slices = channel if turn is None else channel * window.depth.taps + turn[1]
        return self.k.let("weights", slices * (window.rows.taps * window.columns.taps), U64)

    def weigh(self, turn: Turn | None) -> None:
        if self.window.weighs_rows:
            self.weigh_each_row()
            return
        assert self.weight is not None
        k, taps, begin = self.k, self.window.rows.taps, self.first_weight(turn)
        with k.section("WeighRows", "Rows of a window, each times its weight."):
            weight = self.number("firstWeight", self.weight, begin)
            with self.first(turn):
                self.by_rows("Muls", self.folded, self.row_of(0), number=weight)
            if turn is not None:
                with k.otherwise():
                    self.by_rows("Axpy", self.folded, self.row_of(0), number=weight)
            if taps > 1:
                with k.loop("tap", taps - 1) as tap:
                    weight = self.number("weightHere", self.weight, begin + tap + 1)
                    self.by_rows("Axpy", self.folded, self.row_of(tap + 1), number=weight)

    def weigh_each_row(self) -> None:
        """Rows that are channels, each with weights of its own."""
        k, axis, weight = self.k, self.window.columns, self.weight
        assert weight is not None
        self.clear()
        with k.loop("tap", axis.taps) as tap:
            with k.section("WeighRows", "Each row times its weight."), k.loop("line", self.rows) as row:
                place = self.channel(self.row + row) * axis.taps + tap
                here = self.number("weightHere", weight, place)
                to, taken = self.folded.behind(row * self.step), at(self.slab, row * self.step)
                self.k.on("Muls", to, taken, here, count=self.step)
            first = k.let("tapColumn", self.ahead + tap * axis.dilation)
            last = first + (self.columns - 1) * axis.stride + 1
            with k.loop("band", ceil_div(self.rows, GROUP)) as group:
                count = k.let("bandRows", least(self.rows - group * GROUP, GROUP))
                rows = self.folded.behind(group * GROUP * self.step), self.step, count
                to = at(self.near, (Int(self.start) - first) * BLOCK)
                self.to_lanes(to, self.half, rows, (first, last))
                with k.section("AddColumns"), k.loop("side", ceil_div(count, BLOCK)) as side:
                    total = at(self.other, (group * 2 + side) * self.turned_half)
                    taken = at(self.near, side * self.half + self.start * BLOCK)
                    self.by_columns("Add", total, (total, 1), (taken, axis.stride))

    def weigh_turned(self, turn: Turn | None) -> None:
        """All rows are turned once for each row of weights, and columns weighed in the lanes; what lies
        between the lanes of eight rows is weighed too, and not stored."""
        k, window, weight = self.k, self.window, self.weight
        assert weight is not None
        axis, stride = window.rows, window.columns.stride
        with self.first(turn):
            self.clear()
        begin = self.first_weight(turn)
        half = self.line * (stride * BLOCK)
        columns = k.let("lanes", (self.rows - 1) // BLOCK * self.line + self.columns)
        with k.loop("tapDown", axis.taps) as down:
            with k.loop("band", ceil_div(self.rows, GROUP)) as group:
                count = k.let("bandRows", least(self.rows - group * GROUP, GROUP))
                row = (group * GROUP * axis.stride + down * axis.dilation) * self.step
                rows = at(self.slab, row), self.step * axis.stride, count
                place = (Int(self.start) - self.ahead) * BLOCK + group * 2 * half
                self.to_lanes(at(self.near, place), half, rows, (self.ahead, self.ahead + self.span))
            with k.section("WeighColumns"), k.loop("tap", window.columns.taps) as tap:
                here = self.number("weightHere", weight, begin + down * window.columns.taps + tap)
                taken = at(self.near, (tap * window.columns.dilation + self.start) * BLOCK)
                self.by_columns("Axpy", at(self.other, 0), (taken, stride), number=here, columns=columns)

    def clear(self) -> None:
        self.k.on("Duplicate", at(self.other, 0), Number("ZERO", 0.0), count=self.other.elements)

    def add_bias(self, everything: Expr) -> None:
        k, bias = self.k, self.bias
        assert bias is not None
        if not self.window.weighs_rows:
            here = self.number("biasHere", bias, self.channel(self.plane))
            self.k.on("Adds", self.result, self.result, here, count=everything)
            return
        with k.section("AddBias"), k.loop("line", self.rows) as row:
            here = self.number("biasHere", bias, self.channel(self.row + row))
            result = self.result.behind(row * self.apart_out)
            self.k.on("Adds", result, result, here, count=self.apart_out)

    # -- averages of fewer taps -----------------------------------------------------------------

    def scale_rows(self) -> None:
        """Rows whose windows count fewer taps have divided by too many."""
        k = self.k
        with k.section("ScaleRows", "Rows whose windows count fewer taps."), k.loop("line", self.rows) as row:
            here, most = self.counted_rows(self.row + row)
            with k.when(here, "<", most, share=self.rows):
                result = self.result.behind(row * self.apart_out)
                self.k.on("Muls", result, result, Ratio(most, here), count=self.apart_out)

    def scale_columns(self, halves: Expr) -> None:
        """The same of columns, in the lanes."""
        k = self.k
        if not self.divides_less(self.window.columns):
            return
        half = self.half if self.doubles else self.turned_half
        note = "Columns whose windows count fewer taps."
        with k.section("ScaleColumns", note), k.loop("block", self.columns) as column:
            here, most = self.counted_columns(self.column + column)
            with k.when(here, "<", most, share=self.columns), k.loop("side", halves) as side:
                block = at(self.lanes_of, side * half + column * BLOCK)
                self.k.on("Muls", block, block, Ratio(most, here), count=BLOCK)


def _spans(taps: int) -> Iterator[tuple[int, int]]:
    """Widths of the windows that doubling reaches, and by how much the second of two is shifted."""
    span = 1
    while span < taps:
        width = min(span * 2, taps)
        yield width, width - span
        span = width


def least_bytes(window: Window, schedule: WindowSchedule) -> int:
    """Bytes of the buffers that share no memory, for which no kernel must be built."""
    made = PoolingRows(window, schedule)
    lasting = (made.taken, made.slab, made.made, *((made.near, made.other) if made.across else ()))
    return sum(buffer.bytes * buffer.stages for buffer in dict.fromkeys(lasting))


def build(window: Window, schedule: WindowSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return PoolingRows(window, schedule).kernel()
