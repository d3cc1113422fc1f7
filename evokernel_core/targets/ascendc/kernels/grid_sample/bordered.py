"""Samplings of two rows and two columns, by one address for each place.

Zeros surround every row in the unified buffer, so that all four elements are at the same distances from the
first one, wherever it lies. Places that a band does not have take the zeros in front of its first or its last
row. That takes less memory for each place, so a core loads planes less often.
"""

from __future__ import annotations

from evokernel_core.compiler.problems.grid_sample import Sampling
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Place, at, read_as
from evokernel_core.targets.ascendc.ir.expr import Constant, Expr, Int, ceil_div, greatest, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted
from evokernel_core.targets.ascendc.kernels.grid_sample.grid_sample_kernel import INT, Sampler
from evokernel_core.targets.ascendc.kernels.grid_sample.places import ONE, ZERO, Tap

_MOST_STEP = 255
"""Blocks that a repeat steps over."""
_MOST_REPEATS = 255
_TURN = 128
"""float32 elements that lie in all bank groups once."""
_GROUP = 8
"""Blocks of a repeat."""
_BESIDE = -2
"""A column, or row, whose two elements are zeros; those behind the last one are so as well."""


def pitch_of(columns: int, block: int) -> int:
    """Elements from row to row of a band: zeros, a row, and zeros up to a whole block."""
    return block + -(-columns // block) * block


def rows_of(problem: Sampling, elements: int, block: int) -> int:
    """First rows of places that a band of so many elements has, which holds a row more, and zeros behind;
    less than 1 where it is too small."""
    assert problem.columns.constant is not None
    return (elements - block) // pitch_of(problem.columns.constant, block) - 1


def elements_of(columns: int, rows: int, block: int) -> int:
    """The least elements of a band that has so many first rows of places."""
    return (rows + 1) * pitch_of(columns, block) + block


def why_unbordered(problem: Sampling, elements: int, block: int, *, whole: bool) -> str | None:
    """Why rows cannot have zeros around them."""
    if problem.mode != "bilinear":
        return "Two rows and two columns are sampled by one address."
    rows = problem.rows.constant
    if rows is None or problem.columns.constant is None:
        return "Rows have zeros around them where their sizes are known beforehand."
    high = rows_of(problem, elements, block)
    if high < 1 or (whole and high < rows + 1):
        return "A band has all rows of a plane, or the two of a place."
    return None


class Bordered(Sampler):
    """Row number r of a band is that of the plane behind its first one, ``r - 1`` of the first band: rows of
    zeros lie in front of a plane and behind it. ``high``: rows of the first elements of a band's places."""

    def _measure_bands(self) -> None:
        rows, columns = self.problem.rows.constant, self.problem.columns.constant
        assert rows is not None and columns is not None
        self.lead = self.block
        self.pitch = Constant("PITCH", pitch_of(columns, self.block), "elements from row to row of a band")
        high = min(rows_of(self.problem, self.schedule.elements, self.block), rows + 1)
        self.high = Constant("HIGH", high, "rows of first elements that a band has")
        self.number_of_bands = -(-(rows + 1) // high)
        self.run = Constant("RUN", self.schedule.run, "places that are gathered at a time")

    def _bands_of_plane(self) -> Expr:
        return Int(self.number_of_bands)

    def _make_buffers(self) -> None:
        ctype, width = self.ctype, self.width
        # Elements lie half a turn of the bank groups from their weights, which are read with them.
        apart = -(-self.schedule.places // _TURN) * _TURN
        self.apart = Constant("APART", apart, "from the weights of a corner to those of the next")
        self.weights = Buffer("weights", "float", 4, self.apart * 4 + (_TURN // 2 + self.schedule.run))
        self.elements = at(self.weights, self.apart * 4 + _TURN // 2)
        self.gathered = self.elements if width == 4 else at(Buffer("gathered", ctype, width, self.run), 0)
        elements = (self.high + 1) * self.pitch + self.block
        self.band = Buffer("band", ctype, width, elements, self.schedule.buffers)
        self.made = Buffer("made", ctype, width, self.run, 2)
        self.addresses = Buffer("addresses", INT, 4, self.most)
        self.address = Buffer("address", INT, 4, self.run)
        in_place = self.schedule.whole and width == 4
        self.sums = (
            self.made
            if in_place
            else Buffer("sums", "float", 4, self.run if self.schedule.whole else self.most)
        )

    # -- places -----------------------------------------------------------------------------------

    def _place_elements(self, start: Expr, rows: list[Tap], columns: list[Tap], lanes: Expr) -> None:
        """The byte of the first element of each place, as if all of a plane were one band."""
        row, column = rows[0].place, columns[0].place
        for place, size, ahead, bytes_apart in (
            (row, self.rows, ONE, self.pitch * self.width),
            (column, self.columns, Converted(Int(self.lead), "float"), Int(self.width)),
        ):
            self.k.on("Maxs", place, place, Converted(Int(_BESIDE), "float"), count=lanes)
            self.k.on("Mins", place, place, Converted(size, "float"), count=lanes)
            self.k.on("Adds", place, place, ahead, count=lanes)
            self.k.on("Muls", place, place, Converted(bytes_apart, "float"), count=lanes)
        self.k.on("Add", self.place, row, column, count=lanes)
        address = at(self.addresses, start)
        self.k.cast(address, self.place, "RINT", lanes)
        if self.schedule.whole:
            self._within(address, address, self.rows + 1, lanes)

    def _weights_of(self, corner: int) -> Expr:
        return self.apart * corner

    def _within(self, to: Place, address: Place, last: Expr, count: Expr) -> None:
        """What lies in front of a band, or behind it, means the zeros in front of its first and last row."""
        self.k.on("Maxs", to, address, Converted(Int(0), INT), count=count)
        self.k.on("Mins", to, to, Converted(last * self.pitch * self.width, INT), count=count)

    # -- channels ---------------------------------------------------------------------------------

    def _sample_whole(self, plane: Expr, planes: Expr, first: Expr, number: Expr, count: Expr) -> None:
        k = self.k
        with k.loop("c", planes) as c:
            self._load(plane + c, Int(0), self.rows, Int(1))
            with k.section("Surround", "Zeros around the rows."):
                self._zero_row(Int(0))
                self._zero_row(self.rows + 1)
                self._zero_ends()
            with k.pieces("start", (0, number), self.run) as (start, length):
                with k.section("Sample", "The weighted sums of the elements around places."):
                    for corner in range(4):
                        self._add_corner(
                            corner, at(self.addresses, start), (start, Int(0)), length, corner == 0
                        )
                    self._finish_run(Int(0), length)
                k.store(self.y, (plane + c) * count + first + start, self.made, length)

    def _sample_bands(self, plane: Expr, planes: Expr, first: Expr, number: Expr, count: Expr) -> None:
        k, last = self.k, self.number_of_bands - 1
        with k.loop("turn", k.let("turns", planes * self.bands)) as turn:
            c, band = k.let("c", turn // self.bands), k.let("numberOfBand", turn % self.bands)
            ahead = k.let("rowsAhead", band * self.high)
            begin = k.let("begin", greatest(ahead, 1) - 1)
            height = k.let("height", least(ahead + self.high, self.rows) - begin)
            self._load(plane + c, begin, height, begin + 1 - ahead)
            with k.section("Surround", "Zeros around the rows."):
                with k.when(band, "==", 0, share=self.bands):
                    self._zero_row(Int(0))
                    self.k.on("Duplicate", self.sums, ZERO, count=number)
                with k.when(band, "==", last, share=self.bands):
                    self._zero_row(self.rows + 1 - ahead)
                self._zero_ends()
            with k.pieces("start", (0, number), self.run) as (start, length), k.section("Sample"):
                less = k.let("less", ahead * self.pitch * self.width, INT)
                address = at(self.addresses, start)
                self.k.on("Adds", self.address, address, Converted(Int(0) - less, INT), count=length)
                self._within(self.address, self.address, least(self.rows + 1 - ahead, self.high), length)
                for corner in range(4):
                    self._add_corner(corner, at(self.address, 0), (start, start), length, False)
            is_last = k.when(band, "==", last, share=self.bands)
            with is_last, k.pieces("end", (0, number), self.run) as (start, length):
                self._finish_run(start, length)
                k.store(self.y, (plane + c) * count + first + start, self.made, length)

    def _load(self, plane: Expr, begin: Expr, height: Expr, slot: Expr) -> None:
        zeros = self.pitch - self.lead - self.columns
        place = plane * self.area + begin * self.columns
        target = at(self.band, slot * self.pitch + self.lead)
        self.k.load(
            target,
            self.x,
            place,
            self.columns,
            rows=height,
            apart=self.columns,
            pitch=self.pitch,
            zeros=zeros,
        )

    def _zero_row(self, slot: Expr) -> None:
        lanes = BLOCK_BYTES * _GROUP // self.width
        nothing = Converted(Int(0), self.ctype)
        target = at(self.band, slot * self.pitch)
        self.k.call("Duplicate", target, nothing, self.pitch, repeats=ceil_div(self.pitch, lanes))

    def _zero_ends(self) -> None:
        """The block in front of each row, and the one behind the last."""
        blocks = self.pitch.value // self.block
        group = min(_GROUP, _MOST_STEP // blocks) or 1
        slots = self.high.value + 2
        if blocks > _MOST_STEP:
            spans = [(slot, min(_GROUP, slots - slot), 1) for slot in range(0, slots, _GROUP)]
        else:
            spans = [
                (turn * group, group, min(_MOST_REPEATS, slots // group - turn))
                for turn in range(0, slots // group, _MOST_REPEATS)
            ]
            if slots % group:
                spans.append((slots // group * group, slots % group, 1))
        for slot, rows, repeats in spans:
            target, nothing = at(self.band, self.pitch * slot), Converted(Int(0), self.ctype)
            times, step = Converted(Int(repeats), "uint8_t"), Converted(Int(group * blocks % 256), "uint8_t")
            lanes = Int(rows * self.block)
            self.k.call("Duplicate", target, nothing, lanes, times, Int(blocks), step, repeats=repeats)

    def _add_corner(
        self, corner: int, address: Place, places: tuple[Expr, Expr], number: Expr, is_first: bool
    ) -> None:
        """Adds the elements of a corner. ``places``: the first of the run among weights, and among sums."""
        down, across = divmod(corner, 2)
        base = self.pitch * (down * self.width) + across * self.width
        self.k.on("Gather", self.gathered, self.band, read_as("uint32_t", address), base, count=number)
        if self.width < 4:
            self.k.cast(self.elements, self.gathered, "NONE", number)
        weight, sums = at(self.weights, self._weights_of(corner) + places[0]), at(self.sums, places[1])
        self.k.on("Mul" if is_first else "MulAddDst", sums, self.elements, weight, count=number)

    def _finish_run(self, start: Expr, number: Expr) -> None:
        sums = at(self.sums, start)
        if self.width < 4:
            self.k.cast(self.made, sums, "RINT", number)
        elif self.sums != self.made:
            self.k.on("Adds", self.made, sums, ZERO, count=number)
