"""The schedule proposer: a deterministic author whose refinements are named moves.

It drafts from the strategy of a valued similar kernel where that is legal for the task, else from
the analytic schedule, and refines by the move that the memory values most. It needs no model.
"""

from __future__ import annotations

import json
import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain

from attrs import evolve, field, frozen
from cattrs.errors import BaseValidationError

from evokernel_core.ascendc.author import (
    adapt,
    estimate_us,
    initial,
    lines_of_kernels,
    moves,
    require_legal,
    write,
)
from evokernel_core.ascendc.features import schedule_features
from evokernel_core.ascendc.fusion.program import is_cut_alike
from evokernel_core.ascendc.kernels.family import Move
from evokernel_core.domain.errors import PlanError, ProposalsExhausted, StrategyError
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.memory.experiences import make_experience
from evokernel_core.synthesis.lessons import bottleneck_pipe
from evokernel_core.synthesis.proposers.base import Candidate, Context, Priced, Proposal
from evokernel_core.synthesis.residual import UNTAUGHT, Expected, Residual
from evokernel_core.synthesis.sequences import ANALYTIC, THEN, steps_of
from evokernel_core.twin.build import KERNEL_SOURCE
from evokernel_core.twin.chip import Chip

log = logging.getLogger(__name__)

_DOUBT = 1.1
"""A schedule of another task that looks this much slower than the analytic one is tried after it."""


_PROMISE = 0.99
"""The share of the start's estimate below which a move is tried before those that memory values."""
_DOUBT_OF_CUTS = 0.85
"""Programs cut otherwise may take this part of what their estimates say: estimates of kernels that share a
launch are that far from verdicts, those of one kernel's schedules hardly are."""


_KNOWN = 12
"""Verdicts on schedules of a family from which they speak for another first draft."""


@frozen
class _Option:
    """A kernel that could be proposed, and the memory item that stands for the idea. ``share``: what it may
    take by its estimate and what is known of estimates, as a share of the kernel to start from. ``matters``:
    the time of the kernel that it changes, as a share of that of the slowest one in the program."""

    item: Experience
    source: KernelSource
    priced: Priced
    share: float = 1.0
    matters: float = 1.0


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
    """Writes kernels for one chip from plans and schedules."""

    chip: Chip
    name: str = field(default="schedule", init=False)

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        """The first untried of: schedules of retrieved kernels of this family that promise as much as
        the analytic one, the analytic one, other retrieved ones, and those one move away from it. Schedules
        that people turned down, or that rules forbid, come last. With cells to keep away from, drafts of
        others come first, those that differ in most axes before the rest.

        Raises ProposalsExhausted when all were tried or no family covers the task.
        """
        drafts = self._drafts(task, context)
        for draft in _elsewhere_first(drafts, context) if context.away_from else drafts:
            source = write(task, draft.strategy, self.chip)
            if source.source_id not in context.tried:
                return Proposal(source, (draft.item.id,), learned=(draft.item,), priced=draft.priced)
        raise ProposalsExhausted("Every schedule to start from was tried.")

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        """The open move that promises most by its estimate; where none promises anything, one of the kernel
        that takes most of the time, the first in the order of the context's experiences.

        Raises ProposalsExhausted when every legal move from this start point was tried.
        """
        place = {item.id: place for place, item in enumerate(context.experiences)}
        options = self._moves(task, context)
        if not options:
            raise ProposalsExhausted("Every legal move from this start point was tried.")
        chosen = min(
            options,
            key=lambda option: (
                _is_forbidden(option.priced, context),
                min(option.share, _PROMISE),
                _halvings(option.matters / max(option.share, 1.0)),
                place.get(option.item.id, len(place)),
            ),
        )
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
            analytic = initial(task, self.chip)
        except PlanError as error:
            raise ProposalsExhausted(error.sentence) from error
        if sum(item.family == analytic.family for item in context.residual.records) < _KNOWN:
            context = evolve(context, residual=UNTAUGHT)
        first = self._draft(task, _practice(ANALYTIC, analytic), analytic, context)
        carried = [self._draft(task, item, found, context) for item, found in self._carried(task, context)]
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
        for move in moves(task, analytic, self.chip):
            item = _practice(f"{ANALYTIC}, then {move.name}", move.strategy)
            yield self._draft(task, item, evolve(move.strategy, move=""), context)

    def _draft(self, task: KernelTask, item: Experience, strategy: Strategy, context: Context) -> _Draft:
        priced = _priced(task, strategy, self.chip)
        expected = context.residual.of([dict(priced.features)], task.task_id)[0]
        return _Draft(item, strategy, priced, expected, expected.factor * priced.estimate_us)

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
        single = _steps(ById(task), start.source.strategy, self.chip)
        known = {step.source.source_id for step in single}
        sequences = [
            (item, step)
            for item, step in self._sequences(task, start.source.strategy, context)
            if step.source.source_id not in known
        ]
        found = [*((practice(step.move, start), step) for step in single), *sequences]
        shares = _shares(task, [step for _, step in found], start.latency_us, context.residual)
        times = _times(ById(task), start, self.chip)
        return tuple(
            _Option(item, step.source, step.priced, share, _matters(step.move, times))
            for (item, step), share in zip(found, shares, strict=True)
            if step.source.source_id not in context.tried
        )

    def _sequences(
        self, task: KernelTask, strategy: Strategy, context: Context
    ) -> Iterator[tuple[Experience, _Step]]:
        """What steps in a row that paid elsewhere make of a strategy, where each of them can be made."""
        for item in context.experiences:
            names = steps_of(item)
            step = _in_a_row(ById(task), strategy, names, self.chip) if names else None
            if step is not None:
                yield item, step


