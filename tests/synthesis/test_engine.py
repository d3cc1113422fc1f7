"""The loop on a landscape whose optimum is known."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field

from evokernel_core.domain.errors import (
    AnswerUnreadable,
    BudgetExhausted,
    EndpointError,
    NothingToGain,
    ProposalsExhausted,
    ProposerError,
    VerifierError,
)
from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.settings import PolicyName, RetrievalName, Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.store import Memory
from evokernel_core.memory.values import start_item
from evokernel_core.synthesis.engine import AttemptEvent, Engine, Status
from evokernel_core.synthesis.policies import open_policy
from evokernel_core.synthesis.proposers.base import Context, Proposal
from evokernel_core.targets.ascendc.source import KERNEL, ascendc_source
from tests.synthesis.conftest import ToyProposer, source_of
from tests.tables import few

MakeTask = Callable[..., KernelTask]
MakeEngine = Callable[..., Engine]


def test_it_finds_the_optimum(engine: Engine, toy_task: MakeTask, optimum_us: float) -> None:
    result = engine.run(toy_task(1), 60)
    assert result.status is Status.VERIFIED
    assert result.best is not None
    assert result.best.latency_us == pytest.approx(optimum_us, rel=0.03)
    assert result.first_latency_us == pytest.approx(1000.0)
    assert list(result.history) == sorted((us for us in result.history if us), reverse=True)


@pytest.mark.parametrize("name", PolicyName)
def test_every_policy_improves(
    name: PolicyName, toy_engine: MakeEngine, toy_task: MakeTask, optimum_us: float
) -> None:
    result = toy_engine(policy=open_policy(name)).run(toy_task(1), 60)
    assert result.best is not None
    assert result.best.latency_us <= 1.2 * optimum_us


def test_every_attempt_is_durable_before_it_is_announced(
    engine: Engine, memory: Memory, toy_task: MakeTask
) -> None:
    task = toy_task(1)

    def check(event: AttemptEvent) -> None:
        with Memory(memory.path) as other:
            attempts = other.attempts(job_id="job")
            assert len(attempts) == event.n
            assert event.candidate is not None
            assert attempts[-1].source_id == event.candidate.source.source_id
            assert len(other.experiences([ExperienceKind.TRACE])) == event.n
            assert other.kernel_uses(attempts[-1].source_id, task.task_id)

    engine.run(task, 8, job_id="job", on_attempt=check)


@pytest.mark.parametrize("half", [False, True])
def test_a_kernel_in_half_is_a_start_where_the_settings_ask_for_it(
    half: bool, engine: Engine, toy_task: MakeTask
) -> None:
    plain = source_of(frozenset({"rows"}))
    known = evolve(plain, strategy=evolve(plain.strategy, settings={"half": True}))
    engine.judge(toy_task(1), known, "somebody")
    start = evolve(engine, settings=evolve(engine.settings, half=half)).next_context(toy_task(1)).start
    assert (start is not None) is half


def test_values_follow_the_formulas(engine: Engine, memory: Memory, toy_task: MakeTask) -> None:
    task = toy_task(1)
    engine.run(task, 2, job_id="job")
    first, second = memory.attempts(job_id="job")
    (stage, draft_practice), *_ = memory.kernel_uses(first.source_id)
    assert (stage, first.reward) == (Stage.DRAFT, 1.0)
    assert memory.q(Stage.DRAFT, task.op_category, draft_practice) == pytest.approx(0.3)
    # before two rewards were seen there is nothing to standardise by
    assert memory.q(Stage.REFINE, "", start_item(first.source_id)) == pytest.approx(0.3 * second.reward)
    assert memory.q(Stage.REFINE, "a category never seen", start_item(first.source_id)) == pytest.approx(
        0.3 * second.reward
    )


def test_a_second_run_starts_from_the_best(
    toy_engine: MakeEngine, toy_task: MakeTask, toy_verifier: Any
) -> None:
    first, second = toy_verifier(), toy_verifier()
    before = toy_engine(verifier=first).run(toy_task(1), 12)
    after = toy_engine(verifier=second).run(toy_task(1), 5)
    assert after.first_latency_us == before.best.latency_us  # type: ignore[union-attr]
    assert after.attempts == 5
    assert len(second.seen) == 4, "the known best is trusted"
    assert not set(first.seen) & set(second.seen), "nothing is verified twice"


def test_a_kernel_that_somebody_else_wrote_counts_as_any_other(
    engine: Engine, memory: Memory, toy_task: MakeTask, toy_engine: MakeEngine
) -> None:
    task, other = toy_task(1), toy_task(2)
    best = engine.run(other, 20).best
    assert best is not None
    judged = engine.judge(task, best.source, "agent")
    assert judged.verdict.feasible
    (attempt,) = memory.attempts(task_id=task.task_id)
    assert (attempt.proposer, attempt.feasible, attempt.source_id) == ("agent", True, best.source.source_id)
    assert memory.verdicts(best.source.source_id)[-1] == judged.verdict
    later = toy_engine().run(task, 1)
    assert later.best is not None and later.best.source == best.source, "a later run starts from it"


def test_another_verifier_judges_the_known_best_again(
    toy_engine: MakeEngine, toy_task: MakeTask, toy_verifier: Any
) -> None:
    before = toy_engine().run(toy_task(1), 12)
    newer = toy_verifier("toy 2")
    after = toy_engine(verifier=newer).run(toy_task(1), 1)
    assert newer.seen == [(toy_task(1).task_id, before.best.source.source_id)]  # type: ignore[union-attr]
    assert after.best is not None
    assert after.best.verdict.verifier == "toy 2"


def test_an_interrupted_job_goes_on(toy_engine: MakeEngine, toy_task: MakeTask, toy_verifier: Any) -> None:
    breaking = toy_verifier(fail_after=4)
    with pytest.raises(VerifierError, match="broke"):
        toy_engine(verifier=breaking).run(toy_task(1), 10, job_id="job")
    events: list[AttemptEvent] = []
    rest = toy_verifier()
    result = toy_engine(verifier=rest).run(toy_task(1), 10, job_id="job", on_attempt=events.append)
    assert result.attempts == 10
    assert [event.n for event in events] == list(range(5, 11))
    assert not set(breaking.seen) & set(rest.seen)
    assert result.first_latency_us == pytest.approx(1000.0)


def test_a_finished_job_is_not_done_again(
    toy_engine: MakeEngine, toy_task: MakeTask, toy_verifier: Any
) -> None:
    first = toy_engine().run(toy_task(1), 6, job_id="job")
    idle = toy_verifier()
    again = toy_engine(verifier=idle).run(toy_task(1), 6, job_id="job")
    assert not idle.seen
    assert (again.status, again.attempts, again.history) == (first.status, 6, first.history)


def test_it_stops_at_the_bound(toy_engine: MakeEngine, toy_task: MakeTask, toy_verifier: Any) -> None:
    result = toy_engine(verifier=toy_verifier(roofline_us=999.0)).run(toy_task(1), 30)
    assert result.attempts == 1
    assert "roofline limit" in result.reason


def test_it_stops_after_the_first_kernels_when_asked(engine: Engine, toy_task: MakeTask) -> None:
    assert engine.run(toy_task(1), 30, satisfied=lambda search: search.spent >= 3).attempts == 3
    assert engine.run(toy_task(2), 30, satisfied=lambda search: True).attempts == 1


def test_it_ends_when_nothing_is_left(toy_engine: MakeEngine, toy_task: MakeTask) -> None:
    result = toy_engine(start=frozenset({"x_overflow"})).run(toy_task(1), 30)
    assert result.status is Status.INFEASIBLE
    assert result.attempts == 1
    assert "nothing new" in result.reason
    assert "does not fit" in result.reason


def test_cancelling_between_attempts(engine: Engine, memory: Memory, toy_task: MakeTask) -> None:
    seen: list[AttemptEvent] = []
    result = engine.run(
        toy_task(1), 30, job_id="job", on_attempt=seen.append, cancelled=lambda: len(seen) >= 3
    )
    assert result.status is Status.CANCELLED
    assert len(memory.attempts(job_id="job")) == len(seen) == 3


class Failing:
    """A proposer that gives no kernel."""

    name = "failing"

    def __init__(self, error: ProposerError) -> None:
        self.error = error

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        raise self.error

    refine = draft


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(ProposerError("The answer held no kernel."), 3), (EndpointError("The endpoint is away."), 0)],
)
def test_answers_without_a_kernel_end_the_run(
    engine: Engine, toy_task: MakeTask, error: ProposerError, attempts: int
) -> None:
    result = evolve(engine, proposer=Failing(error)).run(toy_task(1), 30)
    assert (result.status, result.attempts) == (Status.INFEASIBLE, attempts)
    assert str(error) in result.reason


@define
class Spent(Failing):
    """Asks a model that is paid and gives no kernel, once a draft is there."""

    error: ProposerError
    tokens: int = 700
    source: KernelSource = field(factory=lambda: source_of(frozenset()))

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        if context.tried:
            raise ProposalsExhausted("There is one draft.")
        return Proposal(self.source, tokens=100)

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        self.error.tokens = self.tokens
        raise self.error


@pytest.mark.parametrize(
    ("error", "attempts", "tokens"),
    [
        (ProposerError("The answer held no kernel."), 4, 2200),
        (AnswerUnreadable("The answer was cut off."), 4, 2200),
        (EndpointError("The endpoint is away."), 1, 800),
        (BudgetExhausted("No token is left."), 1, 800),
        (NothingToGain("The model says that nothing is to gain."), 1, 800),
        (ProposalsExhausted("Every move was tried."), 1, 800),
    ],
)
def test_every_answer_that_is_paid_for_counts(
    engine: Engine, memory: Memory, toy_task: MakeTask, error: ProposerError, attempts: int, tokens: int
) -> None:
    """What no attempt was made of counts in the run, what one was made of in the memory too."""
    proposer = Spent(error)
    seen: list[AttemptEvent] = []
    result = evolve(engine, proposer=proposer).run(toy_task(1), 30, job_id="job", on_attempt=seen.append)
    assert result.status is Status.VERIFIED
    assert (result.attempts, result.tokens) == (attempts, tokens)
    if not isinstance(error, ProposalsExhausted):
        assert str(error) in result.reason
    recorded = sum(attempt.tokens for attempt in memory.attempts(job_id="job"))
    assert recorded == seen[-1].tokens == (tokens if attempts > 1 else 100)


class Several:
    """Answers the first question with several kernels, and then waits to be cancelled."""

    name = "several"

    def __init__(self, *answers: frozenset[str]) -> None:
        self.answers = answers
        self.contexts: list[Context] = []

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        self.contexts.append(context)
        first, *others = (Proposal(source_of(switches)) for switches in self.answers)
        return evolve(first, tokens=100, others=tuple(others))

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        self.contexts.append(context)
        while not context.cancelled():
            pass
        raise ProposerError("The question was cancelled.")


ANSWERS = (frozenset({"a1"}), frozenset({"wide", "split"}), frozenset({"c1"}))


def test_every_kernel_of_an_answer_is_verified(
    engine: Engine, verifier: Any, memory: Memory, toy_task: MakeTask
) -> None:
    proposer = Several(*ANSWERS)
    result = evolve(engine, proposer=proposer).run(toy_task(1), 3, job_id="job")
    assert [source for _, source in verifier.seen] == [source_of(found).source_id for found in ANSWERS]
    assert result.best and result.best.source == source_of(ANSWERS[1]), "the best of them"
    assert result.tokens == 100
    assert [attempt.stage for attempt in memory.attempts(job_id="job")] == [Stage.DRAFT] * 3
    (context,) = proposer.contexts
    assert (context.job, context.attempts_left) == ("job", 3)


def test_one_verified_kernel_of_an_answer_is_enough_for_who_waits(
    engine: Engine, verifier: Any, toy_task: MakeTask
) -> None:
    evolve(engine, proposer=Several(*ANSWERS)).run(toy_task(1), 3, satisfied=lambda _: True)
    assert len(verifier.seen) == 1


def test_a_cancelled_question_is_no_attempt(engine: Engine, memory: Memory, toy_task: MakeTask) -> None:
    proposer, asked = Several(*ANSWERS), iter(range(10**9))
    result = evolve(engine, proposer=proposer).run(
        toy_task(1), 30, job_id="job", cancelled=lambda: len(proposer.contexts) > 1 and next(asked) > 100
    )
    assert (result.status, result.attempts) == (Status.CANCELLED, len(ANSWERS))
    assert len(memory.attempts(job_id="job")) == len(ANSWERS)


def test_a_rule_needs_two_tasks(toy_engine: MakeEngine, memory: Memory, toy_task: MakeTask) -> None:
    engine = toy_engine(start=frozenset({"x_overflow"}))
    engine.run(toy_task(1), 3)
    assert not memory.experiences([ExperienceKind.RULE])
    engine.run(toy_task(2), 3)
    (rule,) = memory.experiences([ExperienceKind.RULE])
    assert rule.title.startswith("You cannot allocate")


def test_summaries_come_at_changes_of_status(engine: Engine, memory: Memory, toy_task: MakeTask) -> None:
    engine.run(toy_task(1), 40)
    failures = memory.experiences([ExperienceKind.FAILURE])
    successes = memory.experiences([ExperienceKind.SUCCESS])
    assert len(failures) == 1, "one class of error"
    assert 2 <= len(successes) <= 4, "the first kernel and the three good switches"


def attempts_to_optimum(
    folder: Path, mode: RetrievalName, seed: int, make: MakeEngine, task: MakeTask, verifier: Any
) -> float:
    """Mean attempts to the optimum on two tasks, after another was learned from."""
    given = Settings(chip="toychip", retrieval=mode, seed=seed)
    with Memory(folder / f"{mode.value}-{seed}.db") as store:
        engine = make(store=store, given=given, verifier=verifier)
        return statistics.mean([engine.run(task(number), 80).attempts for number in range(3)][1:])


@few("seeds", [(0, 2), range(5)], keep=(0,), ids=["two", "five"])
def test_values_shorten_the_search(
    seeds: Sequence[int],
    tmp_path: Path,
    toy_engine: MakeEngine,
    toy_task: MakeTask,
    toy_verifier: Any,
    optimum_us: float,
) -> None:
    verifier = toy_verifier(roofline_us=optimum_us)

    def means(mode: RetrievalName) -> list[float]:
        return [attempts_to_optimum(tmp_path, mode, seed, toy_engine, toy_task, verifier) for seed in seeds]

    learned, blind = means(RetrievalName.Q), means(RetrievalName.RANDOM)
    # a sign test over paired seeds: five wins of five happen by chance once in 32, two of two once in 4
    assert all(q < r for q, r in zip(learned, blind, strict=True)), (learned, blind)
    assert statistics.mean(learned) < 0.6 * statistics.mean(blind)


def test_refinements_that_gain_nothing_are_timed_only(
    toy_engine: MakeEngine, toy_task: MakeTask, tmp_path: Path
) -> None:
    """The best kernel is none the worse for it; what is slower teaches no
    failure, is nothing to start from, and its feedback is no model's to mend."""
    task = toy_task(1)
    whole = toy_engine().run(task, 40)
    with Memory(tmp_path / "timed.db") as store:
        result = toy_engine(store=store, timed_first=True).run(task, 40, job_id="timed")
        assert result.best and whole.best and result.best.latency_us <= whole.best.latency_us
        verdicts = [item.verdict for item in store.candidates(task.task_id, "toy 1", "toychip")]
        slower = [verdict for verdict in verdicts if verdict.is_slower]
        assert slower and not any(verdict.feasible for verdict in slower)
        failures = store.experiences([ExperienceKind.FAILURE])
        assert not any("slower" in item.title for item in failures)
        rewards = {row.source_id: row.reward for row in store.attempts(job_id="timed")}
        assert all(-1.0 < rewards[verdict.source_id] <= 0.0 for verdict in slower)


