"""Lanes of a tile to one number: blocks of 32 bytes first, at full rate, one repeat at the end."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LANES
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import Constant, Expr, Int, Var, ceil_div
from evokernel_core.targets.ascendc.ir.nodes import Enumerator, Operand, Slice
from evokernel_core.targets.ascendc.kernels.fused.selection import WIDTH

FLOATS = Constant("FLOATS_PER_BLOCK", BLOCK_BYTES // 4)
HALVES = Constant("HALVES_PER_BLOCK", BLOCK_BYTES // 2)
BLOCKS = Constant("BLOCKS_PER_REPEAT", 8)
ONE = Int(1)
_ONLY_VALUE = Enumerator("ReduceOrder::ORDER_ONLY_VALUE")


def reduce_lanes(
    k: Builder, name: str, to: Slice, source: Slice, count: Expr, folds: tuple[Slice, Slice], most: int
) -> None:
    """The ``Sum``, ``Max`` or ``Min`` of ``count`` lanes, ``most`` at most, in the first lane of ``to``.
    ``folds`` have room for a number of each block, and of each block of those."""

    def write(places: Sequence[Slice], numbers: Sequence[Var]) -> None:
        (made, taken), (width,) = places, numbers
        _fold(k, name, (made, taken), width, folds, [-(-most // FLOATS.value**level) for level in range(4)])

    note = (
        f"BlockReduce{name} leaves a number of each block at full rate; the slow part sees the last repeat."
    )
    k.routine(f"{name}Lanes", {"to": to, "lanes": source}, {"width": count}, write, note)


def _fold(
    k: Builder,
    name: str,
    places: tuple[Slice, Slice],
    count: Expr,
    folds: tuple[Slice, Slice],
    most: Sequence[int],
) -> None:
    """From the second place to the first; ``most``: elements at this level, and at each behind it."""
    (to, source), (fold, other), level = places, folds, 5 - len(most)
    if most[0] <= LANES:
        last_repeat(k, name, to, source, count)
        return
    with k.when(count, "<=", WIDTH):
        last_repeat(k, name, to, source, count)
    with k.otherwise():
        repeats, tail = k.let(f"repeats{level}", count // WIDTH), k.let(f"tail{level}", count % WIDTH)
        _blocks(k, name, fold, source, repeats, tail)
        blocks = k.let(f"blocks{level}", ceil_div(count, FLOATS))
        _fold(k, name, (to, fold), blocks, (other, fold), most[1:])


def _blocks(k: Builder, name: str, to: Slice, source: Slice, repeats: Expr, tail: Expr) -> None:
    """A number for each block of so many repeats, and of the tail behind them."""
    former = f"BlockReduce{name}"
    k.call("ReduceDataBlock", to, source, repeats, WIDTH, 1, 1, BLOCKS, repeats=repeats, former=former)
    with k.when(tail, ">", 0):
        last = to.behind(repeats * BLOCKS), source.behind(repeats * WIDTH)
        k.call("ReduceDataBlock", *last, 1, tail, 1, 1, BLOCKS, repeats=1, former=former)


def last_repeat(
    k: Builder, name: str, to: Slice, source: Slice, count: Expr, rows: Expr = ONE, apart: Expr = BLOCKS
) -> None:
    """The lanes of one repeat to a number, in each of so many rows that lie so many blocks apart."""
    order: tuple[Operand, ...] = () if name == "Sum" else (_ONLY_VALUE,)
    numbers = (count, rows, ONE, ONE, apart)
    k.call("ReduceRepeat", to, source, *numbers, *order, repeats=rows, former=f"WholeReduce{name}")
