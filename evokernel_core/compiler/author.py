"""KernelAuthor: a task becomes a strategy, a strategy the files of a kernel, for any target."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from attrs import frozen

from evokernel_core.compiler import bounds, coverage
from evokernel_core.compiler.coverage import family_of_task
from evokernel_core.compiler.family import Move
from evokernel_core.compiler.fusion.program import described, draft, plan_program
from evokernel_core.compiler.legalise import legalised
from evokernel_core.compiler.planned import Planned, identifier, of_legalised, planned
from evokernel_core.compiler.strategies import in_half
from evokernel_core.compiler.target import Target
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.domain.verdict import Baseline
from evokernel_core.hardware.device import Device

_OTHER_CUT = 0.95
"""The share of the usual estimate that another cut may take at most: estimates differ by less than that
where both are about as good, and the usual one has fewer kernels."""


@frozen
class KernelAuthor:
    """Writes kernels in a target's language for one device; ``half``: whether it proposes arithmetic in half.
    Its methods raise PlanError, with the reason, where a task cannot be planned, and StrategyError where a
    strategy is not the task's."""

    target: Target
    device: Device
    half: bool = False

    def covered_ops(self) -> Mapping[str, str]:
        """ATen name to its category, of what kernels compute, several in a row too."""
        return coverage.covered_ops(self.target)

    def single_ops(self) -> Mapping[str, str]:
        """The same of what one fused kernel computes; ``program`` where only several do."""
        return coverage.single_ops(self.target)

    def check(self, task: KernelTask) -> None:
        """Returns where kernels of the families compute the task."""
        task = legalised(task, self.device, self.target)
        if family_of_task(task, self.device, self.target) is None:
            plan_program(task, self.device, self.target)

    def plan(self, task: KernelTask) -> Planned:
        """The task with the schedules of the lowest estimate."""
        device, target = self.device, self.target
        name, task = identifier(task.name), legalised(task, device, target)
        family = family_of_task(task, device, target)
        if family is not None:
            return of_legalised(name, task, draft(ById(task), family, device), device, target)
        return of_legalised(name, task, _best_program(name, ById(task), device, target), device, target)

    def initial(self, task: KernelTask) -> Strategy:
        """The strategy of the lowest estimate."""
        return self.plan(task).strategy

    def planned(self, task: KernelTask, strategy: Strategy) -> Planned:
        """The task with a stored strategy, whose schedules need not be legal."""
        return planned(task, strategy, self.device, self.target)

    def require_legal(self, task: KernelTask, strategy: Strategy) -> None:
        """Raises StrategyError where a stored strategy is not one of this task and device. Strategies of
        other origin go through here before anything else is asked of them."""
        self.planned(task, strategy).require_legal()

    def adapt(self, task: KernelTask, strategy: Strategy) -> Strategy | None:
        """Another task's strategy cut to fit this one, None where a rule refuses it or another version wrote
        what this one cannot read."""
        task = legalised(task, self.device, self.target)
        family = family_of_task(task, self.device, self.target)
        if family is None or strategy.family not in family.strategies or not self.proposes(strategy):
            return None
        try:
            return family.adapt(task, strategy, self.device)
        except StrategyError:
            return None

    def moves(self, task: KernelTask, strategy: Strategy) -> tuple[Move, ...]:
        """The named steps from a strategy; those of a program's most expensive kernels come first."""
        return tuple(m for m in self.planned(task, strategy).moves() if self.proposes(m.strategy))

    def proposes(self, strategy: Strategy) -> bool:
        """Whether the settings allow it."""
        return self.half or not in_half(strategy)

    def estimate_us(self, task: KernelTask, strategy: Strategy) -> float:
        """Modelled microseconds of a strategy, all launches included."""
        return self.planned(task, strategy).estimate_us()

    def write(self, task: KernelTask, strategy: Strategy) -> KernelSource:
        """The target's files."""
        return self.planned(task, strategy).write()

    def lines_of_kernels(self, task: KernelTask, source: KernelSource) -> tuple[range, ...]:
        """The lines in which each kernel of a program stands: ``Target.lines_of_kernels``."""
        return self.planned(task, source.strategy).lines_of_kernels(source)

    def baseline(self, task: KernelTask) -> Baseline:
        """The graph op by op, as PyTorch runs it: measured where that is known, else modelled."""
        return self.target.baseline(task, self.device)

    def least_us(self, task: KernelTask) -> float:
        """Modelled lower bound in microseconds of any kernel of the task."""
        return bounds.least_us(task, self.device, self.target)

    def reachable_us(self, task: KernelTask) -> float:
        """Modelled microseconds of a kernel without any waste."""
        return self.target.reachable_us(task, self.device)


@lru_cache(maxsize=64)
def _best_program(name: str, key: ById, device: Device, target: Target) -> Strategy:
    """The strategy of the lowest estimate for a legalised task of several kernels, looked for once."""
    task = key.task
    program = plan_program(task, device, target)

    def cost(strategy: Strategy) -> float:
        return of_legalised(name, task, strategy, device, target).estimate_us()

    costs = {draft: cost(draft) for draft in target.drafts(name, task, program, device)}
    for other in target.other_programs(task, program, device):
        drafts = target.drafts(name, task, other, device)
        costs |= {draft: cost(draft) / _OTHER_CUT for draft in drafts if draft not in costs}
    best = min(costs, key=costs.__getitem__)
    return described(of_legalised(name, task, best, device, target).program, best, device)
