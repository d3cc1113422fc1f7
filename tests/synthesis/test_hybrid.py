"""The hybrid refines with whichever proposer the memory values more, and goes on without a model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import define, evolve, field

from evokernel_core.domain.errors import BudgetExhausted, NothingToGain, ProposalsExhausted, ProposerError
from evokernel_core.domain.experience import Experience
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.proposers.base import Candidate, Context, Proposal
from evokernel_core.synthesis.proposers.hybrid import HybridProposer, model_practice
from evokernel_core.targets.ascendc.source import ascendc_source


@define
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
