"""The named moves from a schedule, each with the kernel that it gives and what the author says of that."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from attrs import evolve, frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.family import Move
from evokernel_core.compiler.features import schedule_features
from evokernel_core.compiler.fusion.program import is_cut_alike
from evokernel_core.domain.errors import PlanError, ProposalsExhausted, StrategyError
from evokernel_core.domain.kernel import KernelSource, Strategy, after
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.synthesis.proposers.base import Priced
from evokernel_core.synthesis.sequences import ANALYTIC

_DOUBT_OF_CUTS = 0.85
"""What a program that is cut otherwise may take of what its estimate says: estimates of kernels that share a
launch are that far from verdicts, those of one kernel's schedules hardly are."""


@frozen
class PricedMove:
    """A move with the kernel that it gives. ``doubt`` is what of its estimate that may take."""

    move: Move
    source: KernelSource
    priced: Priced
    doubt: float


@lru_cache(maxsize=8)
def steps(key: ById, strategy: Strategy, author: KernelAuthor) -> tuple[PricedMove, ...]:
    """The steps from a strategy, one for each kernel: asked for twice in each attempt."""
    task, planned = key.task, dict[str, PricedMove]()
    for move in legal_moves(task, strategy, author):
        step = _step(task, strategy, move, author)
        planned.setdefault(step.source.source_id, step)
    return tuple(planned.values())


@lru_cache(maxsize=64)
def in_a_row(
    key: ById, strategy: Strategy, names: tuple[str, ...], author: KernelAuthor
) -> PricedMove | None:
    """Moves of these names one after the other; None where one of them cannot be made."""
    task, last, before = key.task, None, strategy
    made: Sentence | None = None
    for name in names:
        last = next((move for move in legal_moves(task, before, author) if move.name == name), None)
        if last is None:
            return None
        before = last.strategy
        made = after(made, Sentence(last.name)) if made else Sentence(last.name)
    if last is None or made is None:
        return None
    whole = evolve(last, name=made, kernel=None)
    return _step(task, strategy, whole, author)


def _step(task: KernelTask, strategy: Strategy, move: Move, author: KernelAuthor) -> PricedMove:
    source = author.write(task, evolve(move.strategy, move=move.name))
    doubt = 1.0 if is_cut_alike(strategy, move.strategy) else _DOUBT_OF_CUTS
    return PricedMove(move, source, priced(task, move.strategy, author), doubt)


def estimated_us(task: KernelTask, strategy: Strategy, author: KernelAuthor) -> float:
    """Of a kernel that is none of this author's schedules, there is none: endless."""
    try:
        author.require_legal(task, strategy)
        return author.estimate_us(task, strategy)
    except (PlanError, StrategyError):
        return math.inf


def legal_moves(task: KernelTask, strategy: Strategy, author: KernelAuthor) -> Iterator[Move]:
    """Legal next strategies; a kernel that did not begin from the analytic one may turn to it.
    What a language model wrote, or another version of EvoKernel, has no schedule to step from, only
    that turn."""
    try:
        analytic = author.initial(task)
        if strategy.family == analytic.family:
            with suppress(StrategyError):
                author.require_legal(task, strategy)
                yield from author.moves(task, strategy)
        yield Move(ANALYTIC, analytic, analytic.family)
    except PlanError as error:
        raise ProposalsExhausted(error.sentence) from error


def priced(task: KernelTask, strategy: Strategy, author: KernelAuthor) -> Priced:
    """What is said of a strategy. Raises PlanError where the task cannot be planned."""
    us = author.estimate_us(task, strategy)
    return Priced(strategy.family, us, tuple(sorted(schedule_features(task, strategy, us).items())))
