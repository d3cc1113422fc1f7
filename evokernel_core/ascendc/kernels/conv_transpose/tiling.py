"""The tiling of a transposed convolution in the IR: what ComputeTiling fills from the sizes of a call.

``tiles.plan`` is the same arithmetic in Python, for schedules that are priced; tests hold them together.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from evokernel_core.ascendc.ir.builder import Builder
from evokernel_core.ascendc.ir.expr import (
    U32,
    U64,
    Cheapest,
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
    expr,
    greatest,
    least,
    round_up,
)
from evokernel_core.ascendc.kernels.conv_transpose.behind import TILE_STEP
from evokernel_core.ascendc.kernels.conv_transpose.geometry import Transposed
from evokernel_core.ascendc.kernels.conv_transpose.phases import Along, along, phases_with_taps
from evokernel_core.ascendc.kernels.conv_transpose.tiles import (
    Schedule,
    fractals_of_piece,
    memory_of,
)
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.api import most_of
from evokernel_core.twin.isa import BLOCK_BYTES, FRACTAL

WHOLE = Constant("FRACTAL", FRACTAL)
_FRACTAL_BYTES = FRACTAL * BLOCK_BYTES
_NOT = 1 << 32
"""What costs more than any choice that fits."""
_MOST_HALVINGS = 24
"""Of a tile, whose pixels are fewer than 4,096."""
_SIDES = "DHW"
_Three = tuple[Param, Param, Param]


@frozen
class Fields:
    """The fields of OpTiling, by their names, and its dimensions; channels of one block, and places of the
    rings in the workspace."""

    known: dict[str, Param]
    along: tuple[Along, Along, Along]
    c0: Constant
    ring: Constant

    def __getitem__(self, name: str) -> Param:
        return self.known[name]


class _Tiling:
    """Adds the fields one after the other; each is made of those before."""

    def __init__(self, k: Builder, found: Transposed, schedule: Schedule) -> None:
        self.k, self.found, self.schedule = k, found, schedule
        self.known: dict[str, Param] = {}
        self.size = ITEM_SIZE[found.dtype]
        self.ring = Constant("RING", schedule.ring, "slabs that lie in the workspace for each cube core")
        self.c0 = Constant("C0", BLOCK_BYTES // self.size, "channels of one block")
        axis_w = found.axes[2] if schedule.turned else evolve(found.axes[2], stride=1)
        self.axes = (*found.axes[:2], axis_w)
        """As they are computed: outputs along W lie together unless results are turned."""
        self.strides = tuple(axis.stride for axis in self.axes)

    def __getitem__(self, name: str) -> Param:
        return self.known[name]

    def add(self, name: str, value: Index, note: str = "", ctype: str = U32) -> Param:
        found = self.k.param(name, expr(value), note, ctype)
        self.known[name] = found
        return found

    def host(self, name: str, value: Index, note: str = "") -> Param:
        """A number on the way to fields."""
        found = self.k.on_host(name, expr(value), note)
        self.known[name] = found
        return found

    def equal(self, name: str, length: Expr, most: Expr) -> Expr:
        """The length of equal pieces of at most ``most``."""
        return ceil_div(length, self.host(name, ceil_div(length, most)))

    def three(self, name: str) -> _Three:
        first, second, third = (self.known[f"{name}{letter}"] for letter in _SIDES)
        return first, second, third

    # -- sizes ----------------------------------------------------------------------------------

    def sizes(self) -> tuple[Along, Along, Along]:
        k, found = self.k, self.found
        images = self.host("images", Size(found.batch) * found.groups, "times groups")
        channels = self.add("channels", Size(found.channels), "of the input, in one group")
        results = self.add("results", Size(found.results), "output channels of one group")
        for letter, length, taps in zip(_SIDES, found.inputs, found.kernel, strict=True):
            self.add(f"in{letter}", Size(length), "", U64)
            self.add(f"kernel{letter}", Size(taps))
        for item in (images, channels, results, *self.three("in"), *self.three("kernel")):
            k.require(item, ">=", 1)
        for axis, letter in zip(found.axes, _SIDES, strict=True):
            whole = (self[f"in{letter}"] - 1) * axis.stride + (self[f"kernel{letter}"] - 1) * axis.dilation
            whole = self.host(f"whole{letter}", whole + axis.output_padding + 1, "with the paddings")
            k.require(whole, ">", 2 * axis.padding)
            self.add(f"out{letter}", whole - 2 * axis.padding, "", U64)
        if self.schedule.turned:
            for axis, letter in zip(found.axes, _SIDES, strict=True):
                made = self[f"out{letter}"] // (axis.stride if found.is_pooled else 1)
                self.add(f"made{letter}", made, "what is stored of them", U64)
                k.require(self[f"made{letter}"], ">=", 1)
        first, second, third = (
            along(k, axis, letter, self[f"kernel{letter}"])
            for axis, letter in zip(self.axes, _SIDES, strict=True)
        )
        for side, letter in zip((first, second, third), _SIDES, strict=True):
            note = "the first input that an output of a phase reads, seen from its own place"
            self.add(f"low{letter}", Int(side.highest) - side.span, note, "int32_t")
        return first, second, third

    def channels(self) -> None:
        """Channels in blocks, and tiles of output channels."""
        most = Constant("MOST_M", self.schedule.most_m, "output channels of one tile of the result")
        self.add("blocks", ceil_div(self["channels"], self.c0), "of C0 channels")
        padded = self.add("paddedM", round_up(self["results"], WHOLE), "results in whole fractals")
        tile = self.add("tileM", round_up(self.equal("partsM", padded, most), WHOLE))
        self.add("tilesM", ceil_div(padded, tile))

    # -- tiles ----------------------------------------------------------------------------------

    def tile(self, spans: tuple[Along, Along, Along]) -> None:
        """The largest tile whose results lie in L0C and whose pixels lie in one step of L0."""
        found, schedule, span = self.found, self.schedule, spans[2].span
        out_w = self["outW"]
        sums = found.chip.memory.l0c_bytes // schedule.c_slots // 4
        held = self.host("heldPixels", self._down(Int(sums) // self["tileM"]), "in L0C")
        step = min(schedule.most_n, schedule.step_fractals(found) * FRACTAL)
        most_n = Constant("MOST_N", step, "output pixels of one tile")
        most = self.host("mostPixels", least(most_n, held))
        axis_h, axis_w = found.axes[1:]
        shares_zeros = axis_w.padding == axis_w.output_padding == 0 and axis_h.stride == self.strides[2] == 1
        flat = Choice(out_w * 2, "<=", most, Int(1), Int(0)) if shares_zeros else Int(0)
        self.add("flat", flat, "whole rows follow one another in a tile, without gaps")
        depths, heights, columns = (
            ceil_div(self[f"out{letter}"], stride)
            for letter, stride in zip(_SIDES, self.strides, strict=True)
        )
        rows = self.add("rowsOfPhase", heights, "along H")
        lines = self.host("columnsOfPhase", columns)
        if schedule.turned:
            width, dense = self._turned_width(lines, rows, most, span)
            dense = self._flat(1, dense)
            self.add("dense", dense, "rows of a tile lie as far apart as in the slab, else in whole fractals")
        else:
            width = self._width(lines, rows, most)
        first_w = self.host("firstW", self._flat(out_w, width), "the largest tile")
        pitch: Expr = first_w
        if schedule.turned:
            pitch = first_w + self._flat(0, self["dense"] * span)
        down = (most - first_w) // pitch + 1 if schedule.turned else most // first_w
        down = self.host("mostRows", down)
        height = self.host("leastRows", least(down, rows))
        first_h = self.host("firstH", self.equal("partsH", rows, height))
        of_plane = self.plane_pixels("firstPlane", first_h, first_w, span) if schedule.turned else None
        planes = self.host("mostPlanes", down // first_h if of_plane is None else most // of_plane)
        deep = self.host("planesOfPhase", depths)
        planes = self.host("leastPlanes", self._flat(1, least(planes, deep)))
        self.host("firstD", self.equal("partsD", deep, planes))

    def _down(self, value: Expr) -> Expr:
        """In whole fractals."""
        return value // WHOLE * WHOLE

    def _flat(self, flat: Index, other: Index) -> Expr:
        return Choice(self["flat"], "!=", Int(0), expr(flat), expr(other))

    def plane_pixels(self, name: str, rows: Expr, width: Expr, span: Expr) -> Param:
        """Pixels of a plane of a tile, in whole fractals."""
        pitch = width + self._flat(0, span)
        dense = round_up((rows - 1) * pitch + width, WHOLE)
        whole = Choice(self["dense"], "!=", Int(0), dense, rows * round_up(width, WHOLE))
        return self.host(f"{name}Pixels", whole)

    def _width(self, columns: Param, heights: Param, most: Param) -> Expr:
        """The width that wastes least: in whole fractals, at each row and at each tile."""
        count, width, pixels = Var("count", U64), Var("width", U64), Var("pixels", U64)
        given = (
            (width, round_up(ceil_div(columns, count), WHOLE)),
            (pixels, least(most // width, heights) * width),
        )
        fewest = self.host("fewestW", ceil_div(columns, most), "tiles along W")
        cost = count * (width + 32) * (pixels + 64) * 64 // pixels
        note = "tiles along W that waste least"
        parts = self.host("partsW", Cheapest(count, fewest, fewest * 2 + 7, cost, given), note)
        return round_up(ceil_div(columns, parts), WHOLE)

    def _turned_width(self, columns: Param, heights: Param, most: Param, span: Param) -> tuple[Expr, Expr]:
        """The same, in whole fractals at each row or by borders, at each tile; whether rows are dense."""
        option, count = Var("option", U64), Var("count", U64)
        names = ("dense", "width", "pitch", "rows", "pixels")
        dense, width, pitch, rows, pixels = (Var(name, U64) for name in names)

        def choose(is_dense: Expr, yes: Index, no: Index) -> Expr:
            return Choice(is_dense, "!=", Int(0), expr(yes), expr(no))

        def width_of(number: Expr, is_dense: Expr) -> Expr:
            part = ceil_div(columns, number)
            return choose(is_dense, part, round_up(part, WHOLE))

        given = (
            (count, option // 2),
            (dense, option % 2),
            (width, width_of(count, dense)),
            (pitch, width + choose(dense, span, 0)),
            (rows, least((most - width) // pitch + 1, heights)),
            (pixels, round_up((rows - 1) * pitch + width, WHOLE)),
        )
        # What each row costs beside its pixels, and each tile.
        cost = count * ceil_div(heights, rows) * (pixels + rows * choose(dense, 32, 48) + 64)
        fewest = self.host("fewestW", ceil_div(columns, most), "tiles along W")
        last = fewest * 4 + 15
        note = "twice the tiles along W that waste least, one more where rows are dense"
        chosen = self.host("optionW", Cheapest(option, fewest * 2, last, cost, given), note)
        parts = self.host("partsW", chosen // 2)
        return width_of(parts, chosen % 2), chosen % 2

    def fit(self, spans: tuple[Along, Along, Along]) -> None:
        """Tiles are halved, along the depth first, until L1 holds what they read."""
        most = Constant("SLAB_PIXELS", self.schedule.slab_kb * 1024 // BLOCK_BYTES, "of one block in L1")
        for name, value in (("deep", self["firstD"]), ("high", self["firstH"])):
            part = Var(f"{name}Part", U64)
            cost = Choice(ceil_div(value, Int(1) << part), ">", Int(1), Int(_NOT), part)
            self.host(
                f"{name}Halvings", Cheapest(part, Int(0), Int(_MOST_HALVINGS // 2), cost), "until one is left"
            )
        times, given = Var("times", U64), list[tuple[Var, Expr]]()

        def tried(name: str, value: Expr) -> Var:
            given.append((Var(f"{name}Tried", U64), value))
            return given[-1][0]

        deep, high, wide = self._halved(self._shifts(times, tried))
        sides = tried("deep", deep), tried("high", high), tried("wide", wide)
        cost = Choice(self._plane(sides, spans), ">", most, Int(_NOT), times)
        search = Cheapest(times, Int(0), Int(_MOST_HALVINGS), cost, tuple(given))
        chosen = self.host("halvings", search, "of the tile")
        shifts = self._shifts(chosen, self.host)
        notes = ("planes and rows of one phase, and output columns", "", "")
        for letter, side, note in zip(_SIDES, self._halved(shifts), notes, strict=True):
            self.add(f"tile{letter}", side, note)
        slab = zip(_SIDES, self._slab(self.three("tile"), spans), strict=True)
        depth, height, width = (self.host(f"side{letter}", side) for letter, side in slab)
        plane = self.host("slabPixels", depth * height * width + spans[2].span + WHOLE)
        self.k.require(plane, "<=", most, "the taps lie too far apart for L1")
        for letter, length in zip(_SIDES, (depth, height, width), strict=True):
            self.add(f"slab{letter}", length, "input of a tile, borders included")
        self.add("plane", plane, "pixels of one block of channels in a slab")

    def _shifts(self, times: Expr, known: Callable[[str, Expr], Expr]) -> tuple[Expr, Expr, Expr]:
        """How often each dimension is halved of so many times, each under a name."""
        depth = known("halvedD", least(times, self["deepHalvings"]))
        height = known("halvedH", least(times - depth, self["highHalvings"]))
        return depth, height, known("halvedW", times - depth - height)

    def _halved(self, shifts: tuple[Expr, ...]) -> tuple[Expr, Expr, Expr]:
        """The tile behind them."""
        depth, height, width = self.three("first")
        narrow = round_up(ceil_div(width, Int(1) << shifts[2]), WHOLE)
        narrow = self._flat(width, Choice(width, ">", WHOLE, narrow, width))
        return (
            ceil_div(depth, Int(1) << shifts[0]),
            ceil_div(height, Int(1) << shifts[1]),
            Choice(shifts[2], "==", Int(0), width, narrow),
        )

    def _slab(self, tile: tuple[Expr, Expr, Expr], spans: tuple[Along, Along, Along]) -> tuple[Expr, ...]:
        depth, height, width = (side + item.span for side, item in zip(tile, spans, strict=True))
        return depth, height, self._flat(self["outW"], width)

    def _plane(self, tile: tuple[Expr, Expr, Expr], spans: tuple[Along, Along, Along]) -> Expr:
        depth, height, width = self._slab(tile, spans)
        return depth * height * width + spans[2].span + WHOLE  # read past the last row, in whole fractals

    # -- steps ----------------------------------------------------------------------------------

    def rows(self) -> None:
        """Rows that a vector core lays out at a time."""
        spread = 1 if self.schedule.turned else self.found.axes[2].stride
        slab_w, repeats = self["slabW"], most_of("LoadData2D", "repeatTimes")
        note = "pixels from row to row of a slab in the unified buffer: its last fractal may reach beyond it"
        pitch = self.add("rowPitch", slab_w + FRACTAL * spread, note)
        note = "input pixels of such a row, in whole fractals"
        load = self.add("rowLoad", round_up(ceil_div(slab_w, spread), WHOLE), note)
        room = memory_of(self.found, self.schedule)[0] // BLOCK_BYTES
        most = Constant("ROW_PIXELS", room, "of a slab in the unified buffer, a slot")
        rows = self.host("fittingRows", most // (pitch + load))
        self.k.require(rows, ">=", 1, "a row does not fit the unified buffer")
        self.k.require(load, "<=", repeats * FRACTAL, "a row does not fit the unified buffer")
        new = self["tileD"] * self["slabH"] if self.found.sweeps_depth else self["tileH"]
        new = self.add("newRows", new, "of a tile that the slab before has not")
        held = self.add("heldRows", least(rows, self["slabD"] * self["slabH"]), "rows that the buffers hold")
        shared = self.host("sharedRows", Choice(self["blocks"] % 2, "==", Int(0), new, ceil_div(new, 2)))
        self.add(
            "rowBatch", self.equal("batches", shared, held), "rows at a time, the same for both vector cores"
        )
        self.add("packPixels", least(held * load, repeats * FRACTAL), "weights that the same buffers hold")

    def steps(self, spans: tuple[Along, Along, Along]) -> None:
        """How channels and taps pass through L1 and L0."""
        schedule, blocks, tile_m = self.schedule, self["blocks"], self["tileM"]
        panel_blocks = Constant("PANEL_BLOCKS", schedule.panel_kb * 1024 // BLOCK_BYTES, "of weights in L1")
        slab = Constant("SLAB_PIXELS", schedule.slab_kb * 1024 // BLOCK_BYTES, "of one block in L1")
        panel = self.host("heldPanel", panel_blocks // tile_m, "blocks of all rows of a tile")
        most = self.host("slabBlocks", least(blocks, slab // self["plane"]))
        most = self.host("mostBlocks", least(most, panel))
        chunk = self.add(
            "chunk", self.equal("leastChunks", blocks, most), "blocks of channels in L1 at a time"
        )
        self.add("chunks", ceil_div(blocks, chunk))
        taps = self.add("kernelTaps", self["kernelD"] * self["kernelH"] * self["kernelW"])
        self.add("panelTaps", least(taps, panel // chunk), "of one panel of weights")
        one = Choice(
            self["tilesM"], "==", Int(1), Choice(taps * blocks, "<=", panel * 2, Int(1), Int(0)), Int(0)
        )
        note = "all weights of a group stay in L1"
        self.add("resident", Choice(self["chunks"], "==", Int(1), one, Int(0)), note)
        tile_d, tile_h, tile_w = self.three("tile")
        if schedule.turned:
            pixels = tile_d * self.plane_pixels("plane", tile_h, tile_w, spans[2].span)
            fractals: Expr = pixels // WHOLE
        else:
            run = self._flat(tile_h * self["outW"], tile_w)
            fractals = self._flat(1, tile_d * tile_h) * ceil_div(run, WHOLE)
        room = schedule.step_fractals(self.found)
        step = Constant("STEP_FRACTALS", room, "of one step in L0A and in L0B")
        fractals = self.host("tileFractals", fractals)
        widest = self.host("widest", greatest(fractals, tile_m // WHOLE))
        each = self.add("stepBlocks", step // widest, "blocks of one step in L0")
        held = step * FRACTAL // tile_m // each * each if schedule.turned else each
        self.add("weightBlocks", held, "blocks of weights that lie in L0 together, whole steps")

    def counts(self, spans: tuple[Along, Along, Along]) -> None:
        """Tiles, and the loads of each."""
        for letter, name in zip(_SIDES, ("planesOfPhase", "rowsOfPhase", "columnsOfPhase"), strict=True):
            self.add(f"tiles{letter}", ceil_div(self[name], self[f"tile{letter}"]))
        depth, height, width = self.three("tiles")
        self.add("tiles", self["images"] * depth * height * width, "", U64)
        note = "tiles along the dimension in which they follow one another"
        self.add("tilesS", depth if self.found.sweeps_depth else height, note)
        phases: Expr = Int(1)
        for letter, item in zip(_SIDES, spans, strict=True):
            phases = phases * self.host(f"phases{letter}", phases_with_taps(item), "with taps")
        each = Choice(self["chunks"], "==", Int(1), Int(1), self["chunks"] * self["tilesM"] * phases)
        self.add("slabLoads", each, "copies of a tile's slab into L1")

    # -- the workspace, and what vector cores turn ----------------------------------------------

    def workspace(self) -> None:
        """Packed weights, slabs and results of each cube core."""
        schedule = self.schedule
        half = Choice(CoreCount(), ">", Int(1), CoreCount() // 2, Int(1))
        cubes = self.host("cubes", half, "one beside two vector cores")
        taken = self.host("cubeCores", least(self["tiles"], cubes))
        blocks = self["kernelTaps"] * self["blocks"] + 1  # the one behind them is the bias
        group = self.add("groupWeights", blocks * self["paddedM"] * self.c0, "elements in blocks", U64)
        ones = round_up(group * self.found.groups * self.size, _FRACTAL_BYTES)
        ones = self.add("onesOffset", ones, "bytes from packed weights on", U64)
        packed = self.add("packedBytes", ones + _FRACTAL_BYTES, "of weights and ones", U64)
        slabs = taken * packed if schedule.own_weights else packed
        slabs = self.add("slabOffset", slabs, "bytes in the workspace", U64)
        ring = self.ring
        rows = self.add(
            "ringRows", ring * self["slabD"] * self["slabH"], "each begins with rows of the one before"
        )
        each = self["blocks"] * rows * self["slabW"] * BLOCK_BYTES
        end = self.host("slabsEnd", slabs + taken * each)
        if schedule.turned:
            self.turns()
            results = self["tileResults"] * ring * self.size
            self.add("resultOffset", end, "bytes in the workspace", U64)
            self.host("resultsEnd", end + taken * results)

    def turns(self) -> None:
        """Rows that lie side by side in memory are turned and stored together, where at least one of each
        phase fits; else a row, or an equal part of one."""
        found, (tile_d, tile_h, tile_w), made_w = self.found, self.three("tile"), self["madeW"]
        pieces = FRACTAL * fractals_of_piece(found)
        turn_d, turn_h, turn_w = found.alternating
        held = memory_of(found, self.schedule)[1] // self.size // pieces
        step = TILE_STEP if found.behind is not None else FRACTAL
        apart = Choice(self["dense"], "!=", Int(0), self["slabW"], round_up(tile_w, WHOLE))
        pitch = self.add("linePitch", apart, "pixels of one phase from row to row")

        def pixels(lines: Expr) -> Expr:
            tail = Choice(made_w % FRACTAL, "!=", Int(0), Int(FRACTAL), Int(0))  # read past the last row
            return round_up((lines - 1) * pitch + tile_w + tail, WHOLE)

        def outputs(lines: Expr) -> Expr:
            return round_up(lines * turn_h * made_w, step)

        fewer, lines = Var("fewer", U64), Var("lines", U64)
        inside, made = Var("linePixels", U64), Var("lineOutputs", U64)
        given = ((lines, tile_h - fewer), (inside, pixels(lines) * (turn_h * turn_w)), (made, outputs(lines)))
        most = Constant("MOST_TURNED", held, "pixels or outputs of each channel that are turned at a time")
        taken = Choice(greatest(inside, made), ">", most, Int(_NOT), fewer)
        cost = Choice(lines, "==", Int(0), fewer, taken)
        chosen = self.host("lessLines", Cheapest(fewer, Int(0), tile_h, cost, given), "than a tile has")
        whole = Choice(self["tilesW"], "==", Int(1), self._flat(0, tile_h - chosen), Int(0))
        fitting = self.host("mostLines", whole, "rows of each phase along H that fit the unified buffer")
        parts = self.host("fewestParts", ceil_div(tile_h, greatest(fitting, 1)))
        beside = self["paddedM"] // pieces * tile_d * turn_d
        # For each of the two vector cores as many.
        odd = Choice(parts, "<", tile_h, parts * beside % 2, Int(0))
        parts = self.host("lineParts", parts + odd)
        joined = self.host("turnLines", Choice(fitting, ">", Int(0), ceil_div(tile_h, parts), Int(0)))
        room = Int(held // turn_w // FRACTAL * FRACTAL)
        line = self.host("turnedLine", self._flat(tile_h * tile_w, tile_w))
        part = round_up(self.equal("turnedParts", line, room), WHOLE)
        note = "rows of outputs turned at a time: one, or some of each phase along H"
        self.add("turnRows", Choice(joined, ">", Int(0), joined * turn_h, Int(1)), note)
        note = "pixels of one phase among them"
        own = self.add("turnPixels", Choice(joined, ">", Int(0), pixels(joined), part), note)
        note = "outputs from channel to channel when they are turned"
        self.add("turnOutputs", Choice(joined, ">", Int(0), outputs(joined), own * turn_w), note)
        plane = self["planePixels"]
        note = "elements of one phase's results in a tile"
        phase = self.add("phaseResults", tile_d * plane * self["tileM"], note, U64)
        count = self.strides[0] * self.strides[1] * self.strides[2]
        self.add("tileResults", phase * self["tilesM"] * count, "", U64)


def fields_of(k: Builder, found: Transposed, schedule: Schedule) -> Fields:
    """Adds the tiling of a legal schedule to a kernel."""
    made = _Tiling(k, found, schedule)
    spans = made.sizes()
    made.channels()
    made.tile(spans)
    made.fit(spans)
    made.rows()
    made.steps(spans)
    made.counts(spans)
    made.workspace()
    return Fields(made.known, spans, made.c0, made.ring)
