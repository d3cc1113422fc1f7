"""float64 on the way between other types, computed in float32.

No core of an accelerator computes in float64 fast enough, and what becomes float32 or a half type in the end
shows its digits only where terms cancel, which the comparison with PyTorch's own float64 decides. Where the
last bit would decide more, in comparisons, integers or results of float64, it stays, and is refused by name.
"""

from __future__ import annotations

from attrs import evolve

from evokernel_core.domain.graph import Arg, DTypeArg, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.device import Device

_DOUBLE, _SINGLE = "float64", "float32"
_ROUNDED = frozenset({_DOUBLE, _SINGLE, "float16", "bfloat16"})


def doubles_in_float32(task: KernelTask, device: Device) -> KernelTask:
    """The task with float32 in place of float64 where neither its inputs and results are float64 nor anything
    else than floats is made of what is."""
    graph = task.graph
    doubles = {node.name for node in graph.nodes if any(spec.dtype == _DOUBLE for spec in node.outputs)}
    if not doubles or not _only_between(task, doubles):
        return task
    return evolve(task, graph=graph.computed_by(tuple(map(_narrowed, graph.nodes)), graph.outputs))


def _only_between(task: KernelTask, doubles: set[str]) -> bool:
    graph = task.graph
    ends = (*(operand.spec for operand in graph.inputs), *graph.output_specs())
    if any(spec.dtype == _DOUBLE for spec in ends):
        return False
    readers = (node for node in graph.nodes if any(ref.name in doubles for ref in node.operands()))
    return all(spec.dtype in _ROUNDED for node in readers for spec in node.outputs)


def _narrowed(node: Node) -> Node:
    outputs = tuple(
        TensorSpec(spec.shape, _SINGLE, spec.contiguous) if spec.dtype == _DOUBLE else spec
        for spec in node.outputs
    )
    kwargs = tuple((key, _argument(arg)) for key, arg in node.kwargs)
    return evolve(node, args=tuple(map(_argument, node.args)), kwargs=kwargs, outputs=outputs)


def _argument(arg: Arg) -> Arg:
    return DTypeArg(_SINGLE) if arg == DTypeArg(_DOUBLE) and not isinstance(arg, ValueRef) else arg