@pytest.mark.parametrize("timed_first", [False, True])
def test_moves_that_pay_together_only_are_found(
    timed_first: bool, toy_engine: MakeEngine, toy_task: MakeTask, toy_verifier: Any
) -> None:
    """Either of them alone is slower: where nothing else is left to start from, what was timed only is."""
    verifier = toy_verifier(pair=frozenset({"b2", "a2"}))
    engine = toy_engine(verifier=verifier, timed_first=timed_first)
    result = engine.run(toy_task(1), 200, satisfied=lambda search: search.best_us < 5)
    assert result.best and result.best.latency_us < 5


def test_a_job_that_goes_on_takes_nothing_that_was_timed_only_for_a_failure(
    toy_engine: MakeEngine, toy_task: MakeTask
) -> None:
    """Neither of its own attempts nor of those that it takes up."""

    class Listening(ToyProposer):
        def refine(self, task: KernelTask, context: Context) -> Proposal:
            heard.append(context.feedback)
            return super().refine(task, context)

    heard: list[str] = []
    task = toy_task(1)
    first = toy_engine(timed_first=True)
    attempts = 0
    while not attempts or not first.memory.candidates(task.task_id)[-1].verdict.is_slower:
        attempts += 1
        first.run(task, attempts, job_id="job")
    again = evolve(first, proposer=Listening("toy", timed_first=True))
    again.run(task, attempts + 1, job_id="job")
    assert heard == [""]


