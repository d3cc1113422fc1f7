"""A variance of what another node takes variance and mean of is that variance in another proportion.

Batch norm in training mode has both: it normalises with one and keeps the other in its buffers.
"""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.rewrites.split_reductions import reduced_dims, size
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite, rewritten
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.device import Device


def related_variances(task: KernelTask, device: Device) -> KernelTask:
    """The task with each variance computed from an earlier one of the same elements, where there is one."""
    if not any(node.op == "aten.var_mean.correction" for node in task.graph.nodes):
        return task
    return rewritten(task, _RULES, device)


def _variance(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    spec, x = node.outputs[0], node.args[0]
    earlier = next((other for other in writer.nodes if _is_of_same(other, node)), None)
    if earlier is None or not isinstance(x, ValueRef) or spec.dtype != "float32":
        return None
    shape = writer.shape(x)
    dims, mine, its = reduced_dims(node, len(shape)), _correction(node), _correction(earlier)
    if dims is None or mine is None or its is None:
        return None
    value = ValueRef(earlier.name)
    if mine == its:
        return (value,)
    length = size(writer, tuple(shape[dim] for dim in dims))
    apart = [
        writer.call("aten.sub.Tensor", length, number, shape=(), dtype="float32") for number in (its, mine)
    ]
    factor = writer.call("aten.div.Tensor", *apart, shape=(), dtype="float32")
    return (writer.call("aten.mul.Tensor", value, factor, shape=spec.shape, dtype="float32"),)


def _is_of_same(other: Node, node: Node) -> bool:
    same = other.args[:2] == node.args[:2] and other.outputs[:1] == node.outputs[:1]
    return other.op == "aten.var_mean.correction" and same


def _correction(node: Node) -> float | None:
    given = dict(node.kwargs).get("correction", node.args[2] if len(node.args) > 2 else None)
    if given is None:
        return 1
    return given if isinstance(given, (int, float)) else None


_RULES: Mapping[str, Rewrite] = {"aten.var.correction": _variance}
