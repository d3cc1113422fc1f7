"""What a person turned down is never offered again, and the reason is obeyed by what comes next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.domain.experience import Stage
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.outcome import Objection, Outcome, OutcomeKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.candidates import Stored
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import Engine, Status
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.synthesis.why import why
from evokernel_core.synthesis.wishes import wishes
from evokernel_core.targets.ascendc.author import initial
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.targets.ascendc.target import ascendc

MakeEngine = Callable[..., Engine]
MakeTask = Callable[..., KernelTask]


def say(
    memory: Memory,
    task: KernelTask,
    candidate: Candidate,
    kind: OutcomeKind,
    reason: str = "",
    at: float = 1.0,
) -> None:
    memory.record_outcome(Outcome(kind, "region", task.task_id, candidate.source.source_id, at, reason))


@pytest.mark.parametrize("reason", ["", *Objection, "my own words"])
def test_a_rejected_kernel_never_comes_again(
    toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory, reason: str
) -> None:
    task, seen = toy_task(1), set[str]()
    for turn in range(4):
        result = toy_engine().run(task, 6)
        if turn and reason == Objection.SLOW and result.best is None:
            return  # nothing that is enough faster was found in so few attempts
        assert result.best is not None and result.best.source.source_id not in seen
        seen.add(result.best.source.source_id)
        say(memory, task, result.best, OutcomeKind.REJECTED, reason, float(turn))
        known = memory.best(task.task_id, "toychip", LatencySource.MODELLED)
        assert known is None or known.source.source_id not in seen


def test_slower_than_wanted_asks_for_a_faster_one(
    toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory
) -> None:
    task = toy_task(1)
    first = toy_engine().run(task, 4).best
    assert first is not None
    say(memory, task, first, OutcomeKind.REJECTED, Objection.SLOW)
    after = toy_engine().run(task, 30)
    assert after.best is not None and after.best.latency_us < 0.99 * first.latency_us


def test_nothing_is_offered_that_is_not_as_asked(
    toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory, optimum_us: float
) -> None:
    task = toy_task(1)
    best = toy_engine().run(task, 80).best
    assert best is not None and best.latency_us == pytest.approx(optimum_us)
    say(memory, task, best, OutcomeKind.REJECTED, Objection.SLOW)
    again = toy_engine().run(task, 20)
    assert (again.status, again.best, set(again.history)) == (Status.INFEASIBLE, None, {None})


def test_an_acceptance_later_takes_a_rejection_back(
    toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory
) -> None:
    task = toy_task(1)
    best = toy_engine().run(task, 6).best
    assert best is not None
    say(memory, task, best, OutcomeKind.REJECTED)
    assert set(memory.rejections(task.task_id)) == {best.source.source_id}
    say(memory, task, best, OutcomeKind.ACCEPTED, at=2.0)
    assert memory.rejections(task.task_id) == {}
    again = toy_engine().run(task, 1).best
    assert again is not None and again.source == best.source


def test_hard_to_read_asks_for_fewer_lines(
    toy_engine: MakeEngine, toy_task: MakeTask, toy_verifier: Any
) -> None:
    def candidate(length: int) -> Candidate:
        source = ascendc_source("", "a1\n" * length, Strategy("toy"))
        return Candidate(source, toy_verifier().verify(toy_task(1), source))

    long = candidate(100)
    stored = Stored(long.source, long.verdict, "", Stage.DRAFT)
    found = wishes((stored,), {long.source.source_id: Objection.UNREADABLE})
    allowed = {length: found.allow(candidate(length)) for length in (100, 91, 90, 10)}
    assert allowed == {100: False, 91: False, 90: True, 10: True}
    assert found.words == (Objection.UNREADABLE,)


def test_a_schedule_that_was_turned_down_is_never_the_first(toy_task: MakeTask) -> None:
    """For a similar task, that is: the same schedule may be all that there is, so it stays the last."""
    chip, task = load_chip(), toy_task(2)
    proposer = ScheduleProposer(ascendc(chip))
    analytic = initial(task, chip)
    bare = Context()
    assert proposer.draft(task, bare).source.strategy.settings == analytic.settings
    unwanted, tried = evolve(bare, unwanted=(analytic,)), set[str]()
    order = []
    for _ in range(3):
        source = proposer.draft(task, evolve(unwanted, tried=frozenset(tried))).source
        tried.add(source.source_id)
        order.append(source.strategy.settings)
    assert order[0] != analytic.settings


def test_a_kernel_says_what_it_was_made_from_and_what_moved(
    toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory
) -> None:
    task = toy_task(1)
    best = toy_engine().run(task, 40).best
    assert best is not None and best.parent
    say(memory, task, best, OutcomeKind.ACCEPTED)
    id = best.source.source_id
    assert memory.kernels_from(id[:10]) == (id,)
    text = "\n".join(why(memory, id))
    assert f"Kernel {id[:12]} was refined by toy for relu_1 (activation)." in text
    assert f"It was made from kernel {best.parent[:12]}" in text
    assert "It used '" in text and "toy 1: Verified: " in text
    assert (
        "refine paid " in text and "accepted paid +1.000" in text and "As a start point it is worth" in text
    )


def test_a_reason_may_come_after_the_rejection(
    toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory
) -> None:
    task = toy_task(1)
    best = toy_engine().run(task, 6).best
    assert best is not None
    say(memory, task, best, OutcomeKind.EXPLAINED, Objection.SLOW)
    assert memory.rejections(task.task_id) == {}
    say(memory, task, best, OutcomeKind.REJECTED, at=2.0)
    say(memory, task, best, OutcomeKind.EXPLAINED, Objection.UNREADABLE, at=3.0)
    assert memory.rejections(task.task_id) == {best.source.source_id: Objection.UNREADABLE}
