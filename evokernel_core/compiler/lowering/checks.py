"""What no family covers, said in one sentence before any lowering."""

from __future__ import annotations

from evokernel_core.compiler.lowering.integers import COUNTS, INTEGERS, SHORT
from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.compiler.lowering.stripes import SLICE
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import GraphInput, InputKind, Node
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec

COMPUTED = frozenset({"float32", "float16", "bfloat16", "bool"})
"""dtypes that a value inside a kernel may have."""
LOADED = COMPUTED | INTEGERS | SHORT
MAX_NODES = 150
"""Larger graphs would not fit one kernel's unified buffer and instruction cache."""


def check_task(task: KernelTask, device_bytes: int) -> None:
    """Raises PlanError unless every op, dtype and size of the task can be planned."""
    if not task.graph.nodes and not task.graph.outputs:
        raise PlanError("The region computes nothing.")
    if len(task.graph.nodes) > MAX_NODES:
        raise PlanError(
            "The region has {count} operations, more than the {most} that one kernel fuses.",
            count=len(task.graph.nodes),
            most=MAX_NODES,
        )
    for graph_input in task.graph.inputs:
        _check_input(graph_input, task)
    for node in task.graph.nodes:
        _check_node(node)
    for spec in task.graph.output_specs():
        _check_output(spec, task)
    _check_memory(task, device_bytes)


def _check_input(graph_input: GraphInput, task: KernelTask) -> None:
    if graph_input.kind is InputKind.SCALAR:
        return
    if graph_input.spec.dtype not in LOADED:
        raise PlanError(
            "Input {name} has dtype {dtype}, which no family computes with.",
            name=graph_input.name,
            dtype=graph_input.spec.dtype,
        )
    _check_sizes(graph_input.spec, task, Sentence("Input {name}", name=graph_input.name))


def _check_node(node: Node) -> None:
    if node.op not in fused_ops() and node.op != SLICE:
        raise PlanError("The operation {op} is not covered by any schedule family.", op=node.op)


def check_result(node: Node, index: int, bool_results: frozenset[str], views: frozenset[str]) -> None:
    """Raises PlanError where a node's result has a dtype that is not computed in float32."""
    dtype = node.outputs[index].dtype
    if dtype in INTEGERS | SHORT and node.op in COUNTS | views:
        return
    if dtype in INTEGERS | SHORT:
        raise PlanError("{op} with these arguments is not covered for {dtype}.", op=node.op, dtype=dtype)
    if dtype not in COMPUTED:
        raise PlanError(
            "{op} computes in {dtype}; only float32, float16, bfloat16 and masks are covered.",
            op=node.op,
            dtype=dtype,
        )
    if dtype == "bool" and node.op not in bool_results | views:
        raise PlanError("{op} on bool tensors is not covered.", op=node.op)


def _check_output(spec: TensorSpec, task: KernelTask) -> None:
    if spec.dtype not in LOADED:
        raise PlanError("An output has dtype {dtype}, which no family computes.", dtype=spec.dtype)
    _check_sizes(spec, task, Sentence("An output"))


def _check_sizes(spec: TensorSpec, task: KernelTask, what: str) -> None:
    if 0 in spec.sizes(task.sizes):
        raise PlanError(
            "{what} has no elements: its shape is {shape}.", what=what, shape=list(spec.sizes(task.sizes))
        )


def _check_memory(task: KernelTask, device_bytes: int) -> None:
    tensors = [operand.spec for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR]
    total = sum(spec.nbytes(task.sizes) for spec in (*tensors, *task.graph.output_specs()))
    if total > device_bytes:
        raise PlanError(
            "Inputs and outputs take {total} GiB, more than the {most} GiB of device memory.",
            total=f"{total / 2**30:.1f}",
            most=f"{device_bytes / 2**30:.0f}",
        )
