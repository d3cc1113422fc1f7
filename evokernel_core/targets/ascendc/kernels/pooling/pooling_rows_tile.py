"""A tile of windows whose lanes are rows: where it lies, what it loads, and instructions on its rows."""

from __future__ import annotations

from abc import abstractmethod
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
    Int,
    ceil_div,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Kernel, Operand, Slice
from evokernel_core.targets.ascendc.kernels.pooling.lanes import (
    BLOCK,
    GROUP,
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


class PoolingTile(LaneKernel):
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

    @abstractmethod
    def lanes(self) -> None:
        """Makes the buffers of rows that are turned."""

    @abstractmethod
    def combine(self, held: Expr, turn: Turn | None) -> None:
        """What becomes of a loaded slab, of whose rows so many exist."""

    @abstractmethod
    def finish(self) -> None:
        """The result of a tile, when all that its windows read was combined."""

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
