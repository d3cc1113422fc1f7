"""Tiles of several steps, one below another: rows that all of them read in turn, and folds of them."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, read_as, strides
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    Choice,
    Condition,
    Expr,
    Index,
    Int,
    State,
    Var,
    ceil_div,
)
from evokernel_core.targets.ascendc.ir.floats import Literal
from evokernel_core.targets.ascendc.ir.nodes import Converted, Operand, Slice
from evokernel_core.targets.ascendc.kernels.fused.selection import HALF_WIDTH, WIDTH, typed

_BLOCK = 8
_FLOAT_BYTES = 4
_LEFT = State("stepsLeft", 0, "that are still to be folded", U32)
_HALVINGS = 6
"""How often estimates take steps to be halved."""


def in_whole_blocks(lanes: Expr) -> Expr:
    """How many steps of so many lanes end with a block at least."""
    found: Expr = Int(_BLOCK)
    for steps in (_BLOCK // 2, _BLOCK // 4, 1):
        found = Choice(lanes % (_BLOCK // steps), "==", Int(0), Int(steps), found)
    return found


class OverLanes:
    """Routines on tiles of ``height`` steps, ``width`` elements apart. ``spread``: whether an instruction
    takes the same columns of all steps, or one step."""

    def __init__(self, k: Builder, spread: str) -> None:
        self._k, self._spread = k, spread

    def with_row(self, key: str, to: Slice, source: Slice, row: Slice, height: Expr, width: Expr) -> None:
        """``key`` of each step of a tile and the same row."""

        def write(places: Sequence[Slice], numbers: Sequence[Var]) -> None:
            self._in_turn(key, places, numbers, ())

        note = f"{key} of each step of a tile and a row."
        places = {"to": to, "tile": source, "row": row}
        self._k.routine(f"{key}Columns", places, {"height": height, "width": width}, write, note)

    def repeat(self, to: Slice, row: Slice, height: Expr, width: Expr) -> None:
        """A row in each step of a tile."""

        def write(places: Sequence[Slice], numbers: Sequence[Var]) -> None:
            self._in_turn("Adds", places, numbers, (typed(Literal(0.0), places[0]),))

        note = "Gives every step of a tile the same row."
        self._k.routine(
            "RepeatColumns", {"to": to, "row": row}, {"height": height, "width": width}, write, note
        )

    def _in_turn(
        self, key: str, places: Sequence[Slice], numbers: Sequence[Var], scalar: tuple[Operand, ...]
    ) -> None:
        """An instruction whose last place is a row that the steps of the others read in turn."""
        k, (height, width) = self._k, numbers
        *tiles, row = places
        item = row.buffer.item_bytes
        lanes = WIDTH if item == _FLOAT_BYTES else HALF_WIDTH
        if self._spread == "rows":
            with k.loop("line", height) as line:
                of_line = (*(tile.behind(line * width) for tile in tiles), row)
                k.call(key, *of_line, *scalar, width, repeats=ceil_div(width, lanes))
            return
        blocks = width // (BLOCK_BYTES // item)
        struct = "BinaryRepeatParams" if len(places) > 2 else "UnaryRepeatParams"
        ones, apart = [Int(1)] * len(places), [blocks] * len(tiles)
        with k.pieces("lane", (0, width), lanes) as (lane, some):
            here = [place.behind(lane) for place in places]
            times = Converted(height, "uint8_t")
            k.call(key, *here, *scalar, some, times, strides(struct, *ones, *apart, Int(0)), repeats=height)

    # -- folds --------------------------------------------------------------------------------

    def fold(self, key: str, to: Slice, source: Slice, height: Expr, width: Expr) -> None:
        """All steps to one: one half to the other, until one is left; the steps are lost."""

        def write(places: Sequence[Slice], numbers: Sequence[Var]) -> None:
            (made, steps), (tall, wide) = places, numbers
            self._halve(key, steps, tall, wide)
            self._copy(made, steps, wide)

        note = f"{key} of the steps of a tile, one half to the other, until one is left."
        places, numbers = {"to": to, "tile": source}, {"height": height, "width": width}
        self._k.routine(f"Fold{key}", places, numbers, write, note)

    def define_places(self, table: Slice, width: Expr) -> None:
        """Where each lane of a step lies, in bytes from its first."""
        for key, more in (("CreateVecIndex", Int(0)), ("Muls", Int(_FLOAT_BYTES))):
            sources = () if key == "CreateVecIndex" else (table,)
            number = Converted(more, "int32_t")
            self._k.call(key, table, *sources, number, width, repeats=ceil_div(width, WIDTH))

    def fold_dense(
        self,
        key: str,
        to: Slice,
        source: Slice,
        inside: tuple[Slice, Slice],
        sizes: tuple[Expr, Expr, Expr],
    ) -> None:
        """All steps to one, which lie one behind the other; they are lost. ``inside``: where lanes of a step
        lie, and room for a step that begins inside a block. ``sizes``: steps, those of a group that ends with
        a block, and lanes."""
        k, (height, group, width) = self._k, sizes

        def write(places: Sequence[Slice], numbers: Sequence[Var]) -> None:
            (made, steps, table, other), (tall, few, wide) = places, numbers
            self._halve(key, steps, tall // few, few * wide)
            self._copy(made, steps, wide)
            with k.loop("behind", few - 1) as step:
                first = k.let("first", (step + 1) * wide * _FLOAT_BYTES)
                times = ceil_div(wide, WIDTH)
                k.call("Gather", other, steps, read_as("uint32_t", table), first, wide, repeats=times)
                self._steps(key, (made, made, other), wide)

        table, other = inside
        note = f"{key} of the steps of a tile, groups of them one half to the other, then those of one group."
        places = {"to": to, "tile": source, "table": table, "other": other}
        k.routine(f"Fold{key}", places, {"height": height, "group": group, "width": width}, write, note)

    def fold_kept(self, key: str, to: Slice, source: Slice, height: Expr, width: Expr) -> None:
        """All steps to one, one after the other; they stay as they are."""
        k = self._k

        def write(places: Sequence[Slice], numbers: Sequence[Var]) -> None:
            (made, steps), (tall, wide) = places, numbers
            self._copy(made, steps, wide)
            with k.loop("behind", tall - 1) as step:
                k.call(key, made, made, steps.behind((step + 1) * wide), wide, repeats=ceil_div(wide, WIDTH))

        note = f"{key} of the steps of a tile, which stay as they are."
        places, numbers = {"to": to, "tile": source}, {"height": height, "width": width}
        k.routine(f"{key}OfSteps", places, numbers, write, note)

    def fold_apart(
        self, key: str, to: Slice, source: Slice, scratch: Slice, height: Expr, width: Expr
    ) -> None:
        """All steps to one in a tile of ``scratch``; they stay as they are."""
        k = self._k

        def write(places: Sequence[Slice], numbers: Sequence[Var]) -> None:
            (made, steps, apart), (tall, wide) = places, numbers
            with k.when(tall, "<", 2):
                self._copy(made, steps, wide)
            with k.otherwise():
                half = k.let("halfOfSteps", tall // 2)
                self._steps(key, (apart, steps, steps.behind((tall - half) * wide)), half * wide)
                with k.when(tall % 2, ">", 0):
                    self._steps(key, (apart, apart, steps.behind(half * wide)), wide)
                self._halve(key, apart, half, wide)
                self._copy(made, apart, wide)

        note = f"{key} of the steps of a tile, which stay as they are: one half to the other."
        places = {"to": to, "tile": source, "apart": scratch}
        k.routine(f"Fold{key}", places, {"height": height, "width": width}, write, note)

    def _halve(self, key: str, steps: Slice, height: Index, width: Expr) -> None:
        k = self._k
        k.assign(_LEFT, height)
        with k.repeat("halving", Condition(_LEFT, ">", Int(1)), _HALVINGS):
            half = k.let("half", _LEFT // 2)
            self._steps(key, (steps, steps, steps.behind((_LEFT - half) * width)), half * width)
            k.assign(_LEFT, _LEFT - half)

    def _steps(self, key: str, places: tuple[Slice, ...], count: Expr) -> None:
        self._k.call(key, *places, count, repeats=ceil_div(count, WIDTH))

    def _copy(self, to: Slice, source: Slice, count: Expr) -> None:
        self._k.call("Adds", to, source, Literal(0.0), count, repeats=ceil_div(count, WIDTH))
