"""Scans of elements that lie apart: neighbouring scans are the lanes of vectors.

A unit is a run of columns, which one core scans from end to end, tile by tile. A carry of each column hands
on what its tiles so far combine to.
"""

from __future__ import annotations

from evokernel_core.compiler.problems.scan import Scan
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.targets.ascendc.ir.builder import at
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Constant,
    CoreCount,
    Expr,
    Int,
    Size,
    ceil_div,
    greatest,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.kernels.scan.scan_common import Scanning, rounded
from evokernel_core.targets.ascendc.kernels.scan.scan_schedule import ScanSchedule, most_width

_NOTE = "Columns are scanned side by side: each row of a tile is combined with the result of the row {} it."


class Columns(Scanning):
    """Rows of a tile are ``width`` columns or less, each in whole blocks."""

    def __init__(self, scan: Scan, schedule: ScanSchedule) -> None:
        most, note = most_width(scan, schedule.tile), _NOTE.format("behind" if scan.reverse else "before")
        super().__init__(note, scan, most, schedule.tile, schedule.out_buffers)
        self._most = Constant("MOST_WIDTH", most, "columns of a tile")
        self._least = Constant("LEAST_WIDTH", schedule.width, "unless there are fewer columns")
        self._most_rows = Constant("MOST_ROWS", most_of("DataCopyPadIn", "blockCount"), "of one copy")
        self._carry = Buffer("carry", "float", 4, self._most)
        self._wide, self._results = (Buffer(name, "float", 4, self.tile) for name in ("wide", "results"))

    def kernel(self) -> Kernel:
        k, scan = self.k, self.scan
        outer = k.param("outer", Size(scan.outer))
        length = k.param("length", Size(scan.length), "of a scan")
        inner = k.param("inner", Size(scan.inner), "scans side by side")
        for size in (outer, length, inner):
            k.require(size, ">=", 1)
        width = self._width(outer, inner)
        fit = least(self.tile // rounded(width, self.row_block), self._most_rows)
        tiles = k.param("tiles", ceil_div(length, k.param("fit", fit, "rows in a tile")), "of a unit")
        high = k.param("rowsPerTile", ceil_div(length, tiles), ctype=U32)
        chunks = k.param("chunks", ceil_div(inner, width), "units side by side")
        with self.tiles(k.param("units", outer * chunks), tiles) as (unit, piece, number):
            row = k.let("row", number * high, U64)
            column = k.let("column", unit % chunks * width, U64)
            rows, count = self.part("rows", length, row, high), self.part("count", inner, column, width)
            pitch = k.let("pitch", rounded(count, self.row_block))
            offset = k.let("offset", (unit // chunks * length + row) * inner + column, U64)
            self.load(offset, rows, count, inner, pitch)
            with k.when(piece, "==", 0):
                self.fill(self._carry, pitch)
            self._compute(rows, count, pitch)
            k.store(self.y, offset, self.made, count, rows=rows, apart=inner, pitch=pitch)
        return k.kernel()

    def _width(self, outer: Expr, inner: Expr) -> Expr:
        """As many units as cores, unless their rows become short."""
        k = self.k
        cores = k.param("coresPerOuter", ceil_div(CoreCount(), outer))
        share = k.param("share", rounded(ceil_div(inner, cores), self.row_block), "columns of a core")
        wide = k.param("wide", least(greatest(share, self._least), self._most))
        return k.param("width", least(wide, inner), "columns of a unit", U32)

    def _compute(self, rows: Expr, count: Expr, pitch: Expr) -> None:
        elements = rows * pitch
        if self.scan.mask:
            self.fill_gaps(rows, count, pitch, elements)
            self.use_mask(elements)
        if self.is_float:
            self._scan(self.made, self.taken, rows, pitch)
            return
        results = self._results if self.scan.exclusive else self._wide
        self.cast(self._wide, self.taken, elements)
        self._scan(results, self._wide, rows, pitch)
        self.cast(self.made, results, elements, "RINT")

    def _scan(self, y: Buffer, x: Buffer, rows: Expr, pitch: Expr) -> None:
        """The rows of a tile in turn; the carry hands on to the next tile."""
        first: Expr = Int(0)
        last = (rows - 1) * pitch
        if self.scan.reverse:
            first, last = last, first
        if self.scan.exclusive:
            self.copy(at(y, first), self._carry, pitch)
        else:
            self.combine(at(y, first), self._carry, at(x, first), pitch)
        with self.k.loop("step", rows - 1) as step:
            before, row = step * pitch, (step + 1) * pitch
            if self.scan.reverse:
                before, row = ((rows - choice - step) * pitch for choice in (1, 2))
            given = at(x, before if self.scan.exclusive else row)
            self.combine(at(y, row), at(y, before), given, pitch)
        if self.scan.exclusive:
            self.combine(self._carry, at(y, last), at(x, last), pitch)
        else:
            self.copy(self._carry, at(y, last), pitch)
