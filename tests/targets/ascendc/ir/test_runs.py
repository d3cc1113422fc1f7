"""Runs that are merged as far as their numbers say, in memory of the device that each core has for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir.builder import Builder, at, read_as, whole
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.expr import U64, Condition, Constant, Expr, Int, Size, State, least
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Enumerator,
    Fields,
    Kept,
    Kernel,
    Runs,
    Tensor,
    Told,
)
from evokernel_core.targets.ascendc.kernels.stage import facts_of_vectors
from evokernel_core.targets.ascendc.print.vector_kernel import stage_text

ROW, RUN, PAIR = Constant("ROW", 64), Constant("RUN", 32), Constant("PAIR", 2, "floats")
PAIRS = Constant("PAIRS_OF_ROW", 128, "in floats")
SLICE = Constant("SLICE", 8, "pairs of a run that are merged at a time")
MERGED = Buffer("merged", "float", 4, PAIRS)
SLICES = Buffer("slices", "float", 4, PAIRS)


def merged(fences: bool = True) -> Kernel:
    """Each row in order, the greatest first: two sorted runs become one, slice by slice, in the workspace."""
    k = Builder("Two runs become one.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    scratch = k.workspace("scratch", "float", 4, PAIRS * 2)
    source, result = Buffer("source", "float", 4, ROW, 2), Buffer("result", "float", 4, ROW)
    places, pairs = Buffer("places", "int32_t", 4, ROW), Buffer("pairs", "float", 4, PAIRS)
    k.call("CreateVecIndex", places, Converted(Int(0), "int32_t"), ROW, repeats=1)
    with k.cores("row", k.param("rows", Size(extent("n")))) as row:
        k.load(source, x, row * ROW, ROW)
        k.call("Sort32", pairs, source, read_as("uint32_t", places), 2, repeats=1)
        k.call("DataCopyLocal", MERGED, pairs, PAIRS, repeats=2)
        k.store(scratch, 0, MERGED, PAIRS)
        if fences:
            k.fence("ALL")
        merge(k, scratch)
        if fences:
            k.fence("ALL")
        k.load(SLICES, scratch, PAIRS, PAIRS)
        values = {"src0BlockStride": 1, "repeatTimes": 2, "src0RepeatStride": 8, "src1RepeatStride": 0}
        how = Fields("GatherMaskParams", {key: Int(value) for key, value in values.items()}, is_short=True)
        k.call("GatherMask", result, SLICES, 1, Enumerator("false"), 0, how, Kept(), repeats=2)
        k.store(y, row * ROW, result, ROW)
        k.fence("ALL")
    return k.kernel()


def merge(k: Builder, scratch: Tensor) -> None:
    taken = [State(f"taken{place}", 0, "of a slice", "uint16_t") for place in range(4)]
    begin = [State(f"next{place}", 0, "of a run") for place in range(2)]
    for state in begin:
        k.assign(state, 0)
    both = (Int(32) - begin[0]) * (Int(32) - begin[1])
    with k.repeat("turn", Condition(both, ">", Int(0)), 4):
        lengths = [k.let(f"length{place}", least(RUN - begin[place], SLICE)) for place in range(2)]
        for place, length in enumerate(lengths):
            start = (RUN * place + begin[place]) * PAIR
            k.load(at(SLICES, place * SLICE * PAIR), scratch, start, length * PAIR)
        told = tuple(Told(state, SLICE) for state in taken)
        slices = (whole(SLICES), at(SLICES, SLICE * PAIR), whole(SLICES), whole(SLICES))
        runs = Runs(slices, (*lengths, Int(0), Int(0)), Int(2), Int(1), told)
        k.call("MrgSort", MERGED, runs, repeats=1)
        written = k.let("written", PAIRS + (begin[0] + begin[1]) * PAIR, U64)
        k.store(scratch, written, MERGED, (taken[0] + taken[1]) * PAIR)
        for state, used in zip(begin, taken, strict=False):
            k.assign(state, state + used)
    for place, state in enumerate(begin):
        left: Expr = RUN - state
        with k.when(state, "<", RUN):
            count = k.let("left", left * PAIR)
            k.load(SLICES, scratch, (RUN * place + state) * PAIR, count)
            k.call("DataCopyLocal", MERGED, SLICES, (count + 7) // 8 * 8, repeats=1)
            k.store(scratch, PAIRS * 2 - count, MERGED, count)


@pytest.mark.parametrize("rows", [1, 3, 90])
def test_runs_are_merged_as_far_as_their_numbers_say(rows: int, on_kernel: Any, chip: Any) -> None:
    kernel = merged()
    assert not list(broken_rules(kernel, chip, {"n": rows}))
    x = np.random.default_rng(rows).integers(-40, 40, (rows, 64)).astype("f4")
    x[0] = np.arange(64)  # one run is used up before the other begins
    np.testing.assert_array_equal(on_kernel(kernel, x), -np.sort(-x, 1))


def test_what_is_read_again_waits_for_its_stores(on_kernel: Any) -> None:
    x = np.random.default_rng(1).normal(size=(2, 64)).astype("f4")
    with pytest.raises(AssertionError):
        on_kernel(merged(fences=False), x)


def test_each_core_has_its_part_of_the_workspace(builder: Any) -> None:
    kernel, graph = merged(), builder()
    node = graph.call("relu.default", graph.input("x", ("n", 64)), shape=("n", 64))
    text = stage_text(kernel, graph.task(node, symbols={"n": 4}), "merged")
    assert facts_of_vectors(kernel).uses_workspace
    assert "tiling.workspaceBytes = tiling.blockDim * PAIRS_OF_ROW * 2 * sizeof(float);" in text.compute
    assert "(scratch) + GetBlockIdx() * PAIRS_OF_ROW * 2" in text.kernel


def test_estimates_take_a_loop_for_its_likely_turns(chip: Any) -> None:
    short, long = (estimate_us(merged(), {"n": rows}, chip) for rows in (40, 400))
    assert 0 < short < long
