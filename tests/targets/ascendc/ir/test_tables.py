"""Tables of the tiling, from which a kernel chooses by number, and rows that a copy puts numbers around."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.expr import U64, Constant, Int, Size, is_narrow, is_open
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.print.tiling import settings

TILE = Constant("TILE", 64)
LENGTHS, BITS = (20, 41, 64), (0, 0x3F800000, 0x40000000)  # of 0, 1 and 2


def chosen() -> Kernel:
    """Of rows of 64 the first elements, as many as a table says by turns, between 3 and 2 numbers of another
    table; what is behind stays as it is."""
    k = Builder("Rows whose lengths lie in a table.")
    x, y = k.input("x", "x", "uint32_t", 4), k.output("y", "output", "uint32_t", 4)
    rows = k.param("rows", Size(extent("n")))
    lengths = k.table("lengths", [Int(item) for item in LENGTHS], "of rows by turns")
    numbers = k.table("numbers", [Int(item) for item in BITS])
    k.require(rows, ">=", 1)
    run = Buffer("run", "uint32_t", 4, Constant("MOST", 96), 2)
    with k.cores("row", rows) as row:
        start, turn = k.let("start", row * TILE, U64), k.let("turn", row % len(LENGTHS))
        count = k.let("count", lengths[turn] - 5)
        k.load(run, x, start, count, before=3, zeros=2, filler=numbers[turn])
        k.store(y, start, run, count + 5)
    return k.kernel()


def test_a_table_says_how_long_rows_are(on_kernel: Any, chip: Any) -> None:
    """What is not stored keeps the pattern that the twin fills results with."""
    kernel = chosen()
    assert not list(broken_rules(kernel, chip, {"n": 300}))
    assert estimate_us(kernel, {"n": 300}, chip) > 0
    assert "uint64_t lengths[3]; // of rows by turns" in settings(kernel, [])
    x = np.random.default_rng(3).standard_normal((2, 64)).astype(np.float32)
    with pytest.raises(AssertionError, match="unwritten"):  # two thirds of the rows are short
        on_kernel(kernel, x)
    # Of the third length all of a row is written.
    whole = chosen_of(2)
    found = on_kernel(whole, x)
    np.testing.assert_array_equal(found[:, 3:62], x[:, :59])
    np.testing.assert_array_equal(found[:, [0, 1, 2, 62, 63]], 2.0)


def chosen_of(place: int) -> Kernel:
    """The rows of one length of the table, which is that of whole rows."""
    k = Builder("Rows whose length lies in a table.")
    x, y = k.input("x", "x", "uint32_t", 4), k.output("y", "output", "uint32_t", 4)
    rows = k.param("rows", Size(extent("n")))
    lengths = k.table("lengths", [Int(item) for item in LENGTHS])
    numbers = k.table("numbers", [Int(item) for item in BITS])
    k.require(rows, ">=", 1)
    run = Buffer("run", "uint32_t", 4, Constant("MOST", 96), 2)
    with k.cores("row", rows) as row:
        start = k.let("start", row * TILE, U64)
        count = k.let("count", lengths[place] - 5)
        k.load(run, x, start, count, before=3, zeros=2, filler=numbers[place])
        k.store(y, start, run, count + 5)
    return k.kernel()


def test_a_number_of_a_table_is_known_when_the_call_is() -> None:
    k = Builder("A table.")
    table = k.table("sizes", [Size(extent("n")), Int(5)])
    assert [table[place].evaluate({"n": 9}) for place in (0, 1)] == [9, 5]
    assert is_open(table[1]) and not is_narrow(table[1])
    assert table[1].cpp() == "tiling_.sizes[1]"
