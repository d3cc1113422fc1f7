"""The schedule proposer: a deterministic author whose refinements are named moves.

It drafts from the strategy of a valued similar kernel where that is legal for the task, else from
the analytic schedule, and refines by the move of the greatest expected gain. It needs no model.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from itertools import chain

from attrs import evolve, field, frozen
from cattrs.errors import BaseValidationError

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.family import Move
from evokernel_core.compiler.strategies import formula_of, rounds_like_torch
from evokernel_core.domain.errors import PlanError, ProposalsExhausted
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.kernel import KernelSource, Strategy, after
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.domain.verdict import NUMERIC, GateName, Verdict
from evokernel_core.memory.experiences import make_experience
from evokernel_core.synthesis.lessons import bottleneck_pipe, step_title
from evokernel_core.synthesis.proposers.base import Candidate, Context, Priced, Proposal
from evokernel_core.synthesis.proposers.gains import gains
from evokernel_core.synthesis.proposers.moves import PricedMove, in_a_row, priced, steps
from evokernel_core.synthesis.residual import UNTAUGHT, Expected
from evokernel_core.synthesis.sequences import ANALYTIC, steps_of

log = logging.getLogger(__name__)

_DOUBT = 1.02
"""A schedule of another task that looks this much slower than the analytic one is tried after it: whoever
waits for a first kernel wants no experiment."""
_KNOWN = 12
"""Verdicts on schedules of a family from which they speak for another first draft."""


@frozen
class _Option:
    """A kernel that could be proposed, and the memory item that stands for the idea. ``gain``: the logarithm
    of how much faster than the start it is on average, where slower counts as nothing, and of how much faster
    it is expected to be."""

    item: Experience
    source: KernelSource
    priced: Priced
    gain: tuple[float, float]


@frozen
class _Draft:
    """A schedule to begin with, and the microseconds that it is expected to take."""

    item: Experience
    strategy: Strategy
    priced: Priced
    expected: Expected
    us: float

    def surely_faster(self, other: _Draft) -> bool:
        """Whether it is, also where both are as far from what is expected as is likely: whoever waits for a
        first kernel wants no experiment."""
        return self.us * self.expected.spread * other.expected.spread < other.us


@frozen
class ScheduleProposer:
    """Writes kernels for one device from plans and schedules."""

    author: KernelAuthor
    name: str = field(default="schedule", init=False)

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        """The first untried of: schedules of retrieved kernels of this family that promise as much as
        the analytic one, the analytic one, other retrieved ones, and those one move away from it. Schedules
        that people turned down, or that rules forbid, come last. With cells to keep away from, drafts of
        others come first, those that differ in most axes before the rest.

        Raises ProposalsExhausted when all were tried or no family covers the task.
        """
        drafts = self._drafts(task, context)
        if context.away_from:
            drafts = iter(_elsewhere_first(drafts, context))
        for draft in _other_formula_first(drafts, context):
            source = self.author.write(task, draft.strategy)
            if source.source_id not in context.tried:
                return Proposal(source, (draft.item.id,), learned=(draft.item,), priced=draft.priced)
        raise ProposalsExhausted("Every schedule to start from was tried.")

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        """The open move of the greatest expected gain: by its estimate, as far as those are believed, by what
        the same step gave before, and, in as much as that leaves open, by the time of the kernel that it
        changes, by how little that was tried, and by its place among the experiences.

        Raises ProposalsExhausted when every legal move from this start point was tried.
        """
        options = self._moves(task, context)
        if not options:
            raise ProposalsExhausted("Every legal move from this start point was tried.")
        chosen = max(options, key=lambda option: (not _is_forbidden(option.priced, context), option.gain))
        return Proposal(
            chosen.source,
            (chosen.item.id,),
            learned=(chosen.item,),
            timed_first=True,
            priced=chosen.priced,
        )

    def practices(self, task: KernelTask, context: Context) -> tuple[Experience, ...]:
        """The open moves from the start point as memory items."""
        return tuple(option.item for option in self._moves(task, context))

    def _drafts(self, task: KernelTask, context: Context) -> Iterator[_Draft]:
        try:
            analytic = self.author.initial(task)
        except PlanError as error:
            raise ProposalsExhausted(error.sentence) from error
        if sum(record.family == analytic.family for record in context.residual.records) < _KNOWN:
            context = evolve(context, residual=UNTAUGHT)
        first = self._draft(task, _practice(ANALYTIC, analytic), analytic, context)
        carried = [
            self._draft(task, experience, gain, context) for experience, gain in self._carried(task, context)
        ]
        own, beside = [first], self._beside(task, analytic, context)
        if context.residual.is_known:  # else nothing but their estimates tells them apart
            others = sorted(beside, key=lambda draft: draft.us)
            better = [draft for draft in others if draft.surely_faster(first)]
            own = [*better, first, *(draft for draft in others if draft not in better)]
            beside = iter(())
        doubtful = [draft for draft in carried if draft.us > _DOUBT * own[0].us]
        wanted = [draft for draft in carried if draft not in doubtful]
        unwanted = []
        for draft in chain(wanted, own[:1], doubtful, own[1:], beside):
            if _is_unwanted(draft, context):
                unwanted.append(draft)
            else:
                yield draft
        yield from unwanted

    def _beside(self, task: KernelTask, analytic: Strategy, context: Context) -> Iterator[_Draft]:
        """The schedules one move away from the analytic one."""
        for move in self.author.moves(task, analytic):
            experience = _practice(after(ANALYTIC, Sentence(move.name)), move.strategy)
            yield self._draft(task, experience, evolve(move.strategy, move=""), context)

    def _draft(
        self, task: KernelTask, experience: Experience, strategy: Strategy, context: Context
    ) -> _Draft:
        said = priced(task, strategy, self.author)
        expected = context.residual.of([dict(said.features)], task.task_id)[0]
        return _Draft(experience, strategy, said, expected, expected.factor * said.estimate_us)

    def _carried(self, task: KernelTask, context: Context) -> Iterator[tuple[Experience, Strategy]]:
        """The strategies of retrieved kernels that can be carried over to this task."""
        for experience in context.experiences:
            strategy = _strategy(experience)
            fitting = self.author.adapt(task, strategy) if strategy else None
            if fitting is not None:
                yield experience, fitting

    def _moves(self, task: KernelTask, context: Context) -> tuple[_Option, ...]:
        start = context.start
        if start is None:
            return ()
        single = steps(ById(task), start.source.strategy, self.author)
        known = {step.source.source_id for step in single}
        sequences = [
            (experience, step)
            for experience, step in self._sequences(task, start.source.strategy, context)
            if step.source.source_id not in known
        ]
        result = [*((practice(step.move, start), step) for step in single), *sequences]
        expected = gains(task, start, result, context, self.author)
        return tuple(
            _Option(experience, step.source, step.priced, gain)
            for (experience, step), gain in zip(result, expected, strict=True)
            if step.source.source_id not in context.tried
        )

    def _sequences(
        self, task: KernelTask, strategy: Strategy, context: Context
    ) -> Iterator[tuple[Experience, PricedMove]]:
        """What steps in a row that paid elsewhere make of a strategy, where each of them can be made."""
        for experience in context.experiences:
            names = steps_of(experience)
            step = in_a_row(ById(task), strategy, names, self.author) if names else None
            if step is not None:
                yield experience, step


def _practice(words: Sentence, strategy: Strategy) -> Experience:
    body = f"Start a {strategy.family} kernel: {words}."
    family = Sentence(strategy.family)
    title = Sentence("{step} for {family}", step=words, family=family)
    return make_experience(ExperienceKind.PRACTICE, title, body)


def _elsewhere_first(drafts: Iterable[_Draft], context: Context) -> list[_Draft]:
    """Drafts in the order of how much their cells differ from those to keep away from, the unwanted ones at
    the end."""

    def rank(draft: _Draft) -> tuple[bool, int]:
        return _is_unwanted(draft, context), -draft.strategy.descriptor.apart(context.away_from)

    return sorted(drafts, key=rank)


def _other_formula_first(drafts: Iterable[_Draft], context: Context) -> Iterable[_Draft]:
    """Drafts as they come, or where kernels gave wrong results those of another formula first, and of these
    those that round most like PyTorch."""
    wrong = {
        formula_of(candidate.source.strategy)
        for candidate in context.candidates
        if _is_wrong(candidate.verdict)
    }
    if not wrong:
        return drafts

    def rank(draft: _Draft) -> tuple[bool, bool, int]:
        refuted = formula_of(draft.strategy) in wrong
        return _is_unwanted(draft, context), refuted, -rounds_like_torch(draft.strategy)

    return sorted(drafts, key=rank)


def _is_wrong(verdict: Verdict) -> bool:
    """Whether a kernel ran and its results were not PyTorch's."""
    failed = verdict.failed_gate
    return failed is not None and (failed.gate, failed.code) == (GateName.CORRECTNESS, NUMERIC)


