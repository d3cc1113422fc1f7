"""The tiling of a transposed convolution in the IR: what ComputeTiling fills from the sizes of a call.

``tiles.plan`` is the same arithmetic in Python, for schedules that are priced; tests hold them together.
"""

from __future__ import annotations

from attrs import frozen

from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Cheapest,
    Choice,
    Constant,
    CoreCount,
    Expr,
    Int,
    Param,
    Var,
    ceil_div,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.behind import TILE_STEP
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import Transposed
from evokernel_core.targets.ascendc.kernels.conv_transpose.first_tile import NEVER, SIDES, WHOLE, TileCursor
from evokernel_core.targets.ascendc.kernels.conv_transpose.phases import Along, phases_with_taps
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import (
    ConvTransposeSchedule,
    fractals_of_piece,
    memory_of,
)

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
