"""The text of a family's kernel, whichever way the family makes it."""

from __future__ import annotations

from evokernel_core.ascendc.ir.nodes import Kernel
from evokernel_core.ascendc.kernels.cube import CubeKernel
from evokernel_core.ascendc.kernels.family import Beside, Family, StageText
from evokernel_core.ascendc.print.cube_kernel import cube_text
from evokernel_core.ascendc.print.statements import in_lines
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
            vectors = in_lines(vector_class(made.vectors, made.class_name))
            return made.around(vectors, arguments_of(made.vectors))
    return made
