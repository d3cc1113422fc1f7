"""The hybrid refines with whichever proposer the memory values more, and goes on without a model."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from attrs import define, evolve, field

from evokernel_core.domain.errors import (
    BudgetExhausted,
    EndpointError,
    NothingToGain,
    ProposalsExhausted,
    ProposerError,
)
from evokernel_core.domain.experience import Experience
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, LatencySource, Verdict
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.proposers.base import Candidate, Context, Proposal
from evokernel_core.synthesis.proposers.hybrid import Asking, HybridProposer, has_gained, model_practice
from evokernel_core.targets.ascendc.source import ascendc_source
from tests.synthesis.conftest import EFFECTS, source_of


@define(slots=False)
class Model:
    """Writes the same kernel again and again until its tokens are spent."""

    answers: int = 10
    name: str = "llm"
    asked: list[str] = field(factory=list)

    def _answer(self, what: str) -> Proposal:
        self.asked.append(what)
        if len(self.asked) > self.answers:
            raise BudgetExhausted("The tokens are spent.")
        return Proposal(ascendc_source("", "double", Strategy("model")), tokens=100)

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        return self._answer("draft")

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        return self._answer("refine")


@define
class Schedule:
    """One draft and one move."""

    move: Experience
    empty: bool = False
    name: str = "schedule"

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        if self.empty:
            raise ProposalsExhausted("No family covers it.")
        return Proposal(ascendc_source("", "", Strategy("toy")))

    def practices(self, task: KernelTask, context: Context) -> tuple[Experience, ...]:
        return () if self.empty else (self.move,)

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        if self.empty:
            raise ProposalsExhausted("Every move was tried.")
        return Proposal(ascendc_source("", "wide", Strategy("toy")), (self.move.id,))


START = Candidate(ascendc_source("", "", Strategy("toy")), Verdict("t", "s", "v", ()))
MOVE = evolve(model_practice(START), id="move")
ASK = model_practice(START)


@pytest.mark.parametrize(
    ("experiences", "family"), [((MOVE, ASK), "toy"), ((ASK, MOVE), "model"), ((), "toy")]
)
def test_the_more_valued_refines(
    toy_task: Callable[..., KernelTask], experiences: tuple[Experience, ...], family: str
) -> None:
    hybrid = HybridProposer(Schedule(MOVE), Model())
    proposal = hybrid.refine(toy_task(1), Context(experiences, START))
    assert proposal.source.strategy.family == family
    assert (ASK.id in proposal.used) == (family == "model")


def test_every_kernel_of_an_answer_is_credited(toy_task: Callable[..., KernelTask]) -> None:
    class Several(Model):
        def refine(self, task: KernelTask, context: Context) -> Proposal:
            return evolve(self._answer("refine"), others=(self._answer("refine"),))

    hybrid = HybridProposer(Schedule(MOVE), Several())
    proposal = hybrid.refine(toy_task(1), Context((ASK, MOVE), START))
    assert [ASK.id in item.used for item in (proposal, *proposal.others)] == [True, True]


def test_the_model_fills_in(toy_task: Callable[..., KernelTask]) -> None:
    hybrid = HybridProposer(Schedule(MOVE, empty=True), Model())
    assert hybrid.draft(toy_task(1), Context()).source.strategy.family == "model"
    assert hybrid.refine(toy_task(1), Context((), START)).source.strategy.family == "model"


def test_without_tokens_the_schedule_goes_on(toy_task: Callable[..., KernelTask]) -> None:
    model = Model(answers=0)
    hybrid = HybridProposer(Schedule(MOVE), model)
    for _ in range(3):
        proposal = hybrid.refine(toy_task(1), Context((ASK,), START))
        assert proposal.source.strategy.family == "toy"
    assert model.asked == ["refine"], "asked once, then left alone"
    assert hybrid.practices(toy_task(1), Context((), START)) == (MOVE,)
    hybrid.schedule = Schedule(MOVE, empty=True)
    with pytest.raises(ProposerError):
        hybrid.refine(toy_task(1), Context((), START))


@pytest.mark.parametrize("empty", [False, True])
def test_where_the_model_sees_nothing_to_gain_the_schedule_goes_on(
    toy_task: Callable[..., KernelTask], empty: bool
) -> None:
    class Content(Model):
        def refine(self, task: KernelTask, context: Context) -> Proposal:
            self.asked.append("refine")
            error = NothingToGain("The model says that nothing is to gain.")
            error.tokens = 700
            raise error

    model = Content()
    hybrid = HybridProposer(Schedule(MOVE, empty), model)
    context = Context((ASK, MOVE), START)
    if empty:
        with pytest.raises(ProposalsExhausted, match="Every move") as raised:
            hybrid.refine(toy_task(1), context)
        assert raised.value.tokens == 700
    else:
        assert [hybrid.refine(toy_task(1), context).tokens for _ in range(2)] == [700, 0]
    assert model.asked == ["refine"]


def test_the_budget_of_one_job_is_not_that_of_another(toy_task: Callable[..., KernelTask]) -> None:
    model = Model(answers=0)
    hybrid = HybridProposer(Schedule(MOVE), model)
    for job in ("first", "first", "second", "first"):
        hybrid.refine(toy_task(1), Context((ASK,), START, job=job))
    assert model.asked == ["refine"] * 2
    assert hybrid.practices(toy_task(1), Context((), START, job="second")) == (MOVE,)
    assert ASK in hybrid.practices(toy_task(1), Context((), START, job="third"))


def test_both_get_rewards_in_the_engine(engine: Engine, toy_task: Callable[..., KernelTask]) -> None:
    hybrid = HybridProposer(engine.proposer, Model())  # type: ignore[arg-type]
    result = evolve(engine, proposer=hybrid).run(toy_task(1), 30)
    assert result.tokens >= 100
    with_model = [v for v in engine.memory.values() if v.item == _asked(engine).id]
    assert with_model
    assert all(value.n for value in with_model)


def _asked(engine: Engine) -> Experience:
    (found,) = [item for item in engine.memory.experiences() if item.title.startswith("ask the model")]
    return found


def verdict(us: float) -> Verdict:
    latency = Latency(us, LatencySource.MODELLED, "chip", 1, (), "", 1.0, 1.0)
    return Verdict("t", "s", "v", (GateResult(GateName.COMPILE, GateStatus.PASSED),), latency)


# -- in time --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "kept", "latest", "most"),
    [(1, 0, None, 0), (2, 1, 1, 1), (3, 2, 1, 2), (4, 2, 2, 2), (6, 2, 2, 3), (8, 2, 3, 4), (30, 2, 10, 15)],
)
def test_attempts_are_kept_and_bounded(budget: int, kept: int, latest: int | None, most: int) -> None:
    """The author gains with each attempt: the model's turn comes with a third of the budget, rounded up."""
    history = [100.0 * 0.5**n for n in range(budget)]
    runs = [Asking(budget, used, 0, history[:used]) for used in range(budget)]
    assert runs[0].kept == kept
    assert next((run.used for run in runs if run.is_due), None) == latest
    asked = [asked for asked in range(budget + 1) if Asking(budget, budget - 1, asked).is_open]
    assert len(asked) == most
    assert all(Asking(budget, 1, asked, has_gained=True).is_open == (budget > 1) for asked in range(budget))
    assert [Asking(budget, budget - 1, asked).is_due for asked in range(3)] == [kept > 0, kept > 1, False]


