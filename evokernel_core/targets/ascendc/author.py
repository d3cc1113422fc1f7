"""The author for AscendC by functions of a task and a chip: ``KernelAuthor`` says what they do."""

from __future__ import annotations

from evokernel_core.compiler.bounds import KernelBound
from evokernel_core.compiler.family import Move
from evokernel_core.compiler.legalise import legalised as _legalised
from evokernel_core.compiler.planned import Planned
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc import programs
from evokernel_core.targets.ascendc.programs import Launched
from evokernel_core.targets.ascendc.target import ASCENDC, ascendc


def legalised(task: KernelTask, chip: Chip) -> KernelTask:
    return _legalised(task, chip, ASCENDC)


def check(task: KernelTask, chip: Chip) -> None:
    ascendc(chip).check(task)


def plan(task: KernelTask, chip: Chip) -> Planned:
    return ascendc(chip).plan(task)


def planned(task: KernelTask, strategy: Strategy, chip: Chip) -> Planned:
    return ascendc(chip).planned(task, strategy)


def adapt(task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
    return ascendc(chip).adapt(task, strategy)


def initial(task: KernelTask, chip: Chip) -> Strategy:
    return ascendc(chip).initial(task)


def moves(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
    return ascendc(chip).moves(task, strategy)


def require_legal(task: KernelTask, strategy: Strategy, chip: Chip) -> None:
    ascendc(chip).require_legal(task, strategy)


def estimate_us(task: KernelTask, strategy: Strategy, chip: Chip) -> float:
    return ascendc(chip).estimate_us(task, strategy)


def launched(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Launched, ...]:
    """The distinct kernels of a strategy, by what their families declare of them."""
    return programs.launched(planned(task, strategy, chip))


def kernels(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[KernelBound, ...]:
    return planned(task, strategy, chip).bounds()


def write(task: KernelTask, strategy: Strategy, chip: Chip) -> KernelSource:
    return ascendc(chip).write(task, strategy)


def lines_of_kernels(task: KernelTask, source: KernelSource, chip: Chip) -> tuple[range, ...]:
    return ascendc(chip).lines_of_kernels(task, source)
