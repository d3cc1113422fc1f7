"""What families share that judge schedules one by one: legal starts, the lowest estimate, named steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from attrs import Factory, field, frozen

from evokernel_core.compiler.target import Move
from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.family import Made

P = TypeVar("P")
"""What a task asks for, in the family's own words."""
S = TypeVar("S", bound=Hashable)
Sizes = Mapping[str, int]
"""Of the symbols, in the user's file."""


def on_any_chip(read: Callable[[KernelTask], P]) -> Callable[[KernelTask, Chip], P]:
    """A ``read`` for which the chip makes no difference."""
    return lambda task, chip: read(task)


_TOO_LARGE = Sentence("No tile of the kernel fits the unified buffer.")


@frozen
class SearchingFamily(Generic[P, S]):
    """A Family (see there) made of what is its own. Schedules are hashable and equal where texts are.

    ``read``: what a task asks for, on a chip; raises PlanError where the family does not cover it.
    ``starts``: the schedules to choose the first one from, legal or not.
    ``steps``: the named changes of a schedule, legal or not; of two names for one change the first counts.
    ``refusal``: why a schedule breaks a rule of the hardware; None where it is legal.
    ``cost_us``: modelled microseconds of a legal schedule, its launch included.
    ``schedule_of`` and ``strategy_of``: a schedule from and into settings and words, the latter with the
    name of the step that led to it.
    ``text_of``: the kernel of a schedule under a name in snake case.
    """

    name: str
    ops: Mapping[str, str] = field(eq=False)
    read: Callable[[KernelTask, Chip], P]
    starts: Callable[[P, Sizes, Chip], Iterable[S]]
    steps: Callable[[P, S, Sizes, Chip], Iterable[tuple[str, S]]]
    refusal: Callable[[P, S, Sizes, Chip], str | None]
    cost_us: Callable[[P, S, Sizes, Chip], float]
    schedule_of: Callable[[Strategy], S]
    strategy_of: Callable[[P, S, str], Strategy]
    text_of: Callable[[P, S, KernelTask, str], Made]
    rough: Callable[[P, S, Sizes, Chip], str | None] | None = None
    """Part of ``refusal`` that costs little; where it is given, starts that pass it are judged in the order
    of their cost, and no more of them than it takes to find a legal one."""
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

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        problem = self.read(task, chip)
        return self.strategy_of(problem, self._first(problem, task.sizes, chip), "")

    def _first(self, problem: P, sizes: Sizes, chip: Chip) -> S:
        starts = self.starts(problem, sizes, chip)
        asked = self.rough or self.refusal
        costs = {
            start: self.cost_us(problem, start, sizes, chip)
            for start in starts
            if asked(problem, start, sizes, chip) is None
        }
        most = self.alike * min(costs.values(), default=0)
        likely = sorted(costs, key=lambda cost: max(costs[cost], most))
        legal = (
            schedule
            for schedule in likely
            if not self.rough or not self.refusal(problem, schedule, sizes, chip)
        )
        best = next(legal, None)
        if best is None:
            raise PlanError(self.too_large)
        return best

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        problem, here, sizes = self.read(task, chip), self.schedule_of(strategy), task.sizes
        names: dict[S, str] = {}
        for name, schedule in self.steps(problem, here, sizes, chip):
            if schedule != here and self.refusal(problem, schedule, sizes, chip) is None:
                names.setdefault(schedule, name)
        return tuple(
            Move(name, self.strategy_of(problem, key, name), self.name) for key, name in names.items()
        )

    def why_illegal(self, task: KernelTask, strategy: Strategy, chip: Chip) -> str | None:
        return self.refusal(self.read(task, chip), self.schedule_of(strategy), task.sizes, chip)

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        if self.why_illegal(task, strategy, chip) is not None:
            return None
        problem, schedule, sizes = self.read(task, chip), self.schedule_of(strategy), task.sizes
        if self.slowest_adapted < math.inf:
            best = self.cost_us(problem, self._first(problem, sizes, chip), sizes, chip)
            if self.cost_us(problem, schedule, sizes, chip) > self.slowest_adapted * best:
                return None
        return self.strategy_of(problem, schedule, "")

    def descriptor(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Descriptor:
        return self.strategy_of(self.read(task, chip), self.schedule_of(strategy), "").descriptor

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return self.cost_us(self.read(task, chip), self.schedule_of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> Made:
        return self.text_of(self.read(task, chip), self.schedule_of(strategy), task, name)
