"""Images in a frame of zeros, tile by tile: rows are placed among zeros, and their phases picked.

Places count from the first zero in front of an image, so that none is negative. What no copy fills is zeros
before its tile is loaded; a copy fills up its own first and last block.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from evokernel_core.compiler.limits import WIDTH_UNIT
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, REPEAT_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, at
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    Expr,
    Int,
    Param,
    Var,
    ceil_div,
    equal,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Enumerator, Fields, Kept, Slice, Tensor

BITS = {4: "uint32_t", 2: "uint16_t"}
"""What elements are moved as, whatever their type, by their bytes."""
_FIXED = {2: 1, 4: 3}
"""The first of GatherMask's own patterns for every second and every fourth element."""


@frozen
class Frame:
    """``before``: zeros in front of planes, rows and elements. Element w of a row, of ``size`` bytes, lies in
    phase w % ``phases``. ``tile_bytes``: most of one tile."""

    before: tuple[int, ...]
    phases: int
    size: int
    tile_bytes: int


@frozen
class Pieces:
    """``sizes`` of the image and of what is ``made`` (planes, rows, elements; of one phase for the latter),
    and of its tiles: ``rows`` and ``width`` of one, how many are ``down`` and ``across`` in a plane."""

    sizes: tuple[Expr, ...]
    made: tuple[Expr, ...]
    rows: Param
    width: Param
    down: Param
    across: Param


