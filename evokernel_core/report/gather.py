"""Reads what the report shows from the memory, by its public parts alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from evokernel_core import __version__
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.outcome import Objection, Outcome, OutcomeKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.hardware.devices import load_device
from evokernel_core.memory.store import Memory
from evokernel_core.report.figures import (
    Agreement,
    Belief,
    Evidence,
    Item,
    Point,
    Reaction,
    Report,
    TaskFigures,
    Try,
)
from evokernel_core.synthesis.history import Payment, Tried, tried, verifiers_payments

MOST_BELIEFS = 4000
"""Points of the figure of beliefs, the latest; correlations are of all."""
LEAST_PAIRS = 8
"""Kernels of which a correlation says anything."""
MOST_ITEMS = 25
_TOLD = (
    OutcomeKind.ACCEPTED, OutcomeKind.PARTIALLY_ACCEPTED, OutcomeKind.SURVIVED, OutcomeKind.REVERTED,
    OutcomeKind.REJECTED,
)  # fmt: skip
Judge = tuple[str, str]
"""A verifier and a chip."""


@frozen
class _Work:
    """The attempts on a task."""

    task: KernelTask
    known: tuple[Tried, ...]


def gather(memory: Memory) -> Report:
    """Everything that the page shows of a memory."""
    works = [_Work(task, tried(memory, task.task_id)) for task in memory.tasks()]
    sources = _sources(works)
    outcomes = memory.outcomes()
    beliefs = tuple(_beliefs(works, verifiers_payments(memory)))
    pairs = [(work, list(_by_evidence(work, sources))) for work in works]
    last = {outcome.task_id: outcome.kind.value for outcome in outcomes if outcome.kind in _TOLD}
    asked = _asked(memory)
    kernels = (
        evolve(
            _kernel(work.task, evidence, items, last.get(work.task.task_id, "")),
            where=asked.get(work.task.task_id, ""),
        )
        for work, groups in pairs
        for evidence, items in groups
    )
    tries: dict[str, dict[str, tuple[Try, ...]]] = {}
    for work, groups in pairs:
        for evidence, items in groups:
            if evidence is not None:
                tries.setdefault(str(evidence), {})[work.task.task_id] = tuple(_tries(items))
    return Report(
        version=__version__,
        kernels=tuple(sorted(kernels, key=lambda kernel: -(kernel.gain or 0.0))),
        tries=tries,
        curves={words: tuple(_curve(list(by_task.values()))) for words, by_task in tries.items()},
        beliefs=beliefs[-MOST_BELIEFS:],
        agreements=tuple(_agreements(beliefs)),
        reactions=tuple(_reactions(outcomes, {work.task.task_id: work.task for work in works})),
        objections=_objections(outcomes),
        items=tuple(_items(memory)),
        counts=tuple(memory.counts().items()),
    )


def _sources(works: Iterable[_Work]) -> Mapping[Judge, LatencySource]:
    """Which source a verifier's latencies are of: a kernel that failed has none that says so."""
    return {
        (attempt.attempt.verifier, attempt.attempt.chip): attempt.verdict.latency.source
        for work in works
        for attempt in work.known
        if attempt.verdict and attempt.verdict.latency
    }


def _by_evidence(
    work: _Work, sources: Mapping[Judge, LatencySource]
) -> Iterator[tuple[Evidence | None, list[Tried]]]:
    """A task's attempts by evidence; those of verifiers that never gave a latency by themselves."""
    groups: dict[Evidence | None, list[Tried]] = {}
    for attempt in work.known:
        source = sources.get((attempt.attempt.verifier, attempt.attempt.chip))
        groups.setdefault(Evidence(source, attempt.attempt.chip) if source else None, []).append(attempt)
    yield from groups.items()


def result_of(tried: Tried) -> str:
    """``verified``, ``timed_only``, ``failed``, or ``none`` for an attempt without a kernel."""
    if tried.verdict is None:
        return "none"
    if tried.verdict.feasible:
        return "verified"
    return "timed_only" if tried.verdict.is_slower else "failed"


def _kernel(task: KernelTask, evidence: Evidence | None, items: Sequence[Tried], person: str) -> TaskFigures:
    distinct = {item.attempt.source_id: item for item in items if item.attempt.source_id}.values()
    results = Counter(map(result_of, distinct))
    verified = [(item.latency, item.attempt.verifier) for item in items if item.latency]
    best, verifier = min(
        ((latency, name) for latency, name in verified if latency),
        key=lambda pair: pair[0].us,
        default=(None, ""),
    )
    first = verified[0][0] if verified else None
    return TaskFigures(
        task=task.task_id,
        name=task.name,
        category=task.op_category,
        evidence=evidence,
        tried=len(distinct),
        verified=results["verified"],
        timed_only=results["timed_only"],
        failed=results["failed"],
        first_us=first.us if first else None,
        best_us=best.us if best else None,
        eager_us=best.baseline_us if best else None,
        bound_us=_bound_us(best) if best else None,
        verifier=verifier,
        person=person,
        shape=task.largest_input,
    )


def _asked(memory: Memory) -> Mapping[str, str]:
    """The function and line of the code for which each task's kernels were last asked, by the task's id."""
    regions = ((job.task_id, json.loads(job.region)) for job in memory.jobs())
    return {task_id: f"{region['symbol']}:{region['span']['line']}" for task_id, region in regions}


def _bound_us(latency: Latency) -> float:
    """The roofline limit with a launch, which each kernel has; at most what the kernel takes, since what a
    launch takes is assumed of some devices."""
    try:
        launch = load_device(latency.chip).launch_us
    except UsageError:  # a chip of its own that this machine has no file of
        launch = 0.0
    return min(latency.us, latency.roofline_us + launch)


