"""Programs in which what follows a convolution is done by the kernels that read it, or by one of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.fusion.program import joined, plan_program
from evokernel_core.compiler.fusion.records import Program
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.author import estimate_us, initial, legalised
from evokernel_core.targets.ascendc.fusion import micro_batch_choice as chunking
from evokernel_core.targets.ascendc.fusion.later_epilogues import with_later_epilogues
from evokernel_core.targets.ascendc.target import ASCENDC

LARGE = {"n": 64, "h": 258, "w": 258}
SMALL = {"n": 3, "h": 12, "w": 19}


def squashed_mean(builder: Any, *, transposed: bool = False) -> KernelTask:
    """A convolution, a sigmoid, and the mean of each channel."""
    graph = builder()
    x = graph.input("x", ("n", 4, "h", "w"))
    weight = graph.input("weight", (4, 16, 3, 3) if transposed else (16, 4, 3, 3), parameter=True)
    shape = ("n", 16, "h + 2", "w + 2") if transposed else ("n", 16, "h - 2", "w - 2")
    settings = ((1, 1), (0, 0), (1, 1), transposed, (0, 0), 1)
    value = graph.call("convolution.default", x, weight, None, *settings, shape=shape)
    value = graph.call("sigmoid.default", value, shape=shape)
    task: KernelTask = graph.task(graph.call("mean.dim", value, (2, 3), shape=("n", 16)), symbols=LARGE)
    return task


def expected(inputs: Mapping[str, Any]) -> Any:
    x, weight = inputs["x"].astype(np.float64), inputs["weight"].astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    value = 1 / (1 + np.exp(-np.einsum("nchwij,ocij->nohw", windows, weight)))
    return value.mean((2, 3))


def strategy_of(task: KernelTask, program: Program, chip: Chip) -> Strategy:
    drafts = tuple(chunking.draft(ById(part), family, chip) for part, family in program.kinds)
    return joined(task, program, drafts, "")


def later(task: KernelTask, chip: Chip) -> Program:
    found = with_later_epilogues(task, plan_program(task, chip, ASCENDC), chip, ASCENDC)
    assert found is not None
    return found


def test_the_epilogue_goes_to_the_reader(builder: Any, on_twin: Any, chip: Chip) -> None:
    task = squashed_mean(builder)
    plain = legalised(task, chip)
    found = later(plain, chip)
    held = {node.name: node.op for node in plain.graph.nodes}
    kernels = [sorted(held[name].split(".")[1] for name in group) for group in found.groups]
    assert ["convolution"] in kernels
    assert ["mean", "sigmoid"] in kernels
    draw = np.random.default_rng(0)
    inputs = {
        item.name: draw.uniform(-1, 1, item.spec.sizes(SMALL)).astype(np.float32)
        for item in task.graph.inputs
    }
    (made,) = on_twin(task, inputs, strategy_of(plain, found, chip), SMALL)
    assert np.allclose(made, expected(inputs), rtol=1e-4, atol=1e-5)


def test_the_cheaper_cut_is_drafted(builder: Any, chip: Chip) -> None:
    """With a kernel behind that vector cores are busy with, the convolution leaves them its epilogue."""
    task = squashed_mean(builder)
    plain = legalised(task, chip)
    draft = initial(task, chip)
    assert draft.groups == strategy_of(plain, later(plain, chip), chip).groups
    usual = strategy_of(plain, plan_program(plain, chip, ASCENDC), chip)
    assert estimate_us(task, draft, chip) < estimate_us(task, usual, chip)


@pytest.mark.parametrize("why", ["transposed", "small"])
def test_what_keeps_its_epilogue(why: str, builder: Any, chip: Chip) -> None:
    """Vector cores take part in a transposed convolution anyway; L2 holds a small result in between."""
    task = squashed_mean(builder, transposed=why == "transposed")
    if why == "small":
        task = evolve(task, symbols=tuple(evolve(item, size=20) for item in task.symbols))
    plain = legalised(task, chip)
    assert with_later_epilogues(plain, plan_program(plain, chip, ASCENDC), chip, ASCENDC) is None


def test_without_an_epilogue_there_is_no_other_cut(builder: Any, chip: Chip) -> None:
    graph = builder()
    x = graph.input("x", ("n", 4, "h", "w"))
    weight = graph.input("weight", (16, 4, 3, 3), parameter=True)
    shape = ("n", 16, "h - 2", "w - 2")
    value = graph.call(
        "convolution.default", x, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, shape=shape
    )
    task = legalised(
        graph.task(graph.call("_softmax.default", value, 1, False, shape=shape), symbols=LARGE), chip
    )
    assert with_later_epilogues(task, plan_program(task, chip, ASCENDC), chip, ASCENDC) is None


def test_a_reader_that_is_a_convolution_with_steps_of_its_own(builder: Any, chip: Chip) -> None:
    """A shortcut by a convolution is added to another one, which takes in the shortcut's epilogue."""
    graph = builder()
    x = graph.input("x", ("n", 4, "h", "w"))
    shape = ("n", 16, "h", "w")
    settings = ((1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    weights = [graph.input(f"weight{place}", (16, 4, 1, 1), parameter=True) for place in (0, 1)]
    shortcut = graph.call("convolution.default", x, weights[0], None, *settings, shape=shape)
    shortcut = graph.call("relu.default", shortcut, shape=shape)
    value = graph.call("convolution.default", x, weights[1], None, *settings, shape=shape)
    value = graph.call("add.Tensor", shortcut, value, shape=shape)
    task = legalised(graph.task(value, symbols=LARGE), chip)
    program = plan_program(task, chip, ASCENDC)
    assert [len(group) for group in program.groups] == [2, 2]
    found = later(task, chip)
    assert frozenset().union(*found.groups) == frozenset().union(*program.groups)
