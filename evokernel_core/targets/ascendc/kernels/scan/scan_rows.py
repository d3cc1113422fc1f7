"""Scans of elements that are neighbours in memory.

A tile is transposed so that its segments become lanes of vectors: a scan is then one instruction a step for
all segments. Short rows are segments. Of a long row the sums of segments are scanned over the lanes, and
added to all steps; what its tiles so far combine to lies in front of the sums, so a first shift brings it in.
"""

from __future__ import annotations

from evokernel_core.compiler.problems.scan import Scan
from evokernel_core.hardware.ascend.isa import LANES as REPEAT
from evokernel_core.targets.ascendc.ir.builder import Place, at, read_as, strides, transpose
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    CoreCount,
    Expr,
    Int,
    Size,
    Var,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Kernel, Slice
from evokernel_core.targets.ascendc.kernels.scan.scan_common import HALF_TURN, Scanning, rounded
from evokernel_core.targets.ascendc.kernels.scan.scan_schedule import (
    SIDE,
    ScanSchedule,
    longest_lane,
    most_lanes,
)

_SIDE = Constant("SIDE", SIDE, "of the squares that are transposed")
_WORD, _BLOCK = 4, 8
"""Bytes of a float32, and how many a block holds."""
_NOTE = """\
A tile is transposed so that its segments become lanes of vectors: a scan is then one instruction a step for
all segments. The sums of the segments are scanned over the lanes, and added to all steps."""


