"""The tile of a transposed convolution: what ComputeTiling chooses from the sizes of a call."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Cheapest,
    Choice,
    Constant,
    Expr,
    Index,
    Int,
    Param,
    Size,
    Var,
    ceil_div,
    expr,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import Transposed
from evokernel_core.targets.ascendc.kernels.conv_transpose.phases import Along, along
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import ConvTransposeSchedule

WHOLE = Constant("FRACTAL", FRACTAL)
NEVER = 1 << 32
"""What costs more than any choice that fits."""
_MOST_HALVINGS = 24
"""Of a tile, whose pixels are fewer than 4,096."""
SIDES = "DHW"
_Three = tuple[Param, Param, Param]


class TileCursor:
    """Adds the fields one after the other; each is made of those before."""

    def __init__(self, k: Builder, problem: Transposed, schedule: ConvTransposeSchedule) -> None:
        self.k, self.problem, self.schedule = k, problem, schedule
        self.known: dict[str, Param] = {}
        self.size = ITEM_SIZE[problem.dtype]
        self.ring = Constant("RING", schedule.ring, "slabs that lie in the workspace for each cube core")
        self.c0 = Constant("C0", BLOCK_BYTES // self.size, "channels of one block")
        axis_w = problem.axes[2] if schedule.turned else evolve(problem.axes[2], stride=1)
        self.axes = (*problem.axes[:2], axis_w)
        """As they are computed: outputs along W lie together unless results are turned."""
        self.strides = tuple(axis.stride for axis in self.axes)

    def __getitem__(self, name: str) -> Param:
        return self.known[name]

    def add(self, name: str, value: Index, note: str = "", ctype: str = U32) -> Param:
        result = self.k.param(name, expr(value), note, ctype)
        self.known[name] = result
        return result

    def host(self, name: str, value: Index, note: str = "") -> Param:
        """A number on the way to fields."""
        result = self.k.on_host(name, expr(value), note)
        self.known[name] = result
        return result

    def equal(self, name: str, length: Expr, most: Expr) -> Expr:
        """The length of equal pieces of at most ``most``."""
        return ceil_div(length, self.host(name, ceil_div(length, most)))

    def three(self, name: str) -> _Three:
        first, second, third = (self.known[f"{name}{letter}"] for letter in SIDES)
        return first, second, third

    # -- sizes ----------------------------------------------------------------------------------

    def sizes(self) -> tuple[Along, Along, Along]:
        k, problem = self.k, self.problem
        images = self.host("images", Size(problem.batch) * problem.groups, "times groups")
        channels = self.add("channels", Size(problem.channels), "of the input, in one group")
        results = self.add("results", Size(problem.results), "output channels of one group")
        for letter, length, taps in zip(SIDES, problem.inputs, problem.kernel, strict=True):
            self.add(f"in{letter}", Size(length), "", U64)
            self.add(f"kernel{letter}", Size(taps))
        for part in (images, channels, results, *self.three("in"), *self.three("kernel")):
            k.require(part, ">=", 1)
        for axis, letter in zip(problem.axes, SIDES, strict=True):
            whole = (self[f"in{letter}"] - 1) * axis.stride + (self[f"kernel{letter}"] - 1) * axis.dilation
            whole = self.host(f"whole{letter}", whole + axis.output_padding + 1, "with the paddings")
            k.require(whole, ">", 2 * axis.padding)
            self.add(f"out{letter}", whole - 2 * axis.padding, "", U64)
        if self.schedule.turned:
            for axis, letter in zip(problem.axes, SIDES, strict=True):
                made = self[f"out{letter}"] // (axis.stride if problem.is_pooled else 1)
                self.add(f"made{letter}", made, "what is stored of them", U64)
                k.require(self[f"made{letter}"], ">=", 1)
        first, second, third = (
            along(k, axis, letter, self[f"kernel{letter}"])
            for axis, letter in zip(self.axes, SIDES, strict=True)
        )
        for side, letter in zip((first, second, third), SIDES, strict=True):
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
        problem, schedule, span = self.problem, self.schedule, spans[2].span
        out_w = self["outW"]
        sums = problem.chip.memory.l0c_bytes // schedule.c_slots // 4
        held = self.host("heldPixels", self._down(Int(sums) // self["tileM"]), "in L0C")
        step = min(schedule.most_n, schedule.step_fractals(problem) * FRACTAL)
        most_n = Constant("MOST_N", step, "output pixels of one tile")
        most = self.host("mostPixels", least(most_n, held))
        axis_h, axis_w = problem.axes[1:]
        shares_zeros = axis_w.padding == axis_w.output_padding == 0 and axis_h.stride == self.strides[2] == 1
        flat = Choice(out_w * 2, "<=", most, Int(1), Int(0)) if shares_zeros else Int(0)
        self.add("flat", flat, "whole rows follow one another in a tile, without gaps")
        depths, heights, columns = (
            ceil_div(self[f"out{letter}"], stride) for letter, stride in zip(SIDES, self.strides, strict=True)
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
            cost = Choice(ceil_div(value, Int(1) << part), ">", Int(1), Int(NEVER), part)
            self.host(
                f"{name}Halvings", Cheapest(part, Int(0), Int(_MOST_HALVINGS // 2), cost), "until one is left"
            )
        times, given = Var("times", U64), list[tuple[Var, Expr]]()

        def tried(name: str, value: Expr) -> Var:
            given.append((Var(f"{name}Tried", U64), value))
            return given[-1][0]

        deep, high, wide = self._halved(self._shifts(times, tried))
        sides = tried("deep", deep), tried("high", high), tried("wide", wide)
        cost = Choice(self._plane(sides, spans), ">", most, Int(NEVER), times)
        search = Cheapest(times, Int(0), Int(_MOST_HALVINGS), cost, tuple(given))
        chosen = self.host("halvings", search, "of the tile")
        shifts = self._shifts(chosen, self.host)
        notes = ("planes and rows of one phase, and output columns", "", "")
        for letter, side, note in zip(SIDES, self._halved(shifts), notes, strict=True):
            self.add(f"tile{letter}", side, note)
        slab = zip(SIDES, self._slab(self.three("tile"), spans), strict=True)
        depth, height, width = (self.host(f"side{letter}", side) for letter, side in slab)
        plane = self.host("slabPixels", depth * height * width + spans[2].span + WHOLE)
        self.k.require(plane, "<=", most, "the taps lie too far apart for L1")
        for letter, length in zip(SIDES, (depth, height, width), strict=True):
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
        depth, height, width = (side + span.span for side, span in zip(tile, spans, strict=True))
        return depth, height, self._flat(self["outW"], width)

    def _plane(self, tile: tuple[Expr, Expr, Expr], spans: tuple[Along, Along, Along]) -> Expr:
        depth, height, width = self._slab(tile, spans)
        return depth * height * width + spans[2].span + WHOLE  # read past the last row, in whole fractals
