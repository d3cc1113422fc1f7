"""Modelled bounds from the graph alone: the speed of light, and the same graph run op by op.

Both count bytes over the peak rate of device memory and vector work over the vector cores' rates
(elements a cycle, from the chip file). Neither has been measured on hardware.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.domain.graph import Graph, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.twin.chip import Chip

SLOW_OPS = frozenset(
    """exp log sqrt rsqrt div reciprocal sigmoid tanh erf gelu silu pow expm1 log1p log2 log10 sin cos tan
    _softmax _log_softmax softplus elu mish native_layer_norm native_group_norm logsumexp""".split()  # noqa: SIM905
)
"""Ops with at least one instruction of the transcendental class for each element."""

FREE_OPS = frozenset(
    """view _unsafe_view reshape expand permute transpose unsqueeze squeeze t alias detach slice select
    as_strided sym_size split split_with_sizes getitem unbind diagonal""".split()  # noqa: SIM905
)
"""Ops that eager PyTorch answers with a view: no launch, no bytes."""


def roofline_us(task: KernelTask, chip: Chip, sizes: Mapping[str, int] | None = None) -> float:
    """Modelled lower bound in microseconds of any kernel of the task.

    The larger of: every input that is used and every output once over the memory's peak rate, and
    the graph's vector work spread over all vector cores.
    """
    bound = task.sizes if sizes is None else sizes
    used = {ref.name for node in task.graph.nodes for ref in node.operands()}
    inputs = [item.spec for item in task.graph.inputs if item.name in used]
    moved = sum(spec.nbytes(bound) for spec in (*inputs, *task.graph.output_specs()))
    work = sum(_node_cycles(node, task.graph, chip, bound) for node in task.graph.nodes)
    return max(_bytes_us(moved, chip), _cycles_us(work, chip))


def eager_us(task: KernelTask, chip: Chip, sizes: Mapping[str, int] | None = None) -> float:
    """Modelled microseconds of the same graph op by op, one launch for each op that computes."""
    bound = task.sizes if sizes is None else sizes
    return math.fsum(_eager_node_us(node, task.graph, chip, bound) for node in task.graph.nodes)


def _eager_node_us(node: Node, graph: Graph, chip: Chip, sizes: Mapping[str, int]) -> float:
    if op_name(node.op) in FREE_OPS:
        return 0.0
    operands = dict.fromkeys(node.operands())
    moved = sum(_read_bytes(ref, graph, sizes) for ref in operands)
    moved += sum(spec.nbytes(sizes) for spec in node.outputs)
    cycles = _node_cycles(node, graph, chip, sizes)
    return launch_us(chip) + max(_bytes_us(moved, chip), _cycles_us(cycles, chip))


def launch_us(chip: Chip) -> float:
    """Modelled microseconds that a launch on all vector cores costs before any work."""
    return chip.launch_us + chip.aiv * chip.constants.get("launch.per_block_us", 0.0)


def _read_bytes(ref: ValueRef, graph: Graph, sizes: Mapping[str, int]) -> int:
    """Bytes that reading a value takes: a broadcast view is read at the size of what it views."""
    producer = next((node for node in graph.nodes if node.name == ref.name), None)
    if producer is not None and op_name(producer.op) == "expand":
        return min((_read_bytes(inner, graph, sizes) for inner in producer.operands()), default=0)
    return graph.spec(ref).nbytes(sizes)


def op_name(op: str) -> str:
    """``exp`` of ``aten.exp.default``."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else op


def _node_cycles(node: Node, graph: Graph, chip: Chip, sizes: Mapping[str, int]) -> float:
    """Vector cycles of a node on one core: one instruction's worth of work for each element."""
    name = op_name(node.op)
    if name in FREE_OPS:
        return 0.0
    specs = [*node.outputs, *(graph.spec(ref) for ref in node.operands())]
    widest = max(specs, key=lambda spec: _elements(spec, sizes))
    return _elements(widest, sizes) / _rate(name in SLOW_OPS, widest, chip)


def _elements(spec: TensorSpec, sizes: Mapping[str, int]) -> int:
    return math.prod(spec.sizes(sizes))


def _rate(slow: bool, spec: TensorSpec, chip: Chip) -> float:
    """Elements a cycle of one vector core."""
    table = chip.constants
    if slow:
        return table["vector.elements_per_cycle.transcendental"]
    width = {"float16": "b16", "bfloat16": "b16", "int16": "b16", "int64": "b64", "float64": "b64"}
    narrow = {"int8": "b16", "uint8": "b16", "bool": "b16"}  # computed as 16-bit lanes
    return table[f"vector.elements_per_cycle.simple_{(width | narrow).get(spec.dtype, 'b32')}"]


def _bytes_us(nbytes: float, chip: Chip) -> float:
    return nbytes / (chip.hbm_gbps * 1e3)


def _cycles_us(cycles: float, chip: Chip) -> float:
    return cycles / chip.aiv / chip.mhz