class ScanRows(Scanning):
    """``turned``: elements of a tile by step and lane, with a row more where results lie one step aside.
    ``totals`` and the two halves of ``sums`` are lanes beside identities, which shifts move in; they lie half
    a turn of the banks from the steps that they are combined with, so that both are read at once."""

    def __init__(self, scan: Scan, schedule: ScanSchedule) -> None:
        lanes, most = schedule.lanes, most_lanes(schedule)
        super().__init__(_NOTE, scan, most, lanes * schedule.steps, schedule.out_buffers)
        self._short = Constant("SHORT_ROW", longest_lane(scan, schedule), "rows up to this are lanes")
        self._most = Constant("MOST_LANES", most)
        self._all = Constant("LANES", lanes, "segments of a long row, scanned side by side")
        self._most_steps = Constant("STEPS", schedule.steps, "most elements of a segment")
        self._turned = Buffer("turned", "float", _WORD, self.tile + self._most)
        self._turned16 = Buffer("turned16", "half", 2, self.tile)
        self._first_step, self._first_result = int(scan.exclusive), 0
        if scan.reverse:
            self._first_step, self._first_result = 0, int(scan.exclusive)
        self._half = Constant("HALF_LANES", lanes // 2)
        first, behind = (HALF_TURN, lanes // 2) if scan.reverse else (lanes // 2 | HALF_TURN, 0)
        self._lane = Constant("FIRST_LANE", first, "behind identities")
        self._carry = self._lane + self._all if scan.reverse else self._lane - _BLOCK
        turns = -(-(first + lanes + behind) // (2 * HALF_TURN))
        self._padded = Constant("PADDED_LANES", turns * 2 * HALF_TURN)
        self._totals = Buffer("totals", "float", _WORD, self._padded)
        self._sums = Buffer("sums", "float", _WORD, self._padded * 2)
        self._shifted = Buffer("shifted", "float", _WORD, self._all)
        self._places = Buffer("places", "int32_t", _WORD, self._all)

    def kernel(self) -> Kernel:
        k = self.k
        height, length = k.param("rows", Size(self.scan.outer)), k.param("columns", Size(self.scan.length))
        for size in (height, length):
            k.require(size, ">=", 1)
        self._shape(height, length)
        high = k.param("rowsPerTile", Choice(length, "<=", self._short, self.lanes, Int(1)), ctype=U32)
        pitch = k.param("pitch", self.lanes * self.steps // high, "from row to row of a tile", U32)
        parts = k.param("tilesPerRow", ceil_div(length, pitch))
        self._prepare()
        with self.tiles(k.param("units", ceil_div(height, high)), parts) as (unit, piece, number):
            row, column = k.let("row", unit * high, U64), k.let("column", number * pitch, U64)
            rows, count = self.part("rows", height, row, high), self.part("count", length, column, pitch)
            offset = k.let("offset", row * length + column, U64)
            self.load(offset, rows, count, length, pitch)
            self.fill_gaps(rows, count, pitch, self.lanes * self.steps)
            if self.scan.mask:
                self.use_mask((rows - 1) * pitch + count)
            self._turn_in()
            self._scan_steps()
            with k.when(high, "==", 1):
                self._scan_lanes(piece)
            self._turn_out()
            k.store(self.y, offset, self.made, count, rows=rows, apart=length, pitch=pitch)
        return k.kernel()

    def _shape(self, height: Expr, length: Expr) -> None:
        """Lanes and steps of a tile: lanes are rows, or equal tiles of a long row have an odd number of
        blocks a lane, whose squares of 16 lanes meet no bank twice."""
        k, short = self.k, self._short
        equal = k.param("equal", ceil_div(length, ceil_div(length, self.tile)), "parts of a long row")
        blocks = ceil_div(equal, self._all * self.block) // 2 * 2 + 1
        part = k.param("part", least(blocks * self.block, self._most_steps), "of a lane then")
        steps = Choice(length, "<=", short, rounded(length, self.row_block), part)
        self.steps = k.param("steps", steps, "elements of a lane", U32)
        share = k.param("share", rounded(ceil_div(height, CoreCount()), _SIDE), "rows of a core")
        fit = k.param("fit", least(self.tile // self.steps // _SIDE * _SIDE, self._most), "rows in a tile")
        lanes = Choice(length, "<=", short, least(share, fit), self._all)
        self.lanes = k.param("lanes", lanes, "of a tile: rows, or segments of one", U32)

    # -- steps ----------------------------------------------------------------------------------

    def _turn_in(self) -> None:
        first, count = self._first_step * self.lanes, self.lanes * self.steps
        with self.k.section("TurnIn", "Lane l of step s is element s of segment l."):
            self._turn(self.taken, self._first_step, is_in=True)
            if not self.is_float:
                self.cast(at(self._turned, first), read_as(self.ctype, self._turned16), count)

    def _turn_out(self) -> None:
        first, count = self._first_result * self.lanes, self.lanes * self.steps
        with self.k.section("TurnOut"):
            if not self.is_float:
                self.cast(read_as(self.ctype, self._turned16), at(self._turned, first), count, "RINT")
            self._turn(self.made, self._first_result, is_in=False)

    def _turn(self, segments: Buffer, first: int, *, is_in: bool) -> None:
        """Segments to steps or back, a block of steps of all lanes at a time."""
        k, i, block = self.k, Var("i"), self.block.value
        squares = SIDE // block
        line, beside, lane = i // squares, i % squares * block, i % SIDE
        if not is_in:
            line, beside, lane = i % block, i // block * block, i // squares + i % squares * block
        turned, first, ctype = (self._turned, first, "") if self.is_float else (self._turned16, 0, "half")
        with k.loop("part", self.steps // self.block) as part:
            begin = k.let("begin", part * self.block)
            own = Slice(segments, lane * self.steps + begin, ctype), _SIDE * self.steps // self.block
            steps = at(turned, (begin + first + line) * self.lanes + beside), squares
            made, taken = (steps, own) if is_in else (own, steps)
            transpose(k, made, taken, i, self.lanes // _SIDE)

    def _scan_steps(self) -> None:
        k, lanes, first, turned = self.k, self.lanes, self._first_step, self._turned
        with k.section("ScanSteps", "Each lane on its own."):
            if self.scan.exclusive:
                self.fill(at(turned, self.steps * lanes if self.scan.reverse else 0), lanes)
            with k.loop("step", self.steps - 1) as step:
                before, here = (step + first) * lanes, (step + first + 1) * lanes
                if self.scan.reverse:
                    before, here = ((self.steps - choice - step) * lanes for choice in (1, 2))
                self.combine(at(turned, here), at(turned, before), at(turned, here), lanes)

    # -- lanes ----------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """The identities, and the bytes of successive elements."""
        places, lanes = self._places, self._all
        for buffer in (self._totals, self._sums):
            self.fill(buffer, buffer.elements)
        zero, word = (Converted(Int(value), "int32_t") for value in (0, _WORD))
        self.k.call("CreateVecIndex", places, zero, lanes, repeats=lanes // REPEAT)
        self.k.call("Muls", places, places, word, lanes, repeats=lanes // REPEAT)

    def _scan_lanes(self, piece: Expr) -> None:
        """All lanes before each lane and the tiles before this one, combined with the steps of the lane."""
        k, lanes, turned = self.k, self._all, self._turned
        side = "behind" if self.scan.reverse else "before"
        with k.section("ScanLanes", f"What lies {side} each lane, also in the tiles {side} this one."):
            sums = self._before_lanes(piece)
            result = self._first_result * lanes
            if self.scan.op == "logaddexp":
                with k.loop("result", self.steps) as step:
                    place = at(turned, step * lanes + result)
                    self.combine(place, place, at(self._sums, sums), lanes)
                return
            pitch, times = lanes // _BLOCK, Converted(self.steps, "uint8_t")
            how = (Int(REPEAT), times, strides("BinaryRepeatParams", 1, 1, 1, pitch, pitch, 0))
            with k.loop("repeat", lanes // REPEAT) as repeat:
                place, one = at(turned, repeat * REPEAT + result), at(self._sums, repeat * REPEAT + sums)
                k.call(self.instruction, place, place, one, *how, repeats=self.steps)

    def _before_lanes(self, piece: Expr) -> Expr:
        """Where ``sums`` then has what the lanes before each one combine to. Shifts by whole blocks need no
        Gather; they come first, from one half to the other."""
        k, lanes, first, sums, totals = self.k, self._all, self._lane, self._sums, self._totals
        is_reverse = self.scan.reverse
        with k.when(piece, "==", 0):
            self.fill(at(totals, self._carry), Int(_BLOCK))
        last = Int(0) if is_reverse else (self.steps - 1 + self._first_step) * lanes
        self.copy(at(totals, first), at(self._turned, last), lanes)
        self._gather(at(sums, first), totals, self._shift(Int(1)))
        rounds = (lanes.value // _BLOCK).bit_length() - 1
        with k.loop("round", rounds) as turn:
            distance = k.let("distance", self._half >> turn)
            here, there = turn % 2 * self._padded, (turn + 1) % 2 * self._padded
            moved = at(sums, here + self._shift(distance))
            self.combine(at(sums, there + first), at(sums, here + first), moved, lanes)
        half = self._padded * (rounds % 2)
        with k.loop("round", 3) as turn:
            self._gather(self._shifted, sums, half + self._shift(Int(_BLOCK // 2) >> turn))
            self.combine(at(sums, half + first), at(sums, half + first), self._shifted, lanes)
        # The last lane is what the next tile begins with; others of its block are never read.
        end = first if is_reverse else first + lanes - _BLOCK
        self.combine(at(totals, self._carry), at(sums, half + end), at(totals, end), Int(_BLOCK))
        return half + first

    def _shift(self, distance: Expr) -> Expr:
        """Where the lanes lie that come to the first ones."""
        return self._lane + distance if self.scan.reverse else self._lane - distance

    def _gather(self, to: Place, source: Buffer, start: Expr) -> None:
        places, lanes = read_as("uint32_t", self._places), self._all
        self.k.call("Gather", to, source, places, start * _WORD, lanes, repeats=lanes // REPEAT)
