"""What operations of PyTorch's libraries cost, and what a kernel behind them."""

from __future__ import annotations

from attrs import evolve

from evokernel_core.compiler.aten import CONVOLUTION
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.hardware.products import multiply_adds

_SHARE = 0.75
"""Of a unit's peak rate that libraries reach with large tiles (assumed)."""
_CONVOLUTION = 0.5
"""The same of convolutions."""
_DEPTHWISE = 0.4
"""Of the memory's rate that a library's depthwise convolutions reach (assumed: kernels are published that are
2.95 times as fast, KernelAgent on an H100)."""
_SLOWER = Sentence("A library's operation and a kernel for what follows are estimated to be faster.")


def library_us(task: KernelTask, node: Node, gpu: Gpu) -> float:
    """Estimated microseconds of the call."""
    dtype = node.outputs[0].dtype
    whole = evolve(task.graph, outputs=(ValueRef(node.name),))  # a library leaves no part of a product out
    counted = multiply_adds(node, whole, task.sizes)
    moved = sum(spec.nbytes(task.sizes) for spec in (*node.outputs, *map(task.graph.spec, node.operands())))
    memory = gpu.memory_bytes_us
    if node.op == CONVOLUTION:
        weight = task.graph.spec(tuple(node.operands())[1]).shape
        memory *= _DEPTHWISE if node.args[8] != 1 and weight[1] == 1 else 1.0
        rate = gpu.flops.get("tf32" if dtype == "float32" else dtype, gpu.vector_flops) * _CONVOLUTION
    else:
        peak = gpu.vector_flops if dtype == "float32" else gpu.flops.get(dtype, gpu.vector_flops)
        rate = peak * _SHARE
    return gpu.launch_us + max(moved / memory, 2 * counted / rate)


def require_gain(task: KernelTask, node: Node, our_us: float, gpu: Gpu) -> None:
    """Raises PlanError where a library computes a node, and another kernel what follows it, in less time than
    one kernel of ours does both."""
    spec = node.outputs[0]
    made = spec.nbytes(task.sizes)
    outputs = sum(one.nbytes(task.sizes) for one in task.graph.output_specs())
    others = {ref for other in task.graph.nodes if other is not node for ref in other.operands()}
    given = {one.name: one.spec for one in task.graph.inputs}
    read = sum(given[ref.name].nbytes(task.sizes) for ref in others if ref.name in given)
    behind = gpu.launch_us + (made + read + outputs) / gpu.memory_bytes_us
    if our_us > library_us(task, node, gpu) + behind:
        raise PlanError(_SLOWER)
