"""Family resize: planes that are interpolated, or whose nearest elements are taken, along both dimensions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from attrs import evolve

from evokernel_core.compiler.ops import RESIZE, categories
from evokernel_core.compiler.problems.resize import IDENTITY, Resize, read_resize
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, REQUEST_BYTES
from evokernel_core.targets.ascendc.ir.builder import at
from evokernel_core.targets.ascendc.ir.expr import U32, U64, Constant, ceil_div, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.kernels.built import Sizes, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.reloads import with_hits
from evokernel_core.targets.ascendc.kernels.resize.axis import phases_of, window_of
from evokernel_core.targets.ascendc.kernels.resize.phased import Phased, phases_of_rows, why_no_phases
from evokernel_core.targets.ascendc.kernels.resize.planes import Planes
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


def is_rows_only(problem: Resize) -> bool:
    """Whether columns stay as they are."""
    return problem.columns.kind == IDENTITY


def _form(problem: Resize, schedule: ResizeSchedule) -> ResizeRows | Planes:
    if is_rows_only(problem):
        return ResizeRows(problem, schedule)
    return (Phased if schedule.phased else Planes)(problem, schedule)


def least_bytes(problem: Resize, schedule: ResizeSchedule) -> int:
    """Bytes of the buffers that cannot share memory, for which no kernel must be built."""
    return sum(item.bytes * item.stages for item in _form(problem, schedule).lasting())


def build(problem: Resize, schedule: ResizeSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return _form(problem, schedule).kernel()


_MOST_TABLE = 2040
"""Columns whose weights one instruction spreads."""
_WIDTHS = (1, 32, 64, 128, 256, 512)
_RUNS = (512, 1024, 2048, 4096)
_MOST_JOINED = 1024
"""Elements of each plane that are stored at a time, beyond which nothing is gained."""
_PERIODS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Rows of one phase in a tile, and stored at a time."""
_HEIGHTS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128)


def _why_illegal(problem: Resize, schedule: ResizeSchedule) -> str | None:
    if is_rows_only(problem):
        is_one = schedule.joined == 1 and not schedule.phased
        return None if is_one else "Rows that lie in memory as they are are stored one by one."
    return _why_no_planes(problem, schedule)


def _why_no_planes(problem: Resize, schedule: ResizeSchedule) -> str | None:
    """Why eight planes at a time cannot be resized in such tiles."""
    if schedule.columns % _unit(problem) and schedule.columns < problem.columns.results:
        return "A part of a row begins at a whole block, and with the first phase."
    if min(schedule.columns, problem.columns.results) > _MOST_TABLE:
        return Sentence("A tile has at most {most} columns.", most=_MOST_TABLE)
    if schedule.phased:
        return why_no_phases(problem, schedule)
    if schedule.woven:
        return "Only the rows of phases are woven."
    if schedule.joined > schedule.rows:
        return "A tile has no fewer rows than are stored at a time."
    return None


_VARIANT = variant_of(build, _why_illegal)


