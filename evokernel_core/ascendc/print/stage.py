"""The text of a family's kernel, whichever way the family makes it."""

from __future__ import annotations

from evokernel_core.ascendc.ir.nodes import Kernel, Memory
from evokernel_core.ascendc.kernels.cube import CubeKernel
from evokernel_core.ascendc.kernels.family import Beside, Family, Printed, StageText
from evokernel_core.ascendc.print.cube_kernel import cube_text
from evokernel_core.ascendc.print.fetching_class import fetching_class
from evokernel_core.ascendc.print.statements import in_lines
from evokernel_core.ascendc.print.tiling import computed, constants_of, fields_of
from evokernel_core.ascendc.print.vector_kernel import arguments_of, stage_text, vector_class
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip


def text_of(family: Family, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
    """The kernel under a name in snake case: printed from the IR, or what the family's templates give."""
    made = family.text(task, strategy, chip, name)
    match made:
        case Kernel():
            return stage_text(made, task, name)
        case CubeKernel():
            return cube_text(made, task, name)
        case Beside():
            return made.around(_printed(made.kernel, made.class_name))
    return made


def _printed(kernel: Kernel, name: str) -> Printed:
    """The class of the cores that a kernel of the IR is for."""
    on_cube = any(buffer.memory is not Memory.UB for buffer in kernel.buffers)
    text = fetching_class(kernel, name) if on_cube else vector_class(kernel, name)
    fields, lines = tuple(fields_of(kernel)), tuple(computed(kernel))
    return Printed(in_lines(text), arguments_of(kernel), constants_of(kernel), fields, lines)