def test_a_proposer_without_a_single_draft_says_why(engine: Engine, toy_task: MakeTask) -> None:
    proposer = Failing(ProposalsExhausted("The rows are too wide."))
    result = evolve(engine, proposer=proposer).run(toy_task(1), 30)
    assert (result.status, result.attempts) == (Status.INFEASIBLE, 0)
    assert "The rows are too wide." in result.reason


COMMENTS = make_experience(ExperienceKind.PRACTICE, "add comments", "They help readers.")


@define
class Commenter:
    """Answers with the kernel that it was given, and another comment each time."""

    name: str = "commenter"
    asked: int = 0

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        return Proposal(ascendc_source("", "a1", Strategy("model")), tokens=7)

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        self.asked += 1
        assert context.start is not None
        text = f"{context.start.source.files[KERNEL]} // better, {self.asked}\n"
        source = ascendc_source("", text, Strategy("model"))
        return Proposal(source, (COMMENTS.id,), tokens=7000, learned=(COMMENTS,))


def test_comments_are_no_refinement(
    toy_engine: MakeEngine, toy_task: MakeTask, toy_verifier: Any, memory: Memory
) -> None:
    verifier, proposer = toy_verifier(), Commenter()
    result = evolve(toy_engine(verifier=verifier), proposer=proposer).run(toy_task(1), 30, job_id="job")
    assert proposer.asked == 3 and "To the compiler it is the kernel that it should improve" in result.reason
    assert len(verifier.seen) == 1, "nothing of it was judged again"
    assert memory.q(Stage.REFINE, "", COMMENTS.id) == 0.0
    assert [attempt.tokens for attempt in memory.attempts(job_id="job")] == [7, 7000, 7000, 7000]
    assert result.status is Status.VERIFIED and result.tokens == 21_007
