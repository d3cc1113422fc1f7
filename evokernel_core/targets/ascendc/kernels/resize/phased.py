"""Planes whose rows become a whole number of times as many, and whose columns have a regular ratio.

Eight planes are transposed as in ``planes.py``. Rows then lie one behind the other, and so do those that a
phase of rows takes for one tap: one instruction weighs all of them, and one the columns of many rows. Weights
are those of phases, so no core makes tables.
"""

from __future__ import annotations

from evokernel_core.compiler.problems.resize import SMOOTH, Resize
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import at
from evokernel_core.targets.ascendc.ir.expr import U32, U64, Constant, Expr, Int, ceil_div, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel, Number, Slice
from evokernel_core.targets.ascendc.kernels.resize.axis import Phases, most_ahead, phases_of
from evokernel_core.targets.ascendc.kernels.resize.planes import BLOCK, PLANES, SIDE, Planes, whole
from evokernel_core.targets.ascendc.kernels.resize.resize_common import REPEAT, ResizeSchedule, start_of

_NOTE = """\
Resizes planes. Eight of them are transposed so that their elements at one place are a block: the rows of a
phase are weighed together, and so are the columns of many rows."""


def phases_of_rows(problem: Resize) -> Phases | None:
    """The phases of rows that are a whole number of times as many, where columns have phases too; None for
    any others."""
    rows = phases_of(problem.rows)
    if rows is None or rows.q != 1 or problem.rows.results != problem.rows.sources * rows.p:
        return None
    is_clamped = problem.rows.kind not in SMOOTH and problem.columns.kind not in SMOOTH
    return rows if is_clamped and phases_of(problem.columns) is not None else None


