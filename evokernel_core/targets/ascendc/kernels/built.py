"""Families whose kernels are built in the IR: legality, cost and text follow from the nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Generic, TypeVar

from attrs import frozen

from evokernel_core.compiler.schedule import Schedule
from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.legality import Broken, broken_rules, rough_rules
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.candidates import (
    TOO_LARGE,
    SearchingFamily,
    Sizes,
    of_fields,
    on_any_chip,
)

P = TypeVar("P", bound=Hashable)
S = TypeVar("S", bound=Schedule)
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

    def text(self, problem: P, schedule: S, task: KernelTask, chip: Chip, name: str) -> Kernel:
        return self.build(problem, schedule)

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


def family_of(  # noqa: PLR0913 - the fields of a SearchingFamily
    variant: Variant[P, S],
    *,
    name: str,
    ops: Mapping[str, str],
    read: Callable[[KernelTask], P],
    schedule_of: Callable[[Strategy], S],
    starts: Callable[[P, Sizes, Chip], Iterable[S]],
    notes: Callable[[P, S], Iterable[str]],
    cell: Callable[[P, S], Descriptor],
    steps: Callable[[P, S, Sizes, Chip], Iterable[tuple[str, S]]] = of_fields,
    cost_us: Callable[[P, S, Sizes, Chip], float] | None = None,
    rough: Callable[[P, S, Sizes, Chip], str | None] | None = None,
    too_large: Sentence = TOO_LARGE,
) -> SearchingFamily[P, S]:
    """The family of a variant: legality, cost and text are those of the kernels that it builds."""
    return SearchingFamily(
        name=name,
        ops=ops,
        read=on_any_chip(read),
        starts=starts,
        refusal=variant.refusal,
        rough=rough or variant.rough,
        cost_us=cost_us or variant.cost_us,
        schedule_of=schedule_of,
        notes=notes,
        cell=cell,
        text_of=variant.text,
        steps=steps,
        too_large=too_large,
    )


def among(schedules: Iterable[S]) -> Callable[[object, Sizes, Chip], Iterable[S]]:
    """``starts`` that are the same for every task."""
    table = tuple(schedules)
    return lambda problem, sizes, chip: table


def always(value: P) -> Callable[[object, object], P]:
    """``notes``, or a ``cell``, that are the same for every schedule."""
    return lambda problem, schedule: value
