"""Schedules of one task that really differ lie in different cells of the archive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import astuple, evolve

from evokernel_core.compiler.coverage import family_of_task
from evokernel_core.compiler.fusion.program import parted, plan_program, program_of
from evokernel_core.compiler.fusion.records import PROGRAM, kind_us
from evokernel_core.domain.descriptor import NOT_KNOWN, Algorithm, Dataflow, Descriptor, Split, Stages
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.author import initial, legalised, moves
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.targets.ascendc import test_facts as examples


def matmul(graph: Any) -> KernelTask:
    x, y = graph.input("x", (1024, 2048), "float16"), graph.input("y", (2048, 4096), "float16")
    result = graph.call("mm.default", x, y, shape=(1024, 4096), dtype="float16")
    task: KernelTask = graph.task(result)
    return task


def convolution(graph: Any) -> KernelTask:
    x = graph.input("x", (8, 64, 56, 56), "float16")
    weight = graph.input("weight", (128, 64, 3, 3), "float16", parameter=True)
    value = graph.call(
        "convolution.default", x, weight, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1,
        shape=(8, 128, 56, 56), dtype="float16",
    )  # fmt: skip
    task: KernelTask = graph.task(value)
    return task


def attention(graph: Any) -> KernelTask:
    sides = [graph.input(name, (2, 8, 1024, 64), "float16") for name in ("query", "key", "value")]
    op = "scaled_dot_product_attention.default"
    task: KernelTask = graph.task(graph.call(op, *sides, shape=(2, 8, 1024, 64), dtype="float16"))
    return task


def softmax(graph: Any) -> KernelTask:
    x = graph.input("x", ("s0", "s1"))
    value = graph.call("_softmax.default", x, -1, False, shape=("s0", "s1"))
    task: KernelTask = graph.task(value, symbols={"s0": 4096, "s1": 2048})
    return task


def program(graph: Any) -> KernelTask:
    """A product, a softmax of its rows, and another product."""
    x, weight = graph.input("x", (512, 1024)), graph.input("w", (1024, 768), parameter=True)
    last = graph.input("v", (768, 256), parameter=True)
    value = graph.call("mm.default", x, weight, shape=(512, 768))
    value = graph.call("relu.default", value, shape=(512, 768))
    value = graph.call("_softmax.default", value, -1, False, shape=(512, 768))
    task: KernelTask = graph.task(graph.call("mm.default", value, last, shape=(512, 256)))
    return task


TASKS = [matmul, convolution, attention, softmax, program]


def strategies(task: KernelTask, chip: Chip) -> list[Strategy]:
    """The draft, and what is one step away from it."""
    first = initial(task, chip)
    return [first, *(move.strategy for move in moves(task, first, chip))]


@pytest.mark.parametrize("make", TASKS, ids=lambda make: make.__name__)
def test_drafts_and_moves_fill_several_cells(
    make: Callable[[Any], KernelTask], builder: Any, chip: Chip
) -> None:
    cells = {item.descriptor for item in strategies(make(builder()), chip)}
    for c in cells:
        print(c)
    assert NOT_KNOWN not in cells
    assert len(cells) >= 3


def test_attention_differs_by_how_many_keys_are_there_at_once(builder: Any, chip: Chip) -> None:
    """All keys in one step need no sums to be rescaled."""
    found = strategies(attention(builder()), chip)
    for at_once, algorithm in ((True, Algorithm.SINGLE_PASS), (False, Algorithm.ONLINE)):
        cells = [item.descriptor for item in found if (int(item.setting("keys")) >= 1024) == at_once]
        assert cells and {cell.algorithm for cell in cells} == {algorithm}


def test_a_program_has_the_cell_of_its_most_expensive_kernel_and_of_its_cut(builder: Any, chip: Chip) -> None:
    """Also where a step changed another kernel, whose settings alone are stored."""
    task = program(builder())
    plain = legalised(task, chip)
    cuts = set()
    for item in strategies(task, chip):
        assert item.family == PROGRAM
        planned, parts = program_of(plain, item, chip, ASCENDC), parted(item)
        us = [planned.launches(kind) * kind_us(planned, kind, part, chip) for kind, part in enumerate(parts)]
        dearest = us.index(max(us))
        part, family = planned.kinds[dearest]
        expected = family.descriptor(part, parts[dearest], chip)
        cell = item.descriptor
        assert (cell.dataflow, cell.reuse, cell.algorithm) == (
            expected.dataflow, expected.reuse, expected.algorithm
        )  # fmt: skip
        assert cell.kernels == len(planned.stages)
        cuts.add((cell.stages, cell.kernels))
    assert (Stages.LAUNCHES, 3) in cuts
    assert len({kernels for _, kernels in cuts}) > 1, "cuts of other numbers of kernels are other cells"


@pytest.mark.parametrize("name", examples.TASKS)
def test_every_family_describes_its_schedules(name: str, chip: Chip) -> None:
    """In words of every axis, from the settings alone, and so that they survive storing."""
    task = legalised(examples.TASKS[name](), chip)
    family = family_of_task(task, chip, ASCENDC)
    parts = plan_program(task, chip, ASCENDC).kinds if family is None else ((task, family),)
    for part, each in parts:
        first = each.initial(part, chip)
        for item in (first, *(move.strategy for move in each.moves(part, first, chip))):
            cell = item.descriptor
            assert "unknown" not in astuple(cell)
            assert each.descriptor(part, Strategy(item.family, item.settings), chip) == cell
            assert loads(dumps(item), Strategy).descriptor == cell


def test_the_distance_of_cells_is_that_to_the_nearest() -> None:
    rows = Descriptor(Dataflow.RESIDENT_ROWS, memories.UB, Split.ROWS, Algorithm.SINGLE_PASS)
    streamed = evolve(rows, dataflow=Dataflow.STREAMED, reuse=memories.L2)
    assert rows.apart([rows, streamed]) == 0
    assert rows.apart([streamed]) == 2
    assert rows.apart([]) > evolve(streamed, kernels=2).apart([rows]) == 3
