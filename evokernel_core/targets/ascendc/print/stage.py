"""The text of a family's kernel, whichever way the family makes it."""

from __future__ import annotations

from attrs import evolve

from evokernel_core.compiler.family import Family
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.nodes import Kernel, Memory
from evokernel_core.targets.ascendc.kernels.cube import CubeKernel
from evokernel_core.targets.ascendc.kernels.family import Added, Beside, Made, Printed, StageText
from evokernel_core.targets.ascendc.print.cube_kernel import cube_text
from evokernel_core.targets.ascendc.print.fetching_class import class_of
from evokernel_core.targets.ascendc.print.statements import in_lines
from evokernel_core.targets.ascendc.print.tiling import compute, refusal, settings
from evokernel_core.targets.ascendc.print.vector_kernel import arguments_of, stage_text, vector_class


def text_of(family: Family, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
    """The kernel under a name in snake case: printed from the IR, or what the family's templates give."""
    made: Made = family.text(task, strategy, chip, name)
    match made:
        case Kernel():
            return stage_text(made, task, name)
        case CubeKernel():
            return cube_text(made, task, name)
        case Beside():
            text = made.around(_printed(made.kernel, made.class_name))
            return text if made.added is None else _tiled(text, made.kernel, made.added, task)
    return made


def _printed(kernel: Kernel, name: str) -> Printed:
    """The class of the cores that a kernel of the IR is for."""
    on_cube = any(buffer.memory is not Memory.UB for buffer in kernel.buffers)
    text = class_of(kernel, name) if on_cube else vector_class(kernel, name)
    return Printed(in_lines(text), arguments_of(kernel))


def _tiled(text: StageText, kernel: Kernel, added: Added, task: KernelTask) -> StageText:
    """The text with the tiling of the kernel in the IR, and what is added to it."""
    checks = refusal(added.refuses) if added.refuses else []
    computing = compute(
        kernel, task, checks=checks, also=added.computed, blocks=added.blocks, symbolic=[added]
    )
    struct = settings(kernel, added.constants, added.fields)
    return evolve(text, settings=in_lines(struct), compute=in_lines(computing))
