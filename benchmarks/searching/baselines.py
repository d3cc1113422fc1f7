"""Searches that need no memory, over the same schedules and steps: what a learned one has to beat."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice

from attrs import define, evolve, field, frozen

from evokernel_core.domain.errors import ProposalsExhausted
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.synthesis.proposers import moves
from evokernel_core.synthesis.proposers.base import Context, Priced, Proposal
from evokernel_core.synthesis.residual import MOST, Residual, learned
from evokernel_core.targets.ascendc.target import ascendc

Timed = Callable[[str, str], float | None]
"""Microseconds of a kernel (task_id, source_id) that this search had timed, None for one that failed."""

EXPANDED = 12
"""Schedules one move from the draft, the best by their estimates, whose own moves are ranked too."""
PARENTS, CHILDREN, MUTATIONS, EXPLORED = 8, 32, 2, 0.1
"""Of the evolutionary search: the fastest that have children, how many a generation has, steps at most from
parent to child, and how often a child is taken by chance."""


@frozen
class Schedule:
    """One schedule with its text and its estimate; ``step`` is the first move that led to it."""

    strategy: Strategy
    source: KernelSource
    priced: Priced
    step: str = ""


@define
class Space:
    """The schedules of one task, as the schedule proposer sees them."""

    task: KernelTask
    chip: Chip

    def draft(self) -> Schedule:
        author = ascendc(self.chip)
        planned = author.plan(self.task)
        priced = moves.priced(self.task, planned.strategy, author)
        return Schedule(planned.strategy, planned.write(), priced)

    def near(self, of: Schedule) -> list[Schedule]:
        """Those one move away."""
        steps = moves.steps(ById(self.task), evolve(of.strategy, move="", notes=()), ascendc(self.chip))
        return [
            Schedule(step.move.strategy, step.source, step.priced, of.step or step.move.name)
            for step in steps
        ]

    def ranked(self) -> list[Schedule]:
        """Those up to two moves from the draft, by their estimates; ties by the moves' order."""
        draft = self.draft()
        first = sorted(self.near(draft), key=_estimate)
        second = [item for near in first[:EXPANDED] for item in self.near(near)]
        found: dict[str, Schedule] = {}
        for item in (draft, *first, *second):
            found.setdefault(item.source.source_id, item)
        return sorted(found.values(), key=_estimate)


def _estimate(item: Schedule) -> float:
    return item.priced.estimate_us


@define
class Baseline(ABC):
    """Proposes the next of its own order, whatever the engine would start from."""

    chip: Chip
    rng: random.Random
    timed: Timed
    name: str = "baseline"
    _orders: dict[str, Iterator[Schedule]] = field(factory=dict)

    @abstractmethod
    def order(self, space: Space) -> Iterator[Schedule]:
        """The schedules of a task, each once."""

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        order = self._orders.setdefault(task.task_id, self.order(Space(task, self.chip)))
        for item in order:
            if item.source.source_id not in context.tried:
                return Proposal(item.source, priced=item.priced)
        raise ProposalsExhausted("Every schedule within reach was tried.")

    refine = draft


class Random(Baseline):
    """A step by chance from a schedule by chance, the draft first."""

    def order(self, space: Space) -> Iterator[Schedule]:
        known = {(draft := space.draft()).source.source_id: draft}
        yield draft
        for _ in range(10_000):
            near = space.near(self.rng.choice(list(known.values())))
            fresh = [item for item in near if item.source.source_id not in known]
            if fresh:
                item = self.rng.choice(fresh)
                known[item.source.source_id] = item
                yield item


class Top(Baseline):
    """By estimates alone."""

    def order(self, space: Space) -> Iterator[Schedule]:
        yield from space.ranked()


class Diverse(Baseline):
    """By estimates, one of each first move in turn."""

    def order(self, space: Space) -> Iterator[Schedule]:
        groups: dict[str, list[Schedule]] = {}
        for item in space.ranked():
            groups.setdefault(item.step, []).append(item)
        for turn in range(max(map(len, groups.values()))):
            yield from (group[turn] for group in groups.values() if turn < len(group))


@define
class Evolution(Baseline):
    """Mutations of the fastest, ranked by a cost model that learns from every verdict, as Ansor's do."""

    _records: list[TuningRecord] = field(factory=list)

    def order(self, space: Space) -> Iterator[Schedule]:
        tried = {(draft := space.draft()).source.source_id: draft}
        yield draft
        for _ in range(10_000):
            parents = self._parents(space.task, tried)
            born = self._children(space, parents or [draft])
            children = [item for item in born if item.source.source_id not in tried]
            if not children:
                continue
            by_chance = self.rng.random() < EXPLORED
            child = self.rng.choice(children) if by_chance else self._best(space.task, tried, children)
            tried[child.source.source_id] = child
            yield child

    def _parents(self, task: KernelTask, tried: dict[str, Schedule]) -> list[Schedule]:
        times = {id: self.timed(task.task_id, id) for id in tried}
        known = sorted((us, id) for id, us in times.items() if us is not None)
        return [tried[id] for _, id in known[:PARENTS]]

    def _children(self, space: Space, parents: list[Schedule]) -> list[Schedule]:
        children = []
        for _ in range(CHILDREN):
            child = self.rng.choice(parents)
            for _ in range(self.rng.randint(1, MUTATIONS)):
                near = space.near(child)
                child = self.rng.choice(near) if near else child
            children.append(child)
        return children

    def _best(self, task: KernelTask, tried: dict[str, Schedule], children: list[Schedule]) -> Schedule:
        model = self._learned(task, tried)
        expected = model.of([dict(item.priced.features) for item in children], task.task_id)
        costs = [
            item.priced.estimate_us * found.factor for item, found in zip(children, expected, strict=True)
        ]
        return children[costs.index(min(costs))]

    def _learned(self, task: KernelTask, tried: dict[str, Schedule]) -> Residual:
        known = {(item.task_id, item.source_id) for item in self._records}
        for id, item in tried.items():
            us = self.timed(task.task_id, id)
            if us is not None and (task.task_id, id) not in known:
                self._records.append(record(task, item, us, self.chip))
        return learned(tuple(islice(reversed(self._records), MOST)))


def record(task: KernelTask, item: Schedule, us: float, chip: Chip) -> TuningRecord:
    """A schedule's estimate beside its modelled latency."""
    priced = item.priced
    return TuningRecord(
        task_id=task.task_id,
        source_id=item.source.source_id,
        chip=chip.name,
        verifier="twin",
        family=priced.family,
        estimate_us=priced.estimate_us,
        latency_us=us,
        features=priced.features,
        source=LatencySource.MODELLED,
    )
