"""Families whose kernels are built in the IR: legality, cost and text follow from the nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Generic, TypeVar

from attrs import frozen

from evokernel_core.ascendc.ir.cost import estimate_us
from evokernel_core.ascendc.ir.legality import Broken, broken_rules, rough_rules
from evokernel_core.ascendc.ir.nodes import Kernel
from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip

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


def family_of(design: Design[P, S]) -> SearchingFamily[P, S]:
    """The family of a design: legality, cost and text are those of the kernels that it builds."""

    build = lru_cache(maxsize=_KEPT)(design.build)

    def cost_us(problem: P, schedule: S, sizes: Sizes, chip: Chip) -> float:
        return estimate_us(build(problem, schedule), sizes, chip)

    def refusal(problem: P, schedule: S, sizes: Sizes, chip: Chip) -> str | None:
        return broken_by(broken_rules, problem, schedule, sizes, chip)

    def rough(problem: P, schedule: S, sizes: Sizes, chip: Chip) -> str | None:
        return broken_by(rough_rules, problem, schedule, sizes, chip)

    def broken_by(rules: Rules, problem: P, schedule: S, sizes: Sizes, chip: Chip) -> str | None:
        reason = design.why_illegal(problem, schedule)
        if reason is not None:
            return reason
        broken = next(rules(build(problem, schedule), chip, sizes), None)
        return None if broken is None else f"{broken.rule} of {broken.place}: {broken.reason}"

    return SearchingFamily(
        name=design.name,
        ops=design.ops,
        read=on_any_chip(design.read),
        starts=lambda problem, sizes, chip: design.schedules,
        steps=lambda problem, schedule, sizes, chip: design.neighbours(problem, schedule),
        refusal=refusal,
        rough=rough,
        cost_us=cost_us,
        schedule_of=design.schedule.of,
        strategy_of=design.strategy_of,
        text_of=lambda problem, schedule, task, name: build(problem, schedule),
    )
