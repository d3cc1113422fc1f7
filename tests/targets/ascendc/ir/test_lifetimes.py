"""Which buffers lie in one memory: those whose values are never needed at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import Constant, Index, Int, Size, ceil_div
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Kernel

TILE = Constant("TILE", 64)
LARGE = Constant("LARGE", 128)
ONE = Converted(Int(1), "float")


class Tiles:
    """y = x + 4 for tiles of 64 elements of x [n, 64], by way of the buffers a, b and c."""

    def __init__(self) -> None:
        self.k = Builder("Four more.")
        self.a, self.c = (Buffer(name, "float", 4, TILE) for name in ("a", "c"))
        self.b = Buffer("b", "float", 4, LARGE)
        self.source, self.result = (Buffer(name, "float", 4, TILE, 2) for name in ("source", "result"))

    def add(self, to: Buffer, taken: Buffer) -> None:
        self.k.call("Adds", to, taken, ONE, TILE, repeats=1)

    def fill(self, buffer: Buffer) -> None:
        self.k.call("Duplicate", buffer, ONE, TILE, repeats=1)

    def kernel(self, compute: Callable[[], None], setup: Callable[[], None] = lambda: None) -> Kernel:
        k = self.k
        x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
        setup()
        with k.cores("tile", k.param("tiles", Size(extent("n")))) as tile:
            k.load(self.source, x, tile * TILE, TILE)
            compute()
            k.store(y, tile * TILE, self.result, TILE)
        return k.kernel()


def in_a_row() -> Kernel:
    t = Tiles()

    def compute() -> None:
        for to, taken in ((t.a, t.source), (t.b, t.a), (t.c, t.b), (t.result, t.c)):
            t.add(to, taken)

    return t.kernel(compute)


def from_the_setup() -> Kernel:
    """A holds ones from before the tiles."""
    t = Tiles()

    def compute() -> None:
        for to, taken in ((t.b, t.source), (t.c, t.b), (t.b, t.c)):
            t.add(to, taken)
        t.k.call("Add", t.result, t.b, t.a, TILE, repeats=1)

    return t.kernel(compute, lambda: t.fill(t.a))


def through_a_loop() -> Kernel:
    """A adds up over the turns of a loop, in which b is made anew and c is not."""
    t = Tiles()

    def compute() -> None:
        t.add(t.a, t.source)
        t.fill(t.c)
        with t.k.loop("turn", 3) as turn:
            t.fill(t.b)
            with t.k.when(turn, "<", 3):
                t.k.call("Add", t.a, t.a, t.b, TILE, repeats=1)
        t.k.call("Max", t.result, t.a, t.c, TILE, repeats=1)

    return t.kernel(compute)


def sometimes() -> Kernel:
    """A is written in the first turn alone and read in all; b and c are used behind the loop too."""
    t = Tiles()

    def compute() -> None:
        with t.k.loop("turn", 3) as turn:
            with t.k.when(turn, "==", 0):
                t.add(t.a, t.source)
            t.fill(t.b)
            t.k.call("Add", t.c, t.a, t.b, TILE, repeats=1)
        t.add(t.b, t.c)
        t.add(t.result, t.b)

    return t.kernel(compute)


def in_pieces(number: Index) -> Kernel:
    """A is written in pieces, by a loop that may be known to have a turn."""
    t = Tiles()

    def compute() -> None:
        with t.k.loop("piece", number):
            t.add(t.a, t.source)
        for to, taken in ((t.b, t.a), (t.c, t.b), (t.result, t.c)):
            t.add(to, taken)

    return t.kernel(compute)


def test_a_loop_that_has_a_turn_makes_what_it_writes() -> None:
    for number, home in ((ceil_div(LARGE, TILE), "a"), (Size(extent("n")), "c")):
        found = {buffer.name: home.name for buffer, home in allocation.homes(in_pieces(number)).items()}
        assert found["c"] == home


@pytest.mark.parametrize(
    ("make", "homes"),
    [
        (in_a_row, {"a": "a", "b": "b", "c": "a"}),
        (from_the_setup, {"a": "a", "b": "b", "c": "c"}),
        (through_a_loop, {"a": "a", "b": "b", "c": "c"}),
        (sometimes, {"a": "a", "b": "b", "c": "c"}),
    ],
)
def test_where_buffers_lie(make: Callable[[], Kernel], homes: dict[str, str], on_kernel: Any) -> None:
    kernel = make()
    found = {buffer.name: home.name for buffer, home in allocation.homes(kernel).items()}
    assert found == {"source": "source", "result": "result", **homes}
    apart = {buffer for buffer, home in allocation.homes(kernel).items() if buffer is home}
    assert allocation.bytes_of(kernel) == sum(item.bytes * item.stages for item in apart)
    x = np.arange(64 * 100, dtype=np.float32).reshape(100, 64)
    np.testing.assert_array_equal(on_kernel(kernel, x), x + 4)


def test_smaller_buffers_lie_in_larger_ones() -> None:
    t = Tiles()

    def compute() -> None:
        t.add(t.a, t.source)
        t.add(t.result, t.a)
        t.add(t.b, t.source)
        t.add(t.result, t.b)

    found = allocation.homes(t.kernel(compute))
    assert found[t.a] == t.b
    assert found[t.b] == t.b


def test_what_copies_work_on_or_is_cleared_lies_alone() -> None:
    t = Tiles()
    t.a = Buffer("a", "float", 4, TILE, cleared=True)

    def compute() -> None:
        t.add(t.a, t.source)
        t.add(t.b, t.a)
        t.add(t.c, t.b)
        t.add(t.result, t.c)

    assert all(buffer == home for buffer, home in allocation.homes(t.kernel(compute)).items())
