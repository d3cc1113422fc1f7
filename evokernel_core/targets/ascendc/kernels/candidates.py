"""What families share whose schedules describe themselves: the first one, the named moves, and strategies."""

from __future__ import annotations

import math
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
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.built import Sizes, Variant
from evokernel_core.targets.ascendc.kernels.stage import KernelStage

P = TypeVar("P", bound=Hashable)
"""What a task asks for, in the family's own words."""
S = TypeVar("S", bound=Schedule)


def on_any_chip(read: Callable[[KernelTask], P]) -> Callable[[KernelTask, Chip], P]:
    """A ``read`` for which the chip makes no difference."""
    return lambda task, chip: read(task)


def of_fields(problem: object, schedule: S, sizes: Sizes, chip: Chip) -> Iterable[tuple[str, S]]:
    """The named changes that a schedule's fields declare, and no others."""
    return schedule.neighbours()


def _none(problem: object, sizes: Sizes, chip: Chip) -> Iterable[Any]:
    return ()


_TOO_LARGE = Sentence("No tile of the kernel fits the unified buffer.")


@frozen(kw_only=True)
class SearchingFamily(Generic[P, S]):
    """A Family (see there) made of what is its own. Schedules are hashable and equal where texts are.

    ``read``: what a task asks for, on a chip; raises PlanError where the family does not cover it.
    ``starts``: the schedules to choose the first one from, legal or not; ``first`` chooses where it is given.
    ``steps``: the named changes of a schedule, legal or not; of two names for one change the first counts.
    ``refusal``: why a schedule whose fields are in their ranges breaks a rule; None where it is legal.
    ``cost_us``: modelled microseconds of a legal schedule, its launch included.
    ``schedule_of``: a schedule from a strategy, as ``Schedule.of`` reads it.
    ``notes``: a schedule in words; fields stand in them by their words.
    ``cell``: its archive cell; where that leaves the overlap open, the schedule's buffers say it.
    ``text_of``: the kernel of a schedule on a chip, under a name in snake case.
    ``variant``: what refuses, costs and makes a schedule's text, where kernels are built in the IR.
    """

    name: str
    ops: Mapping[str, str] = field(eq=False)
    read: Callable[[KernelTask, Chip], P]
    schedule_of: Callable[[Strategy], S]
    starts: Callable[[P, Sizes, Chip], Iterable[S]] = _none
    first: Callable[[P, Sizes, Chip], S | None] | None = None
    steps: Callable[[P, S, Sizes, Chip], Iterable[tuple[str, S]]] = of_fields
    notes: Callable[[P, S], Iterable[str]]
    cell: Callable[[P, S], Descriptor]
    variant: Variant[P, S] | None = None
    refusal: Callable[[P, S, Sizes, Chip], str | None] = Factory(
        lambda self: self.variant.refusal, takes_self=True
    )
    cost_us: Callable[[P, S, Sizes, Chip], float] = Factory(
        lambda self: self.variant.cost_us, takes_self=True
    )
    text_of: Callable[[P, S, KernelTask, Chip, str], KernelStage] = Factory(
        lambda self: self.variant.text, takes_self=True
    )
    rough: Callable[[P, S, Sizes, Chip], str | None] | None = Factory(
        lambda self: self.variant and self.variant.rough, takes_self=True
    )
    """Part of ``refusal`` that costs little; where it is given, starts that pass it are judged in the order
    of their cost, and no more of them than it takes to find a legal one."""
    broken: Callable[[P, S, Sizes, Chip], str | None] | None = None
    """What else is asked of stored strategies: it takes too long to be asked of every move."""
    ranks: bool = False
    """Whether moves come in the order of their cost."""
    alike: float = 1.0
    """How many times the lowest estimate a start's may be to count as no worse: of such starts the first is
    taken."""
    too_large: Sentence = _TOO_LARGE
    """Why a task is refused that has no legal start."""
    slowest_adapted: float = math.inf
    """How much slower than the best start, by the estimate, another task's schedule may be to be kept."""
    strategies: frozenset[str] = Factory(lambda self: frozenset({self.name}), takes_self=True)

    def check(self, task: KernelTask, chip: Chip) -> None:
        self.read(task, chip)

    def strategy_of(self, problem: P, schedule: S, move: str = "") -> Strategy:
        """A schedule in settings and words; ``move`` led to it."""
        cell = self.cell(problem, schedule)
        if cell.overlap is Overlap.UNKNOWN:
            cell = evolve(cell, overlap=schedule.overlap)
        notes = tuple(map(schedule.told, self.notes(problem, schedule)))
        return Strategy(schedule.family or self.name, schedule.settings(), notes, cell, move)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        problem = self.read(task, chip)
        return self.strategy_of(problem, self._first(problem, task.sizes, chip))

    def _first(self, problem: P, sizes: Sizes, chip: Chip) -> S:
        best = (self.first or self._cheapest)(problem, sizes, chip)
        if best is None:
            raise PlanError(self.too_large)
        return best

    def _cheapest(self, problem: P, sizes: Sizes, chip: Chip) -> S | None:
        asked = self.rough or self.refusal
        costs = {
            start: self.cost_us(problem, start, sizes, chip)
            for start in self.starts(problem, sizes, chip)
            if _why_illegal(asked, problem, start, sizes, chip) is None
        }
        most = self.alike * min(costs.values(), default=0)
        likely = sorted(costs, key=lambda cost: max(costs[cost], most))
        legal = (
            schedule
            for schedule in likely
            if not self.rough or not self.refusal(problem, schedule, sizes, chip)
        )
        return next(legal, None)

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        problem, here, sizes = self.read(task, chip), self.schedule_of(strategy), task.sizes
        names: dict[S, str] = {}
        for name, schedule in self.steps(problem, here, sizes, chip):
            known = schedule == here or schedule in names
            if not known and _why_illegal(self.refusal, problem, schedule, sizes, chip) is None:
                names[schedule] = name
        schedules: Iterable[S] = names
        if self.ranks:
            schedules = sorted(names, key=lambda schedule: self.cost_us(problem, schedule, sizes, chip))
        return tuple(
            Move(names[schedule], self.strategy_of(problem, schedule, names[schedule]), self.name)
            for schedule in schedules
        )

    def why_illegal(self, task: KernelTask, strategy: Strategy, chip: Chip) -> str | None:
        problem, schedule = self.read(task, chip), self.schedule_of(strategy)
        reason = _why_illegal(self.refusal, problem, schedule, task.sizes, chip)
        if reason is not None or self.broken is None:
            return reason
        return self.broken(problem, schedule, task.sizes, chip)

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        if self.why_illegal(task, strategy, chip) is not None:
            return None
        problem, schedule, sizes = self.read(task, chip), self.schedule_of(strategy), task.sizes
        if self.slowest_adapted < math.inf:
            best = self.cost_us(problem, self._first(problem, sizes, chip), sizes, chip)
            if self.cost_us(problem, schedule, sizes, chip) > self.slowest_adapted * best:
                return None
        return self.strategy_of(problem, schedule)

    def descriptor(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Descriptor:
        return self.strategy_of(self.read(task, chip), self.schedule_of(strategy)).descriptor

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return self.cost_us(self.read(task, chip), self.schedule_of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> KernelStage:
        return self.text_of(self.read(task, chip), self.schedule_of(strategy), task, chip, name)


def _why_illegal(
    asked: Callable[[P, S, Sizes, Chip], str | None], problem: P, schedule: S, sizes: Sizes, chip: Chip
) -> str | None:
    """What its ranges refuse, or else what is asked."""
    return schedule.why_out_of_range() or asked(problem, schedule, sizes, chip)
