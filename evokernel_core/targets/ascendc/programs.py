"""The kernels of a planned task in AscendC: their texts, what they declare, what they cost together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from attrs import evolve, frozen

from evokernel_core.compiler.family import Family
from evokernel_core.compiler.fusion.records import Program
from evokernel_core.compiler.planned_task import PlannedTask, require_schedule
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import ById, numbered_task
from evokernel_core.hardware.ascend.chip import Chip, chip_of
from evokernel_core.targets.ascendc.fusion import micro_batch_choice as chunking
from evokernel_core.targets.ascendc.fusion.launches import together_us
from evokernel_core.targets.ascendc.fusion.micro_batch_choice import Cut
from evokernel_core.targets.ascendc.kernels.family import Cores, KernelFacts, StageText
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


def cut_of(planned: PlannedTask) -> Cut:
    """The chunks that the images of a program come in."""
    return Cut() if planned.is_lone else Cut.of(planned.strategy)


def facts(planned: PlannedTask) -> Sequence[KernelFacts]:
    """What the kernels declare, in their order."""
    return facts_of_kernels(planned.program, planned.schedules, planned.name, chip_of(planned.device))


def estimate_us(planned: PlannedTask) -> float:
    """Modelled microseconds, all launches included."""
    cut, chip = cut_of(planned), chip_of(planned.device)
    if cut.chunks:
        result = chunking.chunked(planned.task, planned.program, facts(planned), cut)
        return chunking.estimate_us(result, planned.schedules, chip)
    kinds = [planned.kernel_us(kind) for kind in range(len(planned.schedules))]
    stages = [kinds[stage.kind] for stage in planned.program.stages]
    return together_us(stages, chip) if planned.one_launch else math.fsum(stages)


def launched(planned: PlannedTask) -> tuple[Launched, ...]:
    """The distinct kernels, by what their families declare of them."""
    return tuple(
        Launched(schedule.family, fact.cores, planned.program.launches(kind) * planned.kernel_us(kind))
        for kind, (schedule, fact) in enumerate(zip(planned.schedules, facts(planned), strict=True))
    )


def require_legal(planned: PlannedTask) -> None:
    """Raises StrategyError where a schedule makes no kernel for its part of the task."""
    task, program, cut = planned.task, planned.program, cut_of(planned)
    tasks = chunking.tasks_of(task, program, cut)
    for part, (_, family), schedule in zip(tasks, program.kinds, planned.schedules, strict=True):
        require_schedule(family, part, schedule, planned.device)
    if cut.chunks and not chunking.is_legal(task, program, facts(planned), cut):
        raise StrategyError("The kernels do not take images in the strategy's chunks; draft it anew.")


def write(planned: PlannedTask) -> KernelSource:
    """tiling.h and op_kernel.cpp."""
    return ascendc_source(*_files(planned), planned.strategy)


def _files(planned: PlannedTask) -> tuple[str, str]:
    task, program, chip = planned.task, planned.program, chip_of(planned.device)
    if planned.is_lone:
        ((part, family),), (schedule,) = program.kinds, planned.schedules
        tensors = sum(operand.kind is not InputKind.SCALAR for operand in part.graph.inputs)
        stage = _kernel_text(ById(part), _bare(schedule), planned.name, family, chip)
        return files.single(stage, tensors + len(part.graph.outputs))
    parts, cut = _parts(planned), cut_of(planned)
    if cut.chunks:
        result = chunking.chunked(task, program, [part.facts for part in parts], cut)
        return files.in_chunks(result, parts, planned.name)
    return files.program(task, program, parts, planned.name, one_launch=planned.one_launch)


def lines_of_kernels(planned: PlannedTask, source: KernelSource) -> tuple[range, ...]:
    """``Target.lines_of_kernels``, of op_kernel.cpp."""
    if planned.is_lone or write(planned).files[KERNEL] != source.files.get(KERNEL):
        return ()
    one_launch = bool(cut_of(planned).chunks) or planned.one_launch
    return files.lines_of_classes(_parts(planned), one_launch=one_launch)


def _parts(planned: PlannedTask) -> tuple[Part, ...]:
    """The kernels of a program; those that share a class have numbers for names."""
    kinds, schedules, chip = planned.program.kinds, planned.schedules, chip_of(planned.device)

    def text(kind: int, owner: int, *, named: bool) -> StageText:
        part, family = kinds[kind]
        given = part if named else numbered_task(part)
        return _kernel_text(ById(given), _bare(schedules[kind]), f"{planned.name}_stage{owner}", family, chip)

    alike = [(schedule.family, schedule.settings) for schedule in schedules]
    result = owners(alike, lambda kind: text(kind, 0, named=False))
    return tuple(
        Part(kind, owner, text(kind, owner, named=result.count(owner) == 1))
        for kind, owner in enumerate(result)
    )


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
