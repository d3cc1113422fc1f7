"""The text of a family's kernel, whichever cores of it are built in the IR."""

from __future__ import annotations

from evokernel_core.compiler.family import Family
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.family import StageText
from evokernel_core.targets.ascendc.kernels.stage import Added, Around, KernelStage, Printed
from evokernel_core.targets.ascendc.print.cube_kernel import cube_text
from evokernel_core.targets.ascendc.print.fetching_class import class_of
from evokernel_core.targets.ascendc.print.statements import in_lines
from evokernel_core.targets.ascendc.print.tiling import compute, refusal, settings
from evokernel_core.targets.ascendc.print.vector_kernel import arguments_of, stage_text, vector_class


def text_of(family: Family, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
    """The kernel under a name in snake case."""
    stage: KernelStage = family.text(task, strategy, chip, name)
    if stage.around is not None:
        return _text_around(stage, stage.around, task, name)
    if stage.cubes is not None:
        return cube_text(stage, task, name)
    return stage_text(stage.kernel, task, name)


def _text_around(stage: KernelStage, around: Around, task: KernelTask, name: str) -> StageText:
    kernel, class_name = stage.kernel, around.class_name
    text = vector_class(kernel, class_name) if stage.cubes is None else class_of(kernel, class_name)
    texts = around.text(Printed(in_lines(text), arguments_of(kernel)))
    tiling = texts.settings, texts.compute
    if around.added is not None:
        tiling = _tiling(kernel, around.added, task)
    return StageText(*tiling, texts.kernel, f"{name}_kernel", around.facts)


def _tiling(kernel: Kernel, added: Added, task: KernelTask) -> tuple[str, str]:
    """The tiling of the kernel in the IR, and what is added to it."""
    checks = refusal(added.refuses) if added.refuses else []
    computing = compute(
        kernel, task, checks=checks, also=added.computed, blocks=added.blocks, symbolic=[added]
    )
    return in_lines(settings(kernel, added.constants, added.fields)), in_lines(computing)
