"""The kernel of method turn: tiles are loaded in runs of the input, turned in the unified buffer, and stored
in runs of the result.

How a tile lies in both buffers is that of the sizes it was planned for (tiles.py). At other sizes it has no
more elements along any axis; where runs would be longer, or would not go on in memory, fewer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from attrs import evolve, frozen

from evokernel_core.compiler.shapes.boxes import Box
from evokernel_core.compiler.shapes.sums import Sum
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, REPEAT_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, at, read_as, transpose
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    Expr,
    Int,
    Size,
    Var,
    ceil_div,
    compared,
    expr,
    greatest,
    is_open,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Enumerator,
    Kernel,
    Number,
    Operand,
    Ratio,
    Slice,
    Tensor,
)
from evokernel_core.targets.ascendc.kernels.layout.tiles import MOST_ROWS, ROWS, Extents, Sides, squares
from evokernel_core.targets.ascendc.kernels.rendering import RAW, parameter

_MOST_GAP = 0xFFFFFFFF
"""Bytes between the rows of one copy."""
_NONE = Enumerator("RoundMode::CAST_NONE")


@frozen
class _TransposedAxis:
    """``tile``: elements of the axis in a whole tile; distances in the input, of which ``back`` says that
    they lead backwards, in the result, and in the tile as it is loaded and as it is stored."""

    size: Expr
    tile: Expr
    source: Expr
    back: bool
    result: Expr
    taken: Expr
    made: Expr

    @property
    def is_whole(self) -> bool:
        """Whether every tile has all of it, at any sizes."""
        has_any = is_open(self.size) or is_open(self.tile)
        return not has_any and compared(self.size, "<=", self.tile, {})

    @property
    def number(self) -> Expr:
        """How many tiles there are along it."""
        return self.size if self.tile == Int(1) else ceil_div(self.size, self.tile)


@frozen
class _Piece:
    """Of each axis how many elements a tile has; where it begins in the input and in the result."""

    counts: tuple[Expr, ...]
    source: Expr
    result: Expr


def build(
    box: Box,
    planned: tuple[Extents, ...],
    sides: Sides,
    stages: tuple[int, int],
    width: int,
    *,
    squared: bool,
) -> Kernel:
    """The kernel of a plan. ``stages``: tiles that are loaded and stored at a time."""
    k = Builder(
        "Tiles are loaded in runs of the input, turned in the unified buffer and stored in runs of the\n"
        "result. Elements are moved as they are, so only their width matters."
    )
    x, y = k.input("x", parameter(box.source), RAW[width], width), k.output("y", "output", RAW[width], width)
    tiling = _Tiling(k, box, planned, sides, width, squared=squared)
    turner = (_Squares if squared else _Table)(k, tiling, sides, stages, width)
    turner.prepare()
    number: Expr = Int(1)
    for axis in tiling.axes:
        number = number * axis.number
    tiles = k.param("tiles", number)
    k.require(tiles, ">=", 1)
    with k.cores("tile", tiles) as tile:
        piece = _piece(k, tiling, tile)
        mover = _Mover(k, tiling, sides, piece, width)
        mover.load(x, turner.source)
        turner.turn(piece)
        mover.store(y, turner.target)
    return k.kernel()


# -- fields of the tiling -------------------------------------------------------------------------


def _known(k: Builder, name: str, value: Sum, note: str = "") -> Expr:
    number = value.constant
    return k.param(name, Size(value), note) if number is None else _number(name, number, note)


def _number(name: str, value: int, note: str = "") -> Expr:
    words = "".join(f"_{one}" if one.isupper() else one for one in name).upper()
    return Int(value) if value <= 1 else Constant(words, value, note)


class _Tiling:
    """Fields of the tiling: how a tile of ``axes`` lies in both buffers. ``start``: elements of the input in
    front of the first one. ``row`` and ``pitch``: elements from row to row of the tile as it is loaded and as
    it is stored, ``run`` those of a run that is stored; ``taken`` and ``made``: all of both tiles, gaps
    included."""

    def __init__(
        self, k: Builder, box: Box, planned: tuple[Extents, ...], sides: Sides, width: int, *, squared: bool
    ) -> None:
        self._k, self._sides, self._width = k, sides, width
        numbered = list(enumerate(box.axes))
        self.start = _known(k, "start", box.from_start)
        self._sizes = [_known(k, f"size{i}", Sum.of(axis.size)) for i, axis in numbered]
        back = [axis.from_stride < 0 for axis in planned]
        forth = [axis.from_stride.times(Sum.number(-1 if back[i] else 1)) for i, axis in numbered]
        self._sources = [
            _known(k, f"source{i}", item, "elements in the input") for i, item in enumerate(forth)
        ]
        results = [_known(k, f"result{i}", axis.to_stride, "elements in the result") for i, axis in numbered]
        self._tiles = [
            self._field(f"tile{i}", least(size, most) if is_open(size) else Int(most))
            for i, (size, most) in enumerate(zip(self._sizes, sides.tile, strict=True))
        ]
        self._taken: list[Expr] = [Int(0)] * len(back)
        self._made = list(self._taken)
        (self._square if squared else self._gather)()
        local = self._tiles, self._sources, back, results, self._taken, self._made
        self.axes = tuple(map(_TransposedAxis, self._sizes, *local))

    def _field(self, name: str, value: Expr, note: str = "") -> Expr:
        """A field where only the call knows the value, else a named number."""
        if is_open(value):
            return self._k.param(name, value, note, U32)
        return _number(name, value.evaluate({}), note)

    def _gather(self) -> None:
        """Runs of any axes; rows along the others, which begin on blocks."""
        self._shorten()
        block = Constant("BLOCK", BLOCK_BYTES // self._width, "elements")
        span, run = expr(1), expr(1)
        for i in self._sides.from_run:
            self._taken[i] = self._sources[i]
            span = span + (self._tiles[i] - 1) * self._sources[i]
        for i in self._sides.to_run:
            self._made[i] = run
            run = run * self._tiles[i]
        self.run = self._field("toRun", run, "elements of a run that is stored")
        self.row, self.taken = self._rows("from", round_up(span, block), self._sides.from_rows, self._taken)
        self.pitch, self.made = self._rows("to", round_up(run, block), self._sides.to_rows, self._made)

    def _shorten(self) -> None:
        """Runs that are loaded are as long as planned at most; those that are stored go on behind axes that
        are whole."""
        tiles, sources, sides = self._tiles, self._sources, self._sides
        span, run, whole = expr(1), expr(1), expr(1)
        for i in sides.from_run:
            if is_open(sources[i]):
                most = Constant("FROM_RUN", sides.from_span, "most elements of a run that is loaded")
                fitting = least(tiles[i], (most - span) // greatest(sources[i], 1) + 1)
                tiles[i] = self._field(f"fitting{i}", Choice(span, "<=", most, fitting, Int(1)))
            span = span + (tiles[i] - 1) * sources[i]
        for inner, i in zip(sides.to_run, sides.to_run[1:], strict=False):
            run, whole = run * tiles[inner], whole * self._sizes[inner]
            if is_open(whole) or is_open(run):
                tiles[i] = self._field(f"going{i}", Choice(run, "==", whole, tiles[i], Int(1)))

    def _square(self) -> None:
        """Two axes in squares, and planes of them along the others."""
        (column,), (row, *others) = self._sides.from_run, self._sides.from_rows
        tiles, width = self._tiles, self._width
        if is_open(self._sources[column]):
            self._k.require(self._sources[column], "==", 1)
        unit = Constant(
            "UNIT", max(squares(width), BLOCK_BYTES // width), "rows are whole squares and blocks"
        )
        high = Constant("ROW_UNIT", max(unit.value, ROWS), "of rows that are stored")
        self.run = tiles[row]
        self.row = self._field(
            "fromPitch", round_up(tiles[column], unit), "from row to row as they are loaded"
        )
        self.pitch = self._field("toPitch", round_up(tiles[row], high), "from row to row as they are stored")
        self._taken[column], self._taken[row] = Int(1), self.row
        self._made[row], self._made[column] = Int(1), self.pitch
        plane, turned = self.row * round_up(tiles[row], ROWS), round_up(tiles[column], _square(width))
        _, self.taken = self._rows("fromPlane", plane, others, self._taken)
        _, self.made = self._rows("toPlane", self.pitch * turned, others, self._made)

    def _rows(self, name: str, value: Expr, rows: Sequence[int], local: list[Expr]) -> tuple[Expr, Expr]:
        """Notes how far the elements of the axes of rows lie apart; elements of a row, and of all."""
        pitch = whole = self._field(f"{name}Pitch", value, "elements from row to row")
        for i in rows:
            local[i] = self._field(f"{name}{i}", whole)
            whole = whole * self._tiles[i]
        return pitch, self._field(f"{name}Elements", whole, "of a tile, gaps included")


def _square(width: int) -> Constant:
    return Constant("SQUARE_COLUMNS", squares(width), "of one transposition")


# -- a tile ---------------------------------------------------------------------------------------


def _piece(k: Builder, tiling: _Tiling, tile: Var) -> _Piece:
    """The tile of a number, the last axis first."""
    counts: list[Expr] = []
    source, result, rest = tiling.start, expr(0), expr(tile)
    for i, axis in reversed(list(enumerate(tiling.axes))):
        if axis.is_whole:
            counts.insert(0, axis.size)
            continue
        number = axis.number
        begin = k.let(f"begin{i}", (rest % number if i else rest) * axis.tile, U64)
        rest = k.let(f"rest{i}", rest // number, U64) if i else rest
        counts.insert(
            0, Int(1) if axis.tile == Int(1) else k.let(f"count{i}", least(axis.size - begin, axis.tile))
        )
        source = _away(source, begin, axis)
        result = result + begin * axis.result
    return _Piece(tuple(counts), k.let("source", source, U64), k.let("result", result, U64))


def _away(offset: Expr, steps: Expr, axis: _TransposedAxis) -> Expr:
    """A place in the input so many steps along an axis from another."""
    away = steps * axis.source
    return offset - away if axis.back else offset + away


_Copy = Callable[..., None]


class _Mover:
    """The copies of a tile: rows along one axis at a time, those along others one after another."""

    def __init__(self, k: Builder, tiling: _Tiling, sides: Sides, piece: _Piece, width: int) -> None:
        self._k, self._axes, self._sides, self._piece, self._width = k, tiling.axes, sides, piece, width
        self._block = Constant("BLOCK", BLOCK_BYTES // width, "elements")

    def load(self, x: Tensor, target: Buffer) -> None:
        """Axes that lead backwards end where a whole tile would end, so that the table stays right."""
        axes, counts, rows = self._axes, self._piece.counts, self._sides.from_rows
        run, longest, shift, first = expr(1), expr(1), expr(0), self._piece.source
        for i in self._sides.from_run:
            is_first = run == longest == axes[i].taken == Int(1)
            run = counts[i] if is_first else run + (counts[i] - 1) * axes[i].taken
            longest = longest + (axes[i].tile - 1) * axes[i].taken
            if axes[i].back:
                first = _away(first, counts[i] - 1, axes[i])
                shift = shift + (axes[i].tile - counts[i]) * axes[i].taken
        with self._each(rows[1:], "from") as steps:
            for i, step in steps:
                first, shift = _away(first, step, axes[i]), shift + self._local(i, step)

            def copy(row: Expr, length: Expr, **several: Any) -> None:
                place = shift + self._local(rows[0], row) if rows else shift
                # Copies begin on blocks, with zeros in front of a run that does not.
                left = place % self._block if any(axes[i].back for i in self._sides.from_run) else Int(0)
                origin = _away(first, row, axes[rows[0]]) if rows else first
                self._k.load(at(target, place - left), x, origin, length, before=left, **several)

            self._rows(
                copy, rows, self._k.let("loadedRun", run), longest, [(one.source, one.taken) for one in axes]
            )

    def store(self, y: Tensor, source: Buffer) -> None:
        """Runs go on as long as the tile has whole axes."""
        axes, counts, rows = self._axes, self._piece.counts, self._sides.to_rows
        run, longest = expr(1), expr(1)
        for i in self._sides.to_run:
            run, longest = run * counts[i], longest * axes[i].tile
        first, place = self._piece.result, expr(0)
        with self._each(rows[1:], "to") as steps:
            for i, step in steps:
                first, place = first + step * axes[i].result, place + step * axes[i].made

            def copy(row: Expr, length: Expr, **several: Any) -> None:
                along = (axes[rows[0]].result, axes[rows[0]].made) if rows else (0, 0)
                self._k.store(
                    y, first + row * along[0], at(source, place + row * along[1]), length, **several
                )

            self._rows(
                copy, rows, self._k.let("storedRun", run), longest, [(one.result, one.made) for one in axes]
            )

    @contextmanager
    def _each(self, rows: Sequence[int], side: str) -> Iterator[list[tuple[int, Var]]]:
        """Loops over the elements of axes, the innermost last."""
        with ExitStack() as loops:
            counts = self._piece.counts
            yield [
                (i, loops.enter_context(self._k.loop(f"{side}{i}", counts[i], U64))) for i in reversed(rows)
            ]

    def _local(self, i: int, step: Expr) -> Expr:
        axis = self._axes[i]
        return ((axis.tile - 1) - step if axis.back else step) * axis.taken

    def _rows(
        self, copy: _Copy, rows: Sequence[int], run: Expr, longest: Expr, apart: Sequence[tuple[Expr, Expr]]
    ) -> None:
        """The rows along the first axis of ``rows``: one run where they follow each other in both memories,
        else one copy, else, where they overlap, are too many or lie too far apart, row by row. ``apart``: of
        each axis how far its elements lie apart in memory and in the tile."""
        if not rows:
            copy(Int(0), run)
            return
        k, axis, count = self._k, self._axes[rows[0]], self._piece.counts[rows[0]]
        distance, local = apart[rows[0]]

        def several() -> None:
            copy(Int(0), run, rows=count, apart=distance, pitch=local)

        def one_by_one() -> None:
            with k.loop("row", count, U64) as row:
                copy(row, run)

        far = _MOST_GAP // self._width
        fits = Choice(
            axis.tile, "<=", Int(MOST_ROWS), Choice(distance, "<=", Int(far), distance, Int(0)), Int(0)
        )
        has_any = any(map(is_open, (distance, local, longest, axis.tile)))
        if axis.back and apart[rows[0]] == (axis.source, axis.taken):
            one_by_one()
        elif has_any:
            with k.when(Choice(distance, "==", local, run, Int(0)), "==", distance):
                copy(Int(0), count * run)
            with k.otherwise():
                with k.when(fits, ">=", run):
                    several()
                with k.otherwise():
                    one_by_one()
        elif not compared(fits, ">=", longest, {}):
            one_by_one()
        elif not compared(distance, "==", local, {}) or not compared(longest, "==", local, {}):
            several()
        else:
            with k.when(run, "==", distance):
                copy(Int(0), count * run)
            with k.otherwise():
                several()


# -- what the vector unit does --------------------------------------------------------------------


class _Turner(ABC):
    """The buffers of a core; single bytes are turned as 16-bit numbers."""

    def __init__(
        self, k: Builder, tiling: _Tiling, sides: Sides, stages: tuple[int, int], width: int
    ) -> None:
        self._k, self._tiling, self._sides, self._width = k, tiling, sides, width
        self._sizes = [
            Constant(f"MOST_{name}", number, "elements of a tile")
            for name, number in (("FROM", sides.from_elements), ("TO", sides.to_elements))
        ]
        self.source, self.target = (
            Buffer(name, RAW[width], width, number, several)
            for name, number, several in zip(("from", "to"), self._sizes, stages, strict=True)
        )
        self._word = max(width, 2)
        self._words = Constant("WORD_BYTES", self._word)

    @abstractmethod
    def prepare(self) -> None:
        """What is done once."""

    def turn(self, piece: _Piece) -> None:
        """From the tile as it is loaded to the tile as it is stored."""
        if self._width > 1:
            self._turn(piece, at(self.target, 0), at(self.source, 0))
            return
        taken, made = (
            Buffer(name, "half", 2, size)
            for name, size in zip(("fromWords", "toWords"), self._sizes, strict=True)
        )
        self._cast(taken, self.source, _NONE, self._tiling.taken)
        self._turn(piece, read_as(RAW[2], made), read_as(RAW[2], taken))
        self._cast(self.target, made, Enumerator("RoundMode::CAST_RINT"), self._tiling.made)

    @abstractmethod
    def _turn(self, piece: _Piece, to: Slice, source: Slice) -> None:
        """From the words of the tile to those of the result."""

    def _cast(self, to: Slice | Buffer, source: Slice | Buffer, mode: Enumerator, count: Expr) -> None:
        self._k.call("Cast", to, source, mode, count, repeats=ceil_div(count * self._word, REPEAT_BYTES))


class _Squares(_Turner):
    """Every plane of the tile is a matrix, whose columns become rows."""

    def prepare(self) -> None:
        """Nothing: its places follow from the loops."""

    def _turn(self, piece: _Piece, to: Slice, source: Slice) -> None:
        k, axes, counts = self._k, self._tiling.axes, piece.counts
        (column,), (row, *others) = self._sides.from_run, self._sides.from_rows
        taken, made = expr(0), expr(0)
        with ExitStack() as loops:
            for i in reversed(others):
                step = loops.enter_context(k.loop(f"plane{i}", counts[i]))
                taken, made = taken + step * axes[i].taken, made + step * axes[i].made
            down = k.let(
                "down",
                ceil_div(counts[row], Constant("SQUARE_ROWS", ROWS, "blocks that one transposition takes")),
            )
            right = k.let("right", ceil_div(counts[column], _square(self._width)))
            self._transpose(evolve(to, offset=made), evolve(source, offset=taken), down, right)

    def _transpose(self, to: Slice, source: Slice, down: Var, right: Var) -> None:
        """Squares side by side, or those below each other, are repeats of one instruction."""
        k, row, pitch, number = self._k, self._tiling.row, self._tiling.pitch, Var("k")
        block = Constant("WORDS", BLOCK_BYTES // self._word, "of a block")
        high, wide = (
            Constant("SQUARE_ROWS", ROWS, "blocks that one transposition takes"),
            _square(self._width),
        )

        def chosen(across: Expr, below: Expr) -> Expr:
            return Choice(right, ">=", down, across, below)

        with k.loop("square", chosen(down, right)) as square:
            taken = k.let("takenSquare", source.offset + square * chosen(high * row, wide))
            made = k.let("madeSquare", to.offset + square * chosen(high, wide * pitch))
            column = number // 2 * pitch + number % 2 * block if self._word == 4 else number * pitch
            transpose(
                k,
                (evolve(to, offset=made + column), chosen(wide * pitch, high) // block),
                (evolve(source, offset=taken + number * row), chosen(wide, high * row) // block),
                number,
                greatest(right, down),
            )


class _Table(_Turner):
    """For each element of the tile as it is stored, where it lies in the tile as it is loaded, in bytes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._table, self._digits, self._quotient = (
            Buffer(name, "int32_t", 4, self._sizes[1]) for name in ("table", "digits", "quotient")
        )

    def prepare(self) -> None:
        tiling, zero, rows = self._tiling, Converted(Int(0), "int32_t"), self._sides.to_rows
        self._do("Duplicate", self._table, zero)
        if rows:
            self._do("CreateVecIndex", self._digits, zero)
            self._divide(tiling.pitch)
            self._do("Adds", self._digits, self._quotient, zero)
        for i in rows:
            self._add_digit(tiling.axes[i])
        self._do("CreateVecIndex", self._digits, zero)
        if rows:
            self._divide(tiling.pitch)
            self._do("Muls", self._quotient, self._quotient, _minus(tiling.pitch))
            self._do("Add", self._digits, self._digits, self._quotient)
        # Gaps repeat the last element of a run.
        self._do("Mins", self._digits, self._digits, Converted(tiling.run - 1, "int32_t"))
        for i in self._sides.to_run:
            if tiling.axes[i].tile != Int(1):
                self._add_digit(tiling.axes[i])

    def _add_digit(self, axis: _TransposedAxis) -> None:
        """Adds the place of the lowest digit, which counts an axis, and drops it."""
        stride = axis.taken * self._words
        forth, back = Converted(stride, "int32_t"), _minus(stride * axis.tile)
        if axis.back:
            forth, back = _minus(stride), Converted(stride * axis.tile, "int32_t")
        self._divide(axis.tile)
        self._do("Muls", self._digits, self._digits, forth)
        self._do("Add", self._table, self._table, self._digits)
        self._do("Muls", self._digits, self._quotient, back)
        self._do("Add", self._table, self._table, self._digits)
        if axis.back:
            self._do("Adds", self._table, self._table, Converted(stride * (axis.tile - 1), "int32_t"))
        self._do("Adds", self._digits, self._quotient, Converted(Int(0), "int32_t"))

    def _divide(self, divisor: Expr) -> None:
        """Whole quotients of digits: half is added, so that rounding never reaches the next integer."""
        ratio, half = read_as("float", self._quotient), Number("HALF", 0.5)
        self._do("Cast", ratio, self._digits, _NONE)
        self._do("Adds", ratio, ratio, half)
        self._do("Muls", ratio, ratio, Ratio(Int(1), divisor))
        self._do("Cast", self._quotient, ratio, Enumerator("RoundMode::CAST_FLOOR"))

    def _do(self, key: str, *operands: Operand | Buffer) -> None:
        count = self._tiling.made
        self._k.call(key, *operands, count, repeats=ceil_div(count * 4, REPEAT_BYTES))

    def _turn(self, piece: _Piece, to: Slice, source: Slice) -> None:
        count = self._tiling.made
        repeats = ceil_div(count * self._word, REPEAT_BYTES)
        self._k.call("Gather", to, source, read_as("uint32_t", self._table), 0, count, repeats=repeats)


def _minus(value: Expr) -> Converted:
    return Converted(Int(0) - value, "int32_t")
