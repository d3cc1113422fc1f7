"""What every scan shares: its tensors, how tiles are dealt to cores, the combination, and truth values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from evokernel_core.compiler.problems.scan import Scan, block_of, row_block_of
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, at, whole
from evokernel_core.targets.ascendc.ir.expr import U64, Constant, CoreCount, Expr, Int, Var, ceil_div, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Enumerator, Number
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.scan.scan_schedule import MASKS
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_INSTRUCTION = {"sum": "Add", "prod": "Mul", "max": "Max", "min": "Min"}
_IDENTITY = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf, "logaddexp": -math.inf}
_ONE = Number("ONE", 1.0)
_LOWEST = Number("LOWEST", -3.4028234663852886e38, "as -inf less -inf is no number")
_MOST_REPEATS = Constant("MOST_REPEATS", 255)
HALF_TURN = 64
"""float32 elements of half of the bank groups."""


def rounded(value: Expr, multiple: Constant) -> Expr:
    """The least multiple that is no less."""
    return ceil_div(value, multiple) * multiple


class Scanning:
    """A kernel of scans; ``most``: elements of its longest combination."""

    def __init__(self, note: str, scan: Scan, most: int, tile: int, out_buffers: int) -> None:
        self.k, self.scan = Builder(note), scan
        self.ctype, size = CPP_TYPE[scan.dtype], ITEM_SIZE[scan.dtype]
        self.is_float, self.instruction = self.ctype == "float", _INSTRUCTION.get(scan.op, "")
        self.x = self.k.input("x", parameter(scan.input), self.ctype, size)
        if scan.mask:
            self.mask = self.k.input("mask", parameter(scan.mask), "uint8_t", 1)
        self.y = self.k.output("y", "output", self.ctype, size)
        self.identity = Number("IDENTITY", _IDENTITY[scan.op], "leaves what it is combined with as it is")
        self.block = Constant("BLOCK", block_of(scan), "elements of 32 bytes")
        self.row_block = Constant("ROW_BLOCK", row_block_of(scan), "elements of which a row takes whole ones")
        self.tile = Constant("TILE", tile, "most elements of a tile")
        self.taken = Buffer("taken", self.ctype, size, self.tile, 2)
        self.made = Buffer("made", self.ctype, size, self.tile, out_buffers)
        self._truth = Buffer("truth", "uint8_t", 1, self.tile, 2)
        self._masks = Constant("MASKS", MASKS, "truth values that become numbers at a time")
        # Half a turn of the banks lies between the two, so that both are read at once.
        self._larger = Buffer("larger", "float", 4, Int(most + HALF_TURN))
        self._gap = Buffer("gap", "float", 4, Int(most))

    @contextmanager
    def tiles(self, units: Expr, each: Expr) -> Iterator[tuple[Var, Expr, Expr]]:
        """Tile by tile of the units of a core, each of so many. What a tile leaves behind, the next one of
        its unit finds. The unit, its turn, and the number of the tile, from the end in reverse."""
        k = self.k
        share = k.param("unitsPerCore", ceil_div(units, CoreCount()))
        with k.cores("core", k.param("coresUsed", ceil_div(units, share)), even=True) as core:
            first = k.let("first", core * share, U64)
            left = k.let("left", units - first, U64)
            with k.loop("turn", k.let("turns", least(left, share) * each, U64), U64) as turn:
                unit, piece = k.let("unit", first + turn // each, U64), k.let("piece", turn % each, U64)
                yield unit, piece, each - 1 - piece if self.scan.reverse else piece

    def part(self, name: str, whole: Expr, start: Expr, most: Expr) -> Var:
        """How much of a whole lies behind a start, at most so much."""
        return self.k.let(name, least(self.k.let(f"{name}Left", whole - start, U64), most))

    def load(self, offset: Expr, rows: Expr, count: Expr, apart: Expr, pitch: Expr) -> None:
        """The rows of a tile and their truth values, each with identities in its last block."""

        def missing(block: Constant) -> Expr:
            return (block - count % block) % block

        place, behind = (self.taken, self.x, offset, count), missing(self.block)
        self.k.load(*place, rows=rows, apart=apart, pitch=pitch, zeros=behind, filler=self.identity)
        if self.scan.mask:
            place, behind = (self._truth, self.mask, offset, count), missing(self.row_block)
            self.k.load(*place, rows=rows, apart=apart, pitch=pitch, zeros=behind)

    def fill_gaps(self, rows: Expr, count: Expr, pitch: Expr, elements: Expr) -> None:
        """Identities between rows, which truth values hold apart, and behind the last one in the tile."""
        k = self.k
        with k.section("FillGaps", "Elements that no row has are identities."):
            used = k.let("used", rounded(count, self.block))
            if self.scan.mask:
                with (
                    k.when(used, "<", pitch),
                    k.pieces("line", (0, rows - 1), _MOST_REPEATS) as (line, times),
                ):
                    value, gap = Converted(self.identity, self.ctype), at(self.taken, line * pitch + used)
                    step = Converted(pitch // self.block, "uint8_t")
                    how = (pitch - used, Converted(times, "uint8_t"), Int(1), step)
                    k.call("Duplicate", gap, value, *how, repeats=times)
            end = k.let("end", (rows - 1) * pitch + used)
            with k.when(end, "<", elements):
                self.fill(at(self.taken, end), elements - end)

    def use_mask(self, elements: Expr) -> None:
        """Elements whose truth value is false become 0, as a product with it makes them."""
        k, sizes = self.k, (("halves", "half", 2), ("factors", "float", 4))
        half, factor = (Buffer(name, ctype, size, self._masks) for name, ctype, size in sizes)
        with k.section("UseMask"), k.pieces("at", (0, elements), self._masks) as (place, count):
            self.cast(half, at(self._truth, place), count)
            if self.is_float:
                self.cast(factor, half, count)
            x = at(self.taken, place)
            self.k.on("Mul", x, x, factor if self.is_float else half, count=count)

    # -- instructions ---------------------------------------------------------------------------

    def cast(self, to: Place, source: Place, count: Expr, mode: str = "NONE") -> None:
        self.k.on("Cast", to, source, Enumerator(f"RoundMode::CAST_{mode}"), count=count)

    def copy(self, to: Place, source: Place, count: Expr) -> None:
        self.k.on("Muls", to, source, _ONE, count=count)

    def fill(self, to: Place, count: Expr) -> None:
        """Identities, in the type of the buffer."""
        value = Converted(self.identity, whole(to).buffer.ctype)
        self.k.call("Duplicate", to, value, count, repeats=ceil_div(count, LANES))

    def combine(self, to: Place, one: Place, other: Place, count: Expr) -> None:
        """Element by element. log(exp(a) + exp(b)) is larger + log(1 + exp(smaller - larger))."""
        if self.scan.op != "logaddexp":
            self.k.on(self.instruction, to, one, other, count=count)
            return
        larger, gap = self._larger, self._gap
        self.k.on("Max", larger, one, other, count=count)
        self.k.on("Min", gap, one, other, count=count)
        self.k.on("Maxs", to, larger, _LOWEST, count=count)
        self.k.on("Sub", gap, gap, to, count=count)
        self.k.on("Exp", gap, gap, count=count)
        self.k.on("Adds", gap, gap, _ONE, count=count)
        self.k.on("Ln", gap, gap, count=count)
        self.k.on("Add", to, larger, gap, count=count)
