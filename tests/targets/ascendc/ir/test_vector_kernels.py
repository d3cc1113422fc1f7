"""Small kernels built in the IR: what is derived of them, what is refused, and what the twin computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.allocation import Use
from evokernel_core.targets.ascendc.ir.builder import Builder, at, clear_behind, strides
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Constant,
    CoreCount,
    Expr,
    Int,
    Size,
    ceil_div,
    expr,
    least,
)
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Enumerator, Fields, Kernel, Number
from evokernel_core.targets.ascendc.ir.tile import known_values
from evokernel_core.targets.ascendc.print.vector_kernel import stage_text

TILE = Constant("TILE", 256, "elements")


def affine(tile: Constant = TILE, stages: int = 2, in_place: bool = False) -> Kernel:
    """y = 3 * x + y0 with y0 = 1, over n elements."""
    k = Builder("Three times each element, plus one.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count = k.param("count", Size(extent("n")))
    k.require(count, ">=", 1)
    source = Buffer("source", "float", 4, tile, stages)
    scaled = source if in_place else Buffer("scaled", "float", 4, tile)
    result = Buffer("result", "float", 4, tile, stages)
    with k.cores("tile", k.param("tiles", ceil_div(count, tile))) as index:
        start = k.let("start", index * tile, U64)
        left = k.let("left", count - start, U64)
        length = k.let("length", least(left, tile))
        k.load(source, x, start, length)
        repeats = ceil_div(length, 64)
        k.call("Muls", scaled, source, Converted(Int(3), "float"), length, repeats=repeats)
        k.call("Adds", result, scaled, Converted(Int(1), "float"), length, repeats=repeats)
        k.store(y, start, result, length)
    return k.kernel()


def copied(stages: int = 2) -> Kernel:
    """y = x, through one buffer that a load fills and a store empties."""
    k = Builder("A copy.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count = k.param("count", Size(extent("n")))
    k.require(count, ">=", 1)
    run = Buffer("run", "float", 4, TILE, stages)
    with k.cores("tile", k.param("tiles", ceil_div(count, TILE))) as index:
        start = k.let("start", index * TILE, U64)
        left = k.let("left", count - start, U64)
        length = k.let("length", least(left, TILE))
        k.load(run, x, start, length)
        k.store(y, start, run, length)
    return k.kernel()


def halves() -> Kernel:
    """y = x, each tile in two loads of a loop; a table that the setup makes is added and taken off."""
    half = Constant("HALF", 128)
    k = Builder("Two halves.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count = k.param("count", Size(extent("n * 256")))
    k.require(count, ">=", 1)
    source, result = Buffer("source", "float", 4, half * 2, 2), Buffer("result", "float", 4, half * 2, 2)
    ones = Buffer("ones", "float", 4, half * 2)
    k.call("Duplicate", ones, Converted(Int(1), "float"), half * 2, repeats=4)
    with k.cores("tile", k.param("tiles", ceil_div(count, half * 2))) as index:
        start = k.let("start", index * half * 2, U64)
        with k.loop("part", 2) as part:
            k.load(at(source, part * half), x, start + part * half, half)
        with k.section("Shift", "There and back."):
            k.call("Add", result, source, ones, half * 2, repeats=4)
            k.call("Sub", result, result, ones, half * 2, repeats=4)
        k.store(y, start, result, half * 2)
    return k.kernel()


@given(st.integers(1, 40_000), st.integers(1, 3), st.booleans())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tiles_of_any_length(on_kernel: Any, count: int, stages: int, in_place: bool) -> None:
    values = np.arange(count, dtype=np.float32) % 1000
    result = on_kernel(affine(stages=stages, in_place=in_place), values)
    np.testing.assert_array_equal(result, values * 3 + 1)


@pytest.mark.parametrize("count", [1, 255, 256, 257, 100_000])
def test_a_copy_through_one_queue(count: int, on_kernel: Any) -> None:
    values = np.arange(count, dtype=np.float32)
    np.testing.assert_array_equal(on_kernel(copied(), values), values)


def test_loops_sections_and_a_setup(on_kernel: Any) -> None:
    values = np.arange(256 * 70, dtype=np.float32).reshape(70, 256)
    np.testing.assert_array_equal(on_kernel(halves(), values), values)


def test_queues_follow_from_who_writes_and_reads() -> None:
    found = {buffer.name: use for buffer, use in allocation.uses(affine()).items()}
    assert found == {"source": Use.INPUT, "scaled": Use.SCRATCH, "result": Use.OUTPUT}
    assert list(allocation.uses(copied()).values()) == [Use.THROUGH]
    assert allocation.bytes_of(affine()) == (2 + 1 + 2) * 256 * 4


def test_larger_tiles_and_more_stages_cost_less_where_bytes_are_few(chip: Any) -> None:
    sizes = {"n": 1 << 20}
    slow, quick = (affine(Constant("TILE", tile), 2) for tile in (64, 2048))
    assert estimate_us(quick, sizes, chip) < estimate_us(slow, sizes, chip)
    assert estimate_us(affine(stages=2), sizes, chip) < estimate_us(affine(stages=1), sizes, chip)
    assert estimate_us(affine(), {"n": 1 << 24}, chip) > 8 * (1 << 24) / chip.hbm_gbps / 1e3


def changed(kernel: Kernel, **of_first_buffer: Any) -> Kernel:
    """The kernel with another first buffer."""
    first = kernel.buffers[0]
    return _replaced(kernel, first, evolve(first, **of_first_buffer))


def _replaced(item: Any, old: Any, new: Any) -> Any:
    if item == old:
        return new
    if isinstance(item, tuple):
        return tuple(_replaced(part, old, new) for part in item)
    if hasattr(item, "__attrs_attrs__") and not isinstance(item, Expr):
        fields = {one.name: getattr(item, one.name) for one in item.__attrs_attrs__}
        return evolve(item, **{name: _replaced(value, old, new) for name, value in fields.items()})
    return item


def _with_parameter(value: int) -> Kernel:
    k = Builder("Repeats.")
    y = k.output("y", "output", "float", 4)
    made, taken = Buffer("made", "float", 4, expr(64)), Buffer("taken", "float", 4, expr(64))
    with k.cores("tile", 1):
        k.call("Duplicate", taken, Converted(Int(0), "float"), 64, repeats=1)
        fields = Fields("TransDataTo5HDParams", {"repeatTimes": Int(value)})
        k.call("TransDataTo5HD", made, taken, fields, repeats=value)
        k.store(y, 0, made, 64)
    return k.kernel()


def _without_writer() -> Kernel:
    k = Builder("Reads what nothing wrote.")
    y = k.output("y", "output", "float", 4)
    made, taken = Buffer("made", "float", 4, expr(64)), Buffer("taken", "float", 4, expr(64))
    with k.cores("tile", 1):
        k.call("Exp", made, taken, 64, repeats=1)
        k.store(y, 0, made, 64)
    return k.kernel()


def _without_reader() -> Kernel:
    k = Builder("Writes what nothing reads.")
    x = k.input("x", "x", "float", 4)
    with k.cores("tile", 1):
        k.load(Buffer("made", "float", 4, expr(64)), x, 0, 64)
    return k.kernel()


def _typed(source: str, target: str) -> Kernel:
    k = Builder("Converts.")
    x, y = k.input("x", "x", source, 4), k.output("y", "output", target, 4)
    taken, made = Buffer("taken", source, 4, expr(64), 2), Buffer("made", target, 4, expr(64), 2)
    with k.cores("tile", 1):
        k.load(taken, x, 0, 64)
        k.call("Cast", made, taken, Enumerator("RoundMode::CAST_RINT"), 64, repeats=1)
        k.store(y, 0, made, 64)
    return k.kernel()


def _off_block(offset: int) -> Kernel:
    k = Builder("Begins inside a block.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    run = Buffer("run", "float", 4, expr(128), 2)
    with k.cores("tile", 1):
        k.load(at(run, offset), x, 0, 64)
        k.store(y, 0, at(run, offset), 64)
    return k.kernel()


@pytest.mark.parametrize(
    ("legal", "illegal", "rule"),
    [
        (affine(), affine(Constant("TILE", 40_000)), "ub-capacity"),
        (affine(stages=4), affine(stages=5), "queue-stages"),
        (affine(), changed(affine(), elements=Int(252 + 3)), "alignment"),
        (_off_block(8), _off_block(4), "alignment"),
        (_with_parameter(255), _with_parameter(256), "parameter-limit"),
        (affine(), _without_writer(), "unwritten-buffer"),
        (affine(), _without_reader(), "unread-buffer"),
        (_typed("float", "int32_t"), _typed("uint32_t", "int32_t"), "type"),
        (affine(), evolve(affine(), body=affine().tiles.body), "no-tiles"),
    ],
)
def test_a_broken_rule_is_named_with_its_place(legal: Kernel, illegal: Kernel, rule: str, chip: Any) -> None:
    sizes = {"n": 1000}
    assert not list(broken_rules(legal, chip, sizes))
    found = list(broken_rules(illegal, chip, sizes))
    assert rule in {item.rule for item in found}
    assert all(item.place and item.reason.endswith(".") for item in found)


def spread(columns: int, stages: int = 2) -> Kernel:
    """y = x + 1 for rows of x [n, columns], each a pitch of whole repeats apart; a core has equal tiles."""
    wide, high = Constant("COLUMNS", columns), Constant("ROWS", 8, "most of a tile")
    pitch = Constant("PITCH", -(-columns // 64) * 64)
    k = Builder("One more, with rows apart.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    rows = k.param("rows", Size(extent("n")))
    k.require(rows, ">=", 1)
    share = k.param("share", ceil_div(rows, CoreCount()), "rows of a core")
    tall = k.param("tall", ceil_div(share, ceil_div(share, high)), ctype=U32)
    source, result = (Buffer(name, "float", 4, high * pitch, stages) for name in ("source", "result"))
    ones = Buffer("ones", "float", 4, Constant("EIGHT", 8), cleared=True)
    k.call("Adds", ones, ones, Number("STEP", 1.0, "of each"), 8, repeats=1)
    with k.cores("tile", k.param("tiles", ceil_div(rows, tall))) as tile:
        first = k.let("first", tile * tall, U64)
        left = k.let("left", rows - first, U64)
        count = k.let("count", least(left, tall))
        k.load(source, x, first * wide, wide, rows=count, apart=wide, pitch=pitch)
        with k.section("Clear"):
            clear_behind(k, source, wide, count, pitch)
        steps = strides("BinaryRepeatParams", 1, 1, 0, 8, 8, 0)
        times = Converted(ceil_div(count * pitch, 64), "uint8_t")
        k.call("Add", result, source, ones, 64, times, steps, repeats=ceil_div(count * pitch, 64))
        k.store(y, first * wide, result, wide, rows=count, apart=wide, pitch=pitch)
    return k.kernel()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 64), (100, 13), (1000, 70), (49, 200)])
@pytest.mark.parametrize("stages", [1, 2])
def test_rows_a_pitch_apart(rows: int, columns: int, stages: int, on_kernel: Any, chip: Any) -> None:
    kernel = spread(columns, stages)
    assert not list(broken_rules(kernel, chip, {"n": rows}))
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    np.testing.assert_array_equal(on_kernel(kernel, x), x + 1)


def test_a_load_travels_while_the_turn_before_is_computed(builder: Any) -> None:
    """Only where there is a buffer for both, which then is a queue of that depth."""
    graph = builder()
    node = graph.call("relu.default", graph.input("x", ("n",)), shape=("n",))
    task = graph.task(node, symbols={"n": 4})
    ahead, behind = (stage_text(spread(70, stages), task, "rows").kernel for stages in (2, 1))
    assert "CopyIn(tile + GetBlockNum());" in ahead
    assert "TQue<TPosition::VECIN, 2> sourceQueue;" in ahead
    assert "GetBlockNum());" not in behind
    assert "TQue<TPosition::VECIN, 1> sourceQueue;" in behind


def test_the_number_of_cores_is_the_chips(chip: Any) -> None:
    known, unmet = known_values(spread(64), {"n": 1000}, 10)
    assert (known["tiling.share"], known["tiling.tall"], known["tiling.tiles"]) == (100, 8, 125)
    assert unmet is None
    assert known_values(spread(64), {"n": 0}, 10)[1] is not None
    (broken,) = broken_rules(spread(64), chip, {"n": 0})
    assert (broken.rule, broken.place) == ("tiling", "ComputeTiling")


def test_what_queues_hand_over_is_not_cleared(chip: Any) -> None:
    k = Builder("A copy.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    run = Buffer("run", "float", 4, TILE, 2, cleared=True)
    with k.cores("tile", k.param("tiles", Size(extent("n")))) as tile:
        k.load(run, x, tile * TILE, TILE)
        k.store(y, tile * TILE, run, TILE)
    assert [item.rule for item in broken_rules(k.kernel(), chip, {"n": 3})] == ["queue-cleared"]


@pytest.mark.parametrize(("pitch", "rule"), [(20, "alignment"), (8, "parameter-limit")])
def test_rows_lie_whole_blocks_apart(pitch: int, rule: str, chip: Any) -> None:
    k = Builder("A copy.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    run = Buffer("run", "float", 4, TILE, 2)
    with k.cores("tile", k.param("tiles", Size(extent("n")))) as tile:
        k.load(run, x, tile * 20, 10, rows=2, apart=10, pitch=pitch)
        k.store(y, tile * 20, run, 10, rows=2, apart=10, pitch=pitch)
    assert {item.rule for item in broken_rules(k.kernel(), chip, {"n": 3})} == {rule}
