"""Fields of a tiling for which ComputeTiling tries all values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Cheapest,
    Constant,
    Expr,
    Int,
    Size,
    Var,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.ir.tile import known_values
from evokernel_core.targets.ascendc.print.tiling import computed, fields_of

MOST = Constant("MOST", 640)


def copied() -> Kernel:
    """y = x in tiles whose number of blocks is the cheapest: few, but not the longest."""
    k = Builder("Tiles of the cheapest length.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count, blocks = k.param("count", Size(extent("n"))), Var("tried", U64)
    tiles = ceil_div(count, blocks * 8)
    cheapest = Cheapest(blocks, Int(1), MOST // 8, tiles * 100 + blocks * 60)
    length: Expr = k.param("length", k.param("blocks", cheapest) * 8)
    tile = Buffer("tile", "float", 4, MOST, 2)
    with k.cores("tileNumber", k.param("tiles", ceil_div(count, length))) as number:
        start = k.let("start", number * length, U64)
        elements = k.let("elements", least(k.let("left", count - start, U64), length))
        k.load(tile, x, start, elements)
        k.store(y, start, tile, elements)
    return k.kernel()


@pytest.mark.parametrize("count", [1, 100, 5000, 70000])
def test_the_first_of_the_cheapest_values_is_taken(count: int, on_kernel: Any, chip: Any) -> None:
    kernel = copied()
    assert not list(broken_rules(kernel, chip, {"n": count}))
    known, _ = known_values(kernel, {"n": count}, chip.aiv)
    costs = [-(-count // (blocks * 8)) * 100 + blocks * 60 for blocks in range(1, 81)]
    assert known["tiling.blocks"] == costs.index(min(costs)) + 1
    x = np.random.default_rng(count).normal(size=count).astype("f4")
    np.testing.assert_array_equal(on_kernel(kernel, x), x)


def test_what_only_the_host_knows_is_no_field() -> None:
    """A search with constants of its own, of which a field is made."""
    k = Builder("A number on the way to a field.")
    count, tried, cost = k.param("count", Size(extent("n"))), Var("tried", U64), Var("cost", U64)
    search = Cheapest(tried, Int(1), Int(9), cost + tried, ((cost, count % tried * 10),))
    found = k.on_host("found", search, "of no field")
    k.param("made", found * 2)
    assert [line.split()[1] for line in fields_of(k.kernel())] == ["count;", "made;"]
    lines = computed(k.kernel())
    assert lines[1] == "uint64_t found = 1; // of no field"
    assert "    const uint64_t cost = tiling.count % tried * 10;" in lines
    assert lines[-1] == "tiling.made = found * 2;"
    assert found.evaluate({"n": 35, "tiling.count": 35}) == 1
    with pytest.raises(TypeError):
        found.cpp()


def test_a_search_stands_for_itself() -> None:
    tried = Var("tried", U64)
    with pytest.raises(TypeError):
        (Cheapest(tried, Int(1), Int(2), tried) + 1).cpp()
