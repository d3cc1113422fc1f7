"""A tile of windows whose lanes are planes: where it lies, what it loads and what it stores."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import nullcontext

from evokernel_core.compiler.problems.pooling import PoolingAxis
from evokernel_core.targets.ascendc.ir.builder import at
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
    ceil_div,
    expr,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.kernels.pooling.lanes import BLOCK, GROUP, LaneKernel, Turn, clipped
from evokernel_core.targets.ascendc.kernels.pooling.pooling_planes_schedule import (
    Planes,
    PlaneSchedule,
    room_of,
    separates,
)

_COUNTED = Constant("MOST_COUNTED", 1 << 24, "whole numbers that float32 counts without gaps")


class PlaneTile(LaneKernel):
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

    @abstractmethod
    def load_weights(self) -> None:
        """The weights of every plane of a group."""

    @abstractmethod
    def begin(self) -> None:
        """What the first slice of a window finds."""

    @abstractmethod
    def combine(self, turn: Turn | None) -> None:
        """What becomes of a loaded slab. ``turn``: which of the slices of a window it is, and its tap."""

    @abstractmethod
    def finish(self) -> None:
        """The result of a tile, when all that its windows read was combined."""

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
