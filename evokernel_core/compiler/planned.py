"""A task with the kernels that compute it and a schedule for each: what is estimated, written and refined."""

from __future__ import annotations

import re

from attrs import evolve, frozen

from evokernel_core.compiler.bounds import KernelBound, bound_us
from evokernel_core.compiler.coverage import family_for
from evokernel_core.compiler.family import Move
from evokernel_core.compiler.fusion.program import described, lone, parted, program_of
from evokernel_core.compiler.fusion.records import PROGRAM
from evokernel_core.compiler.legalise import legalised
from evokernel_core.compiler.planned_task import PlannedTask
from evokernel_core.compiler.strategies import require_known
from evokernel_core.compiler.target import Target
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.device import Device


@frozen
class Planned(PlannedTask):
    """A planned task that asks its target. What its methods raise: PlanError where the task cannot be
    planned, StrategyError where the schedules are not this task's."""

    target: Target

    def estimate_us(self) -> float:
        """Modelled microseconds, all launches included."""
        return self.target.estimate_us(self)

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
        if self.is_lone:
            ((task, family),), (schedule,) = self.program.kinds, self.schedules
            return family.moves(task, schedule, self.device)
        return tuple(
            evolve(move, strategy=described(program, move.strategy, self.device))
            for program, move in self.target.program_moves(self)
        )

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
