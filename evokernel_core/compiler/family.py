"""A family of kernels: one way to compute some tasks with one kernel, by schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import frozen

from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask


@frozen
class Move:
    """One named refinement step. ``family`` is that of the kernel which the step changes, ``kernel`` its
    place among those of the strategy, None where the step changes how the task is cut or launched."""

    name: str
    strategy: Strategy
    family: str
    kernel: int | None = None


class Family(Protocol):
    """A way to compute some tasks with one kernel. Every method raises PlanError, with the reason in
    one sentence, for a task that the family does not cover. The device is one of its target's."""

    @property
    def name(self) -> str:
        """The word for the family in notes."""

    @property
    def strategies(self) -> frozenset[str]:
        """The ``family`` of the strategies that are this family's."""

    @property
    def ops(self) -> Mapping[str, str]:
        """ATen names that this family's kernels may hold: ``pointwise``, ``reduction``, ``kernel`` for
        any other work, or ``view`` for what only renames elements."""

    def __hash__(self) -> int: ...

    def check(self, task: KernelTask, device: Any, /) -> None:
        """Returns where the task is covered."""

    def initial(self, task: KernelTask, device: Any, /) -> Strategy:
        """The legal schedule of the lowest estimate."""

    def moves(self, task: KernelTask, strategy: Strategy, device: Any, /) -> tuple[Move, ...]:
        """Every legal schedule that is one named step away and gives another text."""

    def why_illegal(self, task: KernelTask, strategy: Strategy, device: Any, /) -> str | None:
        """Why a strategy of this family makes no kernel for the task; None where it makes one. Raises
        StrategyError where it cannot be read."""

    def adapt(self, task: KernelTask, strategy: Strategy, device: Any, /) -> Strategy | None:
        """Another task's schedule, cut to fit this one; None where a rule refuses it."""

    def descriptor(self, task: KernelTask, strategy: Strategy, device: Any, /) -> Descriptor:
        """The archive cell of a legal strategy, from its settings alone."""

    def estimate_us(self, task: KernelTask, strategy: Strategy, device: Any, /) -> float:
        """Modelled microseconds of the schedule, its launch included."""

    def text(self, task: KernelTask, strategy: Strategy, device: Any, name: str, /) -> Any:
        """The kernel in the target's own form; ``name`` is an identifier in snake case."""