def why_no_phases(problem: Resize, schedule: ResizeSchedule) -> str | None:
    """Why rows cannot be weighed phase by phase in such tiles."""
    phases, columns, axis = phases_of_rows(problem), phases_of(problem.columns), problem.columns
    if (
        phases is None
        or columns is None
        or schedule.rows % phases.p
        or schedule.joined * phases.p > schedule.rows
    ):
        return "Rows are weighed phase by phase where there are a whole number of them for each."
    is_wide = schedule.columns >= axis.results
    if is_wide and (axis.sources % columns.q or axis.sources // columns.q * columns.p != axis.results):
        return "Rows lie one behind the other where they have whole periods."
    if schedule.woven and not is_wide:
        return "Only whole rows are woven."
    if is_wide and not schedule.woven and axis.results % (BLOCK_BYTES // ITEM_SIZE[problem.dtype]):
        return "Rows that are stored one by one begin at whole blocks."
    return None


class Phased(Planes):
    """A tile has ``periods`` rows of results for each phase, of which ``joined`` are stored at a time: those
    of one phase after those of another, or where ``woven`` all of them in their order.

    ``above`` and ``below``: rows in front of the source and behind it, which repeat its first and its last
    one; ``times``: how many phases have rows of their own, one where rows are only repeated; ``margin``:
    blocks in front of the first row. Whole rows lie one behind the other as in memory, and what taps beyond
    their ends made of their neighbours is made anew."""

    def __init__(self, problem: Resize, schedule: ResizeSchedule) -> None:
        phases, columns = phases_of_rows(problem), phases_of(problem.columns)
        assert phases is not None and columns is not None
        self.own, self.across = phases, columns
        self.above = max(0, -min(phases.offsets))
        self.below = max(0, max(phases.offsets) + phases.taps - 1)
        self.is_weighed = problem.rows.is_weighted or schedule.woven
        self.times = phases.p if self.is_weighed else 1
        super().__init__(problem, schedule, _NOTE)

    def _lay_out(self, length: int) -> None:
        super()._lay_out(length)
        self.front = 0
        if self.is_wide:
            self.is_whole, self.lead, self.front = True, 0, self.across.overhang(self.problem.columns)[0]
            sources = self.problem.columns.sources
            self.reach = Constant("REACH", sources, "columns of the source that a tile needs")
            self.step = Constant("STEP", sources, "from row to row of the source in a tile")
            self.pitch = Constant("PITCH", length, "blocks of a row of results")
            flat = whole(self.span.value * sources, SIDE)
            self.flat = Constant("FLAT", flat, "elements of each plane in a tile")
        self.margin = self.front + self.lead

    def _out(self, schedule: ResizeSchedule, length: int) -> int:
        """Rows are as far apart as where their columns were computed."""
        return whole(schedule.joined * (self.own.p if schedule.woven else 1) * self.pitch.value, SIDE)

    def _make_blocks(self, more: int, further: int) -> None:
        periods, step = self.schedule.rows // self.own.p, self.step.value
        # The last tile may begin so far behind the part of the source that it needs, and have fewer rows.
        behind = most_ahead(self.problem.rows, self.own, self.window) + periods
        held = self.above + max(self.span.value, behind) + self.below
        more += self.front
        self.periods = Constant("PERIODS", periods, "rows of results of each phase in a tile")
        self.phase = Constant("PHASE", self.margin + periods * step, "blocks of the rows of a phase")
        rows = max(held * step, (self.above * step) + self.flat.value) + self.margin + more
        self.turned = Buffer("turned", "float", 4, PLANES * Int(rows))
        weighed = Buffer("weighed", "float", 4, PLANES * (self.phase * self.times + more))
        self.weighed = weighed if self.is_weighed else self.turned
        entries = whole(self._lines(self.schedule.joined) * self.pitch.value, SIDE) + further
        self.stretched = Buffer("stretched", "float", 4, PLANES * Int(entries))

    def _lines(self, periods: int) -> int:
        """Rows whose columns are computed together."""
        return periods * (self.own.p if self.schedule.woven else 1)

    def lasting(self) -> tuple[Buffer, ...]:
        """The buffers that hold something at the same time."""
        if not self.is_weighed:
            return (self.taken, self.made, self.turned, self.stretched)
        # Rows of the source are no longer needed where columns are computed.
        last = max(self.turned, self.stretched, key=lambda item: item.bytes)
        return (self.taken, self.made, self.weighed, last)

    # -- tiles ----------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """A tile is a run of rows of a part of the columns."""
        k = self.k
        groups = k.param("groups", ceil_div(self.planes, PLANES))
        parts = k.param("parts", ceil_div(self.result_columns, self.wide), "of the columns")
        down = k.param("tilesOfRows", ceil_div(self.result_rows, self.tile_rows))
        with k.cores("tile", k.param("tiles", groups * parts * down)) as tile:
            band = k.let("band", tile % down, U64)
            part = k.let("part", tile // down % parts, U64)
            plane = k.let("plane", tile // down // parts * PLANES, U64)
            column = k.let("column", part * self.wide, U32)
            begin = k.let(
                "begin", Int(0) if self.is_wide else start_of(self.problem.columns, self.part, part), U32
            )
            row = k.let("row", band * self.tile_rows, U32)
            self._blocks(plane, band, row, begin)
            first = k.let("first", row // self.own.p - self.start + self.above)
            if self.is_weighed:
                (self._weave_rows if self.schedule.woven else self._weigh_rows)(first)
            rows = k.let("rows", least(self.result_rows - row, self.tile_rows))
            count = k.let("count", least(self.result_columns - column, self.wide))
            ahead = self._ahead(self.across, column, begin) + self.front
            to = plane * self.result_plane + row * self.result_columns + column
            with k.pieces("line", (0, rows // self.own.p), self.high) as (line, lines):
                place = k.let("place", to + line * self.own.p * self.result_columns, U64)
                if self.schedule.woven:
                    self._woven(line * (self.own.p * self.step) + ahead, lines, place, count)
                else:
                    taken = line * self.step + ahead
                    self._one_by_one(
                        taken if self.is_weighed else taken + first * self.step, lines, place, count
                    )
        return k.kernel()

    def _blocks(self, plane: Expr, band: Expr, row: Expr, begin: Expr) -> None:
        """The rows of the source that a tile needs as blocks, with those and the columns beyond the ends."""
        k = self.k
        self.start = self.start_of_tile(band)
        planes_left = k.let("planesLeft", self.planes - plane, U64)
        self.tile_planes = k.let("tilePlanes", least(planes_left, PLANES))
        self._load(plane * self.source_plane + begin, self.tile_planes, (row, self.tile_rows, self.start))
        if not self.is_float:
            self.cast(self.source, self.taken, PLANES * self.flat, "NONE")
        self._to_blocks(at(self.turned, (self.above * self.step + self.front) * BLOCK))
        self._repeat_rows()
        if not self.is_wide:
            self._repeat_ends(self.across, self.above + self.span + self.below)

    def _repeat_rows(self) -> None:
        k, length, last = self.k, self.step * BLOCK, self.above + self.span - 1
        pairs: list[tuple[Expr, Expr]] = [(Int(row), Int(self.above)) for row in range(self.above)]
        pairs += [(last + (more + 1), last) for more in range(self.below)]
        if not pairs:
            return
        with k.section("RepeatRows", "The first and the last row go on beyond the ends."):
            for to, source in pairs:
                target, taken = (
                    at(self.turned, choice * length + self.margin * BLOCK) for choice in (to, source)
                )
                one = Number("ONE", 1.0)
                k.call("Muls", target, taken, one, length, repeats=ceil_div(length, REPEAT))

    def _weigh_rows(self, first: Expr) -> None:
        """All rows of each phase. ``first``: the row of the first period."""
        with self.k.section("WeighRows", "All rows of each phase, tap by tap."):
            for phase in range(self.own.p):
                self._weigh(phase, self.phase * phase, first, self.phase)

    def _weave_rows(self, first: Expr) -> None:
        """The rows of all phases in their order, period by period."""
        with self.k.section("WeighRows", "Row by row, tap by tap."), self.k.loop("i", self.periods) as i:
            for phase in range(self.own.p):
                # The first row goes from its margin on, the others behind the one before.
                row = (i * self.own.p + phase) * self.step + self.margin
                self._weigh(phase, row, first + i, self.step, self.margin)

    def _weigh(self, phase: int, to: Expr, first: Expr, count: Expr, margin: int = 0) -> None:
        k, length = self.k, count * BLOCK
        for tap in range(self.own.taps):
            weight = Number(f"ROW_WEIGHT_{phase}_{tap}", self.own.weights[phase][tap])
            row = first + (self.own.offsets[phase] + tap)
            taken = at(self.turned, (row * self.step + margin) * BLOCK)
            key = "Axpy" if tap else "Muls"
            k.call(key, at(self.weighed, to * BLOCK), taken, weight, length, repeats=ceil_div(length, REPEAT))

    # -- results --------------------------------------------------------------------------------

    def _woven(self, taken: Expr, lines: Expr, to: Expr, count: Expr) -> None:
        """So many rows of every phase. ``taken``: the block of the first one's first period."""
        rows = self.k.let("rowsTogether", lines * self.own.p)
        self._to_results(at(self.weighed, taken * BLOCK), rows)
        with self.k.loop("p", self.tile_planes) as p:
            target, source = to + p * self.result_plane, at(self.made, p * self.out)
            self.k.store(self.y, target, source, rows * count)

    def _one_by_one(self, taken: Expr, lines: Expr, to: Expr, count: Expr) -> None:
        """The same, of one phase after another."""
        k, p = self.k, self.own.p
        with k.loop("phase", self.times) as phase:
            self._to_results(at(self.weighed, (phase * self.phase + taken) * BLOCK), lines)
            with k.loop("again", p // self.times) as again, k.loop("p", self.tile_planes) as plane:
                target = to + (phase + again) * self.result_columns + plane * self.result_plane
                source = at(self.made, plane * self.out)
                apart = self.result_columns * p
                k.store(self.y, target, source, count, rows=lines, apart=apart, pitch=self.pitch)

    def _to_results(self, source: Slice, lines: Expr) -> None:
        """The columns of so many rows, as elements of every plane."""
        most = self._lines(self.schedule.joined)
        self._stretch(self.across, source, lines, most)
        if self.is_wide:
            self._make_ends(self.across, source, lines)
        with self.k.section("ToPlanes", "Blocks to elements of every plane."):
            blocks, to = at(self.stretched, 0), at(self.sums, 0)
            self._to_planes(to, blocks, lines * self.pitch, most * self.pitch.value)
        if not self.is_float:
            self.cast(self.made, self.sums, PLANES * self.out, "RINT")
