"""Families whose kernels are built in the IR: legality, cost and text follow from the nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Generic, TypeVar

from attrs import frozen

from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.legality import Broken, broken_rules, rough_rules
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.targets.ascendc.kernels.settings import Settings

P = TypeVar("P", bound=Hashable)
S = TypeVar("S", bound=Settings)
Rules = Callable[[Kernel, Chip, Sizes], Iterator[Broken]]
_KEPT = 32
"""Kernels that a family remembers: legality, cost and text are asked for one after another."""


@frozen
class Design(Generic[P, S]):
    """What is a family's own.

    ``read``: the problem of a task; raises PlanError where the family does not cover it. ``schedules``: those
    to choose the first one from. ``neighbours``: the named changes of a schedule. ``why_illegal``: why a
    schedule makes no kernel at all, None where ``build`` may be asked. ``build``: the kernel; what is wrong
    with it on a chip the rules of the IR say.
    """

    name: str
    ops: Mapping[str, str]
    read: Callable[[KernelTask], P]
    schedule: type[S]
    schedules: tuple[S, ...]
    neighbours: Callable[[P, S], Iterable[tuple[str, S]]]
    why_illegal: Callable[[P, S], str | None]
    build: Callable[[P, S], Kernel]
    strategy_of: Callable[[P, S, str], Strategy]


@frozen
class Form(Generic[P, S]):
    """One form of a family's kernels; see Design for its functions."""

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

    def _broken(self, rules: Rules, problem: P, schedule: S, sizes: Sizes, chip: Chip) -> str | None:
        reason = self.why_illegal(problem, schedule)
        if reason is not None:
            return reason
        broken = next(rules(self.build(problem, schedule), chip, sizes), None)
        return None if broken is None else f"{broken.rule} of {broken.place}: {broken.reason}"


def form_of(build: Callable[[P, S], Kernel], why_illegal: Callable[[P, S], str | None]) -> Form[P, S]:
    """A form that remembers its last kernels."""
    return Form(lru_cache(maxsize=_KEPT)(build), why_illegal)


def family_of(design: Design[P, S]) -> SearchingFamily[P, S]:
    """The family of a design: legality, cost and text are those of the kernels that it builds."""
    form = form_of(design.build, design.why_illegal)

    return SearchingFamily(
        name=design.name,
        ops=design.ops,
        read=on_any_chip(design.read),
        starts=lambda problem, sizes, chip: design.schedules,
        steps=lambda problem, schedule, sizes, chip: design.neighbours(problem, schedule),
        refusal=form.refusal,
        rough=form.rough,
        cost_us=form.cost_us,
        schedule_of=design.schedule.of,
        strategy_of=design.strategy_of,
        text_of=lambda problem, schedule, task, name: form.build(problem, schedule),
    )
