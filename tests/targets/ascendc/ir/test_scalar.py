"""What the scalar unit reads and writes in the unified buffer: waits, atomic stores, and their cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.allocation import Use
from evokernel_core.targets.ascendc.ir.builder import Builder, at
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    CoreCount,
    Int,
    Size,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.handing import with_waits
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Kernel
from evokernel_core.targets.ascendc.ir.steps import Block, Part, hand_overs, parts_of, pipelines
from evokernel_core.targets.ascendc.ir.tile import known_values, walk
from evokernel_core.targets.ascendc.print import vector_kernel

TILE = Constant("TILE", 64)
RANDOM = np.random.default_rng(5)


def _whole(low: int, high: int, rows: int) -> Any:
    return RANDOM.integers(low, high, (rows, 64)).astype(np.float32)


def reversed_tiles(stages: int = 1, *, plain: bool = False, doubled: bool = False) -> Kernel:
    """y = x with the elements of each tile of 64 the other way round, one by one; the first is negated.
    ``plain``: the first one is also read by itself; ``doubled``: an instruction doubles all, too."""
    k = Builder("Turns tiles round.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count = k.param("count", Size(extent("n * 64")))
    k.require(count, ">=", 1)
    taken, made = (Buffer(name, "float", 4, TILE, stages) for name in ("taken", "made"))
    with k.cores("tile", k.param("tiles", ceil_div(count, TILE))) as tile:
        start = k.let("start", tile * TILE, U64)
        k.load(taken, x, start, TILE)
        if plain:
            k.get("head", at(taken, 0), 0, "float")
        with k.loop("i", TILE) as i:
            value = k.get("value", at(taken, i), 0, "float")
            last = TILE - 1
            k.put(at(made, last - i), Choice(i, "==", Int(0), value * -1, value))
        if doubled:
            k.call("Muls", made, made, Converted(Int(2), "float"), TILE, repeats=1)
        k.store(y, start, made, TILE)
    return k.kernel()


def chosen_tiles(fences: bool = True, share: int = 1) -> Kernel:
    """y[i] = 2 * x[i] of tiles of 64: y is what x is, and where the first element is positive, x is added."""
    k = Builder("Tiles that numbers choose.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count = k.param("count", Size(extent("n * 64")))
    k.require(count, ">=", 1)
    heads, tile = Buffer("heads", "float", 4, TILE), Buffer("run", "float", 4, TILE, 2)
    with k.cores("unit", k.param("units", least(ceil_div(count, TILE), CoreCount()))) as unit:
        begin = k.let("begin", unit * TILE, U64)
        k.load(tile, x, begin, TILE)
        k.store(y, begin, tile, TILE)
        if fences:
            k.fence()
        k.load(heads, x, begin, TILE)
        with k.atomic("Add", "float"), k.loop("i", 4) as i:
            head = k.get("head", at(heads, i), 1, "float")
            with k.when(head, ">", 0, share=share):
                k.load(tile, x, begin + i * 16, 16)
                k.store(y, begin + i * 16, tile, 16)
    return k.kernel()


def test_elements_are_read_and_written_one_by_one(on_kernel: Any, chip: Any) -> None:
    kernel = reversed_tiles()
    assert set(allocation.uses(kernel).values()) == {Use.NUMBERS}
    assert not list(broken_rules(kernel, chip, {"n": 90}))
    x = _whole(-50, 50, 90)
    expected = x[:, ::-1].copy()
    expected[:, -1] *= -1
    np.testing.assert_array_equal(on_kernel(kernel, x, auto_sync=False), expected)


def test_a_tile_travels_while_the_scalar_unit_walks_another(on_kernel: Any, builder: Any, chip: Any) -> None:
    kernel, graph = reversed_tiles(2), builder()
    assert list(allocation.uses(kernel).values()) == [Use.INPUT, Use.OUTPUT]
    assert not list(broken_rules(kernel, chip, {"n": 90}))
    node = graph.call("relu.default", graph.input("x", ("n", 64)), shape=("n", 64))
    text = vector_kernel.stage_text(kernel, graph.task(node, symbols={"n": 4}), "reversed").kernel
    assert "travels while" in text
    x = _whole(-50, 50, 200)
    expected = x[:, ::-1].copy()
    expected[:, -1] *= -1
    np.testing.assert_array_equal(on_kernel(kernel, x, auto_sync=False), expected)
    one, two = (estimate_us(reversed_tiles(stages), {"n": 4000}, chip) for stages in (1, 2))
    assert two < one


@pytest.mark.parametrize("event", ["V_S", "S_V"])
def test_the_scalar_unit_waits_for_queues_and_they_for_it(
    event: str, on_kernel: Any, monkeypatch: Any
) -> None:
    wait = vector_kernel._wait
    monkeypatch.setattr(vector_kernel, "_wait", lambda item: [] if item == event else wait(item))
    with pytest.raises(AssertionError, match="hazards"):
        on_kernel(reversed_tiles(2), _whole(1, 9, 200), auto_sync=False)


@pytest.mark.parametrize("how", [{"plain": True}, {"doubled": True}])
def test_a_queue_of_the_scalar_unit_is_its_step_s_alone(how: Any, chip: Any) -> None:
    (broken, *_) = broken_rules(reversed_tiles(2, **how), chip, {"n": 9})
    assert broken.rule == "queue-direction" and "scalar unit" in broken.reason


def test_chosen_stores_add_to_what_is_there(on_kernel: Any, chip: Any) -> None:
    kernel = chosen_tiles()
    assert not list(broken_rules(kernel, chip, {"n": 30}))
    x = _whole(-50, 50, 30)
    adds = np.repeat(x[:, :4] > 0, 16, axis=1)
    np.testing.assert_array_equal(on_kernel(kernel, x, auto_sync=False), x + adds * x)


@pytest.mark.parametrize("make", [reversed_tiles, chosen_tiles])
def test_kernels_without_waits_have_hazards(make: Any, on_kernel: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(vector_kernel, "with_waits", lambda parts, used: parts)
    with pytest.raises(AssertionError, match="hazards"):
        on_kernel(make(), _whole(1, 9, 90), auto_sync=False)


def test_stores_without_a_fence_race(on_kernel: Any) -> None:
    with pytest.raises(AssertionError, match="hazards"):
        on_kernel(chosen_tiles(fences=False), _whole(1, 9, 30))


def test_a_loop_waits_once_for_what_it_reads() -> None:
    kernel = chosen_tiles()
    (tiles,) = _blocks(with_waits(parts_of(kernel.body), allocation.uses(kernel)))
    (atomic,) = _blocks(tiles.bodies[0])
    (loop,) = _blocks(atomic.bodies[0])
    assert atomic.waits == ("MTE2_S",)
    assert not loop.waits
    assert not any(part.waits for part in loop.bodies[0] if hasattr(part, "waits"))


def handed_on(unit: str) -> Kernel:
    """y = 2 * x in one buffer; a fence, or none, stands on either side of the instruction."""
    k = Builder("Hands tiles on.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count = k.param("count", Size(extent("n * 64")))
    tile = Buffer("one", "float", 4, TILE, by_events=True)
    with k.cores("tile", k.param("tiles", ceil_div(count, TILE))) as number:
        start = k.let("start", number * TILE, U64)
        k.load(tile, x, start, TILE)
        if unit:
            k.fence(unit)
        k.call("Muls", tile, tile, Converted(Int(2), "float"), TILE, repeats=1)
        if unit:
            k.fence(unit)
        k.store(y, start, tile, TILE)
    return k.kernel()


@pytest.mark.parametrize(
    ("unit", "waits"),
    [("", ["MTE3_MTE2", "MTE2_V", "V_MTE3"]), ("ALL", ["MTE3_MTE2"]), ("CORES", ["MTE3_MTE2"])],
)
def test_nothing_waits_behind_a_barrier_of_all_units(unit: str, waits: list[str]) -> None:
    kernel = handed_on(unit)
    (tiles,) = _blocks(with_waits(parts_of(kernel.body), allocation.uses(kernel)))
    assert [event for part in tiles.bodies[0] for event in getattr(part, "waits", ())] == waits


def _blocks(parts: tuple[Part, ...]) -> list[Block]:
    return [part for part in parts if isinstance(part, Block)]


def test_what_choices_load_is_handed_over_in_their_loop() -> None:
    assert [loop.var.name for loop, _ in pipelines(chosen_tiles())] == ["unit", "i"]


def test_numbers_and_waits_for_them_take_time(chip: Any) -> None:
    once = estimate_us(reversed_tiles(), {"n": 1}, chip)
    often = estimate_us(reversed_tiles(), {"n": 10 * chip.aiv}, chip)
    cycles = 2 * 64 * chip.scalar.local_access_cycles + chip.mte.load_latency_cycles
    assert often - once >= 9 * cycles / chip.mhz
    fenced, free = (estimate_us(chosen_tiles(fences), {"n": 40}, chip) for fences in (True, False))
    assert fenced > free


def stored_rows(rows: int) -> Kernel:
    """y = x + 1 of tiles of 64 KB, which are loaded at once, and computed and stored in so many parts."""
    k = Builder("Tiles in parts.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    tile, part = Constant("ALL", 16384), Constant("PART", 16384 // rows)
    taken, made = Buffer("taken", "float", 4, tile, 2), Buffer("made", "float", 4, part, 2)
    with k.cores("tile", k.param("tiles", Size(extent("n")))) as number:
        k.load(taken, x, number * tile, tile)
        with k.loop("row", rows) as row:
            one = Converted(Int(1), "float")
            k.call("Adds", made, at(taken, row * part), one, part, repeats=ceil_div(part, 64))
            k.store(y, number * tile + row * part, made, part)
    return k.kernel()


def test_buffers_that_are_handed_over_take_calls_on_queues(chip: Any) -> None:
    """Four calls for each part, and its instructions: parts of 16 elements wait for the scalar unit."""
    assert len(hand_overs(stored_rows(4))) == 2
    one, many = (estimate_us(stored_rows(1024), {"n": number * chip.aiv}, chip) for number in (1, 11))
    each = 4 * chip.scalar.queue_cycles + 2 * chip.scalar.issue_cycles
    assert many - one >= 10 * 1024 * each / chip.mhz


def test_what_happens_once_in_many_times_is_met_as_often_as_on_the_unluckiest_core(chip: Any) -> None:
    """Four turns, of which one in 64 holds: a sixteenth of a time on average."""
    kernel, met = chosen_tiles(share=64), []

    def visit(node: Any, times: float, values: Any, inside: bool) -> None:
        if getattr(node, "is_load", False) and "i" in values:
            met.append(times)

    known, _ = known_values(kernel, {"n": 1}, chip.aiv)
    walk(kernel, known, visit)
    assert sum(met) < 4
    assert sum(met) > 4 / 64
