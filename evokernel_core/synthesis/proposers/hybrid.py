"""The hybrid: drafts with the schedule proposer and refines with both, whichever is worth more.

Asking the model is one more move: a memory item per bottleneck, whose Q-value decides against the
named moves of the schedule, and ``Asking`` when it is asked at the latest and at most. Without an endpoint or
tokens the schedule proposer goes on alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise

from attrs import define, evolve, field, frozen

from evokernel_core.domain.errors import (
    BudgetExhausted,
    EndpointError,
    NothingToGain,
    ProposalsExhausted,
    ProposerError,
)
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.memory.experiences import make_experience
from evokernel_core.synthesis.lessons import bottleneck_pipe
from evokernel_core.synthesis.privacy import MODEL
from evokernel_core.synthesis.proposers.base import Candidate, Context, MoveProposer, Proposal, Proposer

_ENDS = (BudgetExhausted, EndpointError, NothingToGain)
"""After which the model is asked no more in a job, and its attempts are the schedule's."""


@define
class HybridProposer:
    """``gone`` says why the model is no longer asked, empty while it is; ``spent`` the same of jobs whose
    budget is used up, or of which the model said that nothing is to gain."""

    schedule: MoveProposer
    model: Proposer
    name: str = field(default="hybrid", init=False)
    gone: str = field(default="", init=False)
    spent: dict[str, str] = field(factory=dict, init=False)
    asked: Counter[str] = field(factory=Counter, init=False)
    """Attempts of each job that were the model's."""

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        """The schedule's draft; the model's where no family covers the task or all were tried, and where its
        attempts are due."""
        if self._is_due(context):
            try:
                return self._ask("draft", task, context, None)
            except _ENDS as gone:
                return _paid(partial(self.schedule.draft, task, context), gone.tokens)
        try:
            return self.schedule.draft(task, context)
        except ProposalsExhausted as error:
            return self._ask("draft", task, context, error)

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        """By the model where its attempts are due, else by the item that comes first in the context; the
        other proposer where one has nothing."""
        experience = model_practice(context.start)
        if self._is_due(context) or (
            not self._why_gone(context)
            and self._is_open(context)
            and self._comes_first(task, context, experience)
        ):
            try:
                return self._credited(self._ask("refine", task, context, None), experience)
            except _ENDS as gone:
                return _paid(partial(self.schedule.refine, task, context), gone.tokens)
        try:
            return self.schedule.refine(task, context)
        except ProposalsExhausted as error:
            if not self._is_open(context):
                raise
            try:
                return self._credited(self._ask("refine", task, context, error), experience)
            except NothingToGain as gone:  # other kernels may still be refined by the schedule
                error.tokens = gone.tokens
                raise error from gone

    def practices(self, task: KernelTask, context: Context) -> tuple[Experience, ...]:
        """The schedule's open moves and, while it can be asked, the model."""
        result = self.schedule.practices(task, context)
        return result if self._why_gone(context) else (*result, model_practice(context.start))

    def _is_due(self, context: Context) -> bool:
        run = asking(context, self.asked[context.job])
        return run is not None and run.is_due and not self._why_gone(context)

    def _is_open(self, context: Context) -> bool:
        run = asking(context, self.asked[context.job])
        return run is None or run.is_open

    def _comes_first(self, task: KernelTask, context: Context, experience: Experience) -> bool:
        open_ids = {practice.id for practice in self.schedule.practices(task, context)}
        ranked = [
            known.id for known in context.experiences if known.id == experience.id or known.id in open_ids
        ]
        return ranked[:1] == [experience.id]

    def _ask(
        self, method: str, task: KernelTask, context: Context, otherwise: ProposerError | None
    ) -> Proposal:
        if why := self._why_gone(context):
            raise otherwise or ProposalsExhausted(why)
        try:
            ask = self.model.refine if method == "refine" else self.model.draft
            proposal = ask(task, context)
            self.asked[context.job] += 1 + len(proposal.others)
            return proposal
        except (BudgetExhausted, NothingToGain) as error:
            self.spent[context.job] = error.sentence
            raise
        except EndpointError as error:
            self.gone = error.sentence
            raise
        except ProposerError:  # an answer without a kernel is an attempt of the model's, too
            self.asked[context.job] += 1
            raise

    def _why_gone(self, context: Context) -> str:
        return self.gone or self.spent.get(context.job, "")

    def _credited(self, proposal: Proposal, experience: Experience) -> Proposal:
        used = tuple(dict.fromkeys((*proposal.used, experience.id)))
        others = tuple(self._credited(other, experience) for other in proposal.others)
        return evolve(proposal, used=used, learned=(*proposal.learned, experience), others=others)


def _paid(propose: Callable[[], Proposal], tokens: int) -> Proposal:
    """A proposal, or its error, with what was paid before for no kernel."""
    try:
        proposal = propose()
    except ProposerError as error:
        error.tokens += tokens
        raise
    return evolve(proposal, tokens=proposal.tokens + tokens)


def model_practice(start: Candidate | None) -> Experience:
    """The memory item for asking the model, by bottleneck."""
    pipe = bottleneck_pipe(start.verdict.latency) if start else ""
    title = Sentence("ask the model about a new-bound kernel")
    if pipe:
        title = Sentence("ask the model about a {pipe}-bound kernel", pipe=pipe)
    return make_experience(
        ExperienceKind.PRACTICE, title, "Let a language model rewrite it.", bottleneck=pipe
    )


LEAST_GAIN = 0.02
"""The share that a refinement must save for the author to go on alone, and the model to go beyond half."""
MOST_KEPT = 2
"""Attempts that are kept for the model: an answer, and its repair or refinement."""


@frozen
class Asking:
    """Where a run stands: ``used`` attempts of ``budget``, ``asked`` of them the model's; ``history`` is the
    best latency after each attempt, None before the first; ``has_gained``: the model's best is faster than
    the others'."""

    budget: int
    used: int
    asked: int
    history: Sequence[float | None] = ()
    has_gained: bool = False

    @property
    def kept(self) -> int:
        """Attempts that the model has before all others; none in a budget of one."""
        return min(MOST_KEPT, self.budget - 1)

    @property
    def is_due(self) -> bool:
        """Whether the next attempt is the model's, whatever it is valued."""
        if self.asked >= self.kept:
            return False
        few_left = self.budget - self.used <= self.kept - self.asked
        return self.asked > 0 or few_left or self.used >= math.ceil(self.budget / 3) or self._is_stuck

    @property
    def is_open(self) -> bool:
        """Whether the model may have the next attempt."""
        return self.kept > 0 and (self.has_gained or self.asked < math.ceil(self.budget / 2))

    @property
    def _is_stuck(self) -> bool:
        """Whether a refinement gained too little; the first kernel is none."""
        known = [us for us in self.history if us is not None]
        return any(after > (1 - LEAST_GAIN) * before for before, after in pairwise(known))


def asking(context: Context, asked: int) -> Asking | None:
    """Where the run of a context stands, None where it has no budget of attempts."""
    if not context.budget:
        return None
    used = context.budget - context.attempts_left
    return Asking(context.budget, used, asked, context.history, has_gained(context.candidates))


def has_gained(candidates: Iterable[Candidate]) -> bool:
    """Whether the best kernel of a model is faster than all others by more than the least gain."""
    best = {True: math.inf, False: math.inf}
    for candidate in candidates:
        is_models = candidate.source.strategy.family == MODEL
        best[is_models] = min(best[is_models], candidate.latency_us)
    return best[True] <= (1 - LEAST_GAIN) * best[False] and best[True] < math.inf
