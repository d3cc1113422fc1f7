"""A task with the kernels that compute it and a schedule for each: what is estimated, written and refined."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from attrs import evolve, field, frozen

from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import ById, KernelTask, numbered_task
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.bounds import KernelBound, bound_us
from evokernel_core.targets.ascendc.fusion import micro_batch_choice as chunking
from evokernel_core.targets.ascendc.fusion.launches import together_us
from evokernel_core.targets.ascendc.fusion.micro_batch_choice import Cut
from evokernel_core.targets.ascendc.fusion.program import (
    ONE_LAUNCH,
    PROGRAM,
    Program,
    kind_us,
    lone,
    parted,
    program_of,
)
from evokernel_core.targets.ascendc.kernels.family import Cores, Family, KernelFacts, StageText
from evokernel_core.targets.ascendc.kernels.registry import family_for, legalised
from evokernel_core.targets.ascendc.kernels.settings import require_known
from evokernel_core.targets.ascendc.print import files
from evokernel_core.targets.ascendc.print.sharing import Part, owners
from evokernel_core.targets.ascendc.print.stage import text_of
from evokernel_core.targets.ascendc.source import KERNEL, ascendc_source


@frozen
class Launched:
    """A kernel of a program: the family of its schedule, the cores that it runs on, and the modelled
    microseconds of all its launches."""

    family: str
    cores: Cores
    us: float


@frozen
class Planned:
    """A legalised ``task`` with the ``program`` that computes it on a chip and a schedule for each of its
    kernels. A lone kernel is a program of one. ``strategy`` is the form that is stored; ``name`` is a C++
    identifier in snake case. What its methods raise: PlanError where the task cannot be planned,
    StrategyError where the schedules are not this task's."""

    name: str
    task: KernelTask
    program: Program
    schedules: tuple[Strategy, ...]
    strategy: Strategy
    chip: Chip
    cut: Cut = field(init=False)

    @cut.default
    def _cut(self) -> Cut:
        return Cut() if self.is_lone else Cut.of(self.strategy)

    @property
    def is_lone(self) -> bool:
        """Whether one kernel computes the task, which is then stored without a program around it."""
        return self.strategy.family != PROGRAM

    @property
    def one_launch(self) -> bool:
        """Whether the kernels are parts of one launch that runs them in turn."""
        return not self.is_lone and bool(self.strategy.setting(ONE_LAUNCH, False))

    def facts(self) -> Sequence[KernelFacts]:
        """What the kernels declare, in their order."""
        return facts_of_kernels(self.program, self.schedules, self.name, self.chip)

    def estimate_us(self) -> float:
        """Modelled microseconds, all launches included."""
        if self.cut.chunks:
            result = chunking.chunked(self.task, self.program, self.facts(), self.cut)
            return chunking.estimate_us(result, self.schedules, self.chip)
        kinds = [self._kernel_us(kind) for kind in range(len(self.schedules))]
        stages = [kinds[stage.kind] for stage in self.program.stages]
        return together_us(stages, self.chip) if self.one_launch else math.fsum(stages)

    def _kernel_us(self, kind: int) -> float:
        """One launch of a kernel, all images at once."""
        return kind_us(self.program, kind, self.schedules[kind], self.chip)

    def launched(self) -> tuple[Launched, ...]:
        """The distinct kernels, by what their families declare of them."""
        return tuple(
            Launched(item.family, facts.cores, self.program.launches(kind) * self._kernel_us(kind))
            for kind, (item, facts) in enumerate(zip(self.schedules, self.facts(), strict=True))
        )

    def bounds(self) -> tuple[KernelBound, ...]:
        """The distinct kernels with their estimates and bounds, all images at once."""
        return tuple(
            KernelBound(
                family.name,
                tuple(node.op for node in part.graph.nodes),
                self.program.launches(kind),
                self._kernel_us(kind),
                bound_us(part, self.chip),
            )
            for kind, (part, family) in enumerate(self.program.kinds)
        )

    def require_legal(self) -> None:
        """Raises StrategyError where a schedule makes no kernel for its part of the task."""
        tasks = chunking.tasks_of(self.task, self.program, self.cut)
        for part, (_, family), schedule in zip(tasks, self.program.kinds, self.schedules, strict=True):
            _require_legal(family, part, schedule, self.chip)
        if self.cut.chunks and not chunking.is_legal(self.task, self.program, self.facts(), self.cut):
            raise StrategyError("The kernels do not take images in the strategy's chunks; draft it anew.")

    def write(self) -> KernelSource:
        """The kernel as its files."""
        return ascendc_source(*self._files(), self.strategy)

    def _files(self) -> tuple[str, str]:
        if self.is_lone:
            ((part, family),), (schedule,) = self.program.kinds, self.schedules
            tensors = sum(operand.kind is not InputKind.SCALAR for operand in part.graph.inputs)
            stage = _kernel_text(ById(part), _bare(schedule), self.name, family, self.chip)
            return files.single(stage, tensors + len(part.graph.outputs))
        parts = self._parts()
        if self.cut.chunks:
            result = chunking.chunked(self.task, self.program, [part.facts for part in parts], self.cut)
            return files.in_chunks(result, parts, self.name)
        return files.program(self.task, self.program, parts, self.name, one_launch=self.one_launch)

    def lines_of_kernels(self, source: KernelSource) -> tuple[range, ...]:
        """The lines of op_kernel.cpp, from 1, in which the class of each kernel of a program stands, in their
        order; kernels that share one have the same. Empty for a lone kernel, and for a text that is not what
        is written here."""
        if self.is_lone or self.write().files[KERNEL] != source.files.get(KERNEL):
            return ()
        return files.lines_of_classes(self._parts(), one_launch=bool(self.cut.chunks) or self.one_launch)

    def _parts(self) -> tuple[Part, ...]:
        """The kernels of a program; those that share a class have numbers for names."""

        def text(kind: int, owner: int, *, named: bool) -> StageText:
            part, family = self.program.kinds[kind]
            given = part if named else numbered_task(part)
            name = f"{self.name}_stage{owner}"
            return _kernel_text(ById(given), _bare(self.schedules[kind]), name, family, self.chip)

        alike = [(schedule.family, schedule.settings) for schedule in self.schedules]
        result = owners(alike, lambda kind: text(kind, 0, named=False))
        return tuple(
            Part(kind, owner, text(kind, owner, named=result.count(owner) == 1))
            for kind, owner in enumerate(result)
        )


