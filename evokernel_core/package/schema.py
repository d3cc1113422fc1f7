"""The schema of a package's operator, as PyTorch reads one."""

from __future__ import annotations

from evokernel_core.domain.arguments import numbers_of, takes_lists
from evokernel_core.domain.graph import GraphInput, InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.package.reference import python_name


def schema_arguments(task: KernelTask) -> str:
    if takes_lists(task.graph):
        return ", ".join(["Tensor[] tensors", *map(schema_argument, numbers_of(task.graph))])
    return ", ".join(schema_argument(operand) for operand in task.graph.inputs)


def schema_results(task: KernelTask) -> str:
    return schema_type(len(task.graph.outputs))


def schema_type(count: int) -> str:
    """The schema's type of that many tensors."""
    return "Tensor" if count == 1 else "(" + ", ".join(["Tensor"] * count) + ")"


def schema_argument(graph_input: GraphInput) -> str:
    kind = "float" if graph_input.kind is InputKind.SCALAR else "Tensor"
    return f"{kind} {python_name(graph_input.name)}"
