"""Runs whose places are dealt out to cores: one form of put.

A core owns a range of places: the vector unit finds the entries that go there among all of them. Of runs that
replace others every place then takes one: that of its last entry, or of the source where it has none. Runs
that are combined are sent to the range, which is copied or cleared before, or added up in the unified buffer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from evokernel_core.compiler.ops import LAST
from evokernel_core.compiler.problems.scatter import Put
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, as_float, at, read_as
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Constant,
    CoreCount,
    Expr,
    Int,
    Param,
    Size,
    State,
    ceil_div,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Enumerator,
    Fields,
    Kernel,
    Number,
    Slice,
    Tensor,
    Told,
)
from evokernel_core.targets.ascendc.kernels.built import Sizes
from evokernel_core.targets.ascendc.kernels.rendering import RAW, parameter
from evokernel_core.targets.ascendc.kernels.scatter.scatter_settings import (
    ATOMICS,
    LEAST_SEGMENT_BYTES,
    MOST_RUN_BYTES,
    NEUTRAL,
    ScatterSchedule,
    copies,
)
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

MOST_OWNED = 4096
"""Places of a range of which each takes one run."""
_MOST_EXACT = 1 << 24
"""Places are compared as floats."""
_MOST_COUNT = (1 << 31) - 1
_MOST_RUNS = most_of("DataCopyPadIn", "blockCount")
_STEPS = 11
"""Vector instructions on the indices of a chunk."""
_CHUNK = 120.0
"""Cycles in which a chunk waits for its indices and for what the vector unit says of them."""
_ENTRY = 40.0
"""Scalar cycles of an entry that a core takes in: its place, its number, and a copy."""
_PLACE = 20.0
"""Scalar cycles of a place that takes one run."""
_SIGNED = "int64_t"


def why_illegal(problem: Put, schedule: ScatterSchedule) -> str | None:
    """Why a schedule makes no kernel."""
    if schedule.picks or schedule.held or problem.parts > 1 or not copies(problem):
        return "Only whole runs that are put into one result are dealt out by their places."
    if (problem.size.constant or 0) >= _MOST_EXACT:
        return Sentence("Places are dealt out as floats, which are exact below {most}.", most=_MOST_EXACT)
    if schedule.runs % LANES or not LANES <= schedule.runs <= _MOST_RUNS:
        return "Indices are looked at in whole repeats."
    if schedule.sums % 512 or (schedule.sums and problem.kind not in ATOMICS):
        return "Sums are held in whole blocks, and only where runs are combined."
    return None


def build(problem: Put, schedule: ScatterSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    if schedule.sums:
        return _Held(problem, schedule).kernel()
    return (_Chosen if problem.kind == LAST else _Sent)(problem, schedule).kernel()


class _Owned:
    """What all three have: how places are dealt out, and which entries of a chunk go to a range."""

    what = ""

    def __init__(self, problem: Put, schedule: ScatterSchedule) -> None:
        self._problem, self._k = problem, Builder(self.what)
        k, width = self._k, ITEM_SIZE[problem.dtype]
        self._width, self._ctype = width, RAW[width] if problem.kind == LAST else CPP_TYPE[problem.dtype]
        self._chunk = Constant("CHUNK", schedule.runs, "entries that are looked at at a time")
        self._most = Constant("TILE_ELEMENTS", schedule.bytes // width)
        self._block = Constant("BLOCK", BLOCK_BYTES // width, "elements")
        self._room = Constant("SUMS", (schedule.sums or schedule.bytes) // width, "elements of a range")
        if problem.source is not None:
            self._source = k.input("source", parameter(problem.source), self._ctype, width)
        self._indices = [self._index(number) for number in range(len(problem.places))]
        self._values = k.input("values", parameter(problem.values), self._ctype, width)
        self._result = k.output("result", "output", self._ctype, width)
        self._tile = Buffer("tile", self._ctype, width, self._most, 2)
        work = Buffer("work", "float", 4, Constant("WORK", 3 * schedule.runs + schedule.runs // 32))
        own = Buffer("ownEntries", "int32_t", 4, self._chunk * 2)
        self._places, self._near, self._numbers = (at(work, self._chunk * place) for place in range(3))
        self._mask = read_as("uint8_t", at(work, self._chunk * 3))
        self._own_places, self._own_numbers = at(own, 0), at(own, self._chunk)
        self._own = State("own", 0, "entries of a chunk that go to the range")
        self._neutral = Number("NEUTRAL", NEUTRAL[problem.kind], "changes nothing") if problem.parts else None
        self._deal(schedule)

    def _index(self, number: int) -> tuple[Tensor, Buffer]:
        source, dtype, _ = self._problem.places[number]
        ctype, width = CPP_TYPE[dtype], ITEM_SIZE[dtype]
        tensor = self._k.input(f"indices{number}", parameter(source), ctype, width)
        return tensor, Buffer(f"index{number}", ctype, width, self._chunk, 2)

    def _deal(self, schedule: ScatterSchedule) -> None:
        """Cuts runs into segments and places into ranges, of which every core has as many."""
        k, problem, width = self._k, self._problem, self._width
        self._size = k.param("size", Size(problem.size), "runs of each outer iteration", _SIGNED)
        self._counted = [
            k.param(f"size{number}", Size(size), f"that index {number} counts", _SIGNED)
            for number, (_, _, size) in enumerate(problem.places)
        ]
        outer = k.param("outer", Size(problem.outer))
        self._count = k.param("count", Size(problem.count), "runs that are put into each")
        self._run = k.param("run", Size(problem.run), "elements")
        for size in (outer, self._size, self._count, self._run):
            k.require(size, ">=", 1)
        k.require(self._run, "<=", MOST_RUN_BYTES // width, "copies count the bytes between runs in 32 bits")
        k.require(self._size, "<", _MOST_EXACT, "places are compared as floats")
        k.require(self._count, "<=", _MOST_COUNT)
        step = LEAST_SEGMENT_BYTES // width
        fitting = least(self._most, self._room) if schedule.sums else self._most
        segment = least(round_up(self._run, step), fitting // step * step)
        self._segment = k.param("segmentElements", segment, "of each run that a core has at a time", U32)
        self._segments = k.param("segments", ceil_div(self._run, self._segment))
        widest = k.param("widest", round_up(least(self._segment, self._run), self._block))
        self._high = k.param("runsPerTile", least(_MOST_RUNS, self._most // widest), ctype=U32)
        units = k.param("rangeless", outer * self._segments, "segments of outer iterations")
        most = least(_MOST_RUNS, self._room // widest) if schedule.sums else Int(MOST_OWNED)
        ranges = k.param("leastRanges", ceil_div(self._size, most))
        rounds = k.param("rounds", ceil_div(units * ranges, CoreCount()))
        wanted = k.param("wanted", ceil_div(rounds * CoreCount(), units))
        self._range = k.param("rangePlaces", ceil_div(self._size, least(wanted, self._size)), "of one range")
        self._ranges = k.param("ranges", ceil_div(self._size, self._range))
        self._units: Param = k.param("units", units * self._ranges)

    def kernel(self) -> Kernel:
        k, problem = self._k, self._problem
        self._k.on("CreateVecIndex", self._numbers, as_float(0), count=self._chunk)
        self.prepare()
        with k.cores("unit", self._units) as unit:
            begin = k.let("begin", unit % self._segments * self._segment, U64)
            left = k.let("left", self._run - begin, U64)
            self._elements = k.let("elements", least(left, self._segment))
            self._pitch = k.let("pitch", round_up(self._elements, self._block))
            outer = k.let("outer", unit // self._segments // self._ranges, U64)
            self._lowest = k.let("lowest", unit // self._segments % self._ranges * self._range, _SIGNED)
            places = k.let("placesLeft", self._size - self._lowest, U64)
            self._owned = k.let("owned", least(places, self._range))
            self._at = k.let("ownRuns", (outer * self._size + self._lowest) * self._run + begin, U64)
            self._from = k.let("givenRuns", outer * self._count * self._run + begin, U64)
            self.begin()
            with self.combining(), k.pieces("entry", (0, self._count), self._chunk) as (entry, count):
                first = entry if problem.shared else k.let("fromIndex", outer * self._count + entry, U64)
                for tensor, buffer in self._indices:
                    k.load(buffer, tensor, first, count)
                self._find_places(count)
                self._find_own(count)
                k.get("anyOwn", self._own_places, 0, "int32_t")  # waits until all of them are known
                self.take_in(entry)
            self.end()
        return k.kernel()

    def prepare(self) -> None:
        """What all ranges share."""

    def begin(self) -> None:
        """What a range begins with."""

    @contextmanager
    def combining(self) -> Iterator[None]:
        """Around the entries of a range."""
        yield

    def take_in(self, entry: Expr) -> None:
        """Takes in those entries of the chunk from ``entry`` on that go to the range."""

    def end(self) -> None:
        """What becomes of a range when all entries were looked at."""

    # -- on the vector unit ---------------------------------------------------------------------

    def _find_places(self, count: Expr) -> None:
        """The place of each entry. An index outside of its dimension means the nearest element, so that no
        other memory is written."""
        k = self._k
        with k.when(count % LANES, "!=", 0):  # whole repeats are compared: no place for what is behind
            self._k.on("Duplicate", self._places, as_float(-1), count=self._chunk)
        for number, ((_, given), size) in enumerate(zip(self._indices, self._counted, strict=True)):
            index = self._near if number else self._places
            mode = "RINT" if given.item_bytes == 8 else "NONE"
            self._k.on("Cast", index, given, Enumerator(f"RoundMode::CAST_{mode}"), count=count)
            if self._problem.wraps:
                self._wrap(index, size, count)
            self._k.on("Maxs", index, index, as_float(0), count=count)
            self._k.on("Mins", index, index, as_float(size - 1), count=count)
            if number:
                self._k.on("Muls", self._places, self._places, as_float(size), count=count)
                self._k.on("Add", self._places, self._places, index, count=count)

    def _wrap(self, index: Slice, size: Expr, count: Expr) -> None:
        """Negative ones count from the end."""
        behind = read_as("float", self._own_places)
        self._k.on("Mins", behind, index, as_float(0), count=count)
        self._k.on("Maxs", behind, behind, as_float(-1), count=count)  # -1 of negative ones, which are whole
        self._k.on("Muls", behind, behind, as_float(Int(0) - size), count=count)
        self._k.on("Add", index, index, behind, count=count)

    def _find_own(self, count: Expr) -> None:
        """How many entries of a chunk go to this core's range; their places in it and their numbers in
        order."""
        lanes = self._k.let("lanes", round_up(count, LANES))
        self._k.on("Adds", self._places, self._places, as_float(Int(0) - self._lowest), count=lanes)
        self._k.on("Maxs", self._near, self._places, as_float(0), count=lanes)
        self._k.on("Mins", self._near, self._near, as_float(self._owned - 1), count=lanes)
        self._k.on("Compare", self._mask, self._places, self._near, Enumerator("CMPMODE::EQ"), count=lanes)
        for source, to in ((self._places, self._own_places), (self._numbers, self._own_numbers)):
            self._keep_own(source, count, lanes)
            self._k.cast(to, self._near, "RINT", lanes)

    def _keep_own(self, source: Slice, count: Expr, lanes: Expr) -> None:
        """Of the entries of a chunk those of the range, one behind the other."""
        strides = {"src0BlockStride": 1, "repeatTimes": 1, "src0RepeatStride": 0, "src1RepeatStride": 0}
        shape = Fields("GatherMaskParams", {key: Int(value) for key, value in strides.items()}, is_short=True)
        likely = ceil_div(count * self._owned, self._size)
        told, mask = Told(self._own, likely), read_as("uint32_t", self._mask)
        operands = self._near, source, mask, Enumerator("true"), lanes, shape, told
        self._k.call("GatherMask", *operands, repeats=ceil_div(lanes, LANES))

    # -- runs -----------------------------------------------------------------------------------

    def _place_of(self, number: Expr) -> Expr:
        """The place in the range of an own entry."""
        return self._k.get("place", self._own_places.behind(number), 0, "int32_t")

    def _load_own(self, entry: Expr, start: Expr, runs: Expr) -> None:
        """The runs of own entries side by side."""
        k = self._k
        with k.loop("number", runs, one_load=True) as number:
            own = k.get("ownNumber", self._own_numbers.behind(start + number), number, "int32_t")
            self._load(number, self._values, self._from + (entry + own) * self._run, Int(1))

    def _load(self, row: Expr, tensor: Tensor, offset: Expr, runs: Expr) -> None:
        """Segments of neighbouring runs."""
        place = at(self._tile, row * self._pitch)
        self._k.load(place, tensor, offset, self._elements, rows=runs, apart=self._run)

    def _store_range(self, first: Expr, runs: Expr, source: Buffer) -> None:
        """Segments of runs of the range, from one of its places on."""
        offset = self._at + first * self._run
        self._k.store(self._result, offset, source, self._elements, rows=runs, apart=self._run)


class _Chosen(_Owned):
    """Every place takes one run."""

    what = """A copy of the source in which runs are replaced by others where indices say so.