def planned(task: KernelTask, strategy: Strategy, chip: Chip) -> Planned:
    """A task with a stored strategy. Raises PlanError where the task cannot be planned, StrategyError where
    the strategy is a program's that is not this task's. Whether its schedules are legal is asked of
    ``Planned.require_legal``."""
    return of_legalised(identifier(task.name), legalised(task, chip), strategy, chip)


def of_legalised(name: str, task: KernelTask, strategy: Strategy, chip: Chip) -> Planned:
    """The same of a task that is legalised, under a C++ identifier."""
    if strategy.family != PROGRAM:
        require_known(strategy)
        program = lone(task, family_for(task, chip))
        return Planned(name, task, program, (strategy,), strategy, chip)
    return Planned(name, task, program_of(task, strategy, chip), parted(strategy), strategy, chip)


def _require_legal(family: Family, task: KernelTask, strategy: Strategy, chip: Chip) -> None:
    if strategy.family not in family.strategies:
        raise StrategyError(
            "The strategy is for {family} kernels, the task for {wanted}.",
            family=strategy.family,
            wanted=family.name,
        )
    reason = family.why_illegal(task, strategy, chip)
    if reason is not None:
        raise StrategyError("The strategy does not fit the task: {reason}", reason=reason)


def facts_of_kernels(
    program: Program, schedules: Sequence[Strategy], name: str, chip: Chip
) -> Sequence[KernelFacts]:
    """What the kernels of a program declare, with a schedule for each."""
    return [
        _kernel_text(ById(part), _bare(chosen), f"{name}_stage{kind}", family, chip).facts
        for kind, ((part, family), chosen) in enumerate(zip(program.kinds, schedules, strict=True))
    ]


def facts_reader(name: str, chip: Chip) -> chunking.Facts:
    """What kernels of a program declare under a C++ identifier."""
    return lambda program, schedules: facts_of_kernels(program, schedules, name, chip)


def _bare(strategy: Strategy) -> Strategy:
    """What of a strategy its text depends on."""
    return evolve(strategy, notes=(), move="")


@lru_cache(maxsize=1024)
def _kernel_text(key: ById, strategy: Strategy, name: str, family: Family, chip: Chip) -> StageText:
    """A kernel of a program, printed once."""
    return text_of(family, key.task, strategy, chip, name)


def identifier(name: str) -> str:
    """A C++ identifier in snake case, of the ASCII letters and digits of a name alone: the audit takes no
    others. ``kernel`` where there are none."""
    cleaned = re.sub(r"_*[^a-z0-9_][^a-z0-9]*", "_", name.lower()).strip("_") or "kernel"
    return cleaned if cleaned[0].isalpha() else f"op_{cleaned}"