@pytest.mark.parametrize(
    ("history", "is_due"),
    [
        ((), False),
        ((None, None), False),
        ((100.0,), False),
        ((None, 100.0), False),
        ((100.0, 98.5), True),
        ((100.0, 97.9), False),
        ((100.0, 90.0, 90.0), True),
        ((None, 100.0, 50.0, 49.5), True),
    ],
)
def test_a_refinement_that_gains_too_little_asks(history: tuple[float | None, ...], is_due: bool) -> None:
    assert Asking(30, len(history), 0, history).is_due == is_due


@define(slots=False)
class Writing(Model):
    """Writes another kernel each time."""

    kernels: tuple[str, ...] = ("split",)
    """The switches of its kernels, in turn."""

    def _answer(self, what: str) -> Proposal:
        self.asked.append(what)
        if len(self.asked) > self.answers:
            raise EndpointError("The endpoint is away.")
        known = source_of(frozenset({self.kernels[(len(self.asked) - 1) % len(self.kernels)]}))
        return Proposal(evolve(known, strategy=Strategy("model")), tokens=100)


SLOWER = tuple(name for name, factor in EFFECTS.items() if 1 < factor < math.inf)


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 6, 8, 10])
def test_a_run_asks_in_time(engine: Engine, toy_task: Callable[..., KernelTask], budget: int) -> None:
    """By half of the budget as long as nothing comes of it."""
    model = Writing(kernels=SLOWER)
    hybrid = HybridProposer(engine.proposer, model)  # type: ignore[arg-type]
    contexts: list[Context] = []
    model_refine = model.refine

    def refine(task: KernelTask, context: Context) -> Proposal:
        contexts.append(context)
        return model_refine(task, context)

    model.refine = refine  # type: ignore[method-assign]
    evolve(engine, proposer=hybrid).run(toy_task(1), budget, job_id="job")
    asked = [context.budget - context.attempts_left for context in contexts]
    assert bool(asked) == (budget > 1)
    assert not asked or asked[0] <= math.ceil(budget / 3)
    assert len(asked) <= math.ceil(budget / 2)
    assert not asked or len(asked) >= min(2, budget - 1)


def test_a_model_has_gained_where_it_leads_by_two_percent() -> None:
    models = Candidate(evolve(source_of(frozenset()), strategy=Strategy("model")), verdict(90.0))
    others = (
        Candidate(source_of(frozenset()), verdict(100.0)),
        Candidate(source_of(frozenset({"a"})), verdict(91.9)),
    )
    assert has_gained([models, *others])
    assert not has_gained([models, *others, Candidate(source_of(frozenset({"b"})), verdict(91.8))])
    assert not has_gained(others) and has_gained([models]) and not has_gained([])


def test_kept_attempts_return_to_the_author(
    engine: Engine, memory: Memory, toy_task: Callable[..., KernelTask]
) -> None:
    hybrid = HybridProposer(engine.proposer, Writing(answers=0))  # type: ignore[arg-type]
    result = evolve(engine, proposer=hybrid).run(toy_task(1), 6, job_id="job")
    assert result.attempts == 6 and hybrid.gone
    assert all(attempt.source_id for attempt in memory.attempts(job_id="job"))