A core owns a range of places: the vector unit finds the entries that go there among all of them.
Every place then takes one run: that of its last entry, or of the source where it has none."""

    def __init__(self, problem: Put, schedule: ScatterSchedule) -> None:
        super().__init__(problem, schedule)
        most = Constant("MOST_OWNED", MOST_OWNED, "places of a range")
        self._chosen = Buffer("chosen", "int32_t", 4, most)
        self._kept = State("kept", 0, "places in front of one that have no entry")

    def begin(self) -> None:
        none = Converted(Int(-1), "int32_t")
        self._k.on("Duplicate", self._chosen, none, count=self._chosen.elements)

    def take_in(self, entry: Expr) -> None:
        k = self._k
        with k.loop("number", self._own) as number:
            place = self._place_of(number)
            own = k.get("ownNumber", self._own_numbers.behind(number), number, "int32_t")
            k.put(at(self._chosen, place), k.let("chosenEntry", entry + own, "int32_t"))

    def end(self) -> None:
        """The runs of the range in order; neighbours that stay as they are come in one copy."""
        k = self._k
        often = (self._count + self._size // 2) // self._size + 1
        with k.pieces("first", (0, self._owned), self._high) as (first, runs):
            k.assign(self._kept, 0)
            with k.loop("row", runs) as row:
                chosen = k.get("chosenOne", at(self._chosen, first + row), -1, "int32_t")
                with k.when(chosen, "<", 0, share=often):
                    k.assign(self._kept, self._kept + 1)
                with k.otherwise():
                    self._load_kept(first, row)
                    k.assign(self._kept, 0)
                    self._load(row, self._values, self._from + chosen * self._run, Int(1))
            self._load_kept(first, runs)
            self._store_range(first, runs, self._tile)

    def _load_kept(self, first: Expr, end: Expr) -> None:
        """Those of the source in front of a run."""
        k = self._k
        with k.when(self._kept, "!=", 0):
            row = k.let("firstKept", end - self._kept)
            self._load(row, self._source, self._at + (first + row) * self._run, self._kept)


class _Sent(_Owned):
    """Entries are sent to a range that is there already, in their order."""

    what = """Runs that are combined with others where indices say so.
