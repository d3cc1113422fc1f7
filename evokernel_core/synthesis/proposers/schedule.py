"""The schedule proposer: a deterministic author whose refinements are named moves.

It drafts from the strategy of a valued similar kernel where that is legal for the task, else from
the analytic schedule, and refines by the move that the memory values most. It needs no model.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache

from attrs import evolve, field, frozen
from cattrs.errors import BaseValidationError

from evokernel_core.ascendc.author import adapt, estimate_us, initial, moves, require_legal, write
from evokernel_core.ascendc.fusion.program import is_cut_alike
from evokernel_core.ascendc.kernels.family import Move
from evokernel_core.domain.errors import PlanError, ProposalsExhausted, StrategyError
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.memory.experiences import make_experience
from evokernel_core.synthesis.lessons import bottleneck_pipe
from evokernel_core.synthesis.proposers.base import Candidate, Context, Proposal
from evokernel_core.twin.chip import Chip

log = logging.getLogger(__name__)

ANALYTIC = "analytic schedule"
_DOUBT = 1.1
"""A schedule of another task that looks this much slower than the analytic one is tried after it."""


_PROMISE = 0.99
"""The share of the start's estimate below which a move is tried before those that memory values."""
_DOUBT_OF_CUTS = 0.85
"""Programs cut otherwise may take this part of what their estimates say: estimates of kernels that share a
launch are that far from verdicts, those of one kernel's schedules hardly are."""


@frozen
class _Option:
    """A kernel that could be proposed, and the memory item that stands for the idea. ``share``: what it may
    take by its estimate, as a share of the kernel to start from."""

    item: Experience
    source: KernelSource
    share: float = 1.0


@frozen
class ScheduleProposer:
    """Writes kernels for one chip from plans and schedules."""

    chip: Chip
    name: str = field(default="schedule", init=False)

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        """The first untried of: schedules of retrieved kernels of this family that promise as much as
        the analytic one, the analytic one, other retrieved ones, and those one move away from it. Schedules
        that people turned down come last. With cells to keep away from, drafts of others come first, those
        that differ in most axes before the rest.

        Raises ProposalsExhausted when all were tried or no family covers the task.
        """
        drafts = self._drafts(task, context)
        for item, strategy in _elsewhere_first(drafts, context) if context.away_from else drafts:
            source = write(task, strategy, self.chip)
            if source.source_id not in context.tried:
                return Proposal(source, (item.id,), learned=(item,))
        raise ProposalsExhausted("Every schedule to start from was tried.")

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        """The open move that promises most by its estimate; where none promises anything, the first in the
        order of the context's experiences.

        Raises ProposalsExhausted when every legal move from this start point was tried.
        """
        place = {item.id: place for place, item in enumerate(context.experiences)}
        options = self._moves(task, context)
        if not options:
            raise ProposalsExhausted("Every legal move from this start point was tried.")
        chosen = min(
            options,
            key=lambda option: (min(option.share, _PROMISE), place.get(option.item.id, len(place))),
        )
        return Proposal(chosen.source, (chosen.item.id,), learned=(chosen.item,), timed_first=True)

    def practices(self, task: KernelTask, context: Context) -> tuple[Experience, ...]:
        """The open moves from the start point as memory items."""
        return tuple(option.item for option in self._moves(task, context))

    def _drafts(self, task: KernelTask, context: Context) -> Iterator[tuple[Experience, Strategy]]:
        try:
            analytic = initial(task, self.chip)
        except PlanError as error:
            raise ProposalsExhausted(str(error)) from error
        limit = _DOUBT * estimate_us(task, analytic, self.chip)
        drafts = list(self._carried(task, context))
        doubtful = [draft for draft in drafts if estimate_us(task, draft[1], self.chip) > limit]
        first = _practice(ANALYTIC, analytic), analytic
        order = [*(draft for draft in drafts if draft not in doubtful), first, *doubtful]
        unwanted = [draft for draft in order if _is_one_of(draft[1], context.unwanted)]
        yield from (draft for draft in order if draft not in unwanted)
        for move in moves(task, analytic, self.chip):
            item = _practice(f"{ANALYTIC}, then {move.name}", move.strategy)
            yield item, evolve(move.strategy, move="")
        yield from unwanted

    def _carried(self, task: KernelTask, context: Context) -> Iterator[tuple[Experience, Strategy]]:
        """The strategies of retrieved kernels that can be carried over to this task."""
        for item in context.experiences:
            strategy = _strategy(item)
            fitting = adapt(task, strategy, self.chip) if strategy else None
            if fitting is not None:
                yield item, fitting

    def _moves(self, task: KernelTask, context: Context) -> tuple[_Option, ...]:
        start = context.start
        if start is None:
            return ()
        steps = _steps(ById(task), start.source.strategy, self.chip)
        return tuple(
            _Option(practice(step.move, start), step.source, step.share)
            for step in steps
            if step.source.source_id not in context.tried
        )


