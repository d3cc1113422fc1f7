"""The cube core of a transposed convolution: weights of each tap times the slab, shifted to where it reads.

The slab of a tile and the panels of weights travel into L1 by themselves; results of a phase add up in L0C.
"""

from __future__ import annotations

from attrs import frozen

from evokernel_core.ascendc.ir.builder import Builder, at, whole
from evokernel_core.ascendc.ir.cube import (
    ClearBlocks,
    CopyBlocks,
    Fixpipe,
    LoadData,
    LoadFractals,
    Meet,
    Mmad,
    Span,
    stage_of,
)
from evokernel_core.ascendc.ir.expr import (
    FIRST_OF_CORE,
    LAST_OF_CORE,
    U32,
    U64,
    Choice,
    Condition,
    Constant,
    Expr,
    Function,
    Int,
    State,
    Var,
    ceil_div,
    greatest,
    least,
)
from evokernel_core.ascendc.ir.nodes import Buffer, Kernel, Memory, Region, Slice
from evokernel_core.ascendc.kernels.conv_transpose.geometry import Transposed
from evokernel_core.ascendc.kernels.conv_transpose.tiles import Schedule
from evokernel_core.ascendc.kernels.conv_transpose.tiling import WHOLE, fields_of
from evokernel_core.ascendc.kernels.matmul.problem import QUANT
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.isa import BLOCK_BYTES, FRACTAL

SLAB_READY, SLAB_FREE, RESULT_READY, RESULT_FREE, WEIGHTS_READY = (
    "SLAB_READY", "SLAB_FREE", "RESULT_READY", "RESULT_FREE", "WEIGHTS_READY"
)  # fmt: skip
"""Flags between the vector cores and their cube core."""
_STAGES = 2
"""Slabs and panels in L1: one is filled while the other is used."""
_SLAB, _PANEL = "slab", "panel"


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
class _Tile:
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
class _Phase:
    """A phase along each dimension, with its taps there."""

    place: tuple[Expr, Expr, Expr]
    taps: tuple[Var, Var, Var]
    count: Var
    before: Var


@frozen
class _Runs:
    """Runs of output pixels that lie together in L0, in so many ``planes``, with ``rows`` of them each;
    ``pixels`` of a run."""

    planes: Var
    count: Var
    rows: Var
    pixels: Var
    fractals: Var