A core owns a range of places: the vector unit finds the entries that go there among all of them.
It copies or clears the range, to which those entries are then sent, in their order."""

    def __init__(self, problem: Put, schedule: ScatterSchedule) -> None:
        super().__init__(problem, schedule)
        self._clear = Buffer("clear", self._ctype, self._width, self._most)

    def prepare(self) -> None:
        if self._neutral is not None:
            self._k.on("Duplicate", self._clear, self._neutral, count=self._most)

    def begin(self) -> None:
        k = self._k
        with k.pieces("first", (0, self._owned), self._high) as (first, runs):
            if self._neutral is not None:
                self._store_range(first, runs, self._clear)
            else:
                self._load(Int(0), self._source, self._at + first * self._run, runs)
                self._store_range(first, runs, self._tile)
        k.fence()  # what is sent comes behind

    @contextmanager
    def combining(self) -> Iterator[None]:
        with self._k.atomic(ATOMICS[self._problem.kind], self._ctype):
            yield

    def take_in(self, entry: Expr) -> None:
        k = self._k
        with k.pieces("start", (0, self._own), self._high) as (start, runs):
            self._load_own(entry, start, runs)
            with k.loop("sent", runs) as row:
                to = self._at + self._place_of(start + row) * self._run
                k.store(self._result, to, at(self._tile, row * self._pitch), self._elements)


class _Held(_Owned):
    """A range stays in the unified buffer while entries are added to it."""

    what = """Runs that are combined with others where indices say so.
