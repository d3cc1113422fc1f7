"""Windows whose lanes are planes: sixteen planes at a time are turned as they lie, so that any distance
within a plane is one in blocks. What a tile reads of a plane is one piece where its rows are whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from attrs import evolve, frozen

from evokernel_core.compiler.problems.pooling import PoolingAxis
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LANES
from evokernel_core.targets.ascendc.ir.builder import at, strides
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Condition,
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
    Difference,
    Enumerator,
    Kernel,
    Number,
    Ratio,
)
from evokernel_core.targets.ascendc.kernels.pooling.areas import Area, over
from evokernel_core.targets.ascendc.kernels.pooling.lanes import (
    BLOCK,
    GROUP,
    MOST_STEPS,
    LaneKernel,
    Turn,
    clipped,
    padded,
)
from evokernel_core.targets.ascendc.kernels.pooling.pooling_planes_schedule import (
    Planes,
    PlaneSchedule,
    room_of,
    separates,
)

_COUNTED = Constant("MOST_COUNTED", 1 << 24, "whole numbers that float32 counts without gaps")


_ZERO = Converted(Int(0), "float")


@frozen
class Overlap:
    """Windows of a tile that have a tap on what is loaded: the first, how many, and what the first reads."""

    first: Expr
    count: Expr
    start: Expr


class PlaneKernel(LaneKernel):
    """A kernel whose tiles are rows and columns of a slice of the result, of sixteen planes. ``top``,
    ``left``: where what a tile loads begins on the input; ``held``, ``wide``: how much it is; ``pitch``:
    elements from row to row of it; ``apart``: from plane to plane."""

    def __init__(self, problem: Planes, schedule: PlaneSchedule) -> None:
        super().__init__(problem.window)
        self.schedule, self.room = schedule, room_of(problem, schedule)
        self.separates, self.finds = separates(problem.window), problem.window.finds
        self.params()
        self.buffers()

    # -- what it works on -----------------------------------------------------------------------

    def params(self) -> None:
        k, room, rows = self.k, self.room, self.window.rows
        self.sizes()
        if self.finds:
            k.require(self.image, "<=", _COUNTED)
        fits = Choice(self.columns_out, "<=", Constant("MOST_COLUMNS", room.columns), Int(1), Int(0))
        whole = Choice(self.columns_in, "<=", Constant("MOST_WIDTH", room.inside // rows.reach), fits, Int(0))
        self.is_whole = k.param("isWhole", whole, "tiles have all columns of their rows", U32)
        part = Constant("TILE_COLUMNS", room.part, "where they have not")
        self.tile_columns = k.param("tileColumns", self.where_whole(self.columns_out, part), "", U32)
        span = Constant("TILE_WIDTH", room.span)
        pitch = k.param("tileWidth", self.where_whole(self.columns_in, span), "what its windows read")
        held = Constant("IN_POSITIONS", room.inside, "most elements of a plane that a tile reads") // pitch
        made = Constant("OUT_POSITIONS", self.schedule.positions, "most that it writes")
        fitting = least((held - rows.reach) // rows.stride + 1, made // self.tile_columns)
        if self.separates:
            between = Constant("MIDDLE_POSITIONS", room.middle) // self.tile_columns
            fitting = least(fitting, (between - rows.reach) // rows.stride + 1)
        fitting = k.param("fittingRows", fitting)
        tiles = ceil_div(self.rows_out, fitting)
        self.tile_rows = k.param("tileRows", ceil_div(self.rows_out, tiles), "all tiles are equal", U32)
        self.row_tiles = k.param("rowTiles", ceil_div(self.rows_out, self.tile_rows))
        self.column_tiles = k.param("columnTiles", ceil_div(self.columns_out, self.tile_columns))

    def where_whole(self, value: Index, otherwise: Index) -> Expr:
        """A value where tiles have all columns of their rows, and another where they have not."""
        return Choice(self.is_whole, "==", Int(1), expr(value), expr(otherwise))

    @property
    def image(self) -> Expr:
        """Elements of a plane of the input, with all of its slices."""
        plane = self.rows_in * self.columns_in
        return plane if self.window.depth.is_plain else self.depth_in * plane

    def buffers(self) -> None:
        """What instructions read and what they write lie in banks apart, with all that travels between."""
        room, schedule = self.room, self.schedule
        self.in_half = Constant("IN_HALF", room.line * BLOCK, "the lanes of eight planes")
        self.out_half = Constant("OUT_HALF", room.result_line * BLOCK)
        slab, made = Constant("SLAB", room.line * GROUP), Constant("MADE", room.result_line * GROUP)
        self.taken = Buffer("taken", self.ctype, self.width, slab, schedule.buffers)
        self.slab = self.taken if self.is_float else Buffer("slab", "float", 4, slab)
        self.lanes = Buffer("lanes", "float", 4, slab)
        self.middle_half = Constant("MIDDLE_HALF", room.middle * BLOCK)
        self.middle = Buffer("middle", "float", 4, self.middle_half * 2)
        self.folded = Buffer("folded", "float", 4, made)
        self.made = Buffer("made", self.ctype, self.width, made)
        self.result = self.made if self.is_float else Buffer("result", "float", 4, made)
        between = self.taken, self.made
        if self.separates:
            self.k.lay_out(self.lanes, self.folded, *between, self.middle)
        else:
            self.k.lay_out(self.lanes, *between, self.folded)
        if self.weighted:
            held = Constant("WEIGHTS", room.weights, "of a plane, in whole blocks")
            self.held_weights = held
            self.fetched = Buffer("fetched", self.ctype, self.width, held * GROUP, self.schedule.buffers)
            rows = Buffer("weightRows", "float", 4, held * GROUP)
            self.weight_rows = self.fetched if self.is_float else rows
            self.weights = Buffer("weights", "float", 4, held * GROUP)
        if self.finds:
            self.largest, self.places = (Buffer(name, "float", 4, made) for name in ("largest", "places"))
            names = ("origins", "candidates", "elements", "columnOrigins", "columnStarts")
            problems = [Buffer(name, "float", 4, self.out_half) for name in names]
            self.origins, self.candidates, self.elements, self.column_origins, self.column_starts = problems
            bits = Constant("MASK", padded(room.result_line, BLOCK_BYTES))
            self.mask = Buffer("mask", "uint8_t", 1, bits)
            self.numbers = Buffer("numbers", "float", 4, made)
            self.indices = Buffer("found", "int64_t", 8, made)

    # -- tiles ----------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """A core has tiles that follow each other, slice by slice of their windows."""
        k, depth = self.k, self.window.depth
        of_group = self.row_tiles * self.column_tiles
        of_group = k.param("groupTiles", of_group if depth.is_plain else self.depth_out * of_group)
        tiles = k.param("tiles", ceil_div(self.planes, GROUP) * of_group)
        share = k.param("share", ceil_div(tiles, CoreCount()), "tiles of a core")
        with k.cores("core", k.param("shares", ceil_div(tiles, share)), even=True) as core:
            begin = k.let("begin", core * share, U64)
            turns = k.let("turns", least(tiles - begin, share) * depth.taps, U64)
            with k.loop("turn", turns, U64) as turn:
                number = k.let("number", begin + turn // depth.taps, U64)
                self.place(number)
                tap = Int(0) if depth.is_plain else k.let("sliceTap", turn % depth.taps)
                if self.weighted:
                    others = Choice(turn, "==", Int(0), Int(0), tap + number % of_group)
                    with k.when(others, "==", 0), k.section("LoadWeights"):
                        self.load_weights()
                if self.finds:
                    others = Choice(self.column_tiles, ">", Int(1), Int(0), turn)
                    self.is_new_column = Condition(others, "==", Int(0))
                self.slice_of_window(None if depth.is_plain else (tap, tap))
                with nullcontext() if depth.is_plain else k.when(tap, "==", depth.taps - 1):
                    self.finish()
        return k.kernel()

    def place(self, number: Expr) -> None:
        """Where the tile of a number lies, and what it reads."""
        k, (depth, rows, columns) = self.k, self.window.axes
        line = number // self.column_tiles
        group = line // self.row_tiles
        self.column = k.let("column", number % self.column_tiles * self.tile_columns, U64)
        self.row = k.let("row", line % self.row_tiles * self.tile_rows, U64)
        if not depth.is_plain:
            self.slice = k.let("slice", group % self.depth_out, U64)
            self.first_slice = k.let("firstSlice", self.slice * depth.stride, U64)
            group = group // self.depth_out
        self.plane = k.let("plane", group * GROUP, U64)
        self.count = k.let("count", least(self.planes - self.plane, GROUP))
        self.columns = k.let("columns", least(self.columns_out - self.column, self.tile_columns))
        self.rows = k.let("rows", least(self.rows_out - self.row, self.tile_rows))
        self.top, held = self.reached(("top", "bottom"), self.row, self.rows, rows, self.rows_in)
        self.held = k.let("held", held)
        self.left, wide = self.reached(("left", "right"), self.column, self.columns, columns, self.columns_in)
        self.wide = k.let("wide", self.where_whole(self.columns_in, wide))
        self.pitch = k.let("pitch", self.where_whole(self.wide, round_up(self.wide, self.unit)))
        self.apart = k.let("apart", round_up(self.held * self.pitch, self.unit))
        self.result_apart = k.let("resultApart", round_up(self.rows * self.tile_columns, GROUP))

    def reached(
        self, names: tuple[str, str], place: Expr, count: Expr, axis: PoolingAxis, size: Expr
    ) -> tuple[Expr, Expr]:
        """What windows from ``place`` on read: where it begins on the input, and how long it is; ``names``
        of its beginning and its end."""
        k, (begin, end) = self.k, names
        first = k.let(begin, clipped(place * axis.stride, axis), U64)
        span = (count - 1) * axis.stride + axis.reach
        if axis.stays_inside:
            return first, span
        behind = k.let(f"{end}OfWindows", place * axis.stride + span, U64)
        last = k.let(end, least(clipped(behind, axis), size), U64)
        return first, greatest(last, first) - first

    def slice_of_window(self, turn: Turn | None) -> None:
        """Loads one slice of the input below a tile and combines it."""
        k, axis = self.k, self.window.depth
        slices, inside = expr(self.plane), expr(self.held)
        if turn is not None:
            place = k.let("depthPlace", self.first_slice + turn[1] * axis.dilation, U64)
            depth = clipped(place, axis)
            if not axis.stays_inside:
                exists = Choice(depth, "<", self.depth_in, self.held, Int(0))
                inside = k.let("exist", Choice(place, "<", Int(axis.padding), Int(0), exists))
                depth = least(depth, self.depth_in - 1)
            slices = self.plane * self.depth_in + depth
        count = k.let("elements", self.where_whole(self.held * self.wide, self.wide))
        first = (slices * self.rows_in + self.top) * self.columns_in + self.left
        some = nullcontext() if self.window.stays_inside else k.when(inside * self.wide, ">", 0)
        with some, k.loop("line", self.where_whole(1, self.held)) as line:
            to, row = at(self.taken, line * self.pitch), first + line * self.columns_in
            k.load(to, self.x, row, count, rows=self.count, apart=self.image, pitch=self.apart)
        if not self.separates or self.begins_empty:
            with self.first(turn):
                self.begin()
        with nullcontext() if self.window.depth.stays_inside else k.when(inside, ">", 0):
            self.combine(turn)

    @property
    def begins_empty(self) -> bool:
        """Whether a result begins as what lies beyond the input, and not with the first taps."""
        rows, depth = self.window.rows, self.window.depth
        return not (depth.is_plain and rows.stays_inside and rows.taps > 1)

    @property
    def halves(self) -> Expr:
        return ceil_div(self.count, BLOCK)

    def back(self, name: str, to: Buffer, lanes: Buffer) -> None:
        """Turns results back, under the name of a step."""
        with self.k.section(name, "Eight planes at a time."):
            rows = at(to, 0), self.result_apart, self.room.result_line
            self.turn_out(rows, at(lanes, 0), self.out_half, self.halves)

    def store(self, number: int, source: Buffer) -> None:
        """Stores the result of a number."""
        k = self.k
        plane = self.plane if self.window.depth.is_plain else self.plane * self.depth_out + self.slice
        image = self.rows_out * self.columns_out
        image = image if self.window.depth.is_plain else self.depth_out * image
        count = self.where_whole(self.rows * self.columns, self.columns)
        with k.loop("line", self.where_whole(1, self.rows)) as line:
            place = (plane * self.rows_out + self.row + line) * self.columns_out + self.column
            taken = at(source, line * self.tile_columns)
            how = {"rows": self.count, "apart": image, "pitch": self.result_apart}
            k.store(self.outputs[number], place, taken, count, **how)

    def begin(self) -> None:
        """What the first slice of a window finds."""
        if self.finds:
            self.begin_places()
        fresh = [self.folded] if 0 in self.window.results else []
        fresh += [self.largest] if self.finds else []
        count = round_up(self.rows * self.tile_columns * BLOCK, LANES)
        with self.k.loop("half", self.halves) as side:
            for buffer in fresh:
                self.k.on("Duplicate", at(buffer, side * self.out_half), self.outside, count=count)

    def combine(self, turn: Turn | None) -> None:
        k = self.k
        if not self.is_float:
            self.cast(at(self.slab, 0), at(self.taken, 0), self.count * self.apart, "NONE")
        with k.section("ToLanes", "The eight values of an element fill a block, in each half of a group."):
            rows = at(self.slab, 0), self.apart, self.count
            self.turn_in(at(self.lanes, 0), self.in_half, rows, self.apart // BLOCK, self.room.line // BLOCK)
        with k.loop("side", self.halves) as side:
            lanes = Area(at(self.lanes, side * self.in_half), self.pitch, self.window.columns.stride)
            folded = Area(at(self.folded, side * self.out_half), self.tile_columns)
            if self.separates:
                middle = Area(at(self.middle, side * self.middle_half), self.tile_columns)
                self.fold_columns(middle, lanes)
                self.fold_rows(folded, middle)
            else:
                self.by_taps(side, lanes, Int(0) if turn is None else turn[1])

    # -- in the lanes ---------------------------------------------------------------------------

    def overlap(self, name: str, axis: PoolingAxis, tap: Expr) -> Overlap:
        """The windows along an axis that have a tap on the input."""
        place, begin, held, windows = self.row, self.top, self.held, self.rows
        if name == "column":
            place, begin, held, windows = self.column, self.left, self.wide, self.columns
        if axis.stays_inside:
            return Overlap(Int(0), windows, tap * axis.dilation)
        k = self.k
        reads = k.let(f"{name}Reads", place * axis.stride + tap * axis.dilation, U64)
        loaded = k.let(f"{name}Loaded", begin + axis.padding, U64)
        first = k.let(f"{name}First", ceil_div(greatest(loaded, reads) - reads, axis.stride))
        left = k.let(f"{name}Left", greatest(loaded + held, reads) - reads)
        last = k.let(f"{name}Behind", least(ceil_div(left, axis.stride), windows))
        count = k.let(f"{name}Count", greatest(last, first) - first)
        start = Choice(count, ">", Int(0), reads + first * axis.stride - loaded, Int(0))
        return Overlap(first, count, k.let(f"{name}Start", start))

    @contextmanager
    def some(self, overlap: Overlap) -> Iterator[None]:
        """Where any window has the tap on the input."""
        if isinstance(overlap.first, Var):
            with self.k.when(overlap.count, ">", 0):
                yield
        else:
            yield

    def fold_columns(self, to: Area, lanes: Area) -> None:
        """Of each window the columns, in all rows that are loaded."""
        k, axis = self.k, self.window.columns
        with k.section("FoldColumns", "Of each window the columns, in all rows that are loaded."):
            done = 0
            if axis.stays_inside and axis.taps > 1:
                done = 2
                pair = (lanes.at(0, tap * axis.dilation) for tap in range(2))
                over(k, self.key, to, *pair, rows=self.held, columns=self.columns)
            else:
                self.k.on("Duplicate", to.place, self.outside, count=self.held * self.tile_columns * BLOCK)
            if axis.taps > done:
                with k.loop("tap", axis.taps - done) as tap:
                    result = self.overlap("column", axis, tap + done)
                    with self.some(result):
                        here = to.at(0, result.first)
                        source = lanes.at(0, result.start)
                        over(k, self.key, here, here, source, rows=self.held, columns=result.count)

    def fold_rows(self, to: Area, middle: Area) -> None:
        k, axis = self.k, self.window.rows
        apart = evolve(middle, pitch=middle.pitch * expr(axis.stride))
        done = 0 if self.begins_empty else 2
        with k.section("FoldRows", "Of each window the rows."):
            if done:
                pair = (evolve(apart, place=middle.at(tap * axis.dilation, 0).place) for tap in range(2))
                over(k, self.key, to, *pair, rows=self.rows, columns=self.tile_columns)
            if axis.taps > done:
                with k.loop("tap", axis.taps - done) as tap:
                    result = self.overlap("row", axis, tap + done)
                    with self.some(result):
                        here = to.at(result.first, 0)
                        source = evolve(apart, place=middle.at(result.start, 0).place)
                        over(k, self.key, here, here, source, rows=result.count, columns=self.tile_columns)

    def by_taps(self, side: Expr, lanes: Area, slice_tap: Expr) -> None:
        """Each tap of all windows."""
        k, (_, rows, columns) = self.k, self.window.axes
        name = "Find" if self.finds else "Weigh"
        with k.section(name), k.loop("tapDown", rows.taps) as down:
            below = self.overlap("row", rows, down)
            with k.loop("tap", columns.taps) as tap:
                beside = self.overlap("column", columns, tap)
                place = lanes.at(below.start, beside.start).place
                source = Area(place, lanes.pitch * expr(rows.stride), lanes.step)
                taken = side, source, (below, beside)
                if self.finds:
                    self.find(*taken, self.distance(slice_tap, down, tap))
                else:
                    self.weigh(*taken, (slice_tap * rows.taps + down) * columns.taps + tap)

    def weigh(self, side: Expr, source: Area, overlaps: tuple[Overlap, Overlap], number: Expr) -> None:
        """A tap's elements times its weights."""
        below, beside = overlaps
        weight = Area(at(self.weights, (side * self.held_weights + number) * BLOCK), 0, 0)
        with self.some(below), self.some(beside):
            to = Area(at(self.folded, side * self.out_half), self.tile_columns).at(below.first, beside.first)
            over(self.k, "MulAddDst", to, source, weight, rows=below.count, columns=beside.count)

    def distance(self, slice_tap: Expr, down: Expr, tap: Expr) -> Expr:
        """How far in its image a tap lies from the first of its window."""
        depth, rows, columns = self.window.axes
        line = down * rows.dilation
        if not depth.is_plain:
            line = slice_tap * depth.dilation * self.rows_in + line
        return line * self.columns_in + tap * columns.dilation

    # -- weights --------------------------------------------------------------------------------

    def load_weights(self) -> None:
        """The weights of every plane of a group, turned like the planes."""
        assert self.weight is not None
        k, held = self.k, self.held_weights
        # Channels that follow one another have their weights in one copy.
        unit = k.let("runChannels", Choice(self.inner, ">", Int(1), Int(1), self.channels), U64)
        skipped = k.let("skipped", Choice(self.inner, ">", Int(1), Int(0), self.plane % self.channels), U64)
        with k.loop("run", ceil_div(skipped + self.count, unit)) as run:
            lane = k.let("lane", greatest(run * unit, skipped) - skipped)
            number = k.let("runCount", least((run + 1) * unit - skipped, self.count) - lane)
            channel = k.let("channel", self.channel(self.plane + lane), U64)
            taps, to = self.window.taps, at(self.fetched, lane * held)
            k.load(to, self.weight, channel * taps, taps, rows=number, apart=taps, pitch=held)
            if self.bias is not None:
                to = at(self.fetched, (lane + 1) * held - self.unit)
                k.load(to, self.bias, channel, 1, rows=number, apart=1, pitch=held)
        if not self.is_float:
            self.cast(at(self.weight_rows, 0), at(self.fetched, 0), self.count * held, "NONE")
        rows = at(self.weight_rows, 0), held, self.count
        blocks = held.value // BLOCK
        self.turn_in(at(self.weights, 0), held * BLOCK, rows, Int(blocks), blocks)

    # -- places of maxima -----------------------------------------------------------------------

    def begin_places(self) -> None:
        """Where in its image each window begins, counted from the first tap, and from the first on the
        image."""
        k, (depth, rows, columns) = self.k, self.window.axes
        block = self.tile_columns * BLOCK
        with k.section("BeginPlaces"):
            with k.where(self.is_new_column), k.loop("block", self.columns) as column:
                begin = k.let("windowColumn", (self.column + column) * columns.stride, U64)
                for table, value in (
                    (self.column_origins, Difference(begin, Int(columns.padding))),
                    (self.column_starts, Converted(_inside(begin, columns), "float")),
                ):
                    self.k.on("Duplicate", at(table, column * BLOCK), value, count=BLOCK)
            with k.loop("line", self.rows) as row:
                begin = k.let("windowRow", (self.row + row) * rows.stride, U64)
                line, inside, padding = expr(begin), _inside(begin, rows), expr(rows.padding)
                if not depth.is_plain:
                    line = self.first_slice * self.rows_in + line
                    inside = _inside(self.first_slice, depth) * self.rows_in + inside
                    padding = depth.padding * self.rows_in + padding
                place = row * block
                origin = Difference(line * self.columns_in, padding * self.columns_in)
                self.k.on("Adds", at(self.origins, place), at(self.column_origins, 0), origin, count=block)
                start = Converted(inside * self.columns_in, "float")
                with k.loop("half", self.halves) as side:
                    to = at(self.places, side * self.out_half + place)
                    self.k.on("Adds", to, at(self.column_starts, 0), start, count=block)

    def find(self, side: Expr, source: Area, overlaps: tuple[Overlap, Overlap], offset: Expr) -> None:
        """A later element takes the place of the largest where it is larger, or is no number; ``largest`` has
        an infinity where it is none, so that nothing but another such element is beyond it."""
        below, beside = overlaps
        half = side * self.out_half
        best, place = at(self.largest, half), at(self.places, half)
        elements, mask = at(self.elements, 0), at(self.mask, 0)
        count = round_up(self.rows * self.tile_columns * BLOCK, LANES)
        if not (self.window.rows.stays_inside and self.window.columns.stays_inside):
            self.k.on("Duplicate", elements, self.outside, count=count)
        with self.some(below), self.some(beside):
            to = Area(elements, self.tile_columns).at(below.first, beside.first)
            over(self.k, "Adds", to, source, number=_ZERO, rows=below.count, columns=beside.count)
        if 0 in self.window.results:
            values = at(self.folded, half)
            self.k.on("Max", values, values, elements, count=count)
        shift = Converted(offset, "float")
        self.k.on("Adds", at(self.candidates, 0), at(self.origins, 0), shift, count=count)
        self.k.on("Compare", mask, elements, best, Enumerator("CMPMODE::LE"), count=count)
        form = Enumerator("SELMODE::VSEL_TENSOR_TENSOR_MODE")
        self.k.on("Select", place, mask, place, at(self.candidates, 0), form, count=count)
        self.k.on("Select", best, mask, best, elements, form, count=count)
        self.k.on("Compare", mask, best, best, Enumerator("CMPMODE::EQ"), count=count)
        unbeaten = Number("UNBEATEN", float("inf"), "nothing beats what is no number")
        form = Enumerator("SELMODE::VSEL_TENSOR_SCALAR_MODE")
        self.k.on("Select", best, mask, best, unbeaten, form, count=count)

    # -- results --------------------------------------------------------------------------------

    def finish(self) -> None:
        everything = self.count * self.result_apart
        if self.finds:
            self.back("PlacesFromLanes", self.numbers, self.places)
            self.cast(at(self.indices, 0), at(self.numbers, 0), everything, "RINT")
            self.store(1, self.indices)
        if 0 not in self.window.results:
            return
        self.scale()
        if self.bias is not None:
            self.add_bias()
        self.back("FromLanes", self.result, self.folded)
        if not self.is_float:
            self.cast(at(self.made, 0), at(self.result, 0), everything, "RINT")
        self.store(0, self.made)

    def add_bias(self) -> None:
        k, held = self.k, self.held_weights
        repeats = ceil_div(self.rows * self.tile_columns, BLOCK)
        steps = strides("BinaryRepeatParams", 1, 1, 0, BLOCK, BLOCK, 0)
        with k.section("AddBias"), k.loop("side", self.halves) as side:
            bias = at(self.weights, (side + 1) * held * BLOCK - self.unit * BLOCK)
            result, times = at(self.folded, side * self.out_half), Converted(repeats, "uint8_t")
            k.call("Add", result, result, bias, LANES, times, steps, repeats=repeats)

    def scale(self) -> None:
        """Averages, of which those at the borders may count fewer taps."""
        k, (depth, rows, columns) = self.k, self.window.axes
        pitch = self.tile_columns
        if self.divides:
            with k.loop("side", self.halves) as side:
                self.divide(at(self.folded, side * self.out_half), self.rows * pitch * BLOCK)
        if self.divides_less(depth, rows):
            with (
                k.section("ScaleRows", "Rows whose windows count fewer taps."),
                k.loop("line", self.rows) as row,
            ):
                here, most = self.counted_rows(self.row + row)
                with k.when(here, "<", most, share=self.rows), k.loop("side", self.halves) as side:
                    line = at(self.folded, side * self.out_half + row * pitch * BLOCK)
                    self.k.on("Muls", line, line, Ratio(most, here), count=pitch * BLOCK)
        if self.divides_less(columns):
            note = "Columns whose windows count fewer taps."
            with k.section("ScaleColumns", note), k.loop("block", self.columns) as column:
                here, most = self.counted_columns(self.column + column)
                with k.when(here, "<", most, share=self.columns), k.loop("side", self.halves) as side:
                    block = at(self.folded, side * self.out_half + column * BLOCK)
                    with k.when(greatest(self.rows, pitch), "<=", MOST_STEPS):
                        steps, times = strides("UnaryRepeatParams", 1, 1, pitch, pitch), self.rows
                        operands = Ratio(most, here), BLOCK, Converted(times, "uint8_t"), steps
                        k.call("Muls", block, block, *operands, repeats=times)
                    with k.otherwise(), k.loop("line", self.rows) as row:
                        block = block.behind(row * pitch * BLOCK)
                        self.k.on("Muls", block, block, Ratio(most, here), count=BLOCK)


def _inside(begin: Expr, axis: PoolingAxis) -> Expr:
    """Where on the input a window from ``begin`` on has its first tap; what lies in front is counted."""
    if axis.dilation == 1 or not axis.padding:
        return clipped(begin, axis)
    skipped = ceil_div(greatest(begin, axis.padding) - begin, axis.dilation) * axis.dilation
    return begin + skipped - axis.padding


def least_bytes(problem: Planes, schedule: PlaneSchedule) -> int:
    """Bytes of the buffers that share no memory, for which no kernel must be built."""
    made = PlaneKernel(problem, schedule)
    lasting = [made.taken, made.lanes]
    if 0 in made.window.results:
        lasting += [made.folded, made.made]
    if made.separates:
        lasting.append(made.middle)
    if made.weighted:
        lasting += [made.fetched, made.weights]
    if made.finds:
        lasting += [
            made.largest,
            made.places,
            made.origins,
            made.column_origins,
            made.column_starts,
            made.indices,
        ]
    return sum(buffer.bytes * buffer.stages for buffer in lasting)


def build(problem: Planes, schedule: PlaneSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return PlaneKernel(problem, schedule).kernel()
