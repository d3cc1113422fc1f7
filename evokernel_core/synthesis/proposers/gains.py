"""How much faster a step may make a kernel, by estimates, by what was seen and by what is left open."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

from attrs import frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.family import Move
from evokernel_core.compiler.features import schedule_features
from evokernel_core.compiler.fusion.program import is_cut_alike, parted
from evokernel_core.compiler.fusion.records import PROGRAM
from evokernel_core.domain.errors import PlanError, StrategyError
from evokernel_core.domain.experience import Experience
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.moves import PricedMove, estimated_us
from evokernel_core.synthesis.step_model import step_features
from evokernel_core.targets.sources import MAIN_FILES

_SEEN = 100.0
"""What a step gave on the same task weighs as much as this many estimates of it (ours: it is off by less than
a percent from another start, estimates by 5 to 10)."""
_VALUED = 0.5
"""What the first of the experiences is worth more than one that is none, in what estimates leave open."""
_FAILURE = 0.5
"""The most that a step may have lost, as a logarithm, which is what a failed one did."""


def gains(
    task: KernelTask,
    start: Candidate,
    steps: Sequence[tuple[Experience, PricedMove]],
    context: Context,
    author: KernelAuthor,
) -> list[tuple[float, float]]:
    """Of each step the gain on average, and the one that is expected: what estimates say, as far as they are
    believed, or what the same step gave elsewhere on this task. What is left open is a share of the time of
    the kernel that a step changes. Kernels of which much was tried wait for others, as arms do that are
    bounded by Auer et al., "Finite-time Analysis of the Multiarmed Bandit Problem"."""
    order = context.order
    promise = Promise(1.0, order.spread) if order else promise_of(context.residual.records, task.task_id)
    times, given = _times(ById(task), start, author), _given(context.candidates)
    tries: Counter[int | None] = Counter()
    for (_, kernel), gains in given.items():
        tries[kernel] += len(gains)
    place = {experience.id: place for place, experience in enumerate(context.experiences, 1)}
    said = _said(task, start, [step for _, step in steps], context, author)

    def gain(experience: Experience, step: PricedMove, estimated: float) -> tuple[float, float]:
        known = given.get((step.move.name, step.move.kernel), [])
        weight = 1 + _SEEN * len(known)
        left_open = math.hypot(promise.spread, math.log(step.doubt)) / math.sqrt(weight)
        valued = _VALUED * promise.spread / place.get(experience.id, math.inf)
        told = promise.slope * estimated if math.isfinite(estimated) else estimated
        mean = (told + valued + _SEEN * math.fsum(known)) / weight
        on_average = expected_gain(mean, left_open * _matters(step.move, times))
        return on_average / math.sqrt(1 + tries[step.move.kernel]), mean

    return [gain(experience, step, one) for (experience, step), one in zip(steps, said, strict=True)]


def _given(candidates: Sequence[Candidate]) -> dict[tuple[str, int | None], list[float]]:
    """By the name of a step and the kernel that it changes: the logarithms of how much faster it made what it
    started from."""
    known = {candidate.source.source_id: candidate for candidate in candidates}
    ratios: defaultdict[tuple[str, int | None], list[float]] = defaultdict(list)
    for child in candidates:
        parent = known.get(child.parent)
        if parent is None or not child.source.strategy.move:
            continue
        now, before = child.verdict.latency, parent.verdict.latency
        gain = math.log(before.us / now.us) if now and before else -math.inf
        changed = _changed(parent.source.strategy, child.source.strategy)
        ratios[child.source.strategy.move, changed].append(max(gain, -_FAILURE))
    return ratios


def _changed(start: Strategy, child: Strategy) -> int | None:
    """The first kernel of a program in which two strategies differ; None where they are cut otherwise, or are
    of one kernel."""
    if start.family != PROGRAM or child.family != PROGRAM or not is_cut_alike(start, child):
        return None
    pairs = enumerate(zip(parted(start), parted(child), strict=True))
    return next((kernel for kernel, (one, other) in pairs if one.settings != other.settings), None)


def _said(
    task: KernelTask, start: Candidate, steps: Sequence[PricedMove], context: Context, author: KernelAuthor
) -> list[float]:
    """The logarithm of how much faster steps are than their start, by a step model where one is asked, else
    by their estimates and what verdicts on this chip say of those; endless from a start that has no
    estimate."""
    strategy = start.source.strategy
    now_us = estimated_us(task, strategy, author)
    if not math.isfinite(now_us):
        return [math.inf for _ in steps]
    before, after = schedule_features(task, strategy, now_us), [dict(step.priced.features) for step in steps]
    if context.order is not None:
        names = (str(step.move.name) for step in steps)
        pairs = zip(names, after, strict=True)
        return context.order.gains(
            [step_features(task.op_category, name, before, row) for name, row in pairs]
        )
    now, *gains = (expected.mean for expected in context.residual.of([before, *after], task.task_id))
    return [
        math.log(now_us / step.priced.estimate_us) + now - mean
        for step, mean in zip(steps, gains, strict=True)
    ]


@lru_cache(maxsize=8)
def _times(key: ById, start: Candidate, author: KernelAuthor) -> tuple[float, ...]:
    """The microseconds of each kernel of a program on its busiest pipe, as far as the verdict tells of lines;
    empty where it tells nothing of kernels."""
    latency = start.verdict.latency
    if latency is None or not latency.lines:
        return ()
    try:
        spans = author.lines_of_kernels(key.task, start.source)
    except (PlanError, StrategyError):  # another's kernel
        return ()
    busy: defaultdict[tuple[int, str], float] = defaultdict(float)
    for line in latency.lines:
        for kernel, lines in enumerate(spans):
            if line.file in MAIN_FILES and line.line in lines:
                busy[kernel, line.pipe] += line.us
    return tuple(
        max((us for (owner, _), us in busy.items() if owner == kernel), default=0.0)
        for kernel in range(len(spans))
    )


def _matters(move: Move, times: Sequence[float]) -> float:
    """What the kernel takes that a move changes, as a share of what the slowest does; 1 where the move
    changes all of the program, or nothing is known."""
    slowest = max(times, default=0.0)
    return 1.0 if move.kernel is None or not slowest else times[move.kernel] / slowest


_SPREAD = 0.05
"""What estimates leave open where nothing is known (ours; on KernelBench it was 0.075 beside the twin, most
of it by a few schedules, and the median 0.013)."""
_SAID, _VERDICTS = 0.05, 8.0
"""What is known before weighs as much as promises with this sum of squares, and as this many verdicts:
promises of 20 % on one task that gain nothing come to halve what is believed there."""
_NORMAL = NormalDist()


@frozen
class Promise:
    """Of a step that is said to take ``exp(x)`` of its start's time, ``exp(slope * x)`` is to be expected;
    ``spread`` is the standard deviation of the logarithm around it."""

    slope: float = 1.0
    spread: float = _SPREAD

    def learned(self, pairs: Sequence[tuple[float, float]], tasks: int = 1) -> Promise:
        """What to believe after ``pairs`` of logarithms (estimate, verdict) beside their tasks' means."""
        squares = math.fsum(said * said for said, _ in pairs)
        products = math.fsum(said * came for said, came in pairs)
        slope = (_SAID * self.slope + products) / (_SAID + squares)
        slope = min(max(slope, 0.0), 1.0)
        apart = math.fsum((came - slope * said) ** 2 for said, came in pairs)
        known = _VERDICTS + max(len(pairs) - tasks, 0)
        return Promise(slope, math.sqrt((_VERDICTS * self.spread**2 + apart) / known))


def expected_gain(mean: float, deviation: float) -> float:
    """What is gained on average where a loss counts as nothing: the expected improvement of Jones et al.,
    "Efficient Global Optimization of Expensive Black-Box Functions", equation 15."""
    if deviation <= 0.0 or not math.isfinite(mean):
        return max(mean, 0.0)
    z = mean / deviation
    return mean * _NORMAL.cdf(z) + deviation * _NORMAL.pdf(z)


def promise_of(records: Sequence[TuningRecord], task_id: str) -> Promise:
    """What records of one chip, none of them a failure, say of the next step on a task."""
    logs: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in records:
        said = math.log(record.estimate_us)
        logs[record.task_id].append((said, said + record.residual))
    centred = {id: _centred(pairs) for id, pairs in logs.items()}
    own = centred.pop(task_id, [])
    others = [pair for pairs in centred.values() for pair in pairs]
    return Promise().learned(others, len(centred)).learned(own)


def _centred(pairs: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    said, came = (math.fsum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return [(one - said, other - came) for one, other in pairs]
