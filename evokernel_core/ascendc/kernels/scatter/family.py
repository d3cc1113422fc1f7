"""Family put: a copy of a tensor into which runs or elements are written where indices say so.

No two cores write the same elements, and a core writes in the order of the indices: of several values for
one place the last one stays, and sums are added as one core sends them, each time alike. PyTorch raises for
an index outside of its dimension; copies then go to the nearest place, single elements nowhere.

Where one core would have to write nearly everything, the entries are dealt out in parts: each part is put
into neutral elements of its own, and a reduction over the parts follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import evolve, frozen

from evokernel_core.ascendc.ir.builder import Builder, Place, at
from evokernel_core.ascendc.ir.expr import (
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
from evokernel_core.ascendc.ir.nodes import Buffer, Kernel, Number
from evokernel_core.ascendc.kernels.built import Design, family_of
from evokernel_core.ascendc.kernels.indexed import (
    IndexedSchedule,
    Indices,
    index_dtype,
    size_refusal,
    steps_from,
)
from evokernel_core.ascendc.kernels.reading import input_below, only_node
from evokernel_core.ascendc.kernels.rendering import RAW, parameter
from evokernel_core.ascendc.ops import LAST, SCATTER, SCATTER_PARTS, categories
from evokernel_core.ascendc.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef, literal
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.isa import BLOCK_BYTES, LANES

SUMMED = {"float32": "float", "int32": "int32_t", "int64": "int64_t"}
"""What is combined with what is there, and its C++ type; int64 only element by element."""
_ATOMICS = {"add": "Add", "max": "Max", "min": "Min"}
_NEUTRAL = {"add": 0.0, "max": -math.inf, "min": math.inf}
"""What changes nothing, of the kinds that parts have."""
_WORDS = {
    LAST: "replaced by",
    "add": "added to",
    "mul": "multiplied by",
    "max": "compared with larger",
    "min": "compared with smaller",
}
_READER = "a write where indices say so"
_LEAST_SEGMENT_BYTES = 512
"""Shorter pieces of a run are slow to write."""
_MOST_RUN_BYTES = 2**32 - 1
"""Copies count the bytes between runs in 32 bits."""


@frozen
class Put:
    """See SCATTER and SCATTER_PARTS. ``source``, which parts have none of, ``places`` with what they count,
    and ``values`` are inputs of the task."""

    source: str | None
    places: tuple[tuple[str, str, Extent], ...]
    values: str
    dtype: str
    kind: str
    outer: Extent
    count: Extent
    run: Extent
    shared: bool
    wraps: bool
    parts: int = 0

    @property
    def elements(self) -> bool:
        """Whether single elements are put."""
        return self.run.is_one

    @property
    def size(self) -> Extent:
        return product(size for _, _, size in self.places)

    @property
    def copies(self) -> bool:
        """Whether copies into device memory can put the values: those combine only what atomics do."""
        return self.kind == LAST or (self.kind in _ATOMICS and self.dtype != "int64")

    @property
    def waits(self) -> bool:
        """Whether a copy waits for the one before: of two values for one place the last one stays, while
        combined ones all count."""
        return self.kind == LAST


@frozen
class PutSchedule(IndexedSchedule):
    """``picks``: the scalar unit puts single elements into a tile of the unified buffer; otherwise every run
    is a copy. ``owned``: a core copies the whole runs that go to its own range of places, and looks at every
    index for them; otherwise it copies a segment of every run."""

    picks: bool = False
    owned: bool = False


def read_put(task: KernelTask) -> Put:
    """The one put of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = only_node(
        task, {SCATTER.name, SCATTER_PARTS.name}, "The kernel does more than write where indices say so."
    )
    in_parts = node.op == SCATTER_PARTS.name
    source, indices, values, kind, wraps = node.args[:5]
    assert isinstance(indices, tuple) and isinstance(values, ValueRef)
    spec, places = graph.spec(values), graph.spec(indices[0])
    if kind != LAST and spec.dtype not in SUMMED:
        raise PlanError(f"{spec.dtype} combined at indices is not covered; float32, int32 and int64 are.")
    outer, count, run = map(extent, spec.shape)
    if kind != LAST and not run.is_one and (kind == "mul" or spec.dtype == "int64"):
        raise PlanError("Runs of int64, and products of runs, are put element by element.")
    sizes = node.outputs[0].shape[2:-1] if in_parts else node.outputs[0].shape[1:-1]
    return Put(
        source=None if in_parts else _input(task, source),
        places=tuple(
            (_input(task, ref), index_dtype(graph, ref), extent(size))
            for ref, size in zip(indices, sizes, strict=True)
        ),
        values=_input(task, values),
        dtype=spec.dtype,
        kind=str(kind),
        outer=outer,
        count=count,
        run=run,
        shared=extent(places.shape[0]).is_one and not outer.is_one,
        wraps=bool(wraps),
        parts=literal(node.args[5]) if in_parts else 0,
    )


