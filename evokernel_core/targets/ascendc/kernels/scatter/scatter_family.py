"""Family put: a copy of a tensor into which runs or elements are written where indices say so.

No two cores write the same elements, and a core writes in the order of the indices: of several values for
one place the last one stays, and sums are added as one core sends them, each time alike. PyTorch raises for
an index outside of its dimension; copies then go to the nearest place, single elements nowhere.

Where one core would have to write nearly everything, the entries are dealt out in parts: each part is put
into neutral elements of its own, and a reduction over the parts follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import evolve

from evokernel_core.compiler.ops import LAST, SCATTER, SCATTER_PARTS, categories
from evokernel_core.compiler.problems.scatter import Put, read_put
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Reuse, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, at
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    CoreCount,
    Expr,
    Index,
    Int,
    Param,
    Size,
    Var,
    ceil_div,
    greatest,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel, Number
from evokernel_core.targets.ascendc.kernels.built import Sizes, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.indexed import Indices
from evokernel_core.targets.ascendc.kernels.rendering import RAW, parameter
from evokernel_core.targets.ascendc.kernels.scatter import owned as scatter_owned
from evokernel_core.targets.ascendc.kernels.scatter import sorted as scatter_sorted
from evokernel_core.targets.ascendc.kernels.scatter.scatter_settings import (
    ATOMICS,
    LEAST_SEGMENT_BYTES,
    MOST_RUN_BYTES,
    NEUTRAL,
    ScatterSchedule,
    copies,
)
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_NOT_COPIED = "Runs are copied, and what atomics do not combine is put element by element."
_WORDS = {
    LAST: "replaced by",
    "add": "added to",
    "mul": "multiplied by",
    "max": "compared with larger",
    "min": "compared with smaller",
}


def _why_illegal(problem: Put, schedule: ScatterSchedule) -> str | None:
    if schedule.held:
        return scatter_sorted.why_illegal(problem, schedule)
    if not (problem.elements if schedule.picks else copies(problem)):
        return _NOT_COPIED
    if schedule.owned:
        return scatter_owned.why_illegal(problem, schedule)
    return "Sums are held of places that a core owns." if schedule.sums else None


def _steps(
    problem: Put, here: ScatterSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, ScatterSchedule]]:
    yield from here.neighbours("runs", "bytes", "held")
    if not here.held:
        yield "sorted by places", ScatterSchedule(512, 8192, held=1024)
    yield from here.neighbours("picks")
    if here.owned:
        yield "segments of runs", evolve(here, owned=False, sums=0)
        yield "sums held" if not here.sums else "sums sent", evolve(here, sums=0 if here.sums else 65536)
    else:
        yield "ranges of places", ScatterSchedule(1024, 16384, owned=True)


def _starts(problem: Put, sizes: Sizes, chip: Chip) -> Iterator[ScatterSchedule]:
    for runs in (256, 1024, 4080):
        for size in (16384, 32768, 65536):
            yield ScatterSchedule(runs, size)
            yield ScatterSchedule(runs, size, picks=True)
    yield from scatter_owned.starts(problem)
    yield from scatter_sorted.starts()


def _notes(problem: Put, schedule: ScatterSchedule) -> Iterator[str]:
    yield Sentence("Tiles of {bytes} bytes, {runs} indices at a time.")
    yield _order(schedule)
    if problem.parts:
        yield Sentence("Entries in {parts} parts, each with a result of its own.", parts=problem.parts)


def _cell(problem: Put, schedule: ScatterSchedule) -> Descriptor:
    split = Split.RANGES if schedule.owned else Split.SEGMENTS
    if schedule.held:
        return Descriptor(Dataflow.PICKED, memories.UB, split, Algorithm.SORT, Overlap.PIPELINED)
    if schedule.picks:
        return Descriptor(Dataflow.PICKED, memories.UB, split, Algorithm.SCALAR, Overlap.NONE)
    return Descriptor(
        Dataflow.STREAMED,
        memories.UB if schedule.sums else Reuse.NONE,
        split,
        Algorithm.COPY,
        Overlap.PIPELINED,
    )


def _order(schedule: ScatterSchedule) -> str:
    """How values come to their places, in words."""
    if schedule.held:
        return Sentence("Sorts {held} elements at a time by their places.", held=schedule.held)
    return "Each core writes a range of places." if schedule.owned else "Writes in the order of indices."


def build(problem: Put, schedule: ScatterSchedule) -> Kernel:
    """The kernel of a legal schedule: runs are copied in the order of indices or by their places, elements
    are written by the scalar unit or sorted by the vector unit."""
    if schedule.owned:
        return scatter_owned.build(problem, schedule)
    if schedule.held:
        return scatter_sorted.build(problem, schedule)
    return (_Elements if schedule.picks else _Runs)(problem, schedule).kernel()


class _Putting:
    """What both forms have: the tensors, the sizes and the indices of a tile."""

    what = ""

    def __init__(self, problem: Put, schedule: ScatterSchedule) -> None:
        self._problem, self._item = problem, schedule
        self._k = k = Builder(self._note())
        self._width = ITEM_SIZE[problem.dtype]
        self._ctype = RAW[self._width] if problem.kind == LAST else CPP_TYPE[problem.dtype]
        if problem.source is not None:
            self._source = k.input("source", parameter(problem.source), self._ctype, self._width)
        self._entries = Constant("TILE_INDICES", schedule.runs, "that are known at a time")
        self._values = k.input("values", parameter(problem.values), self._ctype, self._width)
        self._result = k.output("result", "output", self._ctype, self._width)
        self._outer = k.param("outer", Size(problem.outer))
        self._size = k.param("size", Size(problem.size), f"{self.what} of each outer iteration")
        self._count = k.param("count", Size(problem.count), f"{self.what} that are put into each")
        for size in (self._outer, self._size, self._count):
            k.require(size, ">=", 1)
        self._indices = Indices(
            k, problem.places, self._entries, wraps=problem.wraps, clamps=not schedule.picks
        )
        parts = Constant("PARTS", problem.parts, "of the entries, each with a result of its own")
        self._parts: Index = parts if problem.parts else 1
        share = ceil_div(self._count, self._parts)
        self._share = k.param("share", share, "entries of a part") if problem.parts else self._count

    def _note(self) -> str:
        what = f"{self.what} are {_WORDS[self._problem.kind]} others where indices say so"
        if self._problem.parts:
            return f"For each part of the entries, {self.what} that change nothing, of which {what}."
        return Sentence("A copy of the source in which {what}. Later ones come last.", what=what)

    def _span(self, part: Expr) -> tuple[Index, Index]:
        """The entries of a part."""
        if not self._problem.parts:
            return 0, self._count
        first = self._k.let("first", part * self._share, U64)
        return first, self._k.let("last", least(first + self._share, self._count), U64)

    def _neutral(self, target: Buffer, count: Expr) -> None:
        """Fills a buffer with what changes nothing."""
        repeats = ceil_div(count, LANES)
        number = Number("NEUTRAL", NEUTRAL[self._problem.kind], "changes nothing")
        self._k.call("Duplicate", target, number, count, repeats=repeats)

    def _from(self, outer: Expr, entry: Expr) -> tuple[Expr, Expr]:
        """The places of an entry among indices and values."""
        place = self._k.let("from", outer * self._count + entry, U64)
        return (entry if self._problem.shared else place), place


class _Elements(_Putting):
    """The scalar unit puts elements into a tile: of a long row, or of some short ones."""

    what = "elements"

    def kernel(self) -> Kernel:
        k, problem, width = self._k, self._problem, self._width
        most = Constant("TILE_ELEMENTS", self._item.bytes // width, "in the unified buffer at a time")
        # Every tile looks at all indices of its row, so tiles are as large as fit.
        tiles = k.param("tilesPerRow", ceil_div(self._size, most))
        length = k.param("tileElements", ceil_div(self._size, tiles), "of a row", U32)
        high, groups = self._rows_of_tile(most)
        tile = Buffer("tile", self._ctype, width, most + BLOCK_BYTES // width)
        values = Buffer("given", self._ctype, width, self._entries)
        if problem.kind != LAST:
            k.put(at(tile, most), 0)
        with k.cores("unit", k.param("units", groups * tiles)) as unit:
            begin = k.let("begin", unit % tiles * length, U64)
            elements = k.let("elements", least(k.let("left", self._size - begin, U64), length))
            group = k.let("group", unit // tiles, U64)
            outer = k.let("outer", group % self._outer if problem.parts else group * high, U64)
            rows: Expr = Int(1)
            if not problem.parts:
                rows = k.let("rows", least(k.let("rowsLeft", self._outer - outer, U64), high))
            to = k.let("to", (group if problem.parts else outer) * self._size + begin, U64)
            if problem.parts:
                self._neutral(tile, elements)
            else:
                k.load(tile, self._source, to, rows * elements)
            with k.pieces("entry", self._span(group // self._outer), self._entries) as (entry, count):
                chosen, given = self._from(outer, entry)
                self._indices.load(chosen, count if problem.shared else rows * count)
                k.load(values, self._values, given, rows * count)
                with k.section("Put"), k.loop("row", rows) as row, k.loop("i", count) as i:
                    own = row * count + i
                    self._put(
                        self._indices.place(i if problem.shared else own) - begin, row, own, tile, values
                    )
            k.store(self._result, to, tile, rows * elements)
        return k.kernel()

    def _rows_of_tile(self, most: Constant) -> tuple[Expr, Expr]:
        """Whole rows of a tile, and how many tiles of rows there are."""
        k = self._k
        if self._problem.parts:
            return Int(1), self._parts * self._outer
        # Of short rows several at a time, as long as every core has some.
        fitting = k.param("fitting", least(most // self._size, self._entries // self._count))
        share = k.param("coresShare", ceil_div(self._outer, CoreCount()))
        rows = k.param("mostRows", least(fitting, share))
        high = k.param("rowsPerTile", greatest(rows, 1), "whole ones", U32)
        return high, ceil_div(self._outer, high)

    def _put(self, within: Expr, row: Var, entry: Expr, tile: Buffer, values: Buffer) -> None:
        k, most = self._k, tile.elements - BLOCK_BYTES // self._width
        # What belongs to another tile, or to none, goes behind this one: negative places are large ones.
        place = k.let("place", within, U64)
        elements = Var("elements")
        slot = k.let("slot", Choice(place, "<", elements, row * elements + place, most))
        value = k.get("value", at(values, entry), 0, self._ctype)
        if self._problem.kind == LAST:
            k.put(at(tile, slot), value)
        else:
            kept = k.get("kept", at(tile, slot), 0, self._ctype)
            k.put(at(tile, slot), _combined(self._problem.kind, kept, value))


def _combined(kind: str, kept: Expr, value: Expr) -> Expr:
    """Of the comparing kinds what is no number stays."""
    if kind == "add":
        return kept + value
    if kind == "mul":
        return kept * value
    number = Choice(value, "!=", value, value, kept)
    return Choice(value, ">" if kind == "max" else "<", kept, value, number)


class _Runs(_Putting):
    """Copies put runs. No two cores write the same elements: each has results, or segments of all
    runs, of its own."""

    what = "runs"

    def __init__(self, problem: Put, schedule: ScatterSchedule) -> None:
        super().__init__(problem, schedule)
        k, width = self._k, self._width
        self._run = k.param("run", Size(problem.run), "elements")
        k.require(self._run, ">=", 1)
        k.require(self._run, "<=", MOST_RUN_BYTES // width, "copies count the bytes between runs in 32 bits")
        self._most = Constant("TILE_ELEMENTS", schedule.bytes // width)
        self._block = Constant("BLOCK", BLOCK_BYTES // width, "elements")
        self._tile = Buffer("tile", self._ctype, width, self._most, 2)
        self._segment, self._segments = self._segmented()
        rows = least(self._entries, self._most // self._pitch(least(self._segment, self._run)))
        self._high = k.param("runsPerTile", rows, ctype=U32)
        self._atomic = ATOMICS.get(problem.kind)

    def _segmented(self) -> tuple[Param, Param]:
        """Elements of each run that one core writes, and how many such segments there are."""
        k, step = self._k, LEAST_SEGMENT_BYTES // self._width
        results = k.param("results", self._parts * self._outer)
        busy = least(results, CoreCount())
        wanted = k.param("wanted", ceil_div(CoreCount(), busy), "segments, for all cores")
        longest = k.param("longest", least(ceil_div(self._run, wanted), self._most))
        segment = k.param("segmentElements", least(ceil_div(longest, step) * step, self._most), ctype=U32)
        return segment, k.param("segments", ceil_div(self._run, segment))

    def _pitch(self, elements: Index) -> Expr:
        """Elements from run to run in a tile."""
        return ceil_div(elements, self._block) * self._block

    def kernel(self) -> Kernel:
        """A core has a segment of every run, or a part of the entries."""
        k, problem = self._k, self._problem
        neutral = Buffer("neutral", self._ctype, self._width, self._most)
        if problem.parts:
            self._neutral(neutral, self._most)
        with k.cores("unit", k.param("units", self._parts * self._outer * self._segments)) as unit:
            start, elements = self._part_of_runs(unit)
            result = k.let("result", unit // self._segments, U64)
            outer = k.let("outer", result % self._outer if problem.parts else result, U64)
            if problem.parts:
                self._clear(result, neutral, start, elements)
            else:
                self._copy_source(outer, (0, self._size), start, elements)
            pitch = k.let("pitch", self._pitch(elements))
            entries = self._span(result // self._outer)
            with self._combining(), k.pieces("entry", entries, self._high) as (entry, runs):
                chosen, given = self._from(outer, entry)
                self._indices.load(chosen, runs)
                k.load(
                    self._tile, self._values, given * self._run + start, elements, rows=runs, apart=self._run
                )
                with k.loop("i", runs) as i:
                    place = k.let("place", result * self._size + self._indices.place(i), U64)
                    self._store(place * self._run + start, at(self._tile, i * pitch), elements)
        return k.kernel()

    def _part_of_runs(self, unit: Expr) -> tuple[Expr, Expr]:
        """Where a segment begins in each run, and its elements."""
        start = self._k.let("start", unit % self._segments * self._segment, U64)
        left = self._k.let("left", self._run - start, U64)
        return start, self._k.let("elements", least(left, self._segment))

    def _copy_source(self, outer: Expr, places: tuple[Index, Index], start: Expr, elements: Expr) -> None:
        k, run = self._k, self._run
        with k.section("CopySource"), k.pieces("place", places, self._high) as (place, runs):
            offset = k.let("offset", (outer * self._size + place) * run + start, U64)
            k.load(self._tile, self._source, offset, elements, rows=runs, apart=run)
            k.store(self._result, offset, self._tile, elements, rows=runs, apart=run)

    def _clear(self, result: Expr, neutral: Buffer, start: Expr, elements: Expr) -> None:
        k, run = self._k, self._run
        with k.section("Clear"), k.pieces("place", (0, self._size), self._high) as (place, runs):
            offset = k.let("offset", (result * self._size + place) * run + start, U64)
            k.store(self._result, offset, neutral, elements, rows=runs, apart=run)

    @contextmanager
    def _combining(self) -> Iterator[None]:
        """What is put comes behind the copy."""
        self._k.fence()
        if self._atomic is None:
            yield
            return
        with self._k.atomic(self._atomic, self._ctype):
            yield

    def _store(self, to: Expr, source: Place, elements: Expr) -> None:
        self._k.store(self._result, to, source, elements)
        if self._problem.ordered:
            self._k.fence()  # the next one may go to the same place


_BUILT = variant_of(build, _why_illegal)


def _rough(problem: Put, schedule: ScatterSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if not schedule.owned and not schedule.held:
        return _BUILT.rough(problem, schedule, sizes, chip)
    reason = _why_illegal(problem, schedule)
    if reason is None and schedule.held and scatter_sorted.ub_bytes(problem, schedule) > chip.ub_bytes:
        return "The buffers do not fit the unified buffer."
    return reason


def _cost_us(problem: Put, schedule: ScatterSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds."""
    if schedule.owned:
        return scatter_owned.cost_us(problem, schedule, sizes, chip)
    return (scatter_sorted if schedule.held else _BUILT).cost_us(problem, schedule, sizes, chip)


FAMILY = SearchingFamily(
    variant=_BUILT,
    name="put",
    ops=categories(SCATTER, SCATTER_PARTS),
    read=on_any_chip(read_put),
    schedule_of=ScatterSchedule.of,
    starts=_starts,
    notes=_notes,
    cell=_cell,
    steps=_steps,
    cost_us=_cost_us,
    rough=_rough,
)
