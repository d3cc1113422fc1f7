"""The kernel of a sampling: bands of rows in the unified buffer, from which elements are gathered.

A core has so many places of an image at a time. It computes once which elements they take and what those
weigh, then loads each channel, band by band where it is larger than what fits, and gathers from every band:
elements of other bands are a zero there. No copy depends on where places lie.
"""

from __future__ import annotations

from attrs import frozen

from evokernel_core.ascendc.ir.builder import Builder, Place, at, read_as
from evokernel_core.ascendc.ir.expr import U32, U64, Constant, Expr, Int, Size, ceil_div, least
from evokernel_core.ascendc.ir.nodes import Buffer, Converted, Enumerator, Kernel, Operand
from evokernel_core.ascendc.kernels.grid_sample.places import LANES, ONE, ZERO, Along, Tap
from evokernel_core.ascendc.kernels.grid_sample.problem import Sampling
from evokernel_core.ascendc.kernels.rendering import parameter
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.isa import BLOCK_BYTES

_NOTE = """\
Samples images at the places of a grid. Of so many places the elements and weights are computed once; each
channel is loaded in bands of rows, from which elements are gathered."""
_BITS = 16
_INT = "int32_t"


@frozen
class SamplingSchedule(Settings):
    """``places`` of an image at a time, for ``channels`` of it one after another, each in at most ``bands``
    bands of whole rows that have at most ``elements``, of which ``buffers`` are under way."""

    places: int
    channels: int
    elements: int
    bands: int
    buffers: int