A core owns a range of places: the vector unit finds the entries that go there among all of them.
The runs of the range stay in the unified buffer, where those of the entries are combined with them."""

    def __init__(self, problem: Put, schedule: ScatterSchedule) -> None:
        super().__init__(problem, schedule)
        self._sums = Buffer("sums", self._ctype, self._width, self._room)

    def begin(self) -> None:
        k = self._k
        if self._neutral is not None:
            self._k.on("Duplicate", self._sums, self._neutral, count=self._owned * self._pitch)
            return
        with k.pieces("first", (0, self._owned), self._high) as (first, runs):
            self._load(Int(0), self._source, self._at + first * self._run, runs)
            one, sums = Converted(Int(1), self._ctype), at(self._sums, first * self._pitch)
            self._k.on("Muls", sums, self._tile, one, count=runs * self._pitch)

    def take_in(self, entry: Expr) -> None:
        k, key = self._k, ATOMICS[self._problem.kind]
        with k.pieces("start", (0, self._own), self._high) as (start, runs):
            self._load_own(entry, start, runs)
            with k.loop("added", runs) as row:
                sums = at(self._sums, self._place_of(start + row) * self._pitch)
                self._k.on(key, sums, sums, at(self._tile, row * self._pitch), count=self._elements)

    def end(self) -> None:
        self._store_range(Int(0), self._owned, self._sums)


def cost_us(problem: Put, schedule: ScatterSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the slower of memory and the busiest core."""
    outer, size, count, run = (
        getattr(problem, key).evaluate(sizes) for key in ("outer", "size", "count", "run")
    )
    width = ITEM_SIZE[problem.dtype]
    fitting = min(schedule.bytes, schedule.sums or schedule.bytes) // width
    step = 512 // width
    segment = min(math.ceil(run / step) * step, fitting // step * step)
    segments = math.ceil(run / segment)
    widest = math.ceil(min(segment, run) * width / BLOCK_BYTES) * BLOCK_BYTES
    most = schedule.sums // widest if schedule.sums else MOST_OWNED
    units = outer * segments * math.ceil(size / most)
    rounds = math.ceil(units / chip.aiv)
    cores = min(max(units, outer * segments * min(size, chip.aiv)), chip.aiv)
    start = chip.vector.startup_cycles
    chunks = math.ceil(count / schedule.runs)
    looked = rounds * (chunks * (_STEPS * start + _CHUNK) + count * _STEPS / LANES)
    combined = problem.kind in ATOMICS
    copied = 0 if problem.parts else size
    runs = outer * segments * (copied + count * combined)
    loads = runs / cores
    scalar = outer * segments * (count * _ENTRY + (0 if combined else size * _PLACE)) / cores
    copies = loads * max(widest / chip.mte.load_bytes_per_cycle, chip.mte.min_copy_cycles)
    stored = (
        outer
        * segments
        * size
        / cores
        * max(widest / chip.mte.store_bytes_per_cycle, chip.mte.min_burst_cycles)
    )
    read = (copied + count * combined) * outer * run * width
    written = size * outer * run * width  # what is sent more often stays in L2
    sent = count * outer * run * width * (combined and not schedule.sums)
    touched = read + written
    back = max(0, touched - chip.l2_bytes) * written / touched * chip.gm.write_back_cost
    moved_us = max((read + back) / chip.gm.memory_bytes_us, (touched + sent) / chip.gm.l2_bytes_us)
    moved_cycles = moved_us * chip.mhz
    if combined:  # the runs of a chunk are fetched when it is known which they are
        own = min(count / chunks * size / cores, schedule.bytes / widest) if schedule.sums else 1
        looked += (
            rounds * chunks * (chip.mte.load_latency_cycles + own * widest / chip.mte.load_bytes_per_cycle)
        )
    busy = looked + max(scalar, copies, stored, moved_cycles) + rounds * 4 * chip.mte.load_latency_cycles
    return float(busy / chip.mhz + chip.launch_of(cores))


def starts(problem: Put) -> Iterator[ScatterSchedule]:
    """Schedules to choose the first one from."""
    for runs in (512, 1024, 2048):
        for size in (8192, 16384, 32768):
            for sums in (0, 65536, 98304) if problem.kind in ATOMICS else (0,):
                yield ScatterSchedule(runs, size, owned=True, sums=sums)
