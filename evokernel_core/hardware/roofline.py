"""Modelled bounds from the graph alone: the speed of light.

Bytes are counted over the peak rate of device memory, products and vector work over the device's rates.
None of it has been measured on hardware.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from attrs import frozen

from evokernel_core.domain.graph import Graph, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.device import Device
from evokernel_core.hardware.indexed import chosen_bytes
from evokernel_core.hardware.products import (
    RECURRENT,
    multiply_adds,
    scores_of_attention,
    units_of_recurrent,
)

UNAVOIDABLE = frozenset(
    """exp log log2 log10 expm1 log1p sigmoid silu tanh erf gelu mish softplus _softmax _log_softmax
    logsumexp sin cos tan""".split()  # noqa: SIM905
)
"""Ops that no algebra turns into something cheap; division by a constant, say, becomes a product."""

ATTENTION = "scaled_dot_product_attention"

FREE_OPS = frozenset(
    """view _unsafe_view reshape expand permute transpose unsqueeze squeeze t alias detach slice select
    as_strided sym_size split split_with_sizes getitem unbind diagonal view_as_complex view_as_real _conj
    _neg_view""".split()  # noqa: SIM905
)
"""Ops that eager PyTorch answers with a view, unless strides forbid it: no launch, no bytes."""


def _nothing(node: Node, graph: Graph, sizes: Mapping[str, int]) -> int:
    return 0


@frozen
class NodeWork:
    """What a bound counts of a node, for the sizes of the symbols: the bytes that it reads of an operand of
    which indices choose some (None: all of it), multiply-adds on the cube cores, and elements that a simple
    vector instruction has to touch. ATen's operations where nothing else is said."""

    chosen_bytes: Callable[[Node, ValueRef, Graph, Mapping[str, int]], int | None] = chosen_bytes
    multiply_adds: Callable[[Node, Graph, Mapping[str, int]], int] = multiply_adds
    vector_elements: Callable[[Node, Graph, Mapping[str, int]], int] = _nothing


ATEN = NodeWork()


def roofline_us(
    task: KernelTask, device: Device, sizes: Mapping[str, int] | None = None, work: NodeWork = ATEN
) -> float:
    """Modelled lower bound in microseconds of any kernel of the task.

    The larger of: every input that is used and every output that L2 cannot hold, once, over the
    memory's peak rate; and the transcendental functions of the graph spread over all workers.
    """
    return max(roofline_parts(task, device, sizes, work).values())


def roofline_parts(
    task: KernelTask, device: Device, sizes: Mapping[str, int] | None = None, work: NodeWork = ATEN
) -> Mapping[str, float]:
    """The modelled microseconds of which ``roofline_us`` takes the largest: of ``memory``, of ``vector`` work
    and of the matrix units (``cube``)."""
    bound = task.sizes if sizes is None else sizes
    read, written = traffic(task, bound, work)
    vector = math.fsum(_least_us(node, task.graph, device, bound, work) for node in task.graph.nodes)
    products = math.fsum(product_us(node, task.graph, device, bound, work) for node in task.graph.nodes)
    return {"memory": _moved_us(read, written, device), "vector": vector, "cube": products}


def moved_us(task: KernelTask, device: Device, sizes: Mapping[str, int] | None = None) -> float:
    """Modelled microseconds below which no kernel of the task can be, whatever its algorithm: every input
    that is used and every output that L2 cannot hold cross the memory's port once. A bound on operations
    there is not: those that a clever algorithm leaves out (Winograd, Strassen) nobody has to do."""
    read, written = traffic(task, task.sizes if sizes is None else sizes)
    return _moved_us(read, written, device)


def traffic(task: KernelTask, sizes: Mapping[str, int], work: NodeWork = ATEN) -> tuple[int, int]:
    """Bytes of the inputs that are used, and of the outputs."""
    read = sum(_least_read(ValueRef(operand.name), task.graph, sizes, work) for operand in task.graph.inputs)
    return read, sum(spec.nbytes(sizes) for spec in task.graph.output_specs())


def _least_read(ref: ValueRef, graph: Graph, sizes: Mapping[str, int], work: NodeWork) -> int:
    """Bytes of a value that its readers cannot do without: what indices choose, or all of it."""
    whole = graph.spec(ref).nbytes(sizes)
    least = whole if ref in graph.outputs else 0
    for node in graph.nodes:
        if ref in set(node.operands()):
            chosen = work.chosen_bytes(node, ref, graph, sizes)
            if chosen is None and op_name(node.op) in FREE_OPS:
                results = (ValueRef(node.name, i) for i in range(len(node.outputs)))
                chosen = sum(_least_read(result, graph, sizes, work) for result in results)
            least += whole if chosen is None else chosen
    return min(least, whole)


def _moved_us(read: int, written: int, device: Device) -> float:
    """Microseconds to move the bytes at peak rates; what L2 can hold need not reach memory in time.

    Published measurements move more bytes than the memory's peak rate allows, because L2 absorbs
    the writes (the add_high_performance sample: 402 MB in 171 us).
    """
    spilled = max(0, written - device.l2_bytes)
    l2_us = (read + written) / device.l2_bytes_us
    return max((read + spilled) / device.peak_bytes_us, l2_us)


def product_us(
    node: Node, graph: Graph, device: Device, sizes: Mapping[str, int], work: NodeWork = ATEN
) -> float:
    """Microseconds of products with every matrix unit busy all the time; 0 for any other op."""
    count = work.multiply_adds(node, graph, sizes)
    return device.product_us(count, graph.spec(next(node.operands())).dtype) if count else 0.0


def op_name(op: str) -> str:
    """``exp`` of ``aten.exp.default``."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else op


def _least_us(
    node: Node, graph: Graph, device: Device, sizes: Mapping[str, int], work: NodeWork = ATEN
) -> float:
    """Vector time that no kernel can do without: one transcendental for each element, and what ``work``
    counts."""
    if count := work.vector_elements(node, graph, sizes):
        return device.elementwise_us(count, node.outputs[0].dtype)
    if op_name(node.op) == ATTENTION:
        return device.transcendental_us(scores_of_attention(node, graph, sizes))
    if node.op in RECURRENT:
        return device.transcendental_us(units_of_recurrent(node, graph, sizes) * RECURRENT[node.op])
    if op_name(node.op) not in UNAVOIDABLE:
        return 0.0
    return device.transcendental_us(elements(widest(node, graph, sizes), sizes))


def widest(node: Node, graph: Graph, sizes: Mapping[str, int]) -> TensorSpec:
    """The largest tensor of a node, without those of which it reads only what is chosen."""
    operands = (ref for ref in node.operands() if chosen_bytes(node, ref, graph, sizes) is None)
    specs = [*node.outputs, *map(graph.spec, operands)]
    return max(specs, key=lambda spec: elements(spec, sizes))


def elements(spec: TensorSpec, sizes: Mapping[str, int]) -> int:
    """How many a tensor has."""
    return math.prod(spec.sizes(sizes))
