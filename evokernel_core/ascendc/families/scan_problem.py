"""What a scan is: one operation that combines each element with all before it along one dimension."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from evokernel_core.ascendc.lowering_sizes import Extent, extent, product
from evokernel_core.ascendc.lowering_views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.task import KernelTask

SCAN = "evokernel.scan.default"
"""Arguments: x, the dimension, the operation, whether from the end, whether without the element itself,
and a mask (truth values of x's shape, or None) that x is multiplied with."""

OPERATIONS = frozenset({"sum", "prod", "max", "min", "logaddexp"})
_DTYPES = frozenset({"float32", "float16", "bfloat16"})


@frozen
class Scan:
    """Scans of ``length`` elements: ``outer`` groups of ``inner`` that lie side by side."""

    input: str
    mask: str
    op: str
    reverse: bool
    exclusive: bool
    outer: Extent
    length: Extent
    inner: Extent
    dtype: str

    @property
    def in_rows(self) -> bool:
        """Whether the elements of a scan are neighbours in memory."""
        return self.inner.is_one


def read_scan(task: KernelTask) -> Scan:
    """The one scan of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    nodes = {node.name: node for node in graph.nodes}
    scans = [node for node in graph.nodes if node.op == SCAN]
    if len(scans) != 1 or len(graph.outputs) != 1:
        raise PlanError("The kernel has not exactly one scan with one result.")
    node = scans[0]
    if _base(graph.outputs[0], nodes) != ValueRef(node.name):
        raise PlanError("The result is more than a scan.")
    x, dim, op, reverse, exclusive, mask = node.args
    if not isinstance(x, ValueRef) or not isinstance(dim, int) or op not in OPERATIONS:
        raise PlanError("The scan has arguments that are not covered.")
    spec = graph.spec(x)
    if spec.dtype not in _DTYPES or node.outputs[0].dtype != spec.dtype:
        raise PlanError(f"A scan of {spec.dtype} into {node.outputs[0].dtype} is not covered.")
    if mask is not None and (spec.dtype == "bfloat16" or op != "sum"):
        raise PlanError("Only sums in float32 and float16 take a mask.")
    dim %= spec.rank
    return Scan(
        _input(task, x, nodes),
        _input(task, mask, nodes) if isinstance(mask, ValueRef) else "",
        str(op),
        bool(reverse),
        bool(exclusive),
        product(map(extent, spec.shape[:dim])),
        extent(spec.shape[dim]),
        product(map(extent, spec.shape[dim + 1 :])),
        spec.dtype,
    )


def _base(ref: ValueRef, nodes: Mapping[str, Node]) -> ValueRef:
    while ref.name in nodes and nodes[ref.name].op in SAME_ORDER:
        ref = next(iter(nodes[ref.name].operands()))
    return ref


def _input(task: KernelTask, ref: ValueRef, nodes: Mapping[str, Node]) -> str:
    base = _base(ref, nodes)
    if base.name in nodes:
        raise PlanError(f"{nodes[base.name].op} in front of a scan is a kernel of its own.")
    return base.name
