"""The cube core of a transposed convolution: weights of each tap times the slab, shifted to where it reads.

The slab of a tile and the panels of weights travel into L1 by themselves; results of a phase add up in L0C.
"""

from __future__ import annotations

from evokernel_core.compiler.problems.products import QUANT
from evokernel_core.targets.ascendc.ir.builder import at, whole
from evokernel_core.targets.ascendc.ir.cube import (
    ClearBlocks,
    CopyBlocks,
    Fixpipe,
    LoadData,
    LoadFractals,
    Meet,
    Mmad,
    stage_of,
)
from evokernel_core.targets.ascendc.ir.expr import (
    FIRST_OF_CORE,
    LAST_OF_CORE,
    U32,
    U64,
    Choice,
    Condition,
    CubeSpan,
    Expr,
    Int,
    State,
    Var,
    ceil_div,
    greatest,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Kernel, Region, Slice
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_design import (
    STAGES,
    ConvTransposeDesign,
    ConvTransposeTile,
    Phase,
    Runs,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import Transposed
from evokernel_core.targets.ascendc.kernels.conv_transpose.first_tile import WHOLE
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import ConvTransposeSchedule

SLAB_READY, SLAB_FREE, RESULT_READY, RESULT_FREE, WEIGHTS_READY = (
    "SLAB_READY", "SLAB_FREE", "RESULT_READY", "RESULT_FREE", "WEIGHTS_READY"
)  # fmt: skip
"""Flags between the vector cores and their cube core."""
_SLAB, _PANEL = "slab", "panel"


class _Cube(ConvTransposeDesign):
    """The kernel of a schedule."""

    # -- what a core does -----------------------------------------------------------------------

    def build(self) -> Kernel:
        k, t = self.k, self.t
        if self.schedule.own_weights:
            k.take(WEIGHTS_READY)
        else:
            k.do(Meet())
        if self.problem.needs_constant:
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
                if self.problem.needs_constant:
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
        with k.loop("stage", STAGES) as stage:
            behind = at(self.slab, stage * self.slab_elements + rows * self.c0)
            k.do(ClearBlocks(behind, t["plane"] - rows, t["chunk"], rows))

    def keep_weights(self, tile: ConvTransposeTile) -> None:
        """All weights of a group stay in L1 where they fit."""
        k, t = self.k, self.t
        group = k.let("group", tile.group(self.problem.groups))
        with k.when(t["resident"], "!=", 0), k.kept(self.panel, group):
            blocks = t["kernelTaps"] * t["blocks"] * t["paddedM"]
            k.do(CopyBlocks(whole(self.panel), Region(self.packed, group * t["groupWeights"]), blocks))

    def keep_constant(self, tile: ConvTransposeTile, m: Var, along_m: tuple[Var, Var]) -> None:
        k, t, (first, rows) = self.k, self.t, along_m
        group = tile.group(self.problem.groups)
        with k.kept(self.bias, group * t["tilesM"] + m):
            place = (group + 1) * t["groupWeights"] - (t["paddedM"] - first) * self.c0
            k.do(CopyBlocks(whole(self.bias), Region(self.packed, place), rows))

    def add_phase(
        self, index: Var, tile: ConvTransposeTile, numbers: tuple[Var, Var], along_m: tuple[Var, Var]
    ) -> None:
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
            if self.problem.bias is not None:
                self.add_constant(runs, rows)
            elif self.problem.needs_constant:
                with k.when(self.fresh, "!=", 0):  # no tap reaches this phase
                    self.add_constant(runs, rows)
        with k.stored():
            self.store(tile, phase, runs, (index, m, number), along_m)

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
        self, tile: ConvTransposeTile, phase: Phase, along_m: tuple[Var, Var], along_blocks: tuple[Var, Var],
        panel: tuple[Var, Var],
    ) -> None:  # fmt: skip
        t, (first_m, rows), (start, held), (first, count) = self.t, along_m, along_blocks, panel
        all_taps = t["kernelTaps"]
        block = phase.before * t["blocks"] + start * phase.count + first * held
        inside = (first_m * all_taps * t["blocks"] + block * rows) * self.c0
        source = Region(self.packed, tile.group(self.problem.groups) * t["groupWeights"] + inside)
        target = at(self.panel, stage_of(_PANEL) * self.panel_elements)
        self.k.do(CopyBlocks(target, source, count * held * rows))

    # -- products -------------------------------------------------------------------------------

    def add_chunk(
        self, tile: ConvTransposeTile, phase: Phase, runs: Runs, taps: tuple[Expr, Expr],
        along_m: tuple[Var, Var], along_blocks: tuple[Var, Var],
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
        self, phase: Phase, runs: Runs, taps: tuple[Expr, Expr], rows: Var, held: Var,
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

    def place_of(self, phase: Phase, tap: Expr) -> Expr:
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
        across = CubeSpan(group * self.c0, count * self.c0, blocks * self.c0)
        k.do(
            LoadData(
                whole(self.weights), at(self.panel, start), CubeSpan(Int(0), rows, rows), across, turned=False
            )
        )

    def load_pixels(self, runs: Runs, source: tuple[Expr, Expr], step: tuple[Var, Var]) -> None:
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

    def multiply(self, runs: Runs, rows: Var, blocks: Expr, first: Expr) -> None:
        """A step of pixels by its weights, from block ``first`` of those that are held on."""
        weights = at(self.weights, first * rows * self.c0)
        pixels, count = whole(self.pixels), runs.count * runs.fractals * WHOLE
        sides: tuple[Slice, Slice] = (pixels, weights) if self.schedule.turned else (weights, pixels)
        sizes: tuple[Expr, Expr] = (count, rows) if self.schedule.turned else (rows, count)
        self.k.do(Mmad(whole(self.sum), *sides, *sizes, blocks * self.c0, fresh=self.fresh))
        self.k.assign(self.fresh, 0)

    def add_constant(self, runs: Runs, rows: Var) -> None:
        """One more block: the bias, or zero, by ones."""
        k = self.k
        with k.section("AddConstant", "One more block: the bias, or zero, by ones."):
            k.do(LoadFractals(whole(self.weights), whole(self.bias), rows // WHOLE))
            k.do(LoadFractals(whole(self.pixels), whole(self.one), runs.count * runs.fractals, Int(0)))
            self.multiply(runs, rows, Int(1), Int(0))

    # -- results --------------------------------------------------------------------------------

    def store(
        self,
        tile: ConvTransposeTile,
        phase: Phase,
        runs: Runs,
        numbers: tuple[Var, Var, Var],
        along_m: tuple[Var, Var],
    ) -> None:
        k, t, (index, m, number), (first, rows) = self.k, self.t, numbers, along_m
        quant = QUANT[self.problem.dtype]
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


def build(problem: Transposed, schedule: ConvTransposeSchedule, output: str) -> Kernel:
    """The kernel of the cube cores in a legal schedule, beside what the vector cores' text computes.
    ``output``: the address of what they store, where no vector core does."""
    return _Cube(problem, schedule, output).build()
