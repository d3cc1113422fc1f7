"""A task with the kernels that compute it and a schedule for each, as targets take it."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.family import Family
from evokernel_core.compiler.fusion.records import ONE_LAUNCH, PROGRAM, Program, kind_us
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.device import Device


@frozen
class PlannedTask:
    """A legalised ``task`` with the ``program`` that computes it on a device and a schedule for each of its
    kernels. A lone kernel is a program of one. ``strategy`` is the form that is stored; ``name`` is an
    identifier in snake case."""

    name: str
    task: KernelTask
    program: Program
    schedules: tuple[Strategy, ...]
    strategy: Strategy
    device: Device

    @property
    def is_lone(self) -> bool:
        """Whether one kernel computes the task, which is then stored without a program around it."""
        return self.strategy.family != PROGRAM

    @property
    def one_launch(self) -> bool:
        """Whether the kernels are parts of one launch that runs them in turn."""
        return not self.is_lone and bool(self.strategy.setting(ONE_LAUNCH, False))

    def kernel_us(self, kind: int) -> float:
        """Modelled microseconds of one launch of a kernel, all images at once."""
        return kind_us(self.program, kind, self.schedules[kind], self.device)


def require_schedule(family: Family, task: KernelTask, strategy: Strategy, device: Device) -> None:
    """Raises StrategyError where a strategy makes no kernel of a family for its part of a task."""
    if strategy.family not in family.strategies:
        raise StrategyError(
            "The strategy is for {family} kernels, the task for {wanted}.",
            family=strategy.family,
            wanted=family.name,
        )
    reason = family.why_illegal(task, strategy, device)
    if reason is not None:
        raise StrategyError("The strategy does not fit the task: {reason}", reason=reason)