def _input(task: KernelTask, ref: object) -> str:
    assert isinstance(ref, ValueRef)
    return input_below(task.graph, ref, _READER)


def _why_illegal(found: Put, item: PutSchedule) -> str | None:
    if not (found.elements if item.picks else found.copies):
        return "Runs are copied, and what atomics do not combine is put element by element."
    if item.owned and (item.picks or found.parts):
        return "Only whole runs that are put into one copy of the source are dealt out by their places."
    return size_refusal(item, 512)


_STARTS = tuple(
    schedule
    for runs in (256, 1024, 4080)
    for size in (16384, 32768, 65536)
    for schedule in (
        PutSchedule(runs, size),
        PutSchedule(runs, size, picks=True),
        PutSchedule(runs, size, owned=True),
    )
)


def _neighbours(found: Put, here: PutSchedule) -> Iterator[tuple[str, PutSchedule]]:
    for name, item in steps_from(here, "indices a tile"):
        yield name, evolve(here, runs=item.runs, bytes=item.bytes)
    yield "copies" if here.picks else "scalar unit", evolve(here, picks=not here.picks, owned=False)
    yield "segments of runs" if here.owned else "ranges of places", evolve(here, owned=not here.owned)


def _strategy(found: Put, item: PutSchedule, move: str) -> Strategy:
    dealt = (f"Entries in {found.parts} parts, each with a result of its own.",) if found.parts else ()
    notes = (
        f"Tiles of {item.bytes} bytes, {item.runs} indices at a time.",
        "Each core writes a range of places." if item.owned else "Writes in the order of indices.",
        *dealt,
    )
    return Strategy("put", item.settings(), notes, Descriptor(2, 1, 2), move)


def build(found: Put, schedule: PutSchedule) -> Kernel:
    """The kernel of a legal schedule: runs are written by copies, elements by the scalar unit."""
    return (_Elements if schedule.picks else _Runs)(found, schedule).kernel()


