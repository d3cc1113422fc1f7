"""Parts of what is computed of an input element by element: the same of parts of the input.

Code that converts a tensor and then splits it would write the converted one to memory and read it again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import evolve

from evokernel_core.compiler.lowering.pointwise import POINTWISE
from evokernel_core.compiler.rewrites.picking import producer
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.domain.graph import Graph, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec, evaluate_dim
from evokernel_core.hardware.device import Device

_PARTS = ("aten.slice.Tensor", "aten.select.int")


def raised_parts(task: KernelTask, device: Device) -> KernelTask:
    """The task with parts cut out of inputs in place of what is made of one input alone and read in parts
    that do not have more elements."""
    whole = _read_in_parts(task)
    if not whole:
        return task
    return rewritten(task, dict.fromkeys(_PARTS, lambda node, writer: _raised(node, writer, whole)), device)


def _read_in_parts(task: KernelTask) -> set[str]:
    """The nodes of element-wise operations that only parts are read of, and that read an input or such a
    node."""
    graph = task.graph
    outputs = {ref.name for ref in graph.outputs}
    inputs, whole = {operand.name for operand in graph.inputs}, set[str]()
    for node in graph.nodes:
        if (
            _is_unary(node, graph)
            and next(node.operands()).name in inputs | whole
            and node.name not in outputs
        ):
            whole.add(node.name)
    for node in reversed(graph.nodes):
        if node.name in whole and not _is_cut(node, graph.readers[node.name], whole, task):
            whole.discard(node.name)
    for node in graph.nodes:  # what is below must be an input still
        if node.name in whole and next(node.operands()).name not in inputs | whole:
            whole.discard(node.name)
    return whole


def _is_unary(node: Node, graph: Graph) -> bool:
    operands = tuple(node.operands())
    return (
        node.op in POINTWISE and len(operands) == 1 and graph.spec(operands[0]).shape == node.outputs[0].shape
    )


def _is_cut(node: Node, readers: Sequence[Node], whole: set[str], task: KernelTask) -> bool:
    """Whether all that reads a node are parts, which have as many elements together at most, or another such
    node alone."""
    if len(readers) == 1 and readers[0].name in whole:
        return True
    taken = sum(_elements(reader.outputs[0], task) for reader in readers)
    return all(reader.op in _PARTS for reader in readers) and taken <= _elements(node.outputs[0], task)


def _elements(spec: TensorSpec, task: KernelTask) -> int:
    return math.prod(evaluate_dim(dim, task.sizes) for dim in spec.shape)


def _raised(node: Node, writer: GraphWriter, whole: set[str]) -> tuple[ValueRef, ...] | None:
    below = producer(writer, next(node.operands()))
    if below is None or below.name not in whole:
        return None
    source = next(below.operands())
    spec = TensorSpec(node.outputs[0].shape, writer.spec(source).dtype)
    (part,) = writer.write(evolve(node, args=(source, *node.args[1:]), outputs=(spec,)))
    args = tuple(part if arg == source else arg for arg in below.args)
    made = TensorSpec(spec.shape, below.outputs[0].dtype)
    return writer.call_many(below.op, *args, outputs=(made,), **dict(below.kwargs))