def pieces_of(
    k: Builder,
    frame: Frame,
    sizes: tuple[Expr, ...],
    made: tuple[Expr, ...],
    named: Callable[[str], str] = str,
) -> Pieces:
    """Long rows are cut; of short ones several make a tile. ``named``: what fields are called."""
    unit = _unit()
    most = frame.tile_bytes // frame.size // frame.phases // unit.value * unit.value
    widest = Constant("MOST_WIDTH", most, "of a phase, in the unified buffer")
    most_rows = Constant("MOST_ROWS", most_of("DataCopyPadIn", "blockCount"), "of one copy")
    _, height, length = made
    width = k.param(named("tileWidth"), round_up(equal(length, widest), unit), "of one phase", U32)
    fitting = Choice(width, "<", length, Int(1), least(widest // width, most_rows))
    rows = k.param(named("tileRows"), equal(height, k.param(named("mostRows"), fitting, "", U32)), "", U32)
    down = k.param(named("tilesRows"), ceil_div(height, rows), "", U32)
    across = k.param(named("tilesWidth"), ceil_div(length, width), "", U32)
    return Pieces(sizes, made, rows, width, down, across)


def _unit() -> Constant:
    return Constant("UNIT", WIDTH_UNIT, "elements in which pieces of a phase are whole")


@frozen
class Origin:
    """Where what is framed begins: the image among all, the row and the element of a phase in the frame, and
    the element of the result."""

    image: Expr
    row: Expr
    column: Expr
    result: Expr


class Framer:
    """The buffers of a core, and what it does with a tile."""

    def __init__(self, k: Builder, frame: Frame, pieces: Pieces, x: Tensor, y: Tensor) -> None:
        self._k, self._frame, self._pieces, self._x, self._y = k, frame, pieces, x, y
        self._phases = Constant("PHASES", frame.phases, "element w of a row: w % PHASES, at w / PHASES")
        self._block = Constant("BLOCK", BLOCK_BYTES // frame.size, "elements")
        bits, size = BITS[frame.size], frame.size
        tile = Constant("TILE", frame.tile_bytes // size, "most elements of one tile")
        self._framed, self._picked = (Buffer(name, bits, size, tile, 2) for name in ("framed", "picked"))
        self._picks = _Picks(k, self._phases, self._block, bits, size)

    def prepare(self) -> None:
        """What is done once."""
        if self._phases.value > 1:
            self._picks.write_patterns()

    def tile(self, index: Expr, origin: Origin) -> None:
        """Tile number ``index`` of the images behind an origin."""
        k, pieces, phases = self._k, self._pieces, self._phases
        _, height, length = pieces.made
        rest = k.let("rest", index // pieces.across, U64)
        column = k.let("column", index % pieces.across * pieces.width, U64)
        row = k.let("row", rest % pieces.down * pieces.rows, U64)
        plane = k.let("plane", rest // pieces.down, U64)
        rows = k.let("rows", least(height - row, pieces.rows))
        width = k.let("width", least(length - column, pieces.width))
        self._load(plane, origin.row + row, (origin.column + column) * phases, (rows, width), origin.image)
        count, wide = k.let("count", rows * width), k.let("rowWidth", length * phases, U64)
        target = k.let("target", origin.result + (plane * height + row) * wide + column, U64)
        run = {"rows": rows, "apart": wide}
        if phases.value == 1:
            k.store(self._y, target, self._framed, width, pitch=width, **run)
            return
        with k.loop("phase", phases) as phase:
            self._picks.pick(at(self._picked, phase * count), self._framed, phase, count)
        with k.loop("phase", phases) as phase:
            k.store(self._y, target + phase * length, at(self._picked, phase * count), width, **run)

    def _load(self, plane: Var, row: Expr, start: Expr, tile: tuple[Var, Var], image: Expr) -> None:
        """What of the image lies in the tile whose first element is ``start`` of a frame's row ``row``."""
        k, block, framed = self._k, self._block, self._framed
        (depth, height, width), (number, _, _) = self._pieces.sizes, self._pieces.made
        behind, above, left = (
            Constant(f"BEFORE_{name}", zeros, "zeros in front of planes, rows and elements")
            if zeros
            else Int(0)
            for name, zeros in zip("DHW", self._frame.before, strict=True)
        )
        rows, pitch = tile[0], k.let("pitch", tile[1] * self._phases)
        first, start = k.let("first", row, U64), k.let("start", start, U64)
        begin = k.let("begin", greatest(start, left), U64)
        columns = k.let("columns", _between(begin, least(start + pitch, width + left)))
        top = k.let("top", greatest(first, above), U64)
        taken: Expr = _between(top, least(first + rows, height + above))
        inside = k.let("inPlane", plane % number, U64)
        if depth != number:
            taken = Choice(inside, "<", depth + behind, taken, Int(0))
            taken = Choice(inside, ">=", behind, taken, Int(0)) if behind != Int(0) else taken
        taken = k.let("taken", Choice(columns, ">", Int(0), taken, Int(0)))
        offset = k.let("offset", begin - start)
        filled = k.let("filled", round_up(offset % block + columns, block))
        with k.when(taken * filled, "<", rows * pitch):
            k.clear(framed, rows * pitch)
        with k.when(taken, ">", 0):
            planes = (image + plane // number) * depth + (inside - behind)
            origin = k.let("source", (planes * height + (top - above)) * width + (begin - left), U64)
            place = k.let("place", (top - first) * pitch + offset // block * block)
            zeros = filled - offset % block - columns
            k.load(
                at(framed, place), self._x, origin, columns,
                rows=taken, apart=width, pitch=pitch, before=offset % block, zeros=zeros,
            )  # fmt: skip


def _between(begin: Expr, end: Expr) -> Expr:
    return Choice(end, ">", begin, end - begin, Int(0))


class _Picks:
    """A phase out of all rows of a tile, which follow each other without gaps: bits that repeat after UNIT
    elements of each phase, or a pattern of the vector unit's own."""

    def __init__(self, k: Builder, phases: Constant, block: Constant, bits: str, size: int) -> None:
        self._k, self._phases, self._block, self._size = k, phases, block, size
        self._first = Constant("FIRST_PATTERN", _FIXED.get(phases.value, 0), "of GatherMask's own")
        self._period = Constant("PERIOD", WIDTH_UNIT * phases.value, "elements of one round of a pattern")
        self._word = Constant("WORD_BITS", 8 * size)
        words = -(-self._period.value // self._word.value)
        self._words = Constant("WORDS", words, "of a pattern that are read")
        self._pitch = Constant("PATTERN", -(-words // block.value) * block.value, "words of a pattern")
        self._patterns = Buffer("patterns", bits, size, phases * self._pitch)

    def write_patterns(self) -> None:
        """A bit for each element of a period that belongs to the phase."""
        if self._first.value:
            return
        k, phases = self._k, self._phases
        ones = sum(1 << bit for bit in range(0, self._word.value, phases.value))
        every = Constant("EVERY", ones, "every PHASES-th bit of a word")
        behind = Constant(
            "BEHIND", phases.value - self._word.value % phases.value, "of a phase from word to word"
        )
        with (
            k.section("WritePatterns"),
            k.loop("phase", phases) as phase,
            k.loop("word", self._words) as word,
        ):
            first = k.let("bit", (phase + word * behind) % phases)
            bits = Choice(first, "<", self._word, every << first, Int(0))
            k.put(at(self._patterns, phase * self._pitch + word), bits)

    def pick(self, target: Slice, source: Buffer, phase: Var, count: Var) -> None:
        """The phase of ``count`` elements of each."""
        kept, lanes = Kept(), count * self._phases
        repeats = ceil_div(lanes * self._size, REPEAT_BYTES)
        if self._first.value:
            own = Converted(self._first + phase, "uint8_t")
            step = _params(Int(1), Int(0))
            self._k.call("GatherMask", target, source, own, _REDUCED, lanes, step, kept, repeats=repeats)
            return
        step = _params(count // _unit(), self._period // self._block)
        pattern = at(self._patterns, phase * self._pitch)
        self._k.call(
            "GatherMask", target, source, pattern, _REDUCED, self._period, step, kept, repeats=repeats
        )


_REDUCED = Enumerator("true")
"""Elements that are kept follow each other, as many as the next operand says are looked at."""


def _params(repeats: Expr, step: Expr) -> Fields:
    """The source in whole blocks, so many times, ``step`` blocks apart."""
    values = {
        "src0BlockStride": Int(1),
        "repeatTimes": repeats,
        "src0RepeatStride": step,
        "src1RepeatStride": Int(0),
    }
    types = {
        "src0BlockStride": "uint8_t",
        "repeatTimes": "uint16_t",
        "src0RepeatStride": "uint16_t",
        "src1RepeatStride": "uint8_t",
    }
    return Fields("GatherMaskParams", values, types, is_short=True)