@lru_cache(maxsize=8)
def _times(key: ById, start: Candidate, chip: Chip) -> tuple[float, ...]:
    """The microseconds of each kernel of a program on its busiest pipe, as far as the verdict tells of lines;
    empty where it tells nothing of kernels."""
    latency = start.verdict.latency
    if latency is None or not latency.lines:
        return ()
    try:
        spans = lines_of_kernels(key.task, start.source, chip)
    except (PlanError, StrategyError):  # another's kernel
        return ()
    busy: defaultdict[tuple[int, str], float] = defaultdict(float)
    for item in latency.lines:
        for kernel, lines in enumerate(spans):
            if item.file == KERNEL_SOURCE and item.line in lines:
                busy[kernel, item.pipe] += item.us
    return tuple(
        max((us for (owner, _), us in busy.items() if owner == kernel), default=0.0)
        for kernel in range(len(spans))
    )


def _matters(move: Move, times: Sequence[float]) -> float:
    """What the kernel takes that a move changes, as a share of what the slowest does; 1 where the move
    changes all of the program, or nothing is known."""
    slowest = max(times, default=0.0)
    return 1.0 if move.kernel is None or not slowest else times[move.kernel] / slowest


def _halvings(share: float) -> float:
    """How often 1 is to be halved to come to a share, in whole numbers: memory decides among those alike."""
    return math.floor(-math.log2(share)) if share else math.inf


def _shares(task: KernelTask, steps: Sequence[_Step], start_us: float, residual: Residual) -> list[float]:
    """What steps may take as shares of their start: by estimates alone, or by what verdicts on this chip say
    of estimates."""
    if not residual.is_known or not math.isfinite(start_us):
        return [step.share for step in steps]
    expected = residual.of([dict(step.priced.features) for step in steps], task.task_id)
    return [
        step.doubt * found.factor * step.priced.estimate_us / start_us
        for step, found in zip(steps, expected, strict=True)
    ]


def _priced(task: KernelTask, strategy: Strategy, chip: Chip) -> Priced:
    us = estimate_us(task, strategy, chip)
    return Priced(strategy.family, us, tuple(sorted(schedule_features(task, strategy, us).items())))


def _practice(words: str, strategy: Strategy) -> Experience:
    body = f"Start a {strategy.family} kernel: {words}."
    return make_experience(ExperienceKind.PRACTICE, f"{words} for {strategy.family}", body)


def _elsewhere_first(drafts: Iterable[_Draft], context: Context) -> list[_Draft]:
    """Drafts in the order of how much their cells differ from those to keep away from, the unwanted ones at
    the end."""

    def rank(draft: _Draft) -> tuple[bool, int]:
        return _is_unwanted(draft, context), -draft.strategy.descriptor.apart(context.away_from)

    return sorted(drafts, key=rank)


def _is_unwanted(draft: _Draft, context: Context) -> bool:
    """Whether people turned a schedule down, or a rule forbids it."""
    return _is_one_of(draft.strategy, context.unwanted) or _is_forbidden(draft.priced, context)


def _is_one_of(strategy: Strategy, others: tuple[Strategy, ...]) -> bool:
    return any((item.family, item.settings) == (strategy.family, strategy.settings) for item in others)


def _is_forbidden(priced: Priced, context: Context) -> bool:
    """Whether schedules like this one fail, as far as is known."""
    features = dict(priced.features)
    return any(item.forbids(priced.family, features) for item in context.preconditions)


@frozen
class _Step:
    """A move with the kernel that it gives, and what that may take as a share of the kernel before it.
    ``doubt`` is what of its estimate a kernel may take."""

    move: Move
    source: KernelSource
    priced: Priced
    doubt: float
    share: float


@lru_cache(maxsize=8)
def _steps(key: ById, strategy: Strategy, chip: Chip) -> tuple[_Step, ...]:
    """The steps from a strategy, one for each kernel: asked for twice in each attempt."""
    task, found = key.task, dict[str, _Step]()
    now = _estimate_us(task, strategy, chip)
    for move in _legal_moves(task, strategy, chip):
        step = _step(task, strategy, move, now, chip)
        found.setdefault(step.source.source_id, step)
    return tuple(found.values())


@lru_cache(maxsize=64)
def _in_a_row(key: ById, strategy: Strategy, names: tuple[str, ...], chip: Chip) -> _Step | None:
    """Moves of these names one after the other; None where one of them cannot be made."""
    task, last, before = key.task, None, strategy
    for name in names:
        last = next((move for move in _legal_moves(task, before, chip) if move.name == name), None)
        if last is None:
            return None
        before = last.strategy
    if last is None:
        return None
    whole = evolve(last, name=THEN.join(names))
    return _step(task, strategy, whole, _estimate_us(task, strategy, chip), chip)


def _step(task: KernelTask, strategy: Strategy, move: Move, now_us: float, chip: Chip) -> _Step:
    source = write(task, evolve(move.strategy, move=move.name), chip)
    priced = _priced(task, move.strategy, chip)
    doubt = 1.0 if is_cut_alike(strategy, move.strategy) else _DOUBT_OF_CUTS
    return _Step(move, source, priced, doubt, doubt * priced.estimate_us / now_us)


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
        raise ProposalsExhausted(error.sentence) from error


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
