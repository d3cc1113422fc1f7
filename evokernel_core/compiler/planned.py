"""A task with the kernels that compute it and a schedule for each: what is estimated, written and refined."""

from __future__ import annotations

import re

from attrs import frozen

from evokernel_core.compiler.bounds import KernelBound, bound_us
from evokernel_core.compiler.coverage import family_for
from evokernel_core.compiler.fusion.program import (
    ONE_LAUNCH,
    PROGRAM,
    Program,
    kind_us,
    lone,
    parted,
    program_of,
)
from evokernel_core.compiler.legalise import legalised
from evokernel_core.compiler.strategies import require_known
from evokernel_core.compiler.target import Move, Target
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.device import Device


@frozen
class Planned:
    """A legalised ``task`` with the ``program`` that computes it on a device and a schedule for each of its
    kernels. A lone kernel is a program of one. ``strategy`` is the form that is stored; ``name`` is an
    identifier in snake case. What its methods raise: PlanError where the task cannot be planned,
    StrategyError where the schedules are not this task's."""

    name: str
    task: KernelTask
    program: Program
    schedules: tuple[Strategy, ...]
    strategy: Strategy
    device: Device
    target: Target

    @property
    def is_lone(self) -> bool:
        """Whether one kernel computes the task, which is then stored without a program around it."""
        return self.strategy.family != PROGRAM

    @property
    def one_launch(self) -> bool:
        """Whether the kernels are parts of one launch that runs them in turn."""
        return not self.is_lone and bool(self.strategy.setting(ONE_LAUNCH, False))

    def estimate_us(self) -> float:
        """Modelled microseconds, all launches included."""
        return self.target.estimate_us(self)

    def kernel_us(self, kind: int) -> float:
        """Modelled microseconds of one launch of a kernel, all images at once."""
        return kind_us(self.program, kind, self.schedules[kind], self.device)

    def bounds(self) -> tuple[KernelBound, ...]:
        """The distinct kernels with their estimates and bounds, all images at once."""
        return tuple(
            KernelBound(
                family.name,
                tuple(node.op for node in part.graph.nodes),
                self.program.launches(kind),
                self.kernel_us(kind),
                bound_us(part, self.device),
            )
            for kind, (part, family) in enumerate(self.program.kinds)
        )

    def require_legal(self) -> None:
        """Raises StrategyError where a schedule makes no kernel for its part of the task."""
        self.target.require_legal(self)

    def moves(self) -> tuple[Move, ...]:
        """The named steps from here; those of a program's most expensive kernels come first."""
        return self.target.moves(self)

    def write(self) -> KernelSource:
        """The files that the target asks for."""
        return self.target.write(self)

    def lines_of_kernels(self, source: KernelSource) -> tuple[range, ...]:
        """The lines in which each kernel of a program stands: ``Target.lines_of_kernels``."""
        return self.target.lines_of_kernels(self, source)


def planned(task: KernelTask, strategy: Strategy, device: Device, target: Target) -> Planned:
    """A task with a stored strategy. Raises PlanError where the task cannot be planned, StrategyError where
    the strategy is a program's that is not this task's. Whether its schedules are legal is asked of
    ``Planned.require_legal``."""
    return of_legalised(identifier(task.name), legalised(task, device, target), strategy, device, target)


def of_legalised(name: str, task: KernelTask, strategy: Strategy, device: Device, target: Target) -> Planned:
    """The same of a task that is legalised, under an identifier."""
    if strategy.family != PROGRAM:
        require_known(strategy)
        program = lone(task, family_for(task, device, target))
        return Planned(name, task, program, (strategy,), strategy, device, target)
    program = program_of(task, strategy, device, target)
    return Planned(name, task, program, parted(strategy), strategy, device, target)


def identifier(name: str) -> str:
    """An identifier in snake case, of the ASCII letters and digits of a name alone: audits take no others.
    ``kernel`` where there are none."""
    cleaned = re.sub(r"_*[^a-z0-9_][^a-z0-9]*", "_", name.lower()).strip("_") or "kernel"
    return cleaned if cleaned[0].isalpha() else f"op_{cleaned}"