class _Design:
    """A transposed convolution in a schedule, and what its kernel is built of."""

    def __init__(self, found: Transposed, schedule: Schedule, output: str) -> None:
        self.k = Builder(
            "The cube core multiplies the weights of each tap by the slab, shifted to where the tap reads."
        )
        self.found, self.schedule = found, schedule
        self.t = fields_of(self.k, found, schedule)
        self.along = self.t.along
        self.size = ITEM_SIZE[found.dtype]
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
        own, (ctype, size) = self.schedule.own_weights, (CPP_TYPE[self.found.dtype], self.size)
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
        if self.found.needs_constant:
            self.ones = self.k.in_workspace("ones", f"{packed} + tiling.onesOffset", ctype, size)

    def _buffers(self) -> None:
        schedule, ctype, size = self.schedule, CPP_TYPE[self.found.dtype], self.size
        self.slab_elements = Constant("SLAB_ELEMENTS", schedule.slab_kb * 1024 // size)
        self.panel_elements = Constant("PANEL_ELEMENTS", schedule.panel_kb * 1024 // size)
        step = Constant("STEP_ELEMENTS", schedule.step_fractals(self.found) * FRACTAL * BLOCK_BYTES // size)
        memory = self.found.chip.memory
        sums = Constant("SUM_ELEMENTS", memory.l0c_bytes // schedule.c_slots // 4)

        def l1(name: str, elements: Expr, stages: int = 1) -> Buffer:
            return Buffer(name, ctype, size, elements, stages, memory=Memory.L1, joined=stages > 1)

        self.panel = l1("panels", self.panel_elements, _STAGES)
        self.slab = l1("slab", self.slab_elements, _STAGES)
        sides = (Memory.L0B, Memory.L0A) if schedule.turned else (Memory.L0A, Memory.L0B)
        self.weights, self.pixels = (
            Buffer(name, ctype, size, step, schedule.step_slots, memory=side)
            for name, side in zip(("weightStep", "pixelStep"), sides, strict=True)
        )
        self.sum = Buffer("results", "float", 4, sums, schedule.c_slots, memory=Memory.L0C)
        self.bias = l1("biasBlock", Constant("BIAS_ELEMENTS", schedule.most_m * (BLOCK_BYTES // size)))
        self.one = l1("onesBlock", Constant("ONES_ELEMENTS", FRACTAL * (BLOCK_BYTES // size)))

    # -- tiles, phases and runs -----------------------------------------------------------------

    def tile_of(self, index: Var) -> _Tile:
        """Tiles of a sweep follow each other, down the depth or the height."""
        k, t = self.k, self.t
        if not self.found.sweeps_depth:
            depth = k.let("depth", 0)
            row = k.let("row", index % t["tilesH"] * t["tileH"])
            rows = k.let("tileRows", _ROWS(t["outH"], self.strides[1], 0, row, t["tileH"]))
            across = k.let("across", index // t["tilesH"], U64)
            column = k.let("column", across % t["tilesW"] * t["tileW"])
            return _Tile(k.let("image", across // t["tilesW"], U64), depth, row, column, rows)
        depth = k.let("depth", index % t["tilesD"] * t["tileD"])
        across = k.let("across", index // t["tilesD"], U64)
        column = k.let("column", across % t["tilesW"] * t["tileW"])
        sweep = k.let("sweep", across // t["tilesW"], U64)
        # Sweeps of nearly one height: a core's sweeps may all have the largest.
        heights = k.let("heights", t["rowsOfPhase"], U64)
        place = k.let("inHeight", sweep % t["tilesH"], U64)
        row = k.let("row", heights * place // t["tilesH"])
        rows = k.let("tileRows", heights * (place + 1) // t["tilesH"] - row)
        return _Tile(k.let("image", sweep // t["tilesH"], U64), depth, row, column, rows)

    def phase_of(self, phase: Var) -> _Phase:
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
        return _Phase(place, taps, count, k.let("tapsBefore", before))  # type: ignore[arg-type]

    def runs_of(self, tile: _Tile, phase: _Phase) -> _Runs:
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
        return _Runs(planes, k.let("runs", count), of_plane, length, fractals)

    # -- what a core does -----------------------------------------------------------------------

    def build(self) -> Kernel:
        k, t = self.k, self.t
        if self.schedule.own_weights:
            k.take(WEIGHTS_READY)
        else:
            k.do(Meet())
        if self.found.needs_constant:
            k.do(CopyBlocks(whole(self.one), Region(self.ones, Int(0)), WHOLE))
        self.clear_tails()
        with k.cores("index", t["tiles"], in_a_row=True) as index:
            tile = self.tile_of(index)
            if self.schedule.turned:
                with k.when(index - FIRST_OF_CORE, ">=", self.ring):
                    k.take(RESULT_FREE)
            self.keep_weights(tile)
            with k.loop("m", t["tilesM"]) as m:
                first = k.let("firstM", m * t["tileM"])
                rows = k.let("rowsM", least(t["paddedM"] - first, t["tileM"]))
                if self.found.needs_constant:
                    self.keep_constant(tile, m, (first, rows))
                with k.loop("phase", self.phases) as number:
                    self.add_phase(index, tile, (m, number), (first, rows))
            if self.schedule.turned:
                k.give(RESULT_READY, "FIX")
        return k.kernel()

    def clear_tails(self) -> None:
        """What the last fractals of a slab read beyond its rows."""
        k, t = self.k, self.t
        rows = k.let("slabPixels", t["slabD"] * t["slabH"] * t["slabW"])
        with k.loop("stage", _STAGES) as stage:
            behind = at(self.slab, stage * self.slab_elements + rows * self.c0)
            k.do(ClearBlocks(behind, t["plane"] - rows, t["chunk"], rows))

    def keep_weights(self, tile: _Tile) -> None:
        """All weights of a group stay in L1 where they fit."""
        k, t = self.k, self.t
        group = k.let("group", tile.group(self.found.groups))
        with k.when(t["resident"], "!=", 0), k.kept(self.panel, group):
            blocks = t["kernelTaps"] * t["blocks"] * t["paddedM"]
            k.do(CopyBlocks(whole(self.panel), Region(self.packed, group * t["groupWeights"]), blocks))

    def keep_constant(self, tile: _Tile, m: Var, along_m: tuple[Var, Var]) -> None:
        k, t, (first, rows) = self.k, self.t, along_m
        group = tile.group(self.found.groups)
        with k.kept(self.bias, group * t["tilesM"] + m):
            place = (group + 1) * t["groupWeights"] - (t["paddedM"] - first) * self.c0
            k.do(CopyBlocks(whole(self.bias), Region(self.packed, place), rows))

    def add_phase(self, index: Var, tile: _Tile, numbers: tuple[Var, Var], along_m: tuple[Var, Var]) -> None:
        """Outputs of one phase share their taps."""
        k, t, (m, number), rows = self.k, self.t, numbers, along_m[1]
        phase = self.phase_of(number)
        runs = self.runs_of(tile, phase)
        taps = self.taps_that_read(tile, phase, runs)
        with k.sum():
            k.assign(self.fresh, 1)
            with k.loop("chunk", t["chunks"]) as chunk:
                start = k.let("firstBlock", chunk * t["chunk"])
                held = k.let("chunkBlocks", least(t["blocks"] - start, t["chunk"]))
                at_once = Choice(m + number, "==", Int(0), Int(1), Int(0))
                fetches = Choice(t["chunks"], "==", Int(1), at_once, phase.count)
                with k.fetched(_SLAB, self.slab, Condition(fetches, "!=", Int(0))):
                    self.fetch_slab(index, (start, held))
                self.add_chunk(tile, phase, runs, taps, along_m, (start, held))
            if self.found.bias is not None:
                self.add_constant(runs, rows)
            elif self.found.needs_constant:
                with k.when(self.fresh, "!=", 0):  # no tap reaches this phase
                    self.add_constant(runs, rows)
        with k.stored():
            self.store(tile, phase, runs, (index, m, number), along_m)

    def taps_that_read(self, tile: _Tile, phase: _Phase, runs: _Runs) -> tuple[Expr, Expr]:
        """The taps of a phase that read any input along the depth, from the first to behind the last; the
        planes of others are padding. At least one is left, which gives zeros."""
        k, depth = self.k, self.along[0]
        plane = k.let("planeTaps", phase.taps[1] * phase.taps[2])
        if not self.found.sweeps_depth:
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

    def fetch_slab(self, index: Var, along_blocks: tuple[Var, Var]) -> None:
        """Channels of a slab: all of them once a tile, or chunk after chunk for each phase that has taps and
        each tile of results."""
        k, t = self.k, self.t
        all_rows = t["slabD"] * t["slabH"]
        with k.when(self.loads, "==", 0):
            rows = Choice(index % t["tilesS"], "!=", Int(0), t["newRows"], all_rows)
            place = Choice(index, "==", FIRST_OF_CORE, Int(0), (self.ring_row + rows) % t["ringRows"])
            k.assign(self.ring_row, place)
            k.take(SLAB_READY)
        needed = k.let("slabRows", all_rows)
        before = k.let("rowsBefore", least(t["ringRows"] - self.ring_row, needed))  # the ring ends
        self.copy_ring(along_blocks, (self.ring_row, before), Int(0))
        with k.when(before, "<", needed):
            self.copy_ring(along_blocks, (Int(0), needed - before), before)
        k.assign(self.loads, self.loads + 1)
        with k.when(self.loads, "==", t["slabLoads"]):
            k.assign(self.loads, 0)
            with k.when(index + self.ring, "<", LAST_OF_CORE):
                k.give(SLAB_FREE, "MTE2")

    def copy_ring(self, along_blocks: tuple[Var, Var], lines: tuple[Expr, Expr], behind: Expr) -> None:
        t, (start, held), (row, rows) = self.t, along_blocks, lines
        place = (start * t["ringRows"] + row) * t["slabW"] * self.c0
        pixels = rows * t["slabW"]
        target = at(self.slab, stage_of(_SLAB) * self.slab_elements + behind * t["slabW"] * self.c0)
        apart = (t["ringRows"] - rows) * t["slabW"]
        self.k.do(CopyBlocks(target, Region(self.slabs, place), pixels, held, apart, t["plane"] - pixels))

    def fetch_panel(
        self, tile: _Tile, phase: _Phase, along_m: tuple[Var, Var], along_blocks: tuple[Var, Var],
        panel: tuple[Var, Var],
    ) -> None:  # fmt: skip
        t, (first_m, rows), (start, held), (first, count) = self.t, along_m, along_blocks, panel
        all_taps = t["kernelTaps"]
        block = phase.before * t["blocks"] + start * phase.count + first * held
        inside = (first_m * all_taps * t["blocks"] + block * rows) * self.c0
        source = Region(self.packed, tile.group(self.found.groups) * t["groupWeights"] + inside)
        target = at(self.panel, stage_of(_PANEL) * self.panel_elements)
        self.k.do(CopyBlocks(target, source, count * held * rows))

    # -- products -------------------------------------------------------------------------------

    def add_chunk(
        self, tile: _Tile, phase: _Phase, runs: _Runs, taps: tuple[Expr, Expr], along_m: tuple[Var, Var],
        along_blocks: tuple[Var, Var],
    ) -> None:  # fmt: skip
        """Taps of a phase in panels: all of them in L1, or passing through it."""
        k, t, rows = self.k, self.t, along_m[1]
        with k.when(t["resident"], "!=", 0):
            k.ahead(_SLAB)
            first = k.let("panelTap", 0)
            begin = k.let("panelStart", phase.before * t["blocks"] * t["paddedM"] * self.c0)
            count = k.let("panelTaps", phase.count)
            self.add_panel(phase, runs, taps, rows, along_blocks[1], (first, begin, count))
        with k.otherwise(), k.loop("panel", ceil_div(phase.count, t["panelTaps"])) as panel:
            first = k.let("panelTap", panel * t["panelTaps"])
            count = k.let("panelTaps", least(phase.count - first, t["panelTaps"]))
            with k.fetched(_PANEL, self.panel):
                self.fetch_panel(tile, phase, along_m, along_blocks, (first, count))
            k.ahead(_SLAB)  # behind the first weights that the slab in use needs
            begin = k.let("panelStart", stage_of(_PANEL) * self.panel_elements)
            with k.when(runs.count, ">", 0):
                self.add_panel(phase, runs, taps, rows, along_blocks[1], (first, begin, count))

    def add_panel(
        self, phase: _Phase, runs: _Runs, taps: tuple[Expr, Expr], rows: Var, held: Var,
        panel: tuple[Var, Var, Var],
    ) -> None:  # fmt: skip
        """The blocks of a panel: channels of one tap after those of another."""
        k, t, (first, start, count) = self.k, self.t, panel
        channel = State("channel", 0, "the block of the slab that a step takes", U32)
        place = State("tapPlace", 0, "pixels from the slab's first one to where a tap reads", U32)
        tap = State("tap", 0, "the next one", U32)
        stay = (
            "Weights stay in L0 for a group of steps."
            if self.schedule.turned
            else "Each step takes its own weights."
        )
        note = f"The blocks of a panel: channels of one tap after those of another. {stay}"
        with k.section("AddPanel", note):
            begin = k.let("begin", first if taps[0] == Int(0) else greatest(taps[0], first))
            end = k.let("end", least(first + count, taps[1]))
            blocks = k.let("panelBlocks", count * held)
            with k.when(begin, "<", end):
                k.assign(tap, begin)
                k.assign(channel, held)  # the first block begins a tap
                span = (begin - first) * held, (end - first) * held
                with k.pieces("group", span, t["weightBlocks"]) as (group, groups):
                    self.load_weights(start, rows, blocks, (group, groups))
                    with k.pieces("step", (0, groups), t["stepBlocks"]) as (step, part):
                        with k.loop("block", part) as block:
                            with k.when(channel, "==", held):
                                k.assign(channel, 0)
                                k.assign(place, self.place_of(phase, tap))
                                k.assign(tap, tap + 1)
                            self.load_pixels(runs, (channel, place), (block, part))
                            k.assign(channel, channel + 1)
                        self.multiply(runs, rows, part, step)

    def place_of(self, phase: _Phase, tap: Expr) -> Expr:
        """Pixels from the slab's first one to where a tap reads."""
        row = tap // phase.taps[2]
        numbers = (row // phase.taps[1], row % phase.taps[1], tap % phase.taps[2])
        depth, height, width = (
            item.at[number] - each * item.delta
            for item, number, each in zip(self.along, phase.place, numbers, strict=True)
        )
        return (depth * self.t["slabH"] + height) * self.t["slabW"] + width

    def load_weights(self, start: Var, rows: Var, blocks: Var, piece: tuple[Var, Var]) -> None:
        k, (group, count) = self.k, piece
        if (
            self.schedule.turned
        ):  # 16 results of one block are a fractal, and fractals lie in the order of L0B
            place = at(self.panel, start + group * rows * self.c0)
            k.do(LoadFractals(whole(self.weights), place, count * (rows // WHOLE)))
            return
        across = Span(group * self.c0, count * self.c0, blocks * self.c0)
        k.do(
            LoadData(
                whole(self.weights), at(self.panel, start), Span(Int(0), rows, rows), across, turned=False
            )
        )

    def load_pixels(self, runs: _Runs, source: tuple[Expr, Expr], step: tuple[Var, Var]) -> None:
        """16 pixels of one block are a fractal wherever they begin."""
        k, t, (channel, place), (block, blocks) = self.k, self.t, source, step
        begin = k.let(
            "pixel", stage_of(_SLAB) * self.slab_elements + (channel * t["plane"] + place) * self.c0
        )
        with k.loop("run", runs.count) as run:
            row = (run // runs.rows * t["slabH"] + run % runs.rows) * t["slabW"]
            if self.schedule.turned:  # L0A holds the blocks of one fractal of pixels together
                target, gap = run * runs.fractals * blocks + block, blocks - 1
            else:
                target, gap = (block * runs.count + run) * runs.fractals, Int(0)
            lies = at(self.pixels, target * WHOLE * self.c0)
            k.do(LoadFractals(lies, at(self.slab, begin + row * self.c0), runs.fractals, gap=gap))

    def multiply(self, runs: _Runs, rows: Var, blocks: Expr, first: Expr) -> None:
        """A step of pixels by its weights, from block ``first`` of those that are held on."""
        weights = at(self.weights, first * rows * self.c0)
        pixels, count = whole(self.pixels), runs.count * runs.fractals * WHOLE
        sides: tuple[Slice, Slice] = (pixels, weights) if self.schedule.turned else (weights, pixels)
        sizes: tuple[Expr, Expr] = (count, rows) if self.schedule.turned else (rows, count)
        self.k.do(Mmad(whole(self.sum), *sides, *sizes, blocks * self.c0, fresh=self.fresh))
        self.k.assign(self.fresh, 0)

    def add_constant(self, runs: _Runs, rows: Var) -> None:
        """One more block: the bias, or zero, by ones."""
        k = self.k
        with k.section("AddConstant", "One more block: the bias, or zero, by ones."):
            k.do(LoadFractals(whole(self.weights), whole(self.bias), rows // WHOLE))
            k.do(LoadFractals(whole(self.pixels), whole(self.one), runs.count * runs.fractals, Int(0)))
            self.multiply(runs, rows, Int(1), Int(0))

    # -- results --------------------------------------------------------------------------------

    def store(
        self, tile: _Tile, phase: _Phase, runs: _Runs, numbers: tuple[Var, Var, Var], along_m: tuple[Var, Var]
    ) -> None:
        k, t, (index, m, number), (first, rows) = self.k, self.t, numbers, along_m
        quant = QUANT[self.found.dtype]
        if self.schedule.turned:  # pixels of 16 channels lie together, for the vector cores to turn
            slot = (index - FIRST_OF_CORE) % self.ring
            place = slot * t["tileResults"] + (m * self.phases + number) * t["phaseResults"]
            pixels, zero = runs.count * runs.fractals * WHOLE, Int(0)
            k.do(
                Fixpipe(
                    Region(self.target, place),
                    whole(self.sum),
                    pixels,
                    rows,
                    zero,
                    zero,
                    quant,
                    in_fractals=True,
                )
            )
            return
        volume = k.let("volume", t["outD"] * t["outH"] * t["outW"], U64)
        made = k.let("madeM", least(t["results"] - first, rows))
        base = k.let("base", (tile.image * t["results"] + first) * volume, U64)
        with k.loop("run", runs.count) as run:
            depth = (tile.depth + run // runs.rows) * self.strides[0] + phase.place[0]
            row = (tile.row + run % runs.rows) * self.strides[1] + phase.place[1]
            place = k.let("place", base + (depth * t["outH"] + row) * t["outW"] + tile.column, U64)
            source = at(self.sum, run * runs.fractals * rows * WHOLE)
            k.do(Fixpipe(Region(self.target, place), source, made, runs.pixels, rows, volume, quant))


def build(found: Transposed, schedule: Schedule, output: str) -> Kernel:
    """The kernel of the cube cores in a legal schedule, beside what the vector cores' text computes.
    ``output``: the address of what they store, where no vector core does."""
    return _Design(found, schedule, output).build()