class _Putting:
    """What both forms have: the tensors, the sizes and the indices of a tile."""

    what = ""

    def __init__(self, found: Put, item: PutSchedule) -> None:
        self._found, self._item = found, item
        self._k = k = Builder(self._note())
        self._width = ITEM_SIZE[found.dtype]
        self._ctype = RAW[self._width] if found.kind == LAST else SUMMED[found.dtype]
        if found.source is not None:
            self._source = k.input("source", parameter(found.source), self._ctype, self._width)
        self._entries = Constant("TILE_INDICES", item.runs, "that are known at a time")
        self._values = k.input("values", parameter(found.values), self._ctype, self._width)
        self._result = k.output("result", "output", self._ctype, self._width)
        self._outer = k.param("outer", Size(found.outer))
        self._size = k.param("size", Size(found.size), f"{self.what} of each outer iteration")
        self._count = k.param("count", Size(found.count), f"{self.what} that are put into each")
        for size in (self._outer, self._size, self._count):
            k.require(size, ">=", 1)
        self._indices = Indices(k, found.places, self._entries, wraps=found.wraps, clamps=not item.picks)
        parts = Constant("PARTS", found.parts, "of the entries, each with a result of its own")
        self._parts: Index = parts if found.parts else 1
        share = ceil_div(self._count, self._parts)
        self._share = k.param("share", share, "entries of a part") if found.parts else self._count

    def _note(self) -> str:
        what = f"{self.what} are {_WORDS[self._found.kind]} others where indices say so"
        if self._found.parts:
            return f"For each part of the entries, {self.what} that change nothing, of which {what}."
        return f"A copy of the source in which {what}. Later ones come last."

    def _span(self, part: Expr) -> tuple[Index, Index]:
        """The entries of a part."""
        if not self._found.parts:
            return 0, self._count
        first = self._k.let("first", part * self._share, U64)
        return first, self._k.let("last", least(first + self._share, self._count), U64)

    def _neutral(self, target: Buffer, count: Expr) -> None:
        """Fills a buffer with what changes nothing."""
        repeats = ceil_div(count, LANES)
        number = Number("NEUTRAL", _NEUTRAL[self._found.kind], "changes nothing")
        self._k.call("Duplicate", target, number, count, repeats=repeats)

    def _from(self, outer: Expr, entry: Expr) -> tuple[Expr, Expr]:
        """The places of an entry among indices and values."""
        place = self._k.let("from", outer * self._count + entry, U64)
        return (entry if self._found.shared else place), place