def _practice(words: str, strategy: Strategy) -> Experience:
    body = f"Start a {strategy.family} kernel: {words}."
    return make_experience(ExperienceKind.PRACTICE, f"{words} for {strategy.family}", body)


def _elsewhere_first(
    drafts: Iterable[tuple[Experience, Strategy]], context: Context
) -> list[tuple[Experience, Strategy]]:
    """Drafts in the order of how much their cells differ from those to keep away from, what people turned
    down at the end."""

    def rank(draft: tuple[Experience, Strategy]) -> tuple[bool, int]:
        strategy = draft[1]
        return _is_one_of(strategy, context.unwanted), -strategy.descriptor.apart(context.away_from)

    return sorted(drafts, key=rank)


def _is_one_of(strategy: Strategy, others: tuple[Strategy, ...]) -> bool:
    return any((item.family, item.settings) == (strategy.family, strategy.settings) for item in others)


@frozen
class _Step:
    """A move with the kernel that it gives, and what that may take as a share of the kernel before it."""

    move: Move
    source: KernelSource
    share: float


@lru_cache(maxsize=8)
def _steps(key: ById, strategy: Strategy, chip: Chip) -> tuple[_Step, ...]:
    """The steps from a strategy, one for each kernel: asked for twice in each attempt."""
    task, found = key.task, dict[str, _Step]()
    now = _estimate_us(task, strategy, chip)
    for move in _legal_moves(task, strategy, chip):
        source = write(task, evolve(move.strategy, move=move.name), chip)
        if source.source_id not in found:
            share = estimate_us(task, move.strategy, chip) / now
            doubt = 1.0 if is_cut_alike(strategy, move.strategy) else _DOUBT_OF_CUTS
            found[source.source_id] = _Step(move, source, doubt * share)
    return tuple(found.values())


def _estimate_us(task: KernelTask, strategy: Strategy, chip: Chip) -> float:
    """Of a kernel that is none of this author's schedules, there is none: endless."""
    try:
        require_legal(task, strategy, chip)
        return estimate_us(task, strategy, chip)
    except (PlanError, StrategyError):
        return math.inf


def _legal_moves(task: KernelTask, strategy: Strategy, chip: Chip) -> Iterator[Move]:
    """Legal next strategies; a kernel that did not begin from the analytic one may turn to it.
    What a language model wrote, or another version of EvoKernel, has no schedule to step from, only
    that turn."""
    try:
        analytic = initial(task, chip)
        if strategy.family == analytic.family:
            with suppress(StrategyError):
                require_legal(task, strategy, chip)
                yield from moves(task, strategy, chip)
        yield Move(ANALYTIC, analytic, analytic.family)
    except PlanError as error:
        raise ProposalsExhausted(str(error)) from error


def practice(move: Move, start: Candidate) -> Experience:
    """The memory item of a move: what it is, for which family and against which bottleneck.

    It names no task, so that its value is shared by all tasks.
    """
    pipe = bottleneck_pipe(start.verdict.latency)
    return make_experience(
        ExperienceKind.PRACTICE,
        f"{move.name} for {pipe or 'any'}-bound {move.family}",
        f"In a {move.family} kernel whose busiest pipe is {pipe or 'unknown'}: {move.name}.",
        bottleneck=pipe,
        payload=json.dumps({"family": move.family, "move": move.name}, sort_keys=True),
    )


def _strategy(item: Experience) -> Strategy | None:
    """The strategy that an exemplar or a success carries, None for any other item."""
    if item.kind not in (ExperienceKind.EXEMPLAR, ExperienceKind.SUCCESS) or not item.payload:
        return None
    try:
        data = json.loads(item.payload).get("strategy")
        return from_data(data, Strategy) if data else None
    except (ValueError, TypeError, AttributeError, RecursionError, BaseValidationError) as error:
        log.warning("The experience %s holds no strategy and is not used: %s.", item.id, type(error).__name__)
        return None
