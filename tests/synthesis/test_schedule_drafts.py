"""Which kernel the schedule proposer drafts first: what it knows from elsewhere, or its own analysis."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from evokernel_core.ascendc.author import write
from evokernel_core.ascendc.kernels.fused.estimate import estimate_us
from evokernel_core.ascendc.kernels.fused.schedule import initial, moves
from evokernel_core.ascendc.kernels.fused.settings import Schedule
from evokernel_core.ascendc.kernels.fused.tile import build
from evokernel_core.ascendc.lowering.plan import plan
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.synthesis.proposers.base import Context
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.twin.chip import load_chip

CHIP = load_chip("ascend910b1")


@pytest.fixture(scope="module")
def task() -> KernelTask:
    spec = TensorSpec(("s0", "s1"), "float32")
    node = Node("y", "aten._softmax.default", (ValueRef("x"), -1, False), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
    symbols = (Symbol("s0", 8192), Symbol("s1", 256))
    return KernelTask("softmax", graph, symbols, TOLERANCES["float32"], "softmax")


def estimate(task: KernelTask, strategy: Strategy) -> float:
    return estimate_us(build(plan(task, CHIP), Schedule.of(strategy)), task.sizes, CHIP)


def remembered(strategy: Strategy) -> Experience:
    payload = json.dumps({"strategy": to_data(strategy)})
    return Experience("1", ExperienceKind.SUCCESS, "a kernel", "It worked.", payload=payload)


@pytest.mark.parametrize("choose", [min, max], ids=["promising", "doubtful"])
def test_a_remembered_schedule_comes_first_only_if_it_promises_as_much(
    task: KernelTask, choose: Callable[..., Strategy]
) -> None:
    analytic = initial(task, CHIP)
    others = [move.strategy for move in moves(task, analytic, CHIP)]
    chosen = choose(others, key=lambda strategy: estimate(task, strategy))
    promising = estimate(task, chosen) <= 1.1 * estimate(task, analytic)
    assert promising == (choose is min)
    context = Context(experiences=(remembered(chosen),))
    drafted = ScheduleProposer(CHIP).draft(task, context).source
    first, second = (chosen, analytic) if promising else (analytic, chosen)
    assert drafted.source_id == write(task, first, CHIP).source_id
    tried = Context(experiences=context.experiences, tried=frozenset({drafted.source_id}))
    again = ScheduleProposer(CHIP).draft(task, tried).source
    assert again.source_id == write(task, second, CHIP).source_id
