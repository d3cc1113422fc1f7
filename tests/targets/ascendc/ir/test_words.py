"""Integers in the IR: literals of every type, elements that are picked, sections that a kernel has twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir.builder import Builder, at, read_as
from evokernel_core.targets.ascendc.ir.expr import U64, Constant, Expr, Int, Size, Var, ceil_div
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Element,
    Enumerator,
    Fields,
    Instruction,
    Kept,
    Kernel,
    Node,
    Role,
    Section,
    Tensor,
)
from evokernel_core.targets.ascendc.ir.tile import known_values, walk
from evokernel_core.targets.ascendc.print.vector_kernel import stage_text

TILE = Constant("TILE", 64)
_LONG = Constant("LONG", 512)
_RUN = Fields(
    "GatherMaskParams",
    {
        "src0BlockStride": Int(1),
        "repeatTimes": Int(1),
        "src0RepeatStride": Int(0),
        "src1RepeatStride": Int(0),
    },
    is_short=True,
)


def halved_signs(stages: int = 1) -> Kernel:
    """Of 64 numbers the first 32 of y are the even ones, the others the bits of the odd ones without the
    lowest two, zeros from the left, then the least int32 added and taken away again."""
    k = Builder("Picks, shifts and adds words.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count = k.param("count", Size(extent("n")))
    k.require(count, ">=", 1)
    taken, made = (Buffer(name, "float", 4, TILE, stages) for name in ("taken", "made"))
    words = Buffer("words", "int32_t", 4, TILE)
    half = TILE // 2

    def picked(pattern: int) -> None:
        how = (Int(pattern), Enumerator("true"), TILE, _RUN, Kept())
        k.call("GatherMask", words, read_as("int32_t", taken), *how, repeats=1, note="every second word")

    with k.cores("tile", count) as tile:
        start = k.let("start", tile * TILE, U64)
        k.load(taken, x, start, TILE)
        picked(1)
        with k.section("AddTwice", "The same words again."):
            for _ in range(2):
                least = Converted(Int(-(1 << 31)), "int32_t")
                k.call("Adds", words, words, least, half, repeats=1)
        section = k.last
        assert isinstance(section, Section)
        k.call("Adds", read_as("int32_t", made), words, Converted(Int(0), "int32_t"), half, repeats=1)
        picked(2)
        k.again(section)
        unsigned = read_as("uint32_t", words)
        for key in ("ShiftRight", "ShiftLeft"):
            k.call(key, unsigned, unsigned, Converted(Int(2), "uint32_t"), half, repeats=1)
        k.call(
            "Adds", read_as("int32_t", at(made, half)), words, Converted(Int(0), "int32_t"), half, repeats=1
        )
        k.store(y, start, made, TILE)
    return k.kernel()


def test_words_are_picked_shifted_and_added(on_kernel: Any, chip: Any) -> None:
    assert not list(broken_rules(halved_signs(), chip, {"n": 3}))
    words = np.random.default_rng(3).integers(-(1 << 31), 1 << 31, (3, 64)).astype(np.int32)
    words = np.where(np.isfinite(words.view(np.float32)), words, 7)  # a file of floats keeps their bits
    found = on_kernel(halved_signs(), words.view(np.float32)).view(np.int32)
    np.testing.assert_array_equal(found[:, :32], words[:, ::2])
    np.testing.assert_array_equal(found[:, 32:], words[:, 1::2] & ~3)


def test_a_section_that_comes_twice_is_one_method(builder: Any) -> None:
    graph = builder()
    node = graph.call("relu.default", graph.input("x", ("n",)), shape=("n",))
    text = stage_text(halved_signs(), graph.task(node, symbols={"n": 4}), "built").kernel
    assert text.count("AddTwice(") == 3 and text.count("inline void AddTwice(") == 1
    assert text.count("// every second word") == 2


def test_queues_of_a_position_have_no_more_buffers_than_events(chip: Any) -> None:
    k = Builder("Five inputs, of each two tiles under way.")
    y = k.output("y", "output", "float", 4)
    made = Buffer("made", "float", 4, TILE)
    with k.cores("tile", Int(4)) as tile:
        for place in range(5):
            x = k.input(f"x{place}", "x", "float", 4)
            taken = Buffer(f"taken{place}", "float", 4, TILE, 2)
            k.load(taken, x, tile * TILE, TILE)
            k.call("Adds", made, taken, Converted(Int(0), "float"), TILE, repeats=1)
        k.store(y, tile * TILE, made, TILE)
    assert [item.rule for item in broken_rules(k.kernel(), chip, {})] == ["queue-buffers"]


def test_integers_of_device_memory_stay_integers() -> None:
    place = Var("i")
    texts = {
        ctype: Element(Tensor("x", "x", ctype, width, Role.INPUT), place).cpp()
        for ctype, width in (("int64_t", 8), ("uint8_t", 1), ("float", 4), ("half", 2))
    }
    assert texts.pop("half") == "static_cast<float>(xGlobal.GetValue(i))"
    assert set(texts.values()) == {"xGlobal.GetValue(i)"}


def counted(each: bool, even: bool) -> Kernel:
    """Four turns of a tile, of which each adds to half as many elements as the one before, and the last one
    adds once more."""
    k = Builder("Turns that differ.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    taken, made = Buffer("taken", "float", 4, _LONG), Buffer("made", "float", 4, _LONG)

    def add(count: Expr) -> None:
        k.call("Adds", made, taken, Converted(Int(1), "float"), count, repeats=ceil_div(count, 64))

    with k.cores("tile", k.param("tiles", Size(extent("n")))) as tile:
        start = k.let("start", tile * _LONG, U64)
        k.load(taken, x, start, _LONG)
        with k.loop("turn", 4, each=each) as turn:
            add(_LONG >> turn)
            with k.when(turn, "==", 3, share=4, even=even):
                add(_LONG)
        k.store(y, start, made, _LONG)
    return k.kernel()


def test_estimates_meet_every_turn_of_few_and_choices_as_often_as_they_hold(chip: Any) -> None:
    def repeats(kernel: Kernel) -> float:
        found = []

        def visit(node: Node, times: float, values: Mapping[str, int], inside: bool) -> None:
            if isinstance(node, Instruction):
                found.append(times * node.repeats.evaluate(values))

        walk(kernel, known_values(kernel, {"n": 1}, chip.aiv)[0], visit)
        return sum(found)

    assert repeats(counted(each=True, even=True)) == 8 + 4 + 2 + 1 + 8
    assert repeats(counted(each=False, even=True)) == 3 * 8 + 1 + 8
    assert repeats(counted(each=True, even=False)) == 8 + 4 + 2 + 1 + 4 * 8