def _cost_us(problem: Resize, schedule: ResizeSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds; rows of the source that several tiles need come from L2 where it holds them."""
    rows, planes = problem.rows, problem.planes.evaluate(sizes)
    loaded = window_of(rows, schedule.rows).span * -(-rows.results // schedule.rows)
    once = planes * rows.sources * problem.columns.sources * ITEM_SIZE[problem.dtype]
    return _VARIANT.cost_us(problem, schedule, sizes, with_hits(chip, once, loaded / rows.sources))


def _starts(problem: Resize, sizes: Sizes, chip: Chip) -> Iterator[ResizeSchedule]:
    """Of each width the highest tiles that fit, and lower ones, which leave more cores something to do."""
    if not is_rows_only(problem) and phases_of_rows(problem) is not None:
        phased = list(_phased_starts(problem, chip))
        if phased:
            yield from phased
            return
    rows = problem.rows.results
    heights = sorted({min(height, rows) for height in _HEIGHTS}, reverse=True)
    for width in _widths(problem):
        several = 1 if is_rows_only(problem) else max(1, min(8, _MOST_JOINED // width))
        for joined in sorted({1, max(1, several // 2), several}):
            high = [height for height in heights if height >= joined]
            if not high:
                continue
            items = (ResizeSchedule(width, height, joined, 2) for height in high)
            fitting = (item for item in items if least_bytes(problem, item) <= chip.ub_bytes)
            yield from dict.fromkeys(
                (*itertools.islice(fitting, 3), ResizeSchedule(width, high[-1], joined, 2))
            )


def _phased_starts(problem: Resize, chip: Chip) -> Iterator[ResizeSchedule]:
    """The same of rows that are weighed phase by phase."""
    phases = phases_of_rows(problem)
    assert phases is not None
    heights = sorted({min(height, problem.rows.sources) for height in _PERIODS}, reverse=True)
    # Rows of whole requests are stored as fast one by one.
    is_whole = problem.columns.results * ITEM_SIZE[problem.dtype] % REQUEST_BYTES == 0
    for width, woven, joined in itertools.product(
        _widths(problem), (False,) if is_whole else (False, True), _PERIODS
    ):
        items = (
            ResizeSchedule(width, height * phases.p, joined, 2, phased=True, woven=woven)
            for height in heights
            if height >= joined
        )
        fitting = (
            item
            for item in items
            if _why_illegal(problem, item) is None and least_bytes(problem, item) <= chip.ub_bytes
        )
        yield from itertools.islice(fitting, 3)


def _unit(problem: Resize) -> int:
    """Columns that parts of a row consist of: whole blocks in memory, and whole periods."""
    phases = phases_of(problem.columns)
    return math.lcm(BLOCK_BYTES // ITEM_SIZE[problem.dtype], phases.p if phases else 1)


def _widths(problem: Resize) -> list[int]:
    """Columns of a tile: whole blocks that begin with the first phase, or all of a row."""
    columns = problem.columns.results
    if is_rows_only(problem):
        return sorted({min(width, columns) for width in _RUNS})
    unit = _unit(problem)
    return sorted({min(-(-width // unit) * unit, columns) for width in (*_WIDTHS, columns)})


def _steps(
    problem: Resize, here: ResizeSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, ResizeSchedule]]:
    yield from here.neighbours("rows")
    yield "wider tiles", evolve(here, columns=min(here.columns * 2, problem.columns.results))
    yield "narrower tiles", evolve(here, columns=max(8, here.columns // 16 * 8))
    if phases_of_rows(problem) is not None:
        other = evolve(here, phased=not here.phased, woven=False)
        yield "rows one by one" if here.phased else "rows phase by phase", other
        yield "rows of phases apart" if here.woven else "rows woven", evolve(here, woven=not here.woven)
    yield from here.neighbours("joined", "buffers")


def _notes(problem: Resize, schedule: ResizeSchedule) -> tuple[str, ...]:
    return Sentence("Tiles of {columns} columns and {rows} rows, {buffers} under way."), _how(
        problem, schedule
    )


def _cell(problem: Resize, schedule: ResizeSchedule) -> Descriptor:
    way = Algorithm.POLYPHASE if schedule.phased else Algorithm.DIRECT
    return Descriptor(Dataflow.BLOCKS, memories.UB, Split.TILES, way)


def _how(problem: Resize, schedule: ResizeSchedule) -> str:
    if is_rows_only(problem):
        return "Rows are weighted as they lie in memory."
    if schedule.phased:
        return "Eight planes are transposed; the rows of a phase are weighted together, and their columns."
    return "Eight planes are transposed; columns are gathered, rows are weighted by numbers."


FAMILY = SearchingFamily(
    variant=_VARIANT,
    name="resize",
    ops=categories(RESIZE),
    read=on_any_chip(read_resize),
    schedule_of=ResizeSchedule.of,
    starts=_starts,
    notes=_notes,
    cell=_cell,
    steps=_steps,
    cost_us=_cost_us,
    too_large=Sentence("The tables of a resizing and one tile do not fit the unified buffer."),
)
