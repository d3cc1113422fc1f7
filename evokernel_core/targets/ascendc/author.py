"""Author: a task becomes a strategy, a strategy the two files of a kernel, in one launch or several."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc import neighbours
from evokernel_core.targets.ascendc.bounds import KernelBound
from evokernel_core.targets.ascendc.fusion import micro_batch_choice as chunking
from evokernel_core.targets.ascendc.fusion.cuts import with_moments_apart
from evokernel_core.targets.ascendc.fusion.later_epilogues import with_later_epilogues
from evokernel_core.targets.ascendc.fusion.program import (
    Program,
    described,
    draft,
    family_of_task,
    plan_program,
    whole_batch,
)
from evokernel_core.targets.ascendc.kernels.family import Move
from evokernel_core.targets.ascendc.kernels.registry import legalised
from evokernel_core.targets.ascendc.planned import (
    Launched,
    Planned,
    facts_reader,
    identifier,
    of_legalised,
    planned,
)

_OTHER_CUT = 0.95
"""The share of the usual estimate that another cut may take at most: estimates differ by less than that
where both are about as good, and the usual one has fewer kernels."""


def check(task: KernelTask, chip: Chip) -> None:
    """Raises PlanError with the reason where the task cannot be computed by kernels of the families."""
    task = legalised(task, chip)
    if family_of_task(task, chip) is None:
        plan_program(task, chip)


def plan(task: KernelTask, chip: Chip) -> Planned:
    """The task with the schedules of the lowest estimate. Raises PlanError where it cannot be planned."""
    name, task = identifier(task.name), legalised(task, chip)
    family = family_of_task(task, chip)
    if family is not None:
        return of_legalised(name, task, draft(ById(task), family, chip), chip)
    return of_legalised(name, task, _best_program(name, ById(task), chip), chip)


@lru_cache(maxsize=64)
def _best_program(name: str, key: ById, chip: Chip) -> Strategy:
    """The strategy of the lowest estimate for a legalised task of several kernels, looked for once."""
    task = key.task
    program = plan_program(task, chip)

    def cost(strategy: Strategy) -> float:
        return of_legalised(name, task, strategy, chip).estimate_us()

    costs = {draft: cost(draft) for draft in _drafts(name, task, program, chip)}
    for other in _other_programs(task, program, chip):
        drafts = _drafts(name, task, other, chip)
        costs |= {draft: cost(draft) / _OTHER_CUT for draft in drafts if draft not in costs}
    best = min(costs, key=costs.__getitem__)
    return described(of_legalised(name, task, best, chip).program, best, chip)


def _drafts(name: str, task: KernelTask, program: Program, chip: Chip) -> Iterator[Strategy]:
    """A program with all images at once, and with its images in chunks."""
    yield whole_batch(task, program, chip)
    yield from chunking.in_chunks(task, program, facts_reader(name, chip), chip)


def _other_programs(task: KernelTask, program: Program, chip: Chip) -> Iterator[Program]:
    """Other cuts of a task that are often faster than those that fuse the most."""
    later = with_later_epilogues(task, program, chip)
    for other in (program, later):
        apart = None if other is None else with_moments_apart(task, other, chip)
        yield from (choice for choice in (other, apart) if choice is not None and choice != program)


def adapt(task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
    """Another task's strategy cut to fit this one, None where a rule refuses it or another version wrote
    what this one cannot read. Raises PlanError where the task cannot be planned."""
    task = legalised(task, chip)
    family = family_of_task(task, chip)
    if family is None or strategy.family not in family.strategies:
        return None
    try:
        return family.adapt(task, strategy, chip)
    except StrategyError:
        return None


def initial(task: KernelTask, chip: Chip) -> Strategy:
    """The strategy of the lowest estimate. Raises PlanError where the task cannot be planned."""
    return plan(task, chip).strategy


def moves(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
    """The named steps from a strategy; those of a program's most expensive kernels come first."""
    return neighbours.moves(planned(task, strategy, chip))


def require_legal(task: KernelTask, strategy: Strategy, chip: Chip) -> None:
    """Raises StrategyError where a stored strategy is not one of this task and chip, and PlanError where the
    task cannot be planned. Strategies of other origin than this module go through here before anything else
    is asked of them."""
    planned(task, strategy, chip).require_legal()


def estimate_us(task: KernelTask, strategy: Strategy, chip: Chip) -> float:
    """Modelled microseconds of a strategy, all launches included."""
    return planned(task, strategy, chip).estimate_us()


def launched(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Launched, ...]:
    """The distinct kernels of a strategy, by what their families declare of them."""
    return planned(task, strategy, chip).launched()


def kernels(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[KernelBound, ...]:
    """The kernels of a strategy with their estimates and bounds, all images at once."""
    return planned(task, strategy, chip).bounds()


def write(task: KernelTask, strategy: Strategy, chip: Chip) -> KernelSource:
    """tiling.h and op_kernel.cpp. Raises PlanError where the task cannot be planned."""
    return planned(task, strategy, chip).write()


def lines_of_kernels(task: KernelTask, source: KernelSource, chip: Chip) -> tuple[range, ...]:
    """The lines of op_kernel.cpp in which each kernel's class stands: ``Planned.lines_of_kernels``."""
    return planned(task, source.strategy, chip).lines_of_kernels(source)
