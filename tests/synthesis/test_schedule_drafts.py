"""Which kernel the schedule proposer drafts first: what it knows from elsewhere, or its own analysis."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from attrs import evolve

from evokernel_core.compiler.fusion.program import parted
from evokernel_core.compiler.strategies import formula_of
from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import (
    NUMERIC,
    GateName,
    GateResult,
    GateStatus,
    Latency,
    LatencySource,
    LineTime,
    Verdict,
)
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.targets.ascendc import author
from evokernel_core.targets.ascendc.author import write
from evokernel_core.targets.ascendc.kernels.fused.fused_estimate import estimate_us
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial, moves
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.fused.tile import build
from evokernel_core.targets.ascendc.lowering.queues import plan
from evokernel_core.targets.ascendc.target import ascendc

CHIP = load_chip("ascend910b1")


@pytest.fixture(scope="module")
def task() -> KernelTask:
    spec = TensorSpec(("s0", "s1"), "float32")
    node = Node("y", "aten._softmax.default", (ValueRef("x"), -1, False), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
    symbols = (Symbol("s0", 8192), Symbol("s1", 128))
    return KernelTask("softmax", graph, symbols, TOLERANCES["float32"], "softmax")


def estimate(task: KernelTask, strategy: Strategy) -> float:
    return estimate_us(build(plan(task, CHIP), Schedule.of(strategy)), task.sizes, CHIP)


def remembered(strategy: Strategy) -> Experience:
    payload = json.dumps({"strategy": to_data(strategy)})
    return Experience("1", ExperienceKind.SUCCESS, "a kernel", "It worked.", payload=payload)


def candidate(task: KernelTask, strategy: Strategy) -> Candidate:
    source = write(task, strategy, CHIP)
    return Candidate(source, Verdict(task.task_id, source.source_id, "twin", ()))


@pytest.mark.parametrize("choose", [min, max], ids=["promising", "doubtful"])
def test_a_remembered_schedule_comes_first_only_if_it_promises_as_much(
    task: KernelTask, choose: Callable[..., Strategy]
) -> None:
    analytic = initial(task, CHIP)
    others = [move.strategy for move in moves(task, analytic, CHIP)]
    chosen = choose(others, key=lambda strategy: estimate(task, strategy))
    promising = estimate(task, chosen) <= 1.02 * estimate(task, analytic)
    assert promising == (choose is min)
    context = Context(experiences=(remembered(chosen),))
    drafted = ScheduleProposer(ascendc(CHIP)).draft(task, context).source
    first, second = (chosen, analytic) if promising else (analytic, chosen)
    assert drafted.source_id == write(task, first, CHIP).source_id
    tried = Context(experiences=context.experiences, tried=frozenset({drafted.source_id}))
    again = ScheduleProposer(ascendc(CHIP)).draft(task, tried).source
    assert again.source_id == write(task, second, CHIP).source_id


def test_a_step_that_promises_to_be_faster_comes_first(task: KernelTask) -> None:
    """From the slowest neighbour of the analytic schedule, refinement takes the step of the least estimate,
    whatever the memory says of the others; where no step promises anything, what the memory says decides
    among those that estimates do not speak against."""
    analytic = initial(task, CHIP)
    start = max(
        (move.strategy for move in moves(task, analytic, CHIP)), key=lambda item: estimate(task, item)
    )
    assert estimate(task, start) > 1.05 * estimate(task, analytic)
    proposer = ScheduleProposer(ascendc(CHIP))
    bare = Context(start=candidate(task, start))
    known = proposer.practices(task, bare)
    least = min(estimate(task, move.strategy) for move in moves(task, start, CHIP))
    for experiences in (known, known[::-1]):
        found = proposer.refine(task, evolve(bare, experiences=experiences)).source.strategy
        assert estimate(task, found) == pytest.approx(min(least, estimate(task, analytic)))
    settled = Context(start=candidate(task, analytic))
    known, least = proposer.practices(task, settled), estimate(task, analytic)
    told = {move.name: estimate(task, move.strategy) / least for move in moves(task, analytic, CHIP)}
    alike = [item for item in known if told.get(json.loads(item.payload)["move"], math.inf) < 1.01]
    assert 1 < len(alike) < len(known)
    for first in alike:
        others = tuple(item for item in known if item != first)
        found = proposer.refine(task, evolve(settled, experiences=(first, *others)))
        assert found.used == (first.id,)


def linear_and_softmax() -> KernelTask:
    """Two kernels, one on cube cores."""
    small, wide = TensorSpec(("m", 64), "float32"), TensorSpec((64, 64), "float32")
    product = Node("product", "aten.mm.default", (ValueRef("x"), ValueRef("w")), (), (small,))
    rows = Node("y", "aten._softmax.default", (ValueRef("product"), -1, False), (), (small,))
    graph = Graph((GraphInput("x", small), GraphInput("w", wide)), (product, rows), (ValueRef("y"),))
    return KernelTask("scores", graph, (Symbol("m", 512),), TOLERANCES["float32"], "matmul")


@pytest.mark.parametrize("slow", [0, 1])
def test_where_no_step_promises_anything_those_of_the_slowest_kernel_come_first(slow: int) -> None:
    task = linear_and_softmax()
    source = write(task, author.initial(task, CHIP), CHIP)
    spans = author.lines_of_kernels(task, source, CHIP)
    lines = tuple(
        LineTime("V", "op_kernel.cpp", span.start + 3, 1, 90.0 if kernel == slow else 10.0)
        for kernel, span in enumerate(spans)
    )
    latency = Latency(
        100.0, LatencySource.MODELLED, CHIP.name, 8, (("V", 100.0),), "V-bound", 1.0, 200.0, lines
    )
    start = Candidate(source, Verdict(task.task_id, source.source_id, "twin", (), latency))
    changed, tried = [], frozenset({source.source_id})
    for _ in range(4):
        found = ScheduleProposer(ascendc(CHIP)).refine(task, Context(start=start, tried=tried)).source
        tried |= {found.source_id}
        pairs = zip(parted(source.strategy), parted(found.strategy), strict=False)
        changed.append([kernel for kernel, (old, new) in enumerate(pairs) if old.settings != new.settings])
    assert [slow] in changed
    assert [1 - slow] not in changed


def cells_of_drafts(task: KernelTask, context: Context, number: int) -> list[Descriptor]:
    """The cells of so many drafts, each of which is tried before the next one is asked for."""
    cells, tried = [], frozenset[str]()
    for _ in range(number):
        source = ScheduleProposer(ascendc(CHIP)).draft(task, evolve(context, tried=tried)).source
        cells.append(source.strategy.descriptor)
        tried |= {source.source_id}
    return cells


def test_drafts_of_other_cells_come_first(task: KernelTask) -> None:
    """Those that differ most before others; none is lost."""
    first = initial(task, CHIP).descriptor
    plain = cells_of_drafts(task, Context(), 1 + len(moves(task, initial(task, CHIP), CHIP)))
    away = cells_of_drafts(task, Context(away_from=(first,)), len(plain))
    assert plain[0] == first
    assert sorted(away, key=str) == sorted(plain, key=str)
    distances = [cell.apart([first]) for cell in away]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 1 and distances[-1] == 0


def test_what_people_turned_down_is_no_other_draft(task: KernelTask) -> None:
    first = initial(task, CHIP)
    away = Context(away_from=(first.descriptor,))
    farthest = ScheduleProposer(ascendc(CHIP)).draft(task, away).source.strategy
    found = ScheduleProposer(ascendc(CHIP)).draft(task, evolve(away, unwanted=(farthest,))).source.strategy
    assert found.settings != farthest.settings


def timed(task: KernelTask, strategy: Strategy, us: float, parent: str = "") -> Candidate:
    source = write(task, strategy, CHIP)
    latency = Latency(us, LatencySource.MODELLED, CHIP.name, 8, (("V", us),), "V-bound", 1.0, 2 * us)
    return Candidate(source, Verdict(task.task_id, source.source_id, "twin", (), latency), parent)


def test_what_a_step_gave_elsewhere_on_the_task_goes_before_its_estimate(task: KernelTask) -> None:
    """From a kernel as fast as the first one, a step that gave nothing there waits for others that may;
    one that gained there comes first."""
    analytic = initial(task, CHIP)
    first = timed(task, analytic, 100.0)
    near = moves(task, analytic, CHIP)
    start = timed(task, evolve(near[0].strategy, move=near[0].name), 100.0, first.source.source_id)
    open_ = {move.name for move in moves(task, near[0].strategy, CHIP)}
    known = next(move for move in near[1:] if move.name in open_)
    assert len(open_) > 4
    for gained in (False, True):
        child = timed(task, evolve(known.strategy, move=known.name), 80.0 if gained else 100.0,
                      first.source.source_id)  # fmt: skip
        found, tried = [], frozenset[str]()
        while len(found) < 2:
            context = Context(start=start, candidates=(first, start, child), tried=tried)
            proposal = ScheduleProposer(ascendc(CHIP)).refine(task, context)
            found.append(proposal.source.strategy.move)
            tried |= {proposal.source.source_id}
        assert (found[0] == known.name) if gained else (known.name not in found)


def halves() -> KernelTask:
    """A gated product of bfloat16, whose intermediate result PyTorch rounds."""
    spec = TensorSpec(("s0", "s1"), "bfloat16")
    gate = Node("gate", "aten.silu.default", (ValueRef("x"),), (), (spec,))
    node = Node("y", "aten.mul.Tensor", (ValueRef("gate"), ValueRef("x")), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (gate, node), (ValueRef("y"),))
    symbols = (Symbol("s0", 512), Symbol("s1", 256))
    return KernelTask("gated", graph, symbols, TOLERANCES["bfloat16"], "elementwise")


def test_after_wrong_results_another_formula_comes_before_another_tile() -> None:
    task, proposer = halves(), ScheduleProposer(ascendc(CHIP))
    first = proposer.draft(task, Context()).source
    failed = GateResult(GateName.CORRECTNESS, GateStatus.FAILED, NUMERIC, Sentence("wrong"))

    def second(gate: GateResult) -> Strategy:
        verdict = Verdict(task.task_id, first.source_id, "twin", (gate,))
        tried = frozenset({first.source_id})
        context = Context(candidates=(Candidate(first, verdict),), tried=tried)
        return proposer.draft(task, context).source.strategy

    assert formula_of(second(failed)) != formula_of(first.strategy)
    assert second(failed).setting("eager_rounding") is True
    slow = GateResult(GateName.LATENCY, GateStatus.FAILED, "timeout", Sentence("slow"))
    assert formula_of(second(slow)) == formula_of(first.strategy)
