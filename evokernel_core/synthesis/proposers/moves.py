"""The named moves from a schedule, each with the kernel that it gives and what the author says of that."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from attrs import evolve, frozen

from evokernel_core.domain.errors import PlanError, ProposalsExhausted, StrategyError
from evokernel_core.domain.kernel import KernelSource, Strategy, after
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.synthesis.proposers.base import Priced
from evokernel_core.synthesis.sequences import ANALYTIC
from evokernel_core.targets.ascendc.author import estimate_us, initial, moves, require_legal, write
from evokernel_core.targets.ascendc.features import schedule_features
from evokernel_core.targets.ascendc.fusion.program import is_cut_alike
from evokernel_core.targets.ascendc.kernels.family import Move

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
def steps(key: ById, strategy: Strategy, chip: Chip) -> tuple[PricedMove, ...]:
    """The steps from a strategy, one for each kernel: asked for twice in each attempt."""
    task, planned = key.task, dict[str, PricedMove]()
    for move in legal_moves(task, strategy, chip):
        step = _step(task, strategy, move, chip)
        planned.setdefault(step.source.source_id, step)
    return tuple(planned.values())


@lru_cache(maxsize=64)
def in_a_row(key: ById, strategy: Strategy, names: tuple[str, ...], chip: Chip) -> PricedMove | None:
    """Moves of these names one after the other; None where one of them cannot be made."""
    task, last, before = key.task, None, strategy
    made: Sentence | None = None
    for name in names:
        last = next((move for move in legal_moves(task, before, chip) if move.name == name), None)
        if last is None:
            return None
        before = last.strategy
        made = after(made, Sentence(last.name)) if made else Sentence(last.name)
    if last is None or made is None:
        return None
    whole = evolve(last, name=made, kernel=None)
    return _step(task, strategy, whole, chip)


def _step(task: KernelTask, strategy: Strategy, move: Move, chip: Chip) -> PricedMove:
    source = write(task, evolve(move.strategy, move=move.name), chip)
    doubt = 1.0 if is_cut_alike(strategy, move.strategy) else _DOUBT_OF_CUTS
    return PricedMove(move, source, priced(task, move.strategy, chip), doubt)


def estimated_us(task: KernelTask, strategy: Strategy, chip: Chip) -> float:
    """Of a kernel that is none of this author's schedules, there is none: endless."""
    try:
        require_legal(task, strategy, chip)
        return estimate_us(task, strategy, chip)
    except (PlanError, StrategyError):
        return math.inf


def legal_moves(task: KernelTask, strategy: Strategy, chip: Chip) -> Iterator[Move]:
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


def priced(task: KernelTask, strategy: Strategy, chip: Chip) -> Priced:
    """What is said of a strategy. Raises PlanError where the task cannot be planned."""
    us = estimate_us(task, strategy, chip)
    return Priced(strategy.family, us, tuple(sorted(schedule_features(task, strategy, us).items())))
