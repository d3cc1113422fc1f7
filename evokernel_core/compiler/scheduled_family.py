"""What families of any target share whose schedules describe themselves: strategies, and named moves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from attrs import Factory, evolve, field, frozen

from evokernel_core.compiler.family import Move
from evokernel_core.compiler.schedule import Schedule
from evokernel_core.domain.descriptor import Descriptor, Overlap
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

P = TypeVar("P", bound=Hashable)
"""What a task asks for, in the family's own words."""
S = TypeVar("S", bound=Schedule)
Sizes = Mapping[str, int]
"""Of the symbols, in the user's file."""


def of_fields(problem: object, schedule: S, sizes: Sizes, device: object) -> Iterable[tuple[str, S]]:
    """The named changes that a schedule's fields declare, and no others."""
    return schedule.neighbours()


@frozen(kw_only=True)
class ScheduledFamily(Generic[P, S]):
    """A Family (see there) made of what is its own. Schedules are hashable and equal where texts are.

    ``read``: what a task asks for, on a device; raises PlanError where the family does not cover it.
    ``starts``: the schedules to choose the first one from, legal or not.
    ``steps``: the named changes of a schedule, legal or not; of two names for one change the first counts.
    ``refusal``: why a schedule whose fields are in their ranges breaks a rule; None where it is legal.
    ``cost_us``: modelled microseconds of a legal schedule, its launches included.
    ``schedule_of``: a schedule from a strategy, as ``Schedule.of`` reads it.
    ``notes``: a schedule in words; fields stand in them by their words.
    ``cell``: its archive cell; where that leaves the overlap open, the schedule's fields say it.
    ``too_large``: why a task is refused that has no legal start.
    ``ranks``: whether moves come in the order of their cost.
    """

    name: str
    ops: Mapping[str, str] = field(eq=False)
    read: Callable[[KernelTask, Any], P]
    schedule_of: Callable[[Strategy], S]
    starts: Callable[[P, Sizes, Any], Iterable[S]]
    steps: Callable[[P, S, Sizes, Any], Iterable[tuple[str, S]]] = of_fields
    notes: Callable[[P, S], Iterable[str]]
    cell: Callable[[P, S], Descriptor]
    refusal: Callable[[P, S, Sizes, Any], str | None]
    cost_us: Callable[[P, S, Sizes, Any], float]
    too_large: Sentence
    ranks: bool = False
    strategies: frozenset[str] = Factory(lambda self: frozenset({self.name}), takes_self=True)

    def check(self, task: KernelTask, device: Any) -> None:
        self.read(task, device)

    def strategy_of(self, problem: P, schedule: S, move: str = "") -> Strategy:
        """A schedule in settings and words; ``move`` led to it."""
        cell = self.cell(problem, schedule)
        if cell.overlap is Overlap.UNKNOWN:
            cell = evolve(cell, overlap=schedule.overlap)
        notes = tuple(map(schedule.told, self.notes(problem, schedule)))
        return Strategy(schedule.family or self.name, schedule.settings(), notes, cell, move)

    def initial(self, task: KernelTask, device: Any) -> Strategy:
        problem = self.read(task, device)
        return self.strategy_of(problem, self.best_start(problem, task.sizes, device))

    def best_start(self, problem: P, sizes: Sizes, device: Any) -> S:
        """The legal start of the lowest estimate. Raises PlanError where there is none."""
        best = self.cheapest(problem, sizes, device)
        if best is None:
            raise PlanError(self.too_large)
        return best

    def cheapest(self, problem: P, sizes: Sizes, device: Any) -> S | None:
        """The same, None where there is none."""
        legal = (
            start
            for start in self.starts(problem, sizes, device)
            if self.broken_rule(problem, start, sizes, device) is None
        )
        return min(legal, key=lambda start: self.cost_us(problem, start, sizes, device), default=None)

    def moves(self, task: KernelTask, strategy: Strategy, device: Any) -> tuple[Move, ...]:
        problem, here, sizes = self.read(task, device), self.schedule_of(strategy), task.sizes
        names: dict[S, str] = {}
        for name, schedule in self.steps(problem, here, sizes, device):
            known = schedule == here or schedule in names
            if not known and self.broken_rule(problem, schedule, sizes, device) is None:
                names[schedule] = name
        schedules: Iterable[S] = names
        if self.ranks:
            schedules = sorted(names, key=lambda schedule: self.cost_us(problem, schedule, sizes, device))
        return tuple(
            Move(names[schedule], self.strategy_of(problem, schedule, names[schedule]), self.name)
            for schedule in schedules
        )

    def why_illegal(self, task: KernelTask, strategy: Strategy, device: Any) -> str | None:
        return self.broken_rule(self.read(task, device), self.schedule_of(strategy), task.sizes, device)

    def broken_rule(self, problem: P, schedule: S, sizes: Sizes, device: Any) -> str | None:
        """What its ranges refuse, or else what the family does."""
        return schedule.why_out_of_range() or self.refusal(problem, schedule, sizes, device)

    def adapt(self, task: KernelTask, strategy: Strategy, device: Any) -> Strategy | None:
        if self.why_illegal(task, strategy, device) is not None:
            return None
        return self.strategy_of(self.read(task, device), self.schedule_of(strategy))

    def descriptor(self, task: KernelTask, strategy: Strategy, device: Any) -> Descriptor:
        return self.strategy_of(self.read(task, device), self.schedule_of(strategy)).descriptor

    def estimate_us(self, task: KernelTask, strategy: Strategy, device: Any) -> float:
        return self.cost_us(self.read(task, device), self.schedule_of(strategy), task.sizes, device)
