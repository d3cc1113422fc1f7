"""Elements of sixteen planes in the lanes, each in a block: rows of them at any distance, and instructions on
all of their rows and columns."""

from __future__ import annotations

from attrs import evolve, frozen

from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, strides
from evokernel_core.targets.ascendc.ir.expr import Binary, Choice, Expr, Index, Int, ceil_div, expr
from evokernel_core.targets.ascendc.ir.nodes import Converted, Operand, Slice
from evokernel_core.targets.ascendc.kernels.pooling.lanes import BLOCK, MOST_STEPS


@frozen
class Area:
    """Elements of sixteen planes in the lanes: where the first lies, blocks from row to row, and from column
    to column."""

    place: Slice
    pitch: Index
    step: int = 1

    def at(self, row: Index, column: Index) -> Area:
        """From a row on, and from a block of it."""
        return evolve(self, place=self.place.behind((row * expr(self.pitch) + column) * BLOCK))


def over(
    k: Builder,
    key: str,
    to: Area,
    *sources: Area,
    number: Operand | None = None,
    rows: Expr,
    columns: Expr,
) -> None:
    """An instruction on so many rows and columns: on all at once where they follow one another, else on
    eight columns of all rows or on one row at a time."""
    each = (to, *sources)
    numbers = () if number is None else (number,)
    places, everything = (source.place for source in sources), rows * columns * BLOCK
    others = [source.pitch for source in sources if source.pitch != to.pitch]
    if any(area.step != 1 or isinstance(area.pitch, Binary) for area in each):
        _apart(k, key, each, numbers, rows, columns)
    elif not others and columns == to.pitch:
        k.call(key, to.place, *places, *numbers, everything, repeats=ceil_div(everything, LANES))
    else:
        follow = expr(to.pitch)
        for pitch in dict.fromkeys(others):
            follow = Choice(expr(pitch), "==", expr(to.pitch), follow, Int(0))
        with k.when(columns, "==", follow):
            k.call(key, to.place, *places, *numbers, everything, repeats=ceil_div(everything, LANES))
        with k.otherwise():
            _apart(k, key, each, numbers, rows, columns)


def _apart(
    k: Builder, key: str, each: tuple[Area, ...], numbers: tuple[Operand, ...], rows: Expr, columns: Expr
) -> None:
    """The same where rows lie apart."""
    kind = "BinaryRepeatParams" if len(each) > 2 else "UnaryRepeatParams"
    steps = [area.step for area in each]
    steep = rows * BLOCK
    for pitch in dict.fromkeys(expr(area.pitch) for area in each):
        if not isinstance(pitch, Int):
            steep = Choice(pitch, ">", Int(MOST_STEPS), Int(0), steep)
    steep = Choice(rows, ">", Int(MOST_STEPS), Int(0), steep)
    with k.when(columns, "<", steep), k.pieces("part", (0, columns), BLOCK) as (column, count):
        parts = (area.at(0, column * area.step).place for area in each)
        pitches = strides(kind, *steps, *(area.pitch for area in each))
        times = Converted(rows, "uint8_t")
        k.call(key, *parts, *numbers, count * BLOCK, times, pitches, repeats=rows)
    with k.otherwise(), k.loop("line", rows) as line:
        repeats, spread = columns // BLOCK, strides(kind, *steps, *(step * BLOCK for step in steps))
        parts = (area.at(line, 0).place for area in each)
        k.call(key, *parts, *numbers, LANES, Converted(repeats, "uint8_t"), spread, repeats=repeats)
        with k.when(columns % BLOCK, ">", 0):
            parts = (area.at(line, repeats * (BLOCK * area.step)).place for area in each)
            k.call(key, *parts, *numbers, columns % BLOCK * BLOCK, 1, spread, repeats=1)
