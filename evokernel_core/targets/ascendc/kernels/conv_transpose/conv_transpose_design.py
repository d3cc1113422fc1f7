"""What the cube core of a transposed convolution works on: its memories, and the tiles, phases and runs of
pixels that its loops go through."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    Expr,
    Function,
    Int,
    State,
    Var,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Memory
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import Transposed
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_tiling import fields_of
from evokernel_core.targets.ascendc.kernels.conv_transpose.first_tile import WHOLE
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import ConvTransposeSchedule
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

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
