"""Names of a task's tensors and of a kernel's own memory."""

from __future__ import annotations

from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.launch import tensor_names


def output_names(task: KernelTask) -> tuple[str, ...]:
    """The task's outputs, as launch records call them."""
    return tensor_names(task)[2]


def free_name(task: KernelTask, stem: str) -> str:
    """A name for scratch memory that no tensor, scalar or size of the task has."""
    inputs, scalars, outputs = tensor_names(task)
    taken = {*inputs, *scalars, *outputs, *(symbol.name for symbol in task.symbols)}
    name, number = stem, 1
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    return name