def _tries(items: Iterable[Tried]) -> Iterator[Try]:
    best: float | None = None
    for n, item in enumerate(items, 1):
        latency = item.verdict.latency if item.verdict else None
        result = result_of(item)
        if result == "verified" and latency:
            best = min(best or latency.us, latency.us)
        strategy = item.source.strategy if item.source else None
        what = f"{strategy.family}: {strategy.move or 'draft'}" if strategy else "no kernel"
        us = latency.us if latency and result in ("verified", "timed_only") else None
        yield Try(n, item.attempt.stage.value, result, us, best, what)


def _curve(tasks: Sequence[Sequence[Try]]) -> Iterator[Point]:
    """Of all tasks with a verified kernel, each from its first one on; a search that has ended keeps what it
    found, so that every point is of the same tasks."""
    runs = []
    for tries in tasks:
        bests = [attempt.best_us for attempt in tries if attempt.best_us is not None]
        if bests:
            runs.append([bests[0] / us for us in bests])
    if not runs:
        return
    length = max(map(len, runs))
    rows = [[*run, *[run[-1]] * (length - len(run))] for run in runs]
    for n, (mean, low, high) in enumerate(zip(*geometric_mean(rows), strict=True)):
        yield Point(n, float(mean), float(low), float(high), sum(len(run) > n for run in runs))


def _beliefs(works: Iterable[_Work], paid: Mapping[str, Sequence[Payment]]) -> Iterator[Belief]:
    """In the order of time."""
    names = {work.task.task_id: work.task for work in works}
    known = (item for task_id, items in paid.items() if task_id in names for item in items)
    for entry in sorted(known, key=lambda entry: entry.event.at):
        task, event = names[entry.event.task_id], entry.event
        if entry.believed is not None:
            yield Belief(
                event.stage.value, task.op_category, task.name, entry.believed, event.raw, entry.paid
            )


def _agreements(beliefs: Iterable[Belief]) -> Iterator[Agreement]:
    def stage(belief: Belief) -> str:
        return belief.stage

    for name, items in groupby(sorted(beliefs, key=stage), stage):
        pairs = [(item.believed, item.raw) for item in items]
        believed, raw = zip(*pairs, strict=True)
        if len(pairs) < LEAST_PAIRS:
            continue
        varies = len(set(believed)) > 1 and len(set(raw)) > 1
        yield Agreement(name, len(pairs), *(rank_correlation(believed, raw) if varies else ()))


def _reactions(outcomes: Iterable[Outcome], tasks: Mapping[str, KernelTask]) -> Iterator[Reaction]:
    """Reactions to kernels of tasks that were forgotten are of the category ``forgotten``."""
    counts = Counter(
        (tasks[outcome.task_id].op_category if outcome.task_id in tasks else "forgotten", outcome.kind)
        for outcome in outcomes
        if outcome.kind in _TOLD
    )
    for (category, kind), count in sorted(counts.items(), key=lambda pair: pair[0]):
        yield Reaction(category, kind.value, count)


def _objections(outcomes: Iterable[Outcome]) -> tuple[tuple[str, int], ...]:
    """How often each reason was given; people's own words stay with them."""
    known = {objection.value for objection in Objection}
    given = (outcome.detail for outcome in outcomes if outcome.kind is OutcomeKind.REJECTED)
    reasons = Counter(why if why in known else "in their own words" if why else "none given" for why in given)
    return tuple(reasons.most_common())


def _items(memory: Memory) -> Iterator[Item]:
    """The items of most value; start points are kernels and are shown as such."""
    for value in memory.values(limit=MOST_ITEMS):
        experience = memory.experience(value.item)
        title = experience.title if experience else value.item.replace("start:", "kernel ")[:24]
        yield Item(value.q, value.n, value.stage.value, value.op_category, title)


RESAMPLES = 1000
_SEED = 20260310
Numbers = npt.NDArray[np.float64]


def geometric_mean(rows: Sequence[Sequence[float]]) -> tuple[Numbers, Numbers, Numbers]:
    """Of each column of positive numbers, over the rows: the mean and its 95 % interval. One row says nothing
    of an interval: then its ends are the mean."""
    logs = np.log(np.asarray(rows, dtype=np.float64))
    low, high = _interval(len(logs), lambda picks: logs[picks].mean(axis=0))
    return np.exp(logs.mean(axis=0)), np.exp(low), np.exp(high)


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> tuple[float, float, float]:
    """Spearman's, and its 95 % interval, for sides that vary; a sample of which one does not counts as 0."""
    one, other = _ranks(left), _ranks(right)
    low, high = _interval(len(one), lambda picks: _correlation(one[picks], other[picks]))
    return _correlation(one, other), float(low), float(high)


def _interval(
    size: int, statistic: Callable[[npt.NDArray[np.int64]], Numbers | float]
) -> tuple[Numbers, Numbers]:
    """The 2.5th and 97.5th percentile of a statistic of samples, each as many places as there are."""
    rng = np.random.default_rng(_SEED)
    result = np.array([statistic(rng.integers(0, size, size)) for _ in range(RESAMPLES)])
    return np.percentile(result, 2.5, axis=0), np.percentile(result, 97.5, axis=0)


def _ranks(numbers: Sequence[float]) -> Numbers:
    """From 0; equal numbers share the mean of their ranks."""
    _, places, counts = np.unique(np.asarray(numbers), return_inverse=True, return_counts=True)
    last = np.cumsum(counts) - 1
    ranks: Numbers = (last - (counts - 1) / 2)[places]
    return ranks


def _correlation(left: Numbers, right: Numbers) -> float:
    """Pearson's."""
    one, other = left - left.mean(), right - right.mean()
    scale = np.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / scale) if scale else 0.0
