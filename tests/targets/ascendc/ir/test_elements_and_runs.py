"""Elements of device memory that the scalar unit reads, quotients and differences, tiles that are dealt in
runs, and buffers that a layout places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.builder import Builder, at
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.expr import U64, Constant, CoreCount, Int, Size, ceil_div, least
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Difference, Element, Kernel, Ratio
from evokernel_core.targets.ascendc.kernels.stage import facts_of_vectors

TILE = Constant("TILE", 64)


def scaled(inner: str = "i", placed: bool = False) -> Kernel:
    """y = x times a quarter of the first element of its tile of 64, which is dealt in runs."""
    k = Builder("Tiles times a quarter of their first elements.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count = k.param("count", Size(extent("n * 64")))
    k.require(count, ">=", 1)
    tiles = k.param("tiles", ceil_div(count, TILE))
    run = k.param("run", ceil_div(tiles, CoreCount()))
    taken, made = Buffer("taken", "float", 4, TILE, 2), Buffer("made", "float", 4, TILE)
    first, second = (Buffer(name, "float", 4, TILE) for name in ("first", "second"))
    if placed:
        k.lay_out(second, first)
    with k.cores("tile", tiles, run=run) as tile:
        start = k.let("start", tile * TILE, U64)
        value = k.let("value", Element(x, start), "float")
        k.load(taken, x, start, TILE)
        k.call("Muls", first, taken, value, TILE, repeats=1)
        with k.loop(inner, 1) as i:
            k.call("Muls", at(second, i * TILE), first, Ratio(Int(1), i + 4), TILE, repeats=1)
        k.call("Adds", made, second, Converted(Int(0), "float"), TILE, repeats=1)
        k.store(y, start, made, TILE)
    return k.kernel()


@pytest.mark.parametrize("tiles", [1, 5, 48, 49, 301])
@pytest.mark.parametrize("placed", [False, True])
def test_tiles_are_scaled_by_an_element(tiles: int, placed: bool, on_kernel: Any, chip: Any) -> None:
    kernel = scaled(placed=placed)
    assert not list(broken_rules(kernel, chip, {"n": tiles}))
    assert facts_of_vectors(kernel).reads_numbers
    x = np.random.default_rng(tiles).integers(-8, 9, (tiles, 64)).astype(np.float32)
    np.testing.assert_array_equal(on_kernel(kernel, x), x * x[:, :1] / 4)


def lowered() -> Kernel:
    """y = x and the number of its tile of 64 less 3."""
    k = Builder("Tiles and their numbers, counted from -3.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    tiles = k.param("tiles", Size(extent("n")))
    k.require(tiles, ">=", 1)
    taken, made = Buffer("taken", "float", 4, TILE, 2), Buffer("made", "float", 4, TILE)
    with k.cores("tile", tiles) as tile:
        k.load(taken, x, tile * TILE, TILE)
        k.call("Adds", made, taken, Difference(tile, Int(3)), TILE, repeats=1)
        k.store(y, tile * TILE, made, TILE)
    return k.kernel()


def test_a_difference_may_be_negative(on_kernel: Any, chip: Any) -> None:
    kernel = lowered()
    assert not list(broken_rules(kernel, chip, {"n": 7}))
    x = np.random.default_rng(7).integers(-8, 9, (7, 64)).astype(np.float32)
    np.testing.assert_array_equal(on_kernel(kernel, x), x + np.arange(-3, 4)[:, None])


def test_a_layout_places_buffers_that_share_no_memory() -> None:
    names = [buffer.name for buffer in allocation.uses(scaled(placed=True))]
    assert names[:2] == ["second", "first"]
    homes = allocation.homes(scaled(placed=True))
    assert all(home == buffer for buffer, home in homes.items())


def test_a_name_that_hides_another_is_refused(chip: Any) -> None:
    assert [item.rule for item in broken_rules(scaled(inner="tile"), chip, {"n": 1})] == ["hidden-name"]


def rows_of(length: int) -> Kernel:
    """A copy of rows that follow each other in device memory, and lie whole blocks apart in tiles."""
    k = Builder("Rows.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    rows = k.param("rows", Size(extent("n")))
    k.require(rows, ">=", 1)
    high, pitch = Constant("HIGH", 64), Constant("PITCH", -(-length // 8) * 8)
    tile = Buffer("tile", "float", 4, high * pitch, 2)
    with k.cores("number", k.param("tiles", ceil_div(rows, high))) as number:
        left = k.let("left", rows - number * high, U64)
        count = k.let("countOfRows", least(left, high))
        place = number * high * length
        k.load(tile, x, place, length, rows=count, apart=Int(length), pitch=pitch)
        k.store(y, place, tile, length, rows=count, apart=Int(length), pitch=pitch)
    return k.kernel()


def test_rows_are_one_run_only_where_they_follow_each_other_in_tiles_too(chip: Any) -> None:
    """Rows of 60 elements lie 64 apart in a tile: each is a burst of its own."""
    sizes = {"n": 1 << 16}
    assert estimate_us(rows_of(60), sizes, chip) > 1.2 * estimate_us(rows_of(64), sizes, chip)
