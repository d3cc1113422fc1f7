"""Tiles of several rows: values of rows that all columns read, and reductions of each row."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evokernel_core.targets.ascendc.ir.builder import Builder, strides
from evokernel_core.targets.ascendc.ir.expr import Expr, Int, Var, ceil_div, least
from evokernel_core.targets.ascendc.ir.floats import Literal
from evokernel_core.targets.ascendc.ir.nodes import Converted, Fields, Operand, Slice
from evokernel_core.targets.ascendc.kernels.fused.lanes_to_one import (
    BLOCKS,
    FLOATS,
    last_repeat,
    reduce_lanes,
)
from evokernel_core.targets.ascendc.kernels.fused.selection import WIDTH

_COMBINE = {"Sum": "Add", "Max": "Max", "Min": "Min"}
_NEUTRAL = {"Sum": Literal(0.0), "Max": Literal(-math.inf), "Min": Literal(math.inf)}
_ZERO = Literal(0.0)


class OverRows:
    """Routines on tiles of ``height`` rows, ``width`` floats apart. ``blocks``: room for a block of each
    row's value; ``spread``: whether an instruction takes the same columns of all rows, or one row."""

    def __init__(self, k: Builder, spread: str, blocks: Slice | None) -> None:
        self._k, self._spread, self._blocks = k, spread, blocks

    def with_rows(self, key: str, to: Slice, source: Slice, rows: Slice, height: Expr, width: Expr) -> None:
        """``key`` of each row of a tile and the row's value."""

        def write(places: Sequence[Slice], numbers: Sequence[Var]) -> None:
            *tiles, values = places
            self._in_blocks(key, tiles, values, numbers, ())

        note = f"{key} of each row of a tile and its value, which fills a block that a stride of 0 repeats."
        places, numbers = {"to": to, "tile": source, "values": rows}, {"height": height, "width": width}
        self._k.routine(f"{key}Rows", places, numbers, write, note)

    def spread(self, to: Slice, rows: Slice, height: Expr, width: Expr) -> None:
        """Every column of a row has the row's value."""

        def write(places: Sequence[Slice], numbers: Sequence[Var]) -> None:
            made, values = places
            self._in_blocks("Adds", [made], values, numbers, (_ZERO,))

        note = "Every column of a row has the row's value, which fills a block that a stride of 0 repeats."
        places, numbers = {"to": to, "values": rows}, {"height": height, "width": width}
        self._k.routine("SpreadRows", places, numbers, write, note)

    def _in_blocks(
        self,
        key: str,
        tiles: Sequence[Slice],
        values: Slice,
        numbers: Sequence[Var],
        scalar: tuple[Operand, ...],
    ) -> None:
        """An instruction on the rows of tiles and a block of each row's value."""
        k, blocks, (height, width) = self._k, self._blocks, numbers
        assert blocks is not None
        groups = ceil_div(height, BLOCKS)
        steps = Fields("BrcbRepeatParams", {"dstBlkStride": Int(1), "dstRepStride": BLOCKS}, is_short=True)
        k.call("Brcb", blocks, values, Converted(groups, "uint8_t"), steps, repeats=groups)
        struct = "BinaryRepeatParams" if len(tiles) > 1 else "UnaryRepeatParams"
        ones = [Int(1)] * len(tiles)
        if self._spread == "columns":
            apart, times = [width // FLOATS] * len(tiles), Converted(height, "uint8_t")
            how = strides(struct, *ones, Int(0), *apart, Int(1))
            with k.pieces("lane", (0, width), WIDTH) as (lane, some):
                here = [tile.behind(lane) for tile in tiles]
                k.call(key, *here, blocks, *scalar, some, times, how, repeats=height)
            return
        how = strides(struct, *ones, Int(0), *([BLOCKS] * len(tiles)), Int(0))
        whole, tail = k.let("wholeRepeats", width // WIDTH), k.let("tail", width % WIDTH)
        with k.loop("line", height) as line:
            of_row, value = [tile.behind(line * width) for tile in tiles], blocks.behind(line * FLOATS)
            with k.when(whole, ">", 0):
                k.call(key, *of_row, value, *scalar, WIDTH, Converted(whole, "uint8_t"), how, repeats=whole)
            with k.when(tail, ">", 0):
                rest = [tile.behind(whole * WIDTH) for tile in of_row]
                k.call(key, *rest, value, *scalar, tail, 1, how, repeats=1)

    # -- reductions ---------------------------------------------------------------------------

    def reduce_by_row(
        self,
        name: str,
        places: tuple[Slice, Slice],
        sizes: Sequence[Expr],
        folds: tuple[Slice, Slice],
        most: int,
    ) -> None:
        """Each row by itself; ``sizes``: rows, columns, and floats from row to row."""
        k, (to, source), (height, columns, width) = self._k, places, sizes

        def write(given: Sequence[Slice], numbers: Sequence[Var]) -> None:
            (made, tile), (tall, across, wide) = given, numbers
            with k.when(across, "<=", WIDTH):
                last_repeat(k, name, made, tile, across, tall, wide // FLOATS)
            with k.otherwise(), k.loop("line", tall) as line:
                reduce_lanes(k, name, made.behind(line), tile.behind(line * wide), across, folds, most)

        numbers = {"height": height, "across": columns, "apart": width}
        k.routine(f"{name}Rows", {"to": to, "tile": source}, numbers, write, f"{name} of each row of a tile.")

    def reduce_folded(
        self, name: str, places: tuple[Slice, Slice], sizes: Sequence[Expr], fold: Slice
    ) -> None:
        """Columns of all rows fold onto the lanes of one repeat, so that the slow part runs once a row."""
        k, (to, source), (height, columns, width) = self._k, places, sizes

        def write(given: Sequence[Slice], numbers: Sequence[Var]) -> None:
            (made, tile), (tall, across, wide) = given, numbers
            blocks, times = wide // FLOATS, Converted(tall, "uint8_t")
            with k.when(across, "<=", WIDTH):
                last_repeat(k, name, made, tile, across, tall, blocks)
            with k.otherwise():
                alone = strides("UnaryRepeatParams", 1, 1, BLOCKS, blocks)
                k.call("Adds", fold, tile, _ZERO, WIDTH, times, alone, repeats=tall)
                both = strides("BinaryRepeatParams", 1, 1, 1, BLOCKS, BLOCKS, blocks)
                with k.pieces("lane", (WIDTH, across), WIDTH) as (lane, some):
                    k.call(_COMBINE[name], fold, fold, tile.behind(lane), some, times, both, repeats=tall)
                last_repeat(k, name, made, fold, WIDTH, tall, BLOCKS)

        numbers = {"height": height, "across": columns, "apart": width}
        note = f"{name} of each row of a tile, whose columns fold onto the lanes of one repeat first."
        k.routine(f"{name}Rows", {"to": to, "tile": source}, numbers, write, note)

    def reduce_standing(
        self, name: str, places: tuple[Slice, Slice], sizes: Sequence[Expr], fold: Slice
    ) -> None:
        """One instruction takes all repeats of a row up in lanes that stay where they are, so that the slow
        part runs once a row."""
        k, (to, source), (height, columns, width) = self._k, places, sizes

        def write(given: Sequence[Slice], numbers: Sequence[Var]) -> None:
            (made, tile), (tall, across, wide) = given, numbers
            with k.when(across, "<=", WIDTH):
                last_repeat(k, name, made, tile, across, tall, wide // FLOATS)
            with k.otherwise():
                k.call("Duplicate", fold, _NEUTRAL[name], tall * WIDTH, repeats=tall)
                how = strides("BinaryRepeatParams", 1, 1, 1, Int(0), BLOCKS, Int(0))
                whole, tail = k.let("wholeRepeats", across // WIDTH), k.let("tail", across % WIDTH)
                times = Converted(whole, "uint8_t")
                with k.loop("line", tall) as line:
                    lanes, row = fold.behind(line * WIDTH), tile.behind(line * wide)
                    k.call(_COMBINE[name], lanes, row, lanes, WIDTH, times, how, repeats=whole)
                    with k.when(tail, ">", 0):
                        rest = row.behind(whole * WIDTH)
                        k.call(_COMBINE[name], lanes, rest, lanes, tail, 1, how, repeats=1)
                last_repeat(k, name, made, fold, WIDTH, tall, BLOCKS)

        numbers = {"height": height, "across": columns, "apart": width}
        note = f"{name} of each row of a tile, whose repeats all go to lanes that stay where they are."
        k.routine(f"{name}Rows", {"to": to, "tile": source}, numbers, write, note)

    def reduce_tile(
        self, name: str, places: tuple[Slice, Slice], height: Expr, columns: int, folds: tuple[Slice, Slice]
    ) -> None:
        """All rows at once, which are whole repeats: blocks become numbers until a row is less than that."""
        k, (to, source) = self._k, places

        def write(given: Sequence[Slice], numbers: Sequence[Var]) -> None:
            (made, taken), (tall,), across = given, numbers, columns
            fold, other = folds
            while across > WIDTH.value and across % WIDTH.value == 0:
                repeats = tall * (across // WIDTH.value)
                numbers_ = (repeats, WIDTH, Int(1), Int(1), BLOCKS)
                k.call(
                    "ReduceDataBlock", fold, taken, *numbers_, repeats=repeats, former=f"BlockReduce{name}"
                )
                taken, fold, other, across = fold, other, fold, across // FLOATS.value
            blocks, times = Int(across // FLOATS.value), Converted(tall, "uint8_t")
            both = strides("BinaryRepeatParams", 1, 1, 1, blocks, blocks, blocks)
            for lane in range(WIDTH.value, across, WIDTH.value):
                some = Int(min(across - lane, WIDTH.value))
                k.call(_COMBINE[name], taken, taken, taken.behind(Int(lane)), some, times, both, repeats=tall)
            last_repeat(k, name, made, taken, Int(min(across, WIDTH.value)), tall, blocks)

        note = f"{name} of each row of a tile: BlockReduce{name} takes all rows at once."
        k.routine(f"{name}Rows", {"to": to, "tile": source}, {"height": height}, write, note)

    def reduce_tile_of_any(
        self,
        name: str,
        places: tuple[Slice, Slice],
        sizes: Sequence[Expr],
        folds: tuple[Slice, Slice],
        most: int,
    ) -> None:
        """All rows at once where they are whole repeats, which have no gaps; else each by itself."""
        k, (to, source), (height, columns, _) = self._k, places, sizes

        def write(given: Sequence[Slice], numbers: Sequence[Var]) -> None:
            (made, tile), (tall, across) = given, numbers
            (fold, other), blocks = folds, across // FLOATS
            self._to_blocks(name, fold, tile, tall, across)
            with k.when(blocks % WIDTH, "==", 0):
                self._to_blocks(name, other, fold, tall, blocks)
                self._last_of_rows(name, made, other, tall, blocks // FLOATS)
            with k.otherwise():
                self._last_of_rows(name, made, fold, tall, blocks)

        with k.when(columns % WIDTH, "==", 0):
            note = f"{name} of each row of a tile of whole repeats: BlockReduce{name} takes all rows at once."
            numbers = {"height": height, "across": columns}
            k.routine(f"{name}WholeRows", {"to": to, "tile": source}, numbers, write, note)
        with k.otherwise():
            self.reduce_by_row(name, places, sizes, folds, most)

    def _to_blocks(self, name: str, to: Slice, rows: Slice, height: Expr, across: Expr) -> None:
        repeats = height * (across // WIDTH)
        numbers = (repeats, WIDTH, Int(1), Int(1), BLOCKS)
        self._k.call("ReduceDataBlock", to, rows, *numbers, repeats=repeats, former=f"BlockReduce{name}")

    def _last_of_rows(self, name: str, to: Slice, rows: Slice, height: Expr, across: Expr) -> None:
        """Rows of whole blocks to a number each: lanes behind the first repeat are combined with it."""
        k, blocks, times = self._k, across // FLOATS, Converted(height, "uint8_t")
        both = strides("BinaryRepeatParams", 1, 1, 1, blocks, blocks, blocks)
        with k.pieces("lane", (WIDTH, across), WIDTH) as (lane, some):
            k.call(_COMBINE[name], rows, rows, rows.behind(lane), some, times, both, repeats=height)
        width = k.let("lastWidth", least(across, WIDTH))
        last_repeat(k, name, to, rows, width, height, blocks)
