"""Several candidates at a time: in flight together, recorded one by one in the order of proposing."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import pytest
from attrs import define, evolve, field

from evokernel_core.domain.errors import EndpointError, ProposerError, VerifierError
from evokernel_core.domain.experience import ExperienceKind
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.settings import PolicyName, Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import AttemptEvent, Engine, Status
from evokernel_core.synthesis.policies import open_policy
from evokernel_core.synthesis.proposers.base import Context, Proposal
from evokernel_core.targets.ascendc.source import KERNEL, ascendc_source
from evokernel_core.verifier.base import Cancelled, never
from tests.synthesis.conftest import ToyProposer, ToyVerifier, source_of

MakeTask = Callable[..., KernelTask]
MakeEngine = Callable[..., Engine]
PATIENCE_S = 60.0
"""How long a thread waits for others before the test fails; it never does where all is well."""


@define
class Workers:
    """Judges refinements in groups only: none is judged before there are as many as there are workers, and
    the first of a group is ready last. ``most``: so many were judged at a time."""

    workers: int = 3
    name: str = "workers 1"
    judge: ToyVerifier = field(factory=ToyVerifier)
    group: int = 0
    most: int = 0
    _asked: int = 0
    _ready: int = 0
    _change: threading.Condition = field(factory=threading.Condition)

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Cancelled = never,
        below_us: float = math.inf,
    ) -> Verdict:
        if not source.strategy.move:
            return self.judge.verify(task, source, below_us=below_us)
        size = self.group or self.workers
        with self._change:
            number = self._asked
            first = number - number % size
            self._asked += 1
            self.most = max(self.most, self._asked - self._ready)
            self._change.notify_all()
            others = size - 1 if number == first else 0
            met = self._change.wait_for(
                lambda: self._asked >= first + size and self._ready >= first + others, PATIENCE_S
            )
            assert met, "others of the group never came"
            self._ready += 1
            self._change.notify_all()
            return self.judge.verify(task, source, below_us=below_us)


@define
class Held:
    """Judges nothing until it is cancelled; drafts pass."""

    workers: int = 3
    name: str = "held 1"
    asked: threading.Semaphore = field(factory=lambda: threading.Semaphore(0))

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Cancelled = never,
        below_us: float = math.inf,
    ) -> Verdict:
        if not source.strategy.move:
            return ToyVerifier().verify(task, source)
        self.asked.release()
        waiting = threading.Event()
        while not cancelled():
            waiting.wait(0.01)
        raise VerifierError("The verification was cancelled.")


@define
class Noting(ToyProposer):
    """Keeps what it proposed, in order."""

    proposed: list[str] = field(factory=list)

    def _note(self, proposal: Proposal) -> Proposal:
        self.proposed.append(proposal.source.source_id)
        return proposal

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        return self._note(super().draft(task, context))

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        return self._note(super().refine(task, context))


@pytest.mark.parametrize("name", PolicyName)
@pytest.mark.parametrize("workers", [2, 4])
def test_as_many_are_in_flight_as_there_are_workers(
    name: PolicyName, workers: int, toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory
) -> None:
    """Or no verdict would ever come. The budget is kept exactly, and attempts are recorded once each, in the
    order in which they were proposed."""
    verifier, proposer = Workers(workers), Noting()
    engine = evolve(toy_engine(policy=open_policy(name)), verifier=verifier, proposer=proposer)
    events: list[AttemptEvent] = []
    budget = 1 + 4 * workers
    result = engine.run(toy_task(1), budget, job_id="job", on_attempt=events.append)
    assert verifier.most == workers
    assert result.attempts == len(events) == len(verifier.judge.seen) == budget
    rows = memory.attempts(job_id="job")
    assert [row.n for row in rows] == [event.n for event in events] == list(range(1, budget + 1))
    assert [row.source_id for row in rows] == proposer.proposed
    assert len(set(proposer.proposed)) == budget, "nothing is proposed twice while it is judged"
    assert len(memory.experiences([ExperienceKind.TRACE])) == budget


def test_each_attempt_is_durable_before_the_next_is_announced(
    toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory
) -> None:
    def check(event: AttemptEvent) -> None:
        with Memory(memory.path) as other:
            assert len(other.attempts(job_id="job")) == event.n

    evolve(toy_engine(), verifier=Workers(3)).run(toy_task(1), 10, job_id="job", on_attempt=check)


@pytest.mark.parametrize(("asked", "workers", "expected"), [(0, 1, 1), (0, 3, 3), (2, 1, 2), (1, 3, 1)])
def test_the_setting_comes_before_what_the_verifier_has(
    asked: int, workers: int, expected: int, toy_engine: MakeEngine, toy_task: MakeTask
) -> None:
    verifier = Workers(workers, group=expected)
    given = Settings(chip="toychip", candidates_at_once=asked)
    evolve(toy_engine(given=given), verifier=verifier).run(toy_task(1), 1 + 2 * expected)
    assert verifier.most == expected


def test_with_one_worker_all_happens_in_one_thread(toy_engine: MakeEngine, toy_task: MakeTask) -> None:
    class Here(ToyVerifier):
        def verify(self, *args: Any, **options: Any) -> Verdict:
            threads.add(threading.get_ident())
            return super().verify(*args, **options)

    threads: set[int] = set()
    evolve(toy_engine(), verifier=Here()).run(toy_task(1), 6)
    assert threads == {threading.get_ident()}


def test_cancelling_stops_all_in_flight(toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory) -> None:
    verifier, flag = Held(), threading.Event()

    def cancel() -> None:
        for _ in range(verifier.workers):
            assert verifier.asked.acquire(timeout=PATIENCE_S)
        flag.set()

    watcher = threading.Thread(target=cancel)
    watcher.start()
    engine = evolve(toy_engine(), verifier=verifier)
    result = engine.run(toy_task(1), 30, job_id="job", cancelled=flag.is_set)
    watcher.join()
    assert result.status is Status.CANCELLED
    assert [row.n for row in memory.attempts(job_id="job")] == [1], "what was not judged is no attempt"
    again = evolve(engine, verifier=ToyVerifier(name=verifier.name))
    assert again.run(toy_task(1), 12, job_id="job").attempts == 12


def test_a_verifier_that_breaks_ends_the_run(
    toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory
) -> None:
    """What was judged and recorded before it stays; nobody waits for what is in flight."""

    class Breaking(Held):
        def verify(self, task: KernelTask, source: KernelSource, **options: Any) -> Verdict:
            if source.strategy.move and not self.asked.acquire(blocking=False):
                self.asked.release()
                self.asked.release()
                raise VerifierError("The verifier broke; mend it.")
            return super().verify(task, source, **options)

    with pytest.raises(VerifierError, match="mend it"):
        evolve(toy_engine(), verifier=Breaking(2)).run(toy_task(1), 30, job_id="job")
    assert [row.n for row in memory.attempts(job_id="job")] == [1]


def test_attempts_in_flight_are_recorded_before_a_failed_endpoint_ends_the_run(
    toy_engine: MakeEngine, toy_task: MakeTask, memory: Memory
) -> None:
    """They were paid for."""

    class Failing(ToyProposer):
        def refine(self, task: KernelTask, context: Context) -> Proposal:
            asked.append(context)
            if len(asked) > 2:
                raise EndpointError("The endpoint is away.")
            return super().refine(task, context)

    asked: list[Context] = []
    engine = evolve(toy_engine(), verifier=ToyVerifier(workers=4), proposer=Failing())
    result = engine.run(toy_task(1), 30, job_id="job")
    assert result.reason == "The endpoint is away."
    assert len(asked) == 3, "it is not asked again"
    assert [row.n for row in memory.attempts(job_id="job")] == [1, 2, 3]


def test_a_kernel_that_is_in_flight_is_not_judged_twice(toy_engine: MakeEngine, toy_task: MakeTask) -> None:
    """A model may give the same kernel again, or with another comment, before its first verdict is there."""

    class Repeating(ToyProposer):
        def refine(self, task: KernelTask, context: Context) -> Proposal:
            asked.append(context)
            source = source_of(frozenset({"double"}), "double")
            text = source.files[KERNEL] + " // again" * (len(asked) % 2)
            return Proposal(ascendc_source("", text, source.strategy), tokens=5)

    asked: list[Context] = []
    verifier = ToyVerifier(workers=4)
    engine = evolve(toy_engine(), verifier=verifier, proposer=Repeating())
    result = engine.run(toy_task(1), 5)
    assert len(verifier.seen) == 2, "the draft, and one refinement"
    assert result.attempts == 5
    assert result.tokens == 7 + 5 * 4


@define
class Corrected(ToyProposer):
    """Answers without a kernel until it is told what was wrong."""

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        if not context.feedback:
            raise ProposerError("The answer holds no file; write both files.")
        return super().draft(task, context)


@pytest.mark.parametrize("workers", [1, 4])
def test_what_was_wrong_is_told_before_the_next_answer_is_asked_for(
    workers: int, memory: Memory, toy_task: MakeTask
) -> None:
    verifier = ToyVerifier(workers=workers)
    engine = Engine(memory, verifier, Corrected(), open_policy(PolicyName.QVALUE), Settings(chip="toychip"))
    result = engine.run(toy_task(1), 8)
    assert (result.status, result.attempts) == (Status.VERIFIED, 8)
