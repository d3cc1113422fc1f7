"""The kernel of a sampling: bands of planes in the unified buffer, from which elements are gathered.

A core has so many places of an image at a time. It computes once where the elements around them lie in a
plane and what those weigh, piece by piece so that what is only needed then takes little memory. Then it loads
each channel, band by band where it is larger than what fits, and gathers from every band: elements of other
bands are a zero in front of it or behind it. No copy depends on where places lie.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.problems.grid_sample import Sampling
from evokernel_core.compiler.schedule import Range, Scaled, Schedule, Shifted
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, at, read_as
from evokernel_core.targets.ascendc.ir.expr import U32, U64, Constant, Expr, Int, Size, ceil_div, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Enumerator, Kernel, Number
from evokernel_core.targets.ascendc.kernels.grid_sample.places import LANES, ZERO, SampleAxis, Tap
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_NOTE = """\
Samples images at the places of a grid. Of so many places the elements and weights are computed once; each
channel is loaded as a whole or in bands, from which elements are gathered."""
INT = "int32_t"
_PAIR_BYTES = 8
_FAR = Number("FAR", float(1 << 28), "bytes: behind every plane, also when two are added")


def _no_larger(before: SamplingSchedule, after: SamplingSchedule) -> SamplingSchedule:
    """Pieces are no larger than all places."""
    return evolve(after, piece=min(after.piece, after.places))


@frozen
class SamplingSchedule(Schedule):
    """``places`` of an image at a time, for ``channels`` of it one after another, each in bands of
    ``elements``, of which ``buffers`` are under way; ``whole``: all of a plane is one band. ``piece``: places
    whose elements and weights are computed at a time. ``run``, unless 0: rows have zeros around them, so that
    one address says all elements around a place, which are gathered of so many places at a time."""

    places: Annotated[int, Range(LANES, unit=LANES), Scaled("more places", "fewer places", also=_no_larger)]
    channels: Annotated[int, Range(), Scaled("more channels", "fewer channels", least=1)]
    elements: Annotated[int, Range(), Scaled("larger bands", "smaller bands", when=lambda it: not it.whole)]
    whole: bool
    buffers: Annotated[int, BUFFERS, Shifted("one more band under way", "one band less under way")]
    piece: Annotated[
        int,
        Range(LANES, unit=LANES),
        Scaled("more places located at a time", "fewer places located at a time", also=_no_larger),
    ]
    run: Annotated[
        int,
        Range(LANES, unit=LANES, when=attrgetter("run")),
        Scaled(
            "more places gathered at a time",
            "fewer places gathered at a time",
            unit=LANES,
            least=LANES,
            when=attrgetter("run"),
        ),
    ] = 0


class Sampler:
    """Buffers of one number for each place: their names say what they hold."""

    def __init__(self, problem: Sampling, schedule: SamplingSchedule) -> None:
        self.k, self.problem, self.schedule = Builder(_NOTE), problem, schedule
        self.ctype, self.width = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
        k, ctype, width = self.k, self.ctype, self.width
        self.x = k.input("x", parameter(problem.source), ctype, width)
        self.grid = k.input("grid", parameter(problem.grid), "float", 4)
        self.y = k.output("y", "output", ctype, width)
        self.most = Constant("PLACES", schedule.places, "that are sampled at a time")
        self.piece = Constant("PIECE", schedule.piece, "places that are located at a time")
        self.block = BLOCK_BYTES // width
        self._measure_bands()
        self.rows = k.param("rows", Size(problem.rows), ctype=U32)
        self.columns = k.param("columns", Size(problem.columns), ctype=U32)
        for size in (self.rows, self.columns):
            k.require(size, ">=", 1)
        self.corners = Constant("CORNERS", problem.taps**2, "elements around a place")
        self.pairs = Buffer("pairs", "float", 4, self.piece * 2, schedule.buffers)
        self.evens = Buffer("evens", INT, 4, self.piece)
        self.place = Buffer("place", "float", 4, self.piece)
        self._make_buffers()

    def _measure_bands(self) -> None:
        elements = -(-self.schedule.elements // self.block) * self.block
        self.high = Constant("BAND", elements, "elements of a plane")
        self.front = 0 if self.schedule.whole else self.block
        self.behind = Constant("BEHIND", self.front + self.high.value, "where a zero lies behind a band")

    def _make_buffers(self) -> None:
        schedule, ctype, width = self.schedule, self.ctype, self.width
        self.weights = Buffer("weights", "float", 4, self.most * self.corners)
        self.band = Buffer("band", ctype, width, self.behind + self.block, schedule.buffers)
        self.made = Buffer("made", ctype, width, self.most, 2)
        self.addresses = Buffer("addresses", INT, 4, self.most * self.corners)
        self.address = Buffer("address", INT, 4, self.most)
        self.values = Buffer("values", ctype, width, self.most)
        self.widened = self.values if width == 4 else Buffer("widened", "float", 4, self.most)
        # In float32 a plane that is one band adds up where it is stored from.
        in_place = schedule.whole and width == 4
        self.sums = self.made if in_place else Buffer("sums", "float", 4, self.most)

    def build(self) -> Kernel:
        k, problem = self.k, self.problem
        self.area = k.param("area", Size(problem.rows) * Size(problem.columns), "elements of a plane")
        self.bands = self._bands_of_plane()
        images = k.param("images", Size(problem.images))
        channels = k.param("channels", Size(problem.channels))
        count = k.param("count", Size(problem.count), "places of each image")
        for size in (images, channels, count):
            k.require(size, ">=", 1)
        most = Constant("CHANNELS", self.schedule.channels, "of a core at a time")
        share = k.param("share", least(channels, most))
        parts = k.param("parts", ceil_div(channels, share))
        tiles = k.param("tiles", ceil_div(count, self.most))
        with k.section("Prepare", "Where the first number of each pair lies, in bytes."):
            self.k.on("CreateVecIndex", self.evens, Converted(Int(0), INT), count=self.piece)
            self.k.on("Muls", self.evens, self.evens, Converted(Int(_PAIR_BYTES), INT), count=self.piece)
        with k.cores("unit", k.param("units", images * tiles * parts)) as unit:
            # Cores have planes of their own at a time, as long as there are so many.
            first = k.let("first", unit // parts // images * self.most, U64)
            image = k.let("image", unit // parts % images, U64)
            channel = k.let("channel", unit % parts * share, U64)
            left = k.let("left", count - first, U64)
            number = k.let("number", least(left, self.most))
            with k.pieces("from", (0, number), self.piece) as (start, length):
                k.load(self.pairs, self.grid, (image * count + first + start) * 2, length * 2)
                self._locate(start, length)
            planes_left = k.let("channelsLeft", channels - channel, U64)
            planes = k.let("channelCount", least(planes_left, share))
            plane = k.let("plane", image * channels + channel, U64)
            (self._sample_whole if self.schedule.whole else self._sample_bands)(
                plane, planes, first, number, count
            )
        return k.kernel()

    def _bands_of_plane(self) -> Expr:
        if self.schedule.whole:
            self.k.require(self.area, "<=", self.high, "a plane lies in the unified buffer as a whole")
        return self.k.param("bands", ceil_div(self.area, self.high), "of a plane", U32)

    # -- places -----------------------------------------------------------------------------------

    def _locate(self, start: Expr, length: Expr) -> None:
        """The elements around some of the places, and what they weigh."""
        k = self.k
        lanes = k.let("lanes", ceil_div(length, LANES) * LANES)
        with k.section("Locate", "Where the elements around places lie, and what they weigh."):
            rows, columns = self._taps(length, lanes)
            for corner, (row, column) in enumerate((y, x) for y in rows for x in columns):
                if row.weight is not None and column.weight is not None:
                    weight = at(self.weights, self._weights_of(corner) + start)
                    self.k.on("Mul", weight, row.weight, column.weight, count=lanes)
            self._place_elements(start, rows, columns, lanes)

    def _weights_of(self, corner: int) -> Expr:
        """Where the weights of a corner begin."""
        return self.most * corner

    def _taps(self, length: Expr, lanes: Expr) -> tuple[list[Tap], list[Tap]]:
        """Those of places along rows and along columns."""
        evens, problem = read_as("uint32_t", self.evens), self.problem

        def along(name: str, size: Expr, base: int) -> list[Tap]:
            axis = SampleAxis(self.k, name, size, self.piece, lanes, beside=bool(self.schedule.run))
            place = axis.buffer("Number")
            # Masks are made of whole repeats, which must hold numbers.
            self.k.on("Duplicate", place, ZERO, count=lanes)
            self.k.on("Gather", place, self.pairs, evens, base, count=length)
            return axis.taps(place, problem.mode, problem.padding, aligned=problem.aligned)

        return along("row", self.rows, 4), along("column", self.columns, 0)

    def _place_elements(self, start: Expr, rows: list[Tap], columns: list[Tap], lanes: Expr) -> None:
        bits = 8 * BLOCK_BYTES
        mask = Buffer("mask", "uint8_t", 1, ceil_div(self.piece, bits) * BLOCK_BYTES)
        for items, size, bytes_apart in (
            (rows, self.rows, self.columns * self.width),
            (columns, self.columns, Int(self.width)),
        ):
            for tap in items:
                self._measure(tap.place, mask, size, bytes_apart, lanes)
        for corner, (row, column) in enumerate((y, x) for y in rows for x in columns):
            address = at(self.addresses, self.most * corner + start)
            self._address(address, row, column, lanes)

    def _measure(self, place: Buffer, mask: Buffer, size: Expr, bytes_apart: Expr, lanes: Expr) -> None:
        """Numbers of elements along a dimension become the bytes in front of them; far away outside of it."""
        inside = self.place
        self.k.on("Maxs", inside, place, ZERO, count=lanes)
        self.k.on("Mins", inside, inside, Converted(size - 1, "float"), count=lanes)
        self.k.on("Compare", mask, inside, place, Enumerator("CMPMODE::EQ"), count=lanes)
        self.k.on("Muls", inside, inside, Converted(bytes_apart, "float"), count=lanes)
        mode = Enumerator("SELMODE::VSEL_TENSOR_SCALAR_MODE")
        self.k.on("Select", place, mask, inside, _FAR, mode, count=lanes)

    def _address(self, to: Place, row: Tap, column: Tap, lanes: Expr) -> None:
        """The byte of an element in its plane; of a plane that is one band that of the zero where outside."""
        self.k.on("Add", self.place, row.place, column.place, count=lanes)
        if self.schedule.whole:
            last = Converted(self.high * self.width, "float")
            self.k.on("Mins", self.place, self.place, last, count=lanes)
        self.k.cast(to, self.place, "RINT", lanes)

    # -- channels ---------------------------------------------------------------------------------

    def _sample_whole(self, plane: Expr, planes: Expr, first: Expr, number: Expr, count: Expr) -> None:
        """Channels one after another, each in one band."""
        k, corners = self.k, self.problem.taps**2
        with k.loop("c", planes) as c:
            k.load(self.band, self.x, (plane + c) * self.area, self.area)
            with k.section("Sample", "The weighted sums of the elements around places."):
                self._zeros(self.behind)
                for corner in range(corners):
                    self._add(corner, at(self.addresses, self.most * corner), number, is_first=corner == 0)
                self._finish(number)
            k.store(self.y, (plane + c) * count + first, self.made, number)

    def _sample_bands(self, plane: Expr, planes: Expr, first: Expr, number: Expr, count: Expr) -> None:
        """The bands of all channels one after another, so that one is loaded while another is computed."""
        k = self.k
        with k.loop("turn", k.let("turns", planes * self.bands)) as turn:
            c, band = k.let("c", turn // self.bands), k.let("numberOfBand", turn % self.bands)
            begin = k.let("begin", band * self.high)
            height = k.let("size", least(self.area - begin, self.high))
            k.load(at(self.band, self.front), self.x, (plane + c) * self.area + begin, height)
            with k.when(band, "==", 0, share=self.bands):
                self.k.on("Duplicate", self.sums, ZERO, count=number)
            with k.section("Sample", "What a band adds to the weighted sums of the elements around places."):
                self._zeros(Int(0))
                self._zeros(self.behind)
                less = k.let("less", begin * self.width, INT)
                for corner in range(self.problem.taps**2):
                    place = at(self.addresses, self.most * corner)
                    ahead = Converted(Int(self.front * self.width) - less, INT)
                    self.k.on("Adds", self.address, place, ahead, count=number)
                    self.k.on("Maxs", self.address, self.address, Converted(Int(0), INT), count=number)
                    last = Converted(self.behind * self.width, INT)
                    self.k.on("Mins", self.address, self.address, last, count=number)
                    self._add(corner, at(self.address, 0), number, is_first=False)
            with k.when(band, "==", self.bands - 1, share=self.bands):
                self._finish(number)
                k.store(self.y, (plane + c) * count + first, self.made, number)

    def _zeros(self, place: Expr) -> None:
        nothing = Converted(Int(0), self.ctype)
        self.k.call("Duplicate", at(self.band, place), nothing, Int(self.block), repeats=1)

    def _add(self, corner: int, address: Place, number: Expr, *, is_first: bool) -> None:
        """Adds the elements at some addresses, with their weights."""
        self.k.on("Gather", self.values, self.band, read_as("uint32_t", address), 0, count=number)
        if self.width < 4:
            mode = Enumerator("RoundMode::CAST_NONE")
            self.k.on("Cast", self.widened, self.values, mode, count=number)
        if self.problem.taps > 1:
            weight = at(self.weights, self._weights_of(corner))
            self.k.on("Mul" if is_first else "MulAddDst", self.sums, self.widened, weight, count=number)
        elif is_first:
            self.k.on("Adds", self.sums, self.widened, ZERO, count=number)
        else:
            self.k.on("Add", self.sums, self.sums, self.widened, count=number)

    def _finish(self, number: Expr) -> None:
        if self.width < 4:
            self.k.cast(self.made, self.sums, "RINT", number)
        elif self.sums != self.made:
            self.k.on("Adds", self.made, self.sums, ZERO, count=number)
