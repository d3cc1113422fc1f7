"""Loads that fill parts of a buffer among zeros: what they wait for, and which are legal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.allocation import Use
from evokernel_core.targets.ascendc.ir.builder import Builder, at
from evokernel_core.targets.ascendc.ir.expr import U64, Constant, Size
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.print import vector_kernel

TILE = Constant("TILE", 64)


def among_zeros(before: int = 3, stages: int = 2, *, doubled: bool = False, behind: bool = False) -> Kernel:
    """Of rows of 64 the first 20 elements, behind ``8 + before`` zeros; of every third row zeros alone.
    ``doubled``: added to themselves in between. ``behind``: what is stored is cleared instead."""
    k = Builder("The beginnings of rows among zeros.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    rows = k.param("rows", Size(extent("n")))
    k.require(rows, ">=", 1)
    taken, made = Buffer("taken", "float", 4, TILE, stages), Buffer("made", "float", 4, TILE, stages)
    with k.cores("row", rows) as row:
        start = k.let("start", row * TILE, U64)
        if not behind:
            k.clear(taken, TILE)
        with k.when(row % 3, "!=", 2):
            k.load(at(taken, 8), x, start, 20, before=before, zeros=1)
        if doubled or behind:
            k.call("Add", made, taken, taken, TILE, repeats=1)
        if behind:
            k.clear(made, TILE)
        k.store(y, start, made if doubled or behind else taken, TILE)
    return k.kernel()


@pytest.mark.parametrize("doubled", [False, True])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_parts_are_loaded_among_zeros(stages: int, doubled: bool, on_kernel: Any, chip: Any) -> None:
    kernel = among_zeros(3, stages, doubled=doubled)
    (taken, *_) = allocation.uses(kernel).values()
    assert taken is (Use.INPUT if doubled else Use.THROUGH)
    assert not list(broken_rules(kernel, chip, {"n": 300}))
    x = np.random.default_rng(7).standard_normal((300, 64)).astype(np.float32)
    wanted = np.zeros_like(x)
    wanted[:, 11:31] = x[:, :20]
    wanted[np.arange(300) % 3 == 2] = 0
    np.testing.assert_array_equal(on_kernel(kernel, x), wanted * (1 + doubled))


@pytest.mark.parametrize(("event", "doubled"), [("V_MTE2", True), ("V_MTE2", False), ("MTE3_V", False)])
def test_without_a_wait_it_is_a_race(event: str, doubled: bool, on_kernel: Any, monkeypatch: Any) -> None:
    """Zeros come behind what lay there, and in front of the load."""
    wait = vector_kernel._wait
    monkeypatch.setattr(vector_kernel, "_wait", lambda given: [] if given == event else wait(given))
    x = np.ones((300, 64), np.float32)
    with pytest.raises(AssertionError):
        on_kernel(among_zeros(doubled=doubled), x)


def test_loads_behind_zeros_begin_while_the_turn_before_is_stored() -> None:
    text = vector_kernel.vector_class(among_zeros(), "Rows")
    assert "travels while this turn is computed" in text


def test_what_is_cleared_is_loaded(chip: Any) -> None:
    rules = {item.rule for item in broken_rules(among_zeros(behind=True), chip, {"n": 300})}
    assert "queue-direction" in rules


def test_zeros_in_front_are_less_than_a_block(chip: Any) -> None:
    broken = [
        item for item in broken_rules(among_zeros(9), chip, {"n": 300}) if item.rule == "parameter-limit"
    ]
    assert broken and "padding" in broken[0].reason
