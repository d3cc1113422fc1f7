"""Families whose kernels are built in the IR: legality, cost and text follow from the nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Generic, TypeVar

from attrs import frozen

from evokernel_core.compiler.schedule import Schedule
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.legality import Broken, broken_rules, rough_rules
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.stage import KernelStage

P = TypeVar("P", bound=Hashable)
S = TypeVar("S", bound=Schedule)
Sizes = Mapping[str, int]
"""Of the symbols, in the user's file."""
Rules = Callable[[Kernel, Chip, Sizes], Iterator[Broken]]
_KEPT = 32
"""Kernels that a family remembers: legality, cost and text are asked for one after another."""


@frozen
class Variant(Generic[P, S]):
    """One way to build a family's kernels. ``why_illegal``: why a schedule makes no kernel at all, None where
    ``build`` may be asked; what is wrong with the kernel on a chip the rules of the IR say."""

    build: Callable[[P, S], Kernel]
    why_illegal: Callable[[P, S], str | None]

    def cost_us(self, problem: P, schedule: S, sizes: Sizes, chip: Chip) -> float:
        """Modelled microseconds of the kernel, its launch included."""
        return estimate_us(self.build(problem, schedule), sizes, chip)

    def refusal(self, problem: P, schedule: S, sizes: Sizes, chip: Chip) -> str | None:
        """Why a schedule makes no kernel, or which rule its kernel breaks."""
        return self._broken(broken_rules, problem, schedule, sizes, chip)

    def rough(self, problem: P, schedule: S, sizes: Sizes, chip: Chip) -> str | None:
        """Part of ``refusal`` that costs little."""
        return self._broken(rough_rules, problem, schedule, sizes, chip)

    def text(self, problem: P, schedule: S, task: KernelTask, chip: Chip, name: str) -> KernelStage:
        return KernelStage(vectors=self.build(problem, schedule))

    def _broken(self, rules: Rules, problem: P, schedule: S, sizes: Sizes, chip: Chip) -> str | None:
        reason = self.why_illegal(problem, schedule)
        if reason is not None:
            return reason
        return told(next(rules(self.build(problem, schedule), chip, sizes), None))


def told(broken: Broken | None) -> str | None:
    """A broken rule in words."""
    return None if broken is None else f"{broken.rule} of {broken.place}: {broken.reason}"


def in_range(problem: object, schedule: Schedule) -> None:
    """A ``why_illegal`` where a schedule makes a kernel whenever its fields are in their ranges."""


def variant_of(
    build: Callable[[P, S], Kernel], why_illegal: Callable[[P, S], str | None] = in_range
) -> Variant[P, S]:
    """A variant that remembers its last kernels."""
    return Variant(lru_cache(maxsize=_KEPT)(build), why_illegal)


def among(schedules: Iterable[S]) -> Callable[[object, Sizes, Chip], Iterable[S]]:
    """``starts`` that are the same for every task."""
    table = tuple(schedules)
    return lambda problem, sizes, chip: table


def always(value: P) -> Callable[[object, object], P]:
    """``notes``, or a ``cell``, that are the same for every schedule."""
    return lambda problem, schedule: value
