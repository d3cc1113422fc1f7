"""Rows that are resized where columns stay: weighted sums of rows as they lie in memory."""

from __future__ import annotations

from evokernel_core.compiler.problems.resize import Resize
from evokernel_core.targets.ascendc.ir.builder import at
from evokernel_core.targets.ascendc.ir.expr import U32, U64, Constant, ceil_div, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.kernels.resize.resize_common import ResizeSchedule, Resizing

_NOTE = "Resizes the rows of planes: each result is a weighted sum of rows, which are as they lie in memory."


class ResizeRows(Resizing):
    """Rows as they lie in memory: a tile is a run of columns of one plane."""

    def __init__(self, problem: Resize, schedule: ResizeSchedule) -> None:
        super().__init__(_NOTE, problem, schedule)
        self.wide = Constant("TILE_COLUMNS", schedule.columns)
        self.pitch = -(-schedule.columns // self.block) * self.block
        pitch = Constant("PITCH", self.pitch, "from row to row in a tile")
        self.taken = Buffer("taken", self.ctype, self.width, self.span * pitch, schedule.buffers)
        self.made = Buffer("made", self.ctype, self.width, pitch, 2)
        self.source = self.taken if self.is_float else Buffer("source", "float", 4, self.span * pitch)
        self.sum = self.made if self.is_float else Buffer("sum", "float", 4, pitch)

    def lasting(self) -> tuple[Buffer, ...]:
        """The buffers that hold something at the same time."""
        return (self.taken, self.made, *self.row_tables)

    def kernel(self) -> Kernel:
        k = self.k
        self.table.compute(0)
        across = k.param("tilesOfColumns", ceil_div(self.result_columns, self.wide))
        down = k.param("tilesOfRows", ceil_div(self.result_rows, self.tile_rows))
        with k.cores("tile", k.param("tiles", self.planes * down * across)) as tile:
            column = k.let("column", tile % across * self.wide, U64)
            band = k.let("band", tile // across % down, U64)
            plane = k.let("plane", tile // across // down, U64)
            count = k.let("count", least(self.result_columns - column, self.wide))
            row = k.let("row", band * self.tile_rows, U32)
            start = self.start_of_tile(band)
            rows = k.let("rows", least(self.result_rows - row, self.tile_rows))
            pitch = k.let("pitch", ceil_div(count, self.block) * self.block)
            place = plane * self.source_plane + column
            self.load_rows(at(self.taken, 0), place, (row, rows, start), count, pitch)
            if not self.is_float:
                self.cast(self.source, self.taken, self.span * pitch, "NONE")
            with k.loop("i", rows) as i:
                self.weigh(at(self.sum, 0), i, (row, start), pitch, self.source, count)
                if not self.is_float:
                    self.cast(self.made, self.sum, count, "RINT")
                k.store(
                    self.y,
                    plane * self.result_plane + (row + i) * self.result_columns + column,
                    self.made,
                    count,
                )
        return k.kernel()