class _Kernel:
    """Buffers of one number for each place: their names say what they hold."""

    def __init__(self, found: Sampling, schedule: SamplingSchedule) -> None:
        self.k, self.found, self.item = Builder(_NOTE), found, schedule
        self.ctype, self.width = CPP_TYPE[found.dtype], ITEM_SIZE[found.dtype]
        k, ctype, width = self.k, self.ctype, self.width
        self.x = k.input("x", parameter(found.source), ctype, width)
        self.grid = k.input("grid", parameter(found.grid), "float", 4)
        self.y = k.output("y", "output", ctype, width)
        self.most = Constant("PLACES", schedule.places, "that are sampled at a time")
        block = BLOCK_BYTES // width
        area = -(-schedule.elements // block) * block
        self.zero = Constant("NOTHING", area, "where a zero lies, behind the rows of a band")
        self.rows = k.param("rows", Size(found.rows), ctype=U32)
        self.columns = k.param("columns", Size(found.columns), ctype=U32)
        most = Constant("MOST_BANDS", schedule.bands, "of a plane")
        for size in (self.rows, self.columns):
            k.require(size, ">=", 1)
        k.require(self.columns, "<=", self.zero, "a band has whole rows")
        self.high = k.param("bandRows", self.zero // self.columns, "that are loaded at a time", U32)
        self.bands = k.param("bands", ceil_div(self.rows, self.high), "of a plane", U32)
        k.require(self.bands, "<=", most, "the offsets of all bands are known at a time")
        corners = self.corners = Constant("CORNERS", found.taps**2, "elements around a place")
        self.pairs = Buffer("pairs", "float", 4, self.most * 2)
        self.band = Buffer("rowsOfBand", ctype, width, self.zero + block, schedule.buffers)
        self.made = Buffer("made", ctype, width, self.most, 2)
        self.weights = Buffer("weights", "float", 4, self.most * corners)
        self.offsets = Buffer("offsets", _INT, 4, self.most * corners * most)
        self.values = Buffer("values", ctype, width, self.most)
        self.widened = self.values if width == 4 else Buffer("widened", "float", 4, self.most)
        self.sums = Buffer("sums", "float", 4, self.most)
        self.evens = Buffer("evens", _INT, 4, self.most)
        self.place = Buffer("place", "float", 4, self.most)
        self.row = Buffer("row", "float", 4, self.most)

    def do(self, key: str, to: Place, *operands: Operand | Buffer | int, count: Expr) -> None:
        self.k.call(key, to, *operands, count, repeats=ceil_div(count, LANES))

    def build(self) -> Kernel:
        k, found = self.k, self.found
        self.area = k.param("area", Size(found.rows) * Size(found.columns), "elements of a plane")
        images = k.param("images", Size(found.images))
        channels = k.param("channels", Size(found.channels))
        count = k.param("count", Size(found.count), "places of each image")
        for size in (images, channels, count):
            k.require(size, ">=", 1)
        most = Constant("CHANNELS", self.item.channels, "of a core at a time")
        share = k.param("share", least(channels, most))
        parts, tiles = (
            k.param("parts", ceil_div(channels, share)),
            k.param("tiles", ceil_div(count, self.most)),
        )
        with k.section("Prepare", "Where the first number of each pair lies, in bytes."):
            self.do("CreateVecIndex", self.evens, Converted(Int(0), _INT), count=self.most)
            self.do("Muls", self.evens, self.evens, Converted(Int(8), _INT), count=self.most)
        with k.cores("unit", k.param("units", images * tiles * parts)) as unit:
            first = k.let("first", unit // parts % tiles * self.most, U64)
            image = k.let("image", unit // parts // tiles, U64)
            channel = k.let("channel", unit % parts * share, U64)
            left = k.let("left", count - first, U64)
            number = k.let("number", least(left, self.most))
            lanes = k.let("lanes", ceil_div(number, LANES) * LANES)
            k.load(self.pairs, self.grid, (image * count + first) * 2, number * 2)
            rows, columns = self._locate(number, lanes)
            with k.loop("at", self.bands) as band:
                begin, height = self._band(band)
                self._offsets(rows, columns, (band, begin, height), lanes)
            planes_left = k.let("channelsLeft", channels - channel, U64)
            planes = k.let("channelCount", least(planes_left, share))
            plane = k.let("plane", image * channels + channel, U64)
            with k.loop("c", planes) as c:
                self._sample(plane + c, number)
                k.store(self.y, (plane + c) * count + first, self.made, number)
        return k.kernel()

    def _locate(self, number: Expr, lanes: Expr) -> tuple[list[Tap], list[Tap]]:
        """The taps of all places along both dimensions, and the weights of their corners."""
        k, found = self.k, self.found
        evens, taps = read_as("uint32_t", self.evens), []
        with k.section("Locate", "Elements around the places, and what they weigh."):
            for name, size, base in (("row", self.rows, 4), ("column", self.columns, 0)):
                along = Along(k, name, size, self.most, lanes)
                place = along.buffer("Number")
                # Masks are made of whole repeats, which must hold numbers.
                self.do("Duplicate", place, ZERO, count=lanes)
                self.do("Gather", place, self.pairs, evens, base, count=number)
                taps.append(along.taps(place, found.mode, found.padding, aligned=found.aligned))
            for corner, (row, column) in enumerate((y, x) for y in taps[0] for x in taps[1]):
                if row.weight is not None and column.weight is not None:
                    weight = at(self.weights, self.most * corner)
                    self.do("Mul", weight, row.weight, column.weight, count=lanes)
        return taps[0], taps[1]

    def _offsets(
        self, rows: list[Tap], columns: list[Tap], band: tuple[Expr, Expr, Expr], lanes: Expr
    ) -> None:
        """Where the elements lie in a band, in bytes; those that lie elsewhere are zero."""
        k, (number, begin, height) = self.k, band
        masks = [Buffer(name, "uint8_t", 1, self.most // 8) for name in ("inRows", "inColumns")]
        place, row = self.place, self.row
        first, last = Converted(begin, "float"), Converted(begin + height - 1, "float")
        ends = Converted(self.columns - 1, "float")
        with k.section("Address", "Where elements lie in the band, in bytes; those elsewhere are a zero."):
            for i, y in enumerate(rows):
                self._inside(row, masks[0], y.place, (first, last), lanes)
                self.do(
                    "Adds", row, row, Converted(Int(0) - k.let(f"less{i}", begin, _INT), "float"), count=lanes
                )
                self.do("Muls", row, row, Converted(self.columns, "float"), count=lanes)
                for j, x in enumerate(columns):
                    self._inside(place, masks[1], x.place, (ZERO, ends), lanes)
                    self.do("Add", place, place, row, count=lanes)
                    mask, other = (read_as("uint16_t", item) for item in reversed(masks))
                    words = lanes // _BITS
                    k.call("And", mask, mask, other, words, repeats=ceil_div(words, 2 * LANES))
                    corner = number * self.corners + (i * len(columns) + j)
                    self._choose(corner, place, masks[1], lanes)

    def _inside(
        self, to: Buffer, mask: Buffer, place: Buffer, ends: tuple[Operand, Operand], lanes: Expr
    ) -> None:
        """The nearest number between two, and whether that is the number itself."""
        self.do("Maxs", to, place, ends[0], count=lanes)
        self.do("Mins", to, to, ends[1], count=lanes)
        self.do("Compare", mask, to, place, Enumerator("CMPMODE::EQ"), count=lanes)

    def _choose(self, corner: Expr, place: Buffer, mask: Buffer, lanes: Expr) -> None:
        offset = at(self.offsets, corner * self.most)
        mode = Enumerator("SELMODE::VSEL_TENSOR_SCALAR_MODE")
        self.do("Select", place, mask, place, Converted(self.zero, "float"), mode, count=lanes)
        self.do("Cast", offset, place, Enumerator("RoundMode::CAST_RINT"), count=lanes)
        # Whatever a place that is no number has become, it lies in the band.
        self.do("Maxs", offset, offset, Converted(Int(0), _INT), count=lanes)
        self.do("Mins", offset, offset, Converted(self.zero, _INT), count=lanes)
        self.do("Muls", offset, offset, Converted(Int(self.width), _INT), count=lanes)

    def _band(self, band: Expr) -> tuple[Expr, Expr]:
        """The first row of a band, and how many it has."""
        begin = self.k.let("begin", band * self.high)
        return begin, self.k.let("height", least(self.rows - begin, self.high))

    def _sample(self, plane: Expr, number: Expr) -> None:
        """One channel, band by band."""
        k = self.k
        self.do("Duplicate", self.sums, ZERO, count=number)
        with k.loop("band", self.bands) as band:
            begin, height = self._band(band)
            k.load(self.band, self.x, plane * self.area + begin * self.columns, height * self.columns)
            with k.section("Sample", "What a band adds to the weighted sums of the elements around places."):
                self._add_band(band, number)
        if self.width == 4:
            self.do("Muls", self.made, self.sums, ONE, count=number)
        else:
            self.do("Cast", self.made, self.sums, Enumerator("RoundMode::CAST_RINT"), count=number)

    def _add_band(self, band: Expr, number: Expr) -> None:
        k, block = self.k, BLOCK_BYTES // self.width
        nothing = Converted(Int(0), self.ctype)
        k.call("Duplicate", at(self.band, self.zero), nothing, Int(block), repeats=1)
        for corner in range(self.found.taps**2):
            place = (band * self.corners + corner) * self.most
            offsets = read_as("uint32_t", at(self.offsets, place))
            self.do("Gather", self.values, self.band, offsets, 0, count=number)
            if self.width < 4:
                mode = Enumerator("RoundMode::CAST_NONE")
                self.do("Cast", self.widened, self.values, mode, count=number)
            if self.found.taps == 1:
                self.do("Add", self.sums, self.sums, self.widened, count=number)
            else:
                weight = at(self.weights, self.most * corner)
                self.do("MulAddDst", self.sums, self.widened, weight, count=number)


def build(found: Sampling, schedule: SamplingSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return _Kernel(found, schedule).build()
