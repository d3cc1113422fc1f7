"""The families of AscendC: what refuses, costs and writes a schedule, and how the first one is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from attrs import Factory, frozen

from evokernel_core.compiler.scheduled_family import P, S, ScheduledFamily, Sizes
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.built import Variant
from evokernel_core.targets.ascendc.kernels.stage import KernelStage


def on_any_chip(read: Callable[[KernelTask], P]) -> Callable[[KernelTask, Chip], P]:
    """A ``read`` for which the chip makes no difference."""
    return lambda task, chip: read(task)


def _none(problem: object, sizes: Sizes, chip: Chip) -> Iterable[Any]:
    return ()


_TOO_LARGE = Sentence("No tile of the kernel fits the unified buffer.")


@frozen(kw_only=True)
class SearchingFamily(ScheduledFamily[P, S]):
    """A family whose kernels are built in the IR, or written on a chip.

    ``first``: chooses the first schedule in place of ``starts``, where it is given.
    ``text_of``: the kernel of a schedule on a chip, under a name in snake case.
    ``variant``: what refuses, costs and makes a schedule's text, where kernels are built in the IR.
    """

    starts: Callable[[P, Sizes, Chip], Iterable[S]] = _none
    first: Callable[[P, Sizes, Chip], S | None] | None = None
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
    alike: float = 1.0
    """How many times the lowest estimate a start's may be to count as no worse: of such starts the first is
    taken."""
    too_large: Sentence = _TOO_LARGE
    slowest_adapted: float = math.inf
    """How much slower than the best start, by the estimate, another task's schedule may be to be kept."""

    def cheapest(self, problem: P, sizes: Sizes, device: Chip) -> S | None:
        if self.first is not None:
            return self.first(problem, sizes, device)
        asked = self.rough or self.refusal
        costs = {
            start: self.cost_us(problem, start, sizes, device)
            for start in self.starts(problem, sizes, device)
            if (start.why_out_of_range() or asked(problem, start, sizes, device)) is None
        }
        most = self.alike * min(costs.values(), default=0)
        likely = sorted(costs, key=lambda cost: max(costs[cost], most))
        legal = (
            schedule
            for schedule in likely
            if not self.rough or not self.refusal(problem, schedule, sizes, device)
        )
        return next(legal, None)

    def why_illegal(self, task: KernelTask, strategy: Strategy, device: Chip) -> str | None:
        reason = ScheduledFamily.why_illegal(self, task, strategy, device)
        if reason is not None or self.broken is None:
            return reason
        return self.broken(self.read(task, device), self.schedule_of(strategy), task.sizes, device)

    def adapt(self, task: KernelTask, strategy: Strategy, device: Chip) -> Strategy | None:
        adapted = ScheduledFamily.adapt(self, task, strategy, device)
        if adapted is not None and self.slowest_adapted < math.inf:
            problem, sizes = self.read(task, device), task.sizes
            best = self.cost_us(problem, self.best_start(problem, sizes, device), sizes, device)
            if self.estimate_us(task, strategy, device) > self.slowest_adapted * best:
                return None
        return adapted

    def text(self, task: KernelTask, strategy: Strategy, device: Chip, name: str) -> KernelStage:
        return self.text_of(self.read(task, device), self.schedule_of(strategy), task, device, name)
