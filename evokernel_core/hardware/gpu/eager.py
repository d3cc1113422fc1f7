"""The same graph op by op on a GPU, modelled: a launch for each operation, its bytes, its products.

No constant is fitted: whoever has the GPU measures eager, and uses that.
"""

from __future__ import annotations

import math

from evokernel_core.domain.graph import Graph, Node
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.hardware.indexed import chosen_bytes
from evokernel_core.hardware.roofline import FREE_OPS, op_name, product_us, roofline_us


def eager_us(task: KernelTask, gpu: Gpu) -> float:
    """Modelled microseconds of PyTorch's own kernels."""
    return math.fsum(_node_us(node, task.graph, task, gpu) for node in task.graph.nodes)


def reachable_us(task: KernelTask, gpu: Gpu) -> float:
    """Modelled microseconds of a kernel without any waste."""
    return gpu.launch_us + roofline_us(task, gpu)


def _node_us(node: Node, graph: Graph, task: KernelTask, gpu: Gpu) -> float:
    if op_name(node.op) in FREE_OPS:
        return 0.0
    moved = sum(spec.nbytes(task.sizes) for spec in node.outputs)
    for ref in node.operands():
        chosen = chosen_bytes(node, ref, graph, task.sizes)
        moved += graph.spec(ref).nbytes(task.sizes) if chosen is None else chosen
    products = product_us(node, graph, gpu, task.sizes)
    return gpu.launch_us + max(moved / gpu.memory_bytes_us, products)
