"""What the cube core of a transposed convolution works on: its memories, and the tiles, phases and runs of
pixels that its loops go through."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Cheapest,
    Choice,
    Constant,
    CoreCount,
    Expr,
    Function,
    Int,
    Param,
    State,
    Var,
    ceil_div,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Memory
from evokernel_core.targets.ascendc.kernels.conv_transpose.behind import TILE_STEP
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import Transposed
from evokernel_core.targets.ascendc.kernels.conv_transpose.first_tile import NEVER, SIDES, WHOLE, TileCursor
from evokernel_core.targets.ascendc.kernels.conv_transpose.phases import Along, phases_with_taps
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import (
    ConvTransposeSchedule,
    fractals_of_piece,
    memory_of,
)
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_FRACTAL_BYTES = FRACTAL * BLOCK_BYTES


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


class _Tiling(TileCursor):
    """How tiles pass through the memories of a core, and what lies in the workspace."""

    def rows(self) -> None:
        """Rows that a vector core lays out at a time."""
        spread = 1 if self.schedule.turned else self.problem.axes[2].stride
        slab_w, repeats = self["slabW"], most_of("LoadData2D", "repeatTimes")
        note = "pixels from row to row of a slab in the unified buffer: its last fractal may reach beyond it"
        pitch = self.add("rowPitch", slab_w + FRACTAL * spread, note)
        note = "input pixels of such a row, in whole fractals"
        load = self.add("rowLoad", round_up(ceil_div(slab_w, spread), WHOLE), note)
        room = memory_of(self.problem, self.schedule)[0] // BLOCK_BYTES
        most = Constant("ROW_PIXELS", room, "of a slab in the unified buffer, a slot")
        rows = self.host("fittingRows", most // (pitch + load))
        self.k.require(rows, ">=", 1, "a row does not fit the unified buffer")
        self.k.require(load, "<=", repeats * FRACTAL, "a row does not fit the unified buffer")
        new = self["tileD"] * self["slabH"] if self.problem.sweeps_depth else self["tileH"]
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
        room = schedule.step_fractals(self.problem)
        step = Constant("STEP_FRACTALS", room, "of one step in L0A and in L0B")
        fractals = self.host("tileFractals", fractals)
        widest = self.host("widest", greatest(fractals, tile_m // WHOLE))
        each = self.add("stepBlocks", step // widest, "blocks of one step in L0")
        held = step * FRACTAL // tile_m // each * each if schedule.turned else each
        self.add("weightBlocks", held, "blocks of weights that lie in L0 together, whole steps")

    def counts(self, spans: tuple[Along, Along, Along]) -> None:
        """Tiles, and the loads of each."""
        for letter, name in zip(SIDES, ("planesOfPhase", "rowsOfPhase", "columnsOfPhase"), strict=True):
            self.add(f"tiles{letter}", ceil_div(self[name], self[f"tile{letter}"]))
        depth, height, width = self.three("tiles")
        self.add("tiles", self["images"] * depth * height * width, "", U64)
        note = "tiles along the dimension in which they follow one another"
        self.add("tilesS", depth if self.problem.sweeps_depth else height, note)
        phases: Expr = Int(1)
        for letter, span in zip(SIDES, spans, strict=True):
            phases = phases * self.host(f"phases{letter}", phases_with_taps(span), "with taps")
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
        ones = round_up(group * self.problem.groups * self.size, _FRACTAL_BYTES)
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
        problem, (tile_d, tile_h, tile_w), made_w = self.problem, self.three("tile"), self["madeW"]
        pieces = FRACTAL * fractals_of_piece(problem)
        turn_d, turn_h, turn_w = problem.alternating
        held = memory_of(problem, self.schedule)[1] // self.size // pieces
        step = TILE_STEP if problem.behind is not None else FRACTAL
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
        taken = Choice(greatest(inside, made), ">", most, Int(NEVER), fewer)
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
        note = "outputs from channel to channel when transposed"
        self.add("turnOutputs", Choice(joined, ">", Int(0), outputs(joined), own * turn_w), note)
        plane = self["planePixels"]
        note = "elements of one phase's results in a tile"
        phase = self.add("phaseResults", tile_d * plane * self["tileM"], note, U64)
        count = self.strides[0] * self.strides[1] * self.strides[2]
        self.add("tileResults", phase * self["tilesM"] * count, "", U64)


def fields_of(k: Builder, problem: Transposed, schedule: ConvTransposeSchedule) -> Fields:
    """Adds the tiling of a legal schedule to a kernel."""
    made = _Tiling(k, problem, schedule)
    spans = made.sizes()
    made.channels()
    made.tile(spans)
    made.fit(spans)
    made.rows()
    made.steps(spans)
    made.counts(spans)
    made.workspace()
    return Fields(made.known, spans, made.c0, made.ring)


STAGES = 2
"""Slabs and panels in L1: one is filled while the other is used."""


def _rows_function() -> Function:
    names = ("length", "stride", "phase", "start", "most")
    length, stride, phase, start, most = (Var(name, U64 if name == "length" else U32) for name in names)
    first = phase + start * stride
    rows = least(ceil_div(length - first, stride), most)
    note = "Rows of a phase from one on, at most so many."
    return Function(
        "RowsOf", (length, stride, phase, start, most), Choice(length, ">", first, rows, Int(0)), note
    )


_ROWS = _rows_function()


@frozen
class ConvTransposeTile:
    """One group of one image; the first row of every phase and the first column. ``rows``: of the first
    phase along the height, which has most of them."""

    image: Var
    depth: Var
    row: Var
    column: Var
    rows: Var

    def group(self, groups: int) -> Expr:
        return self.image % groups


@frozen
class Phase:
    """A phase along each dimension, with its taps there."""

    place: tuple[Expr, Expr, Expr]
    taps: tuple[Var, Var, Var]
    count: Var
    before: Var


@frozen
class Runs:
    """Runs of output pixels that lie together in L0, in so many ``planes``, with ``rows`` of them each;
    ``pixels`` of a run."""

    planes: Var
    count: Var
    rows: Var
    pixels: Var
    fractals: Var


class ConvTransposeDesign:
    """A transposed convolution in a schedule, and what its kernel is built of."""

    def __init__(self, problem: Transposed, schedule: ConvTransposeSchedule, output: str) -> None:
        self.k = Builder(
            "The cube core multiplies the weights of each tap by the slab, shifted to where the tap reads."
        )
        self.problem, self.schedule = problem, schedule
        self.t = fields_of(self.k, problem, schedule)
        self.along = self.t.along
        self.size = ITEM_SIZE[problem.dtype]
        self.c0, self.ring = self.t.c0, self.t.ring
        depth, height, width = (item.phases for item in self.along)
        self.strides = (
            Constant("STRIDE_D", depth),
            Constant("STRIDE_H", height),
            Constant("PHASES_W", width),
        )
        self.phases = Constant("PHASES", depth * height * width)
        self.ring_row = State("ringRow", 0, "where the slab begins that is fetched", U32)
        self.loads = State("slabLoads", 0, "of the slab that is fetched", U32)
        self.fresh = State("isFresh", 0, "nothing has been added to the sum", U32)
        self._tensors(output)
        self._buffers()

    def _tensors(self, output: str) -> None:
        own, (ctype, size) = self.schedule.own_weights, (CPP_TYPE[self.problem.dtype], self.size)
        packed = "workspace + GetBlockIdx() * tiling.packedBytes" if own else "workspace"
        if self.schedule.turned:
            place = "GetBlockIdx() * RING * tiling.tileResults * ELEMENT_BYTES"
            result = f"workspace + tiling.resultOffset + {place}"
            self.target = self.k.in_workspace("result", result, ctype, size)
        else:
            self.target = self.k.output("output", output, ctype, size)
        ring = "GetBlockIdx() * (tiling.blocks * tiling.ringRows * tiling.slabW * BLOCK_BYTES)"
        self.packed = self.k.in_workspace("packed", packed, ctype, size)
        self.slabs = self.k.in_workspace("slabs", f"workspace + tiling.slabOffset + {ring}", ctype, size)
        if self.problem.needs_constant:
            self.ones = self.k.in_workspace("ones", f"{packed} + tiling.onesOffset", ctype, size)

    def _buffers(self) -> None:
        schedule, ctype, size = self.schedule, CPP_TYPE[self.problem.dtype], self.size
        self.slab_elements = Constant("SLAB_ELEMENTS", schedule.slab_kb * 1024 // size)
        self.panel_elements = Constant("PANEL_ELEMENTS", schedule.panel_kb * 1024 // size)
        step = Constant("STEP_ELEMENTS", schedule.step_fractals(self.problem) * FRACTAL * BLOCK_BYTES // size)
        memory = self.problem.chip.memory
        sums = Constant("SUM_ELEMENTS", memory.l0c_bytes // schedule.c_slots // 4)

        def l1(name: str, elements: Expr, stages: int = 1) -> Buffer:
            return Buffer(name, ctype, size, elements, stages, memory=Memory.L1, joined=stages > 1)

        self.panel = l1("panels", self.panel_elements, STAGES)
        self.slab = l1("slab", self.slab_elements, STAGES)
        sides = (Memory.L0B, Memory.L0A) if schedule.turned else (Memory.L0A, Memory.L0B)
        self.weights, self.pixels = (
            Buffer(name, ctype, size, step, schedule.step_slots, memory=side)
            for name, side in zip(("weightStep", "pixelStep"), sides, strict=True)
        )
        self.sum = Buffer("results", "float", 4, sums, schedule.c_slots, memory=Memory.L0C)
        self.bias = l1("biasBlock", Constant("BIAS_ELEMENTS", schedule.most_m * (BLOCK_BYTES // size)))
        self.one = l1("onesBlock", Constant("ONES_ELEMENTS", FRACTAL * (BLOCK_BYTES // size)))

    # -- tiles, phases and runs -----------------------------------------------------------------

    def tile_of(self, index: Var) -> ConvTransposeTile:
        """Tiles of a sweep follow each other, down the depth or the height."""
        k, t = self.k, self.t
        if not self.problem.sweeps_depth:
            depth = k.let("depth", 0)
            row = k.let("row", index % t["tilesH"] * t["tileH"])
            rows = k.let("tileRows", _ROWS(t["outH"], self.strides[1], 0, row, t["tileH"]))
            across = k.let("across", index // t["tilesH"], U64)
            column = k.let("column", across % t["tilesW"] * t["tileW"])
            return ConvTransposeTile(k.let("image", across // t["tilesW"], U64), depth, row, column, rows)
        depth = k.let("depth", index % t["tilesD"] * t["tileD"])
        across = k.let("across", index // t["tilesD"], U64)
        column = k.let("column", across % t["tilesW"] * t["tileW"])
        sweep = k.let("sweep", across // t["tilesW"], U64)
        # Sweeps of nearly one height: a core's sweeps may all have the largest.
        heights = k.let("heights", t["rowsOfPhase"], U64)
        place = k.let("inHeight", sweep % t["tilesH"], U64)
        row = k.let("row", heights * place // t["tilesH"])
        rows = k.let("tileRows", heights * (place + 1) // t["tilesH"] - row)
        return ConvTransposeTile(k.let("image", sweep // t["tilesH"], U64), depth, row, column, rows)

    def phase_of(self, phase: Var) -> Phase:
        k, (_, height, width) = self.k, self.strides
        numbers = (phase // width // height, phase // width % height, phase % width)
        names = zip("DHW", self.along, numbers, strict=True)
        place = tuple(
            k.let(f"phase{letter}", number if item.phases > 1 else 0) for letter, item, number in names
        )
        taps = tuple(
            k.let(f"taps{letter}", item.taps[number])
            for letter, item, number in zip("DHW", self.along, place, strict=True)
        )
        depth, rows, columns = self.along
        row = rows.below[place[1]] * columns.kernel + taps[1] * columns.below[place[2]]
        before = depth.below[place[0]] * rows.kernel * columns.kernel + taps[0] * row
        count = k.let("taps", taps[0] * taps[1] * taps[2])
        return Phase(place, taps, count, k.let("tapsBefore", before))  # type: ignore[arg-type]

    def runs_of(self, tile: ConvTransposeTile, phase: Phase) -> Runs:
        k, t, (depth, height, width) = self.k, self.t, self.strides
        planes = k.let("planes", _ROWS(t["outD"], depth, phase.place[0], tile.depth, t["tileD"]))
        rows = k.let("rows", _ROWS(t["outH"], height, phase.place[1], tile.row, tile.rows))
        columns = k.let("columns", _ROWS(t["outW"], width, 0, tile.column, t["tileW"]))
        together = t["dense"] if self.schedule.turned else t["flat"]
        of_plane = k.let("runRows", Choice(together, "!=", Int(0), Int(1), rows))
        if self.schedule.turned:
            lines = Choice(t["dense"], "!=", Int(0), rows, Int(1))
            pixels: Expr = Choice(rows, "==", Int(0), Int(0), (lines - 1) * t["slabW"] + columns)
            count: Expr = Choice(rows, "==", Int(0), Int(0), planes * of_plane)
        else:
            pixels = Choice(t["flat"], "!=", Int(0), rows * columns, columns)
            count = planes * of_plane
        length = k.let("runPixels", pixels)
        fractals = k.let("fractals", ceil_div(length, WHOLE))
        return Runs(planes, k.let("runs", count), of_plane, length, fractals)

    def taps_that_read(self, tile: ConvTransposeTile, phase: Phase, runs: Runs) -> tuple[Expr, Expr]:
        """The taps of a phase that read any input along the depth, from the first to behind the last; the
        planes of others are padding. At least one is left, which gives zeros."""
        k, depth = self.k, self.along[0]
        plane = k.let("planeTaps", phase.taps[1] * phase.taps[2])
        if not self.problem.sweeps_depth:
            return Int(0), plane
        # Places count from below the lowest that any tap reads, so that none is negative.
        here = k.let("firstPlace", tile.depth + depth.at[phase.place[0]] + depth.highest)
        limit = k.let("inputEnd", self.t["inD"] + depth.span)
        first = Choice(here, ">=", limit, (here - limit) // depth.delta + 1, Int(0))
        behind = here + runs.planes
        lowest = Choice(behind, ">", depth.span, ceil_div(behind - depth.span, depth.delta), Int(0))
        begin, reached = k.let("firstPlane", first), k.let("reached", lowest)
        end = k.let("lastPlane", least(reached, phase.taps[0]))
        first_tap = k.let("firstTap", Choice(begin, "<", end, begin * plane, Int(0)))
        return first_tap, k.let("lastTap", Choice(begin, "<", end, end * plane, plane))