class _Elements(_Putting):
    """The scalar unit puts elements into a tile: of a long row, or of some short ones."""

    what = "elements"

    def kernel(self) -> Kernel:
        k, found, width = self._k, self._found, self._width
        most = Constant("TILE_ELEMENTS", self._item.bytes // width, "in the unified buffer at a time")
        # Every tile looks at all indices of its row, so tiles are as large as fit.
        tiles = k.param("tilesPerRow", ceil_div(self._size, most))
        length = k.param("tileElements", ceil_div(self._size, tiles), "of a row", U32)
        high, groups = self._rows_of_tile(most)
        tile = Buffer("tile", self._ctype, width, most + BLOCK_BYTES // width)
        values = Buffer("given", self._ctype, width, self._entries)
        if found.kind != LAST:
            k.put(at(tile, most), 0)
        with k.cores("unit", k.param("units", groups * tiles)) as unit:
            begin = k.let("begin", unit % tiles * length, U64)
            elements = k.let("elements", least(k.let("left", self._size - begin, U64), length))
            group = k.let("group", unit // tiles, U64)
            outer = k.let("outer", group % self._outer if found.parts else group * high, U64)
            rows: Expr = Int(1)
            if not found.parts:
                rows = k.let("rows", least(k.let("rowsLeft", self._outer - outer, U64), high))
            to = k.let("to", (group if found.parts else outer) * self._size + begin, U64)
            if found.parts:
                self._neutral(tile, elements)
            else:
                k.load(tile, self._source, to, rows * elements)
            with k.pieces("entry", self._span(group // self._outer), self._entries) as (entry, count):
                chosen, given = self._from(outer, entry)
                self._indices.load(chosen, count if found.shared else rows * count)
                k.load(values, self._values, given, rows * count)
                with k.section("Put"), k.loop("row", rows) as row, k.loop("i", count) as i:
                    own = row * count + i
                    self._put(self._indices.place(i if found.shared else own) - begin, row, own, tile, values)
            k.store(self._result, to, tile, rows * elements)
        return k.kernel()

    def _rows_of_tile(self, most: Constant) -> tuple[Expr, Expr]:
        """Whole rows of a tile, and how many tiles of rows there are."""
        k = self._k
        if self._found.parts:
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
        if self._found.kind == LAST:
            k.put(at(tile, slot), value)
        else:
            kept = k.get("kept", at(tile, slot), 0, self._ctype)
            k.put(at(tile, slot), _combined(self._found.kind, kept, value))


def _combined(kind: str, kept: Expr, value: Expr) -> Expr:
    """Of the comparing kinds what is no number stays."""
    if kind == "add":
        return kept + value
    if kind == "mul":
        return kept * value
    number = Choice(value, "!=", value, value, kept)
    return Choice(value, ">" if kind == "max" else "<", kept, value, number)


class _Runs(_Putting):
    """Copies put runs. No two cores write the same elements: each has results, ranges of places, or segments
    of all runs, of its own."""

    what = "runs"

    def __init__(self, found: Put, item: PutSchedule) -> None:
        super().__init__(found, item)
        k, width = self._k, self._width
        self._run = k.param("run", Size(found.run), "elements")
        k.require(self._run, ">=", 1)
        k.require(self._run, "<=", _MOST_RUN_BYTES // width, "copies count the bytes between runs in 32 bits")
        self._most = Constant("TILE_ELEMENTS", item.bytes // width)
        self._block = Constant("BLOCK", BLOCK_BYTES // width, "elements")
        self._tile = Buffer("tile", self._ctype, width, self._most, 2)
        self._segment, self._segments = self._segmented()
        rows = least(self._entries, self._most // self._pitch(least(self._segment, self._run)))
        self._high = k.param("runsPerTile", rows, ctype=U32)
        self._atomic = _ATOMICS.get(found.kind)

    def _segmented(self) -> tuple[Param, Param]:
        """Elements of each run that one core writes, and how many such segments there are."""
        k, step = self._k, _LEAST_SEGMENT_BYTES // self._width
        wanted: Index = 1  # runs are whole where places are dealt out
        if not self._item.owned:
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
        return self._owned() if self._item.owned else self._shared()

    def _owned(self) -> Kernel:
        """A core has a range of places: it looks at every index, and writes the runs that go there."""
        k, segments = self._k, self._segments
        units = k.param("ofAllPlaces", self._outer * segments)
        shares = ceil_div(CoreCount(), least(units, CoreCount()))
        owned = k.param("owned", ceil_div(self._size, shares), "places of one range")
        owners = k.param("owners", ceil_div(self._size, owned))
        with k.cores("unit", k.param("units", units * owners)) as unit:
            start, elements = self._part_of_runs(unit)
            low = k.let("lowest", unit // segments % owners * owned, U64)
            high = k.let("highest", least(low + owned, self._size), U64)
            outer = k.let("outer", unit // segments // owners, U64)
            places = k.let("places", high - low, U64)
            self._copy_source(outer, (low, high), start, elements)
            with self._combining(), k.pieces("entry", (0, self._count), self._entries) as (entry, runs):
                chosen, given = self._from(outer, entry)
                self._indices.load(chosen, runs)
                with k.loop("i", runs) as i:
                    place = k.let("place", self._indices.place(i), U64)
                    # What lies in front of the range is a large number.
                    with k.when(k.let("within", place - low, U64), "<", places, share=owners):
                        k.load(self._tile, self._values, (given + i) * self._run + start, elements)
                        self._store((outer * self._size + place) * self._run + start, self._tile, elements)
        return k.kernel()

    def _shared(self) -> Kernel:
        """A core has a segment of every run, or a part of the entries."""
        k, found = self._k, self._found
        neutral = Buffer("neutral", self._ctype, self._width, self._most)
        if found.parts:
            self._neutral(neutral, self._most)
        with k.cores("unit", k.param("units", self._parts * self._outer * self._segments)) as unit:
            start, elements = self._part_of_runs(unit)
            result = k.let("result", unit // self._segments, U64)
            outer = k.let("outer", result % self._outer if found.parts else result, U64)
            if found.parts:
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
        if self._found.waits:
            self._k.fence()  # the next one may go to the same place


FAMILY = family_of(
    Design(
        name="put",
        ops=categories(SCATTER, SCATTER_PARTS),
        read=read_put,
        schedule=PutSchedule,
        schedules=_STARTS,
        neighbours=_neighbours,
        why_illegal=_why_illegal,
        build=build,
        strategy_of=_strategy,
    )
)