def _is_unwanted(draft: _Draft, context: Context) -> bool:
    """Whether people turned a schedule down, or a rule forbids it."""
    return _is_one_of(draft.strategy, context.unwanted) or _is_forbidden(draft.priced, context)


def _is_one_of(strategy: Strategy, others: tuple[Strategy, ...]) -> bool:
    return any(other_.is_same_schedule(strategy) for other_ in others)


def _is_forbidden(priced: Priced, context: Context) -> bool:
    """Whether schedules like this one fail, as far as is known."""
    features = dict(priced.features)
    return any(precondition.forbids(priced.family, features) for precondition in context.preconditions)


def practice(move: Move, start: Candidate) -> Experience:
    """The memory item of a move: what it is, for which family and against which bottleneck.

    It names no task, so that its value is shared by all tasks.
    """
    pipe = bottleneck_pipe(start.verdict.latency)
    return make_experience(
        ExperienceKind.PRACTICE,
        step_title(Sentence(move.name), pipe, move.family),
        f"In a {move.family} kernel whose busiest pipe is {pipe or 'unknown'}: {move.name}.",
        bottleneck=pipe,
        payload=json.dumps({"family": move.family, "move": move.name}, sort_keys=True),
    )


def _strategy(experience: Experience) -> Strategy | None:
    """The strategy that an exemplar or a success carries, None for any other item."""
    if experience.kind not in (ExperienceKind.EXEMPLAR, ExperienceKind.SUCCESS) or not experience.payload:
        return None
    try:
        data = json.loads(experience.payload).get("strategy")
        return from_data(data, Strategy) if data else None
    except (ValueError, TypeError, AttributeError, RecursionError, BaseValidationError) as error:
        log.warning(
            "The experience %s holds no strategy and is not used: %s.", experience.id, type(error).__name__
        )
        return None
