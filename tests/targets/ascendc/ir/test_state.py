"""What one turn of a loop leaves to the next in buffers and states, and numbers that stand behind rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.builder import Builder, at, read_as
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Constant,
    Expr,
    Int,
    Size,
    State,
    ceil_div,
    expr,
    least,
)
from evokernel_core.targets.ascendc.ir.legality import broken_rules, wrong_types
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Enumerator,
    Fields,
    Kernel,
    Number,
    Ratio,
    Told,
)
from evokernel_core.targets.ascendc.ir.tile import known_values, samples, walk
from evokernel_core.targets.ascendc.print.vector_kernel import stage_text

TILE, TURNS = Constant("TILE", 64), Constant("TURNS", 5, "tiles of a core")
ZERO, ONE, TWO = (Number(name, value) for name, value in (("ZERO", 0.0), ("ONE", 1.0), ("TWO", 2.0)))


def carried(even: bool = False) -> Kernel:
    """Each lane's running sum over the tiles of a core, of which each has five; the first turn begins it."""
    k = Builder("Running sums of lanes.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count = k.param("count", Size(extent("n")))
    tiles = k.param("tiles", ceil_div(count, TILE))
    source, result = (Buffer(name, "float", 4, TILE, 2) for name in ("source", "result"))
    total, doubled = Buffer("total", "float", 4, TILE), Buffer("doubled", "float", 4, TILE)
    with k.cores("core", k.param("cores", ceil_div(tiles, TURNS)), even=even) as core:
        first = k.let("first", core * TURNS, U64)
        with k.loop("turn", least(tiles - first, TURNS), U64) as turn:
            start = k.let("start", (first + turn) * TILE, U64)
            length = k.let("length", least(k.let("left", count - start, U64), TILE))
            k.load(source, x, start, length, zeros=(expr(8) - length % 8) % 8, filler=ONE)
            with k.when(turn, "==", 0):
                k.call("Duplicate", total, ZERO, TILE, repeats=1)
            k.call("Muls", doubled, source, TWO, length, repeats=1)
            k.call("Add", total, total, doubled, length, repeats=1)
            k.call("Muls", result, total, ONE, length, repeats=1)
            k.store(y, start, result, length)
    return k.kernel()


@pytest.mark.parametrize("count", [1, 64, 300, 64 * 13 + 9])
def test_a_turn_finds_what_the_one_before_left(count: int, on_kernel: Any, chip: Any) -> None:
    kernel = carried()
    assert not list(broken_rules(kernel, chip, {"n": count}))
    x = np.random.default_rng(count).normal(size=count).astype("f4")
    padded = np.zeros((-(-count // 320), 5, 64), "f4")
    padded.reshape(-1)[:count] = 2 * x
    expected = padded.cumsum(1, dtype="f4").reshape(-1)[:count]
    np.testing.assert_allclose(on_kernel(kernel, x), expected, rtol=1e-5, atol=1e-5)


def test_cores_that_do_as_much_are_met_once(chip: Any) -> None:
    sizes = {"n": 64 * 5 * 40}
    kernels = [carried(even) for even in (True, False)]
    one, many = (samples(item, known_values(item, sizes, chip.aiv)[0]) for item in kernels)
    assert one == (0,) and len(many) > 1
    first, second = (estimate_us(item, sizes, chip) for item in kernels)
    assert first == pytest.approx(second)


def test_what_lasts_shares_no_memory() -> None:
    homes = allocation.homes(carried())
    assert [name.name for name, home in homes.items() if name != home] == []


def counted(state: str = "seen") -> Kernel:
    """Each tile times the number of tiles of its core, from the first up to it, that begin above zero."""
    k, seen = Builder("Tiles that are counted."), State(state, 7, "tiles that begin above zero")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    tiles = k.param("tiles", ceil_div(Size(extent("n * 64")), TILE))
    heads = Buffer("heads", "float", 4, Constant("HEAD", 8))
    source, result = (Buffer(name, "float", 4, TILE, 2) for name in ("source", "result"))
    with k.cores("core", k.param("cores", ceil_div(tiles, TURNS))) as core:
        k.assign(seen, 0)
        with k.loop("turn", least(tiles - core * TURNS, TURNS), U64) as turn:
            start = k.let("start", (core * TURNS + turn) * TILE, U64)
            k.load(source, x, start, TILE)
            k.load(heads, x, start, 8)
            with k.when(k.get("head", at(heads, 0), 1, "float"), ">", 0):
                k.assign(seen, seen + 1)
            k.call("Muls", result, source, Ratio(seen, Int(1)), TILE, repeats=1)
            k.store(y, start, result, TILE)
    return k.kernel()


@pytest.mark.parametrize("rows", [1, 5, 13])
def test_a_turn_finds_the_state_of_the_one_before(rows: int, on_kernel: Any, chip: Any) -> None:
    kernel = counted()
    assert not list(broken_rules(kernel, chip, {"n": rows}))
    x = np.random.default_rng(rows).integers(-9, 10, (rows, 64)).astype("f4")
    begins = np.zeros((-(-rows // 5), 5))
    begins.reshape(-1)[:rows] = x[:, 0] > 0
    np.testing.assert_array_equal(on_kernel(kernel, x), x * begins.cumsum(1).reshape(-1)[:rows, None])


def placed(changes: bool) -> Kernel:
    """y = x, tile by tile of a core; where each tile begins is a state that ``changes`` from turn to turn, or
    the first one and as many elements as tiles were before."""
    k, begin = Builder("Tiles one behind the other."), State("begin")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    tiles = k.param("tiles", Size(extent("n")))
    source, result = (Buffer(name, "float", 4, TILE, 2) for name in ("source", "result"))
    with k.cores("core", k.param("cores", ceil_div(tiles, TURNS))) as core:
        k.assign(begin, core * TURNS * TILE)
        with k.loop("turn", least(tiles - core * TURNS, TURNS), U64) as turn:
            start = k.let("start", begin if changes else begin + turn * TILE, U64)
            k.load(source, x, start, TILE)
            k.call("Muls", result, source, ONE, TILE, repeats=1)
            k.store(y, start, result, TILE)
            if changes:
                k.assign(begin, begin + TILE)
    return k.kernel()


@pytest.mark.parametrize("changes", [True, False])
def test_no_turn_loads_by_a_state_that_changes_before(changes: bool, on_kernel: Any, builder: Any) -> None:
    kernel, graph = placed(changes), builder()
    node = graph.call("relu.default", graph.input("x", ("n", 64)), shape=("n", 64))
    text = stage_text(kernel, graph.task(node, symbols={"n": 4}), "placed").kernel
    assert ("travels while" in text) is not changes
    x = np.random.default_rng(3).normal(size=(13, 64)).astype("f4")
    np.testing.assert_array_equal(on_kernel(kernel, x), x)


def kept() -> Kernel:
    """Each tile times how many of its elements are above zero, which the vector unit counts."""
    k, above = Builder("Tiles times a number of theirs."), State("above")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    source, result = (Buffer(name, "float", 4, TILE, 2) for name in ("source", "result"))
    mask, places = Buffer("mask", "uint8_t", 1, Constant("BITS", 32)), Buffer("places", "int32_t", 4, TILE)
    found = Buffer("found", "float", 4, TILE)
    shape = {"src0BlockStride": 1, "repeatTimes": 1, "src0RepeatStride": 0, "src1RepeatStride": 0}
    fields = Fields("GatherMaskParams", {key: Int(value) for key, value in shape.items()}, is_short=True)
    with k.cores("tile", k.param("tiles", Size(extent("n")))) as tile:
        k.load(source, x, tile * TILE, TILE)
        sign, pattern = Enumerator("CMPMODE::GT"), read_as("uint32_t", mask)
        k.call("Compares", mask, source, ZERO, sign, TILE, repeats=1, former="CompareScalar")
        k.call("Duplicate", found, ZERO, TILE, repeats=1)
        told = Told(above, Int(32))
        k.call("GatherMask", found, source, pattern, Enumerator("true"), TILE, fields, told, repeats=1)
        k.call("Cast", places, found, Enumerator("RoundMode::CAST_RINT"), TILE, repeats=1)
        k.get("any", at(places, 0), 0, "int32_t")
        k.call("Muls", result, source, Ratio(above, Int(1)), TILE, repeats=1)
        k.store(y, tile * TILE, result, TILE)
    return k.kernel()


def test_an_instruction_tells_a_state(on_kernel: Any, chip: Any) -> None:
    assert not list(broken_rules(kept(), chip, {"n": 9}))
    x = np.random.default_rng(4).integers(-9, 9, (9, 64)).astype("f4")
    np.testing.assert_array_equal(on_kernel(kept(), x), x * (x > 0).sum(1, keepdims=True))
    seen: dict[str, int] = {}
    walk(kept(), known_values(kept(), {"n": 9}, chip.aiv)[0], lambda *item: seen.update(item[2]))
    assert seen["above"] == 32


@pytest.mark.parametrize(("pattern", "is_wrong"), [("uint32_t", False), ("uint8_t", True)])
def test_patterns_are_words_as_wide_as_elements(pattern: str, is_wrong: bool) -> None:
    assert bool(wrong_types("GatherMask", ("float", "float", pattern))) is is_wrong


def counted_loads(is_read: bool) -> Kernel:
    """y = x, tile by tile, where a state that only the load changes says which one is next; or the store
    reads it too."""
    k, count = Builder("Tiles one behind the other."), State("count")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    tiles = k.param("tiles", Size(extent("n")))
    source, result = (Buffer(name, "float", 4, TILE, 2) for name in ("source", "result"))
    with k.cores("core", 1), k.loop("turn", tiles, U64) as turn:
        with k.when(turn, ">=", 0):
            k.load(source, x, count * TILE, TILE)
            k.assign(count, count + 1)
        k.call("Muls", result, source, ONE, TILE, repeats=1)
        k.store(y, (count - 1) * TILE if is_read else turn * TILE, result, TILE)
    return k.kernel()


@pytest.mark.parametrize("is_read", [True, False])
def test_a_load_may_come_ahead_by_a_state_of_its_own(is_read: bool, on_kernel: Any, builder: Any) -> None:
    kernel, graph = counted_loads(is_read), builder()
    node = graph.call("relu.default", graph.input("x", ("n", 64)), shape=("n", 64))
    text = stage_text(kernel, graph.task(node, symbols={"n": 4}), "counted").kernel
    assert ("travels while" in text) is not is_read
    x = np.random.default_rng(5).normal(size=(13, 64)).astype("f4")
    np.testing.assert_array_equal(on_kernel(kernel, x), x)


def chosen_rows(one_load: bool, changes: bool = False) -> Kernel:
    """Rows of x, eight by eight the other way round; the vector unit says which, once or for every eight."""
    k, eight = Builder("Rows the other way round."), Constant("EIGHT", 8)
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    source, result = (Buffer(name, "float", 4, TILE * eight, 2) for name in ("source", "result"))
    numbers = Buffer("numbers", "int32_t", 4, eight)

    def number() -> None:
        first, step, last = (Converted(Int(value), "int32_t") for value in (0, -1, 7))
        k.call("CreateVecIndex", numbers, first, eight, repeats=1)
        k.call("Muls", numbers, numbers, step, eight, repeats=1)
        k.call("Adds", numbers, numbers, last, eight, repeats=1)

    number()
    cores = k.param("cores", ceil_div(Size(extent("n")), eight * 2))
    with k.cores("core", cores) as core, k.loop("turn", 2) as turn:
        top = k.let("top", (core * 2 + turn) * eight, U64)
        with k.loop("i", eight, one_load=one_load) as i:
            row = k.get("row", at(numbers, i), i, "int32_t")
            k.load(at(source, i * TILE), x, (top + row) * TILE, TILE)
        k.call("Muls", result, source, ONE, TILE * eight, repeats=eight)
        k.store(y, top * TILE, result, TILE * eight)
        if changes:
            number()
    return k.kernel()


@pytest.mark.parametrize(
    ("one_load", "changes", "ahead"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_loads_that_numbers_choose_come_ahead_as_one(
    one_load: bool, changes: bool, ahead: bool, on_kernel: Any, builder: Any
) -> None:
    kernel, graph = chosen_rows(one_load, changes), builder()
    node = graph.call("relu.default", graph.input("x", ("n", 64)), shape=("n", 64))
    text = stage_text(kernel, graph.task(node, symbols={"n": 4}), "chosen").kernel
    assert ("travels while" in text) is ahead
    x = np.random.default_rng(6).normal(size=(48, 64)).astype("f4")
    np.testing.assert_array_equal(on_kernel(kernel, x), x.reshape(6, 8, 64)[:, ::-1].reshape(48, 64))


def test_a_state_is_hidden_by_no_other_name(chip: Any) -> None:
    assert [item.rule for item in broken_rules(counted("head"), chip, {"n": 9})] == ["hidden-name"]


def filled(filler: Number | None) -> Kernel:
    """The first five elements of every eight, and what is behind them."""
    eight = Constant("EIGHT", 8)
    k = Builder("Rows and fillers.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    rows = k.param("rows", Size(extent("n")))
    run = Buffer("run", "float", 4, eight * 16, 2)
    with k.cores("tile", k.param("tiles", ceil_div(rows, 16))) as tile:
        first = k.let("first", tile * 16, U64)
        high = k.let("high", least(k.let("left", rows - first, U64), 16))
        k.load(run, x, first * 8, 5, rows=high, apart=eight, zeros=3, filler=filler)
        k.store(y, first * 8, run, high * 8)
    return k.kernel()


@pytest.mark.parametrize("filler", [None, Number("LOWEST", -math.inf), Number("SEVEN", 7.0)])
def test_rows_have_numbers_behind_them(filler: Number | None, on_kernel: Any) -> None:
    x = np.random.default_rng(0).normal(size=(50, 8)).astype("f4")
    expected = x.copy()
    expected[:, 5:] = filler.value if filler else 0
    np.testing.assert_array_equal(on_kernel(filled(filler), x), expected)


def test_named_numbers_are_converted(builder: Any) -> None:
    k = Builder("Halves.")
    x, y = k.input("x", "x", "half", 2), k.output("y", "output", "half", 2)
    lowest, tile = Number("LOWEST", -math.inf), Constant("TILE", 128)
    run, made = Buffer("run", "half", 2, tile, 2), Buffer("made", "half", 2, tile, 2)
    with k.cores("tile", k.param("tiles", Size(extent("n")))) as index:
        k.load(run, x, index * tile, 100, zeros=12, filler=lowest)
        k.call("Duplicate", at(made, 64), Converted(lowest, "half"), 64, repeats=1)
        k.call("Maxs", made, run, Converted(lowest, "half"), 100, repeats=1)
        k.store(y, index * tile, made, tile)
    graph = builder()
    node = graph.call("relu.default", graph.input("x", ("n",), "float16"), shape=("n",), dtype="float16")
    text = stage_text(k.kernel(), graph.task(node, symbols={"n": 3}), "made").kernel
    assert text.count("constexpr float LOWEST = -__builtin_inff();") == 1
    assert "Duplicate(made[64], static_cast<half>(LOWEST), 64);" in text
    assert "DataCopyPadExtParams<half>{true, 0, static_cast<uint8_t>(12), static_cast<half>(LOWEST)}" in text


def copied(width: int, pitch: Expr | int) -> Kernel:
    """Rows that lie one behind the other in device memory."""
    k = Builder("Rows.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    run = Buffer("run", "float", 4, Constant("TILE", 8192), 2)
    with k.cores("tile", k.param("tiles", Size(extent("n")))) as tile:
        start = k.let("start", tile * (width * 256), U64)
        k.load(run, x, start, width, rows=256, apart=width, pitch=pitch)
        k.store(y, start, run, width, rows=256, apart=width, pitch=pitch)
    return k.kernel()


def test_rows_are_one_run_where_they_are_so_in_both_memories(chip: Any) -> None:
    dense, apart, odd = (estimate_us(copied(*how), {"n": 480}, chip) for how in ((24, 0), (24, 32), (23, 0)))
    assert dense < 0.9 * min(apart, odd)
