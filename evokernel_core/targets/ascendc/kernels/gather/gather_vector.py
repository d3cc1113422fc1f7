"""Elements, or short runs, picked from rows in the unified buffer by the vector unit: one form of take."""

from __future__ import annotations

from evokernel_core.compiler.problems.gather import Take
from evokernel_core.compiler.shapes.sizes import Extent
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, read_as
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    CoreCount,
    Expr,
    Index,
    Int,
    Size,
    ceil_div,
    expr,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Enumerator,
    Kernel,
    Number,
    Ratio,
)
from evokernel_core.targets.ascendc.kernels.gather.gather_settings import GatherSchedule
from evokernel_core.targets.ascendc.kernels.rendering import RAW, parameter
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

MOST_RUN = 16
"""Elements that move with one index; longer runs are copied as they are."""
_NOTE = "Picks elements of rows in the unified buffer with the vector unit; longer rows come in pieces."
_MOST_PLACE = (1 << 31) - 1
_HALF = Number("HALF", 0.5, "keeps what is exact away from rounding")


def why_illegal(problem: Take) -> str | None:
    """Why a schedule makes no kernel."""
    if _run_of(problem) is None:
        return "The vector unit picks elements and short runs of 2, 4 or 8 bytes by one index each."
    return None


def build(problem: Take, schedule: GatherSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return _Picking(problem, schedule).kernel()


def _width_of(problem: Take) -> int:
    """Bytes of what is picked at a time: elements of 8 bytes are picked as two halves."""
    return min(problem.width, 4)


def _run_of(problem: Take) -> int | None:
    """Elements of that width that move with one index, None where this form does not cover them."""
    run = problem.run.constant
    if run is None or problem.width < 2 or len(problem.indices) != 1 or not problem.lanes.is_one:
        return None
    elements = run * problem.width // _width_of(problem)
    return elements if 1 <= elements <= MOST_RUN else None


class _Picking:
    """Places are bytes from where the rows that are in the unified buffer begin."""

    def __init__(self, problem: Take, schedule: GatherSchedule) -> None:
        self._problem, self._k = problem, Builder(_NOTE)
        k, width = self._k, _width_of(problem)
        address, dtype, size = problem.indices[0]
        self._width, self._type = width, RAW[width]
        self._chunk = Constant("CHUNK", schedule.runs, "elements that are picked at a time")
        self._fitting = Constant(
            "PIECE", schedule.bytes // width, "elements of rows that they are picked from"
        )
        self._run = Constant("RUN", _run_of(problem) or 1, "elements that move with one index")
        self._source = k.input("source", parameter(problem.source), self._type, width)
        self._indices = k.input("indices", parameter(address), CPP_TYPE[dtype], ITEM_SIZE[dtype])
        self._result = k.output("result", "output", self._type, width)
        self._rows = Buffer("rows", self._type, width, self._fitting, 2)
        self._given = Buffer("given", CPP_TYPE[dtype], ITEM_SIZE[dtype], self._chunk, 2)
        self._picked = Buffer("picked", self._type, width, self._chunk, 2)
        self._row_starts, self._entry_of, self._within = map(self._ints, ("rowStarts", "entryOf", "within"))
        self._places = Buffer("places", "int32_t", 4, self._chunk, cleared=True)
        self._tile(size)

    def _ints(self, name: str) -> Buffer:
        return Buffer(name, "int32_t", 4, self._chunk)

    def _tile(self, size: Extent) -> None:
        """How rows and indices are cut into chunks, and these dealt to cores."""
        k, problem, cores = self._k, self._problem, CoreCount()
        self._outer = k.param("outer", Size(problem.outer), "rows")
        self._size = k.param("size", Size(size), "runs of a row")
        self._count = k.param("count", Size(problem.count), "indices of a row")
        for choice in (self._outer, self._size, self._count):
            k.require(choice, ">=", 1)
        self._row = k.param("rowElements", self._size * self._run)
        k.require(self._row, "<=", _MOST_PLACE // self._width, "places are bytes in 32 bits")
        self._pieces = k.param("pieces", ceil_div(self._row, self._fitting), "of a row", U32)
        self._high: Expr = Int(1)  # of rows that have the same indices one at a time
        if not problem.shared:
            # Short rows several at a time, as long as every core has some.
            fitting = k.param(
                "fittingRows", least(self._fitting // self._row, self._chunk // (self._count * self._run))
            )
            share = k.param("rowsShare", ceil_div(self._outer, cores))
            most = k.param("mostRows", least(fitting, share))
            self._high = k.param("groupRows", greatest(most, 1), "in the unified buffer together", U32)
        groups = k.param("groups", ceil_div(self._outer, self._high))
        share = k.param("share", ceil_div(self._count, ceil_div(cores, least(groups, cores))))
        entries = least(share, self._chunk // self._run)
        if not problem.shared:
            entries = Choice(self._high, ">", Int(1), self._count, entries)
        self._entries = k.param("chunkEntries", entries, "of each row", U32)
        self._chunks = k.param("chunks", ceil_div(self._count, self._entries), "of a group")
        self._units = k.param("units", groups * self._chunks)
        self._own = k.param("unitsPerCore", ceil_div(self._units, cores))

    def kernel(self) -> Kernel:
        """Rows stay in the unified buffer while a core goes on with their indices; pieces of rows come
        anew for each chunk of indices."""
        k = self._k
        self._patterns()
        with k.cores("core", k.param("cores", ceil_div(self._units, self._own)), even=True) as core:
            begin = k.let("begin", core * self._own, U64)
            end = k.let("end", least(self._units, begin + self._own), U64)
            with k.when(self._pieces, "==", 1):
                self._pick_from_rows(begin, end)
            with k.otherwise():
                self._pick_from_pieces(begin, end)
        return k.kernel()

    def _pick_from_rows(self, begin: Expr, end: Expr) -> None:
        """The places of a chunk are found before the rows that it needs have come, and those of the next
        while a chunk is stored."""
        k = self._k
        top = k.let("top", begin // self._chunks, U64)
        with k.loop("turn", ceil_div(end, self._chunks) - top, U64) as turn:
            group = k.let("group", top + turn, U64)
            row, rows = self._rows_of(group)
            above = k.let("above", group * self._chunks, U64)
            first = k.let("first", greatest(begin, above) - above, U64)
            number = k.let("number", least(end - above, self._chunks) - first, U64)
            self._find_places(row, *self._entries_of(first, rows, "first"))
            k.load(self._rows, self._source, row * self._row, rows * self._row)
            with k.loop("chunk", number, U64) as chunk:
                start, count = self._entries_of(first + chunk, rows, "own")
                self._gather(self._picked, self._places, count * self._run)
                self._store(row, start, count)
                with k.when(chunk + 1, "<", number):
                    self._find_places(row, *self._entries_of(first + chunk + 1, rows, "next"))

    def _pick_from_pieces(self, begin: Expr, end: Expr) -> None:
        k = self._k
        with k.loop("unit", end - begin, U64) as turn:
            unit = k.let("number", begin + turn, U64)
            row = k.let("row", unit // self._chunks, U64)
            start, count = self._entries_of(unit % self._chunks, Int(1), "own")
            self._find_places(row, start, count)
            with k.loop("piece", self._pieces) as piece:
                before = k.let("before", piece * self._fitting)
                length = k.let("length", least(k.let("rowLeft", self._row - before), self._fitting))
                k.load(self._rows, self._source, row * self._row + before, length)
                self._pick(piece, before, length, count * self._run)
            self._store(row, start, count)

    def _rows_of(self, group: Expr) -> tuple[Expr, Expr]:
        """The first row of a group, and how many it has."""
        if self._high == Int(1):
            return group, Int(1)
        row = self._k.let("row", group * self._high, U64)
        left = self._k.let("rowsLeft", self._outer - row, U64)
        return row, self._k.let("rowCount", least(left, self._high))

    def _entries_of(self, chunk: Expr, rows: Expr, name: str) -> tuple[Expr, Expr]:
        """The first index of a chunk in its rows, and how many it has of all rows together."""
        start = self._k.let(f"{name}Start", chunk * self._entries, U64)
        left = self._k.let(f"{name}Left", self._count - start, U64)
        return start, self._k.let(f"{name}Entries", rows * least(left, self._entries))

    def _store(self, row: Expr, start: Expr, count: Expr) -> None:
        place = (row * self._count + start) * self._run
        self._k.store(self._result, place, self._picked, count * self._run)

    # -- on the vector unit ---------------------------------------------------------------------

    def _patterns(self) -> None:
        """Where the rows of a group begin, entry by entry, and which entry each element is of."""
        k, chunk = self._k, self._chunk
        if self._high != Int(1):
            with k.when(self._high, ">", 1):
                self._quotients(self._row_starts, self._count)
                size = _int(self._row * self._width)
                self._k.on("Muls", self._row_starts, self._row_starts, size, count=chunk)
        if self._run.value > 1:
            self._quotients(self._entry_of, self._run)
            first = self._ints("firstOfEntry")
            self._k.on("Muls", first, self._entry_of, _int(self._run), count=chunk)
            self._k.on("CreateVecIndex", self._within, _int(0), count=chunk)
            self._k.on("Sub", self._within, self._within, first, count=chunk)
            self._k.on("Muls", self._within, self._within, _int(self._width), count=chunk)
            self._k.on("Muls", self._entry_of, self._entry_of, _int(4), count=chunk)

    def _quotients(self, to: Buffer, divisor: Expr) -> None:
        """0, 1, .. divided by a whole number, rounded down."""
        ramp = Buffer("ramp", "float", 4, self._chunk)
        self._k.on("CreateVecIndex", ramp, _HALF, count=self._chunk)
        self._k.on("Muls", ramp, ramp, Ratio(Int(1), divisor), count=self._chunk)
        self._k.cast(to, ramp, "FLOOR", self._chunk)

    def _find_places(self, row: Expr, start: Expr, count: Expr) -> None:
        """Of the elements of a chunk's entries. An index outside of its dimension means the nearest."""
        k, given = self._k, self._given
        index = self._places if self._run.value == 1 else self._ints("index")
        k.load(given, self._indices, start if self._problem.shared else row * self._count + start, count)
        if given.item_bytes == 8:
            self._k.cast(index, given, "NONE", count)
        else:
            self._k.on("Adds", index, given, _int(0), count=count)
        if self._problem.wraps:
            negative = self._ints("negative")
            self._k.on(
                "ShiftRight", negative, index, _int(31), count=count
            )  # -1 where it counts from the end
            self._k.on("Muls", negative, negative, _int(Int(0) - self._size), count=count)
            self._k.on("Add", index, index, negative, count=count)
        self._k.on("Maxs", index, index, _int(0), count=count)
        self._k.on("Mins", index, index, _int(self._size - 1), count=count)
        self._k.on("Muls", index, index, _int(self._run * self._width), count=count)
        if self._high != Int(1):
            with k.when(self._high, ">", 1):
                self._k.on("Add", index, index, self._row_starts, count=count)
        if self._run.value > 1:
            elements = count * self._run
            self._gather(self._places, self._entry_of, elements, index)
            self._k.on("Add", self._places, self._places, self._within, count=elements)

    def _gather(self, to: Buffer, places: Buffer, count: Expr, source: Buffer | None = None) -> None:
        self._k.on("Gather", to, source or self._rows, read_as("uint32_t", places), Int(0), count=count)

    def _pick(self, piece: Expr, before: Expr, length: Expr, count: Expr) -> None:
        """What another piece has is taken from the nearest end of this one, and replaced when it comes."""
        k, width = self._k, self._width
        moved, near = self._ints("moved"), self._ints("near")
        here = Buffer("isHere", "uint8_t", 1, Constant("CHUNK_BITS", self._chunk.value // 8, "bytes of bits"))
        lanes = k.let("lanes", round_up(count, LANES))
        self._k.on("Adds", moved, self._places, _int(Int(0) - before * width), count=lanes)
        self._k.on("Maxs", near, moved, _int(0), count=lanes)
        self._k.on("Mins", near, near, _int((length - 1) * width), count=lanes)
        with k.when(piece, "==", 0):
            self._gather(self._picked, near, count)
        with k.otherwise():
            problem = Buffer("found", self._type, width, self._chunk)
            mode = Enumerator("CMPMODE::EQ"), Enumerator("SELMODE::VSEL_TENSOR_TENSOR_MODE")
            self._k.on("Compare", here, near, moved, mode[0], count=lanes)
            self._gather(problem, near, count)
            to, other = (
                read_as("half" if width == 2 else "float", choice) for choice in (self._picked, problem)
            )
            self._k.on("Select", to, here, other, to, mode[1], count=count)


def _int(value: Index) -> Converted:
    return Converted(expr(value), "int32_t")
