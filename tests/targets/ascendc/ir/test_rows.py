"""A softmax of rows that stay in the unified buffer: what rows take of the IR, and what it computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, at, strides
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Constant,
    CoreCount,
    Expr,
    Index,
    Int,
    Size,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Enumerator, Fields, Kernel

BLOCK, LANES = Constant("BLOCK", 8), Constant("LANES", 64)


class Rows:
    """Instructions on tiles of rows, of which each begins at a whole block."""

    def __init__(self, k: Builder, most: Constant, columns: Expr, pitch: Expr) -> None:
        self._k, self._columns, self._step = k, columns, pitch // BLOCK
        self._fold = Buffer("fold", "float", 4, most * LANES)
        self._blocks = Buffer("blocks", "float", 4, ceil_div(most, BLOCK) * BLOCK * BLOCK)

    def reduce(self, name: str, to: Buffer, source: Buffer, rows: Expr) -> None:
        """Columns are folded onto the lanes of one repeat, which is reduced once a row."""
        k, fold, times = self._k, self._fold, Converted(rows, "uint8_t")
        first = least(self._columns, LANES)
        alone = strides("UnaryRepeatParams", 1, 1, BLOCK, self._step)
        k.call("Adds", fold, source, Converted(Int(0), "float"), first, times, alone, repeats=rows)
        with k.pieces("column", (first, self._columns), LANES) as (column, count):
            both = strides("BinaryRepeatParams", 1, 1, 1, BLOCK, BLOCK, self._step)
            key = {"Max": "Max", "Sum": "Add"}[name]
            k.call(key, fold, fold, at(source, column), count, times, both, repeats=rows)
        order = (Enumerator("ReduceOrder::ORDER_ONLY_VALUE"),) if name == "Max" else ()
        taken = (fold, first, times, 1, 1, BLOCK, *order)
        k.call("ReduceRepeat", to, *taken, repeats=rows, former=f"WholeReduce{name}")

    def spread(self, key: str, to: Buffer, source: Buffer, values: Buffer, rows: Expr) -> None:
        """Each row and its value: a block of it is used for all blocks of the row."""
        k = self._k
        groups = ceil_div(rows, BLOCK)
        steps = Fields("BrcbRepeatParams", {"dstBlkStride": Int(1), "dstRepStride": BLOCK}, is_short=True)
        k.call("Brcb", self._blocks, values, Converted(groups, "uint8_t"), steps, repeats=groups)
        with k.pieces("column", (0, self._columns), LANES) as (column, count):
            step = strides("BinaryRepeatParams", 1, 1, 0, self._step, self._step, 1)
            places: tuple[Place, ...] = at(to, column), at(source, column), self._blocks
            k.call(key, *places, count, Converted(rows, "uint8_t"), step, repeats=rows)


def softmax(columns: int, most: int, stages: int = 2) -> Kernel:
    """Of n rows; ``most`` in a tile, of whose results there are so many stages."""
    length, high = Constant("COLUMNS", columns), Constant("ROWS", most)
    blocks = -(-columns // 8)
    # Rows that are a multiple of the banks apart would meet the same one: a block lies between them.
    pitch = Constant("PITCH", (blocks + (blocks % 8 == 0)) * 8, "elements from row to row")
    behind = Constant("BEHIND", -columns % 8, "zeros of a row's last block")
    k = Builder("Softmax of rows, several whole ones in a tile.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    rows = k.param("rows", Size(extent("n")))
    k.require(rows, ">=", 1)
    share = k.param("share", ceil_div(rows, CoreCount()), "rows of a core")
    tall = k.param("tall", ceil_div(share, ceil_div(share, high)), "rows of its tiles, which are equal", U32)
    taken = Buffer("taken", "float", 4, high * pitch, 2)
    made = Buffer("made", "float", 4, high * pitch, stages)
    values, ones = (Buffer(name, "float", 4, ceil_div(high, BLOCK) * BLOCK) for name in ("values", "ones"))
    work = Rows(k, high, length, pitch)
    for buffer, value in ((values, 0), (ones, 1)):
        k.call("Duplicate", buffer, Converted(Int(value), "float"), buffer.elements, repeats=1)
    with k.cores("tile", k.param("tiles", ceil_div(rows, tall))) as tile:
        first = k.let("first", tile * tall, U64)
        left = k.let("left", rows - first, U64)
        count = k.let("count", least(left, tall))
        k.load(taken, x, first * length, length, rows=count, apart=length, zeros=behind, pitch=pitch)
        with k.section("MaxRows"):
            work.reduce("Max", values, taken, count)
        with k.section("SubRows"):
            work.spread("Sub", taken, taken, values, count)
        elements: Index = count * pitch
        k.call("Exp", taken, taken, elements, repeats=ceil_div(elements, LANES))
        with k.section("SumRows"):
            work.reduce("Sum", values, taken, count)
        k.call("Div", values, ones, values, count, repeats=1)
        with k.section("MulRows"):
            work.spread("Mul", made, taken, values, count)
        k.store(y, first * length, made, length, rows=count, apart=length, pitch=pitch)
    return k.kernel()


@pytest.mark.parametrize(
    ("rows", "columns", "most"), [(1, 1, 8), (100, 13, 64), (70, 64, 16), (300, 1000, 8), (7, 2040, 5)]
)
def test_a_softmax_of_rows(rows: int, columns: int, most: int, on_kernel: Any, chip: Any) -> None:
    kernel = softmax(columns, most)
    assert not list(broken_rules(kernel, chip, {"n": rows}))
    x = np.random.default_rng(rows).normal(scale=5, size=(rows, columns)).astype("f4")
    powers = np.exp(x - x.max(1, keepdims=True), dtype="f8")
    expected = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(on_kernel(kernel, x), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("columns", "most", "rule"), [(2048, 5, "parameter-limit"), (2040, 12, "ub-capacity")]
)
def test_rows_that_do_not_stay_are_refused(columns: int, most: int, rule: str, chip: Any) -> None:
    """Repeats step over 255 blocks at most."""
    assert rule in {item.rule for item in broken_rules(softmax(columns, most), chip, {"n": 100})}


def test_more_rows_in_a_tile_cost_less(chip: Any) -> None:
    assert estimate_us(softmax(256, 32), {"n": 1 << 16}, chip) < estimate_us(
        softmax(256, 4), {"n": 1 << 16}, chip
    )
