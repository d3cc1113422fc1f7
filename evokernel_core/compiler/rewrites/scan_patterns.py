"""Scans from the end, without the element itself, or of masked elements, as they are usually written.

``flip(cumsum(flip(x)))`` goes from the end; zeros in front of all sums but the last leave each element out
of its own sum; ``cumsum(x * mask)`` sums where the mask is true.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from evokernel_core.compiler.ops import SCAN
from evokernel_core.compiler.rewrites.scan import SCANS, scan_node
from evokernel_core.compiler.rewrites.writer import alive
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.graph import Arg, Graph, Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.device import Device

_IDENTITY = {"sum": 0.0, "prod": 1.0}
_FILLS = {"zeros_like": 0.0, "zeros": 0.0, "new_zeros": 0.0, "ones_like": 1.0, "ones": 1.0, "new_ones": 1.0}
_GIVEN_FILLS = frozenset({"full", "full_like", "new_full"})


def recognise_scans(task: KernelTask, device: Device) -> KernelTask:
    """The task with one scan for each of these patterns; a scan without one stays as it is."""
    if not any(node.op in SCANS for node in task.graph.nodes):
        return task
    patterns = _Patterns(task)
    nodes = [patterns.rewritten(node) for node in task.graph.nodes]
    return evolve(task, graph=evolve(task.graph, nodes=alive(nodes, task.graph.outputs)))


class _Patterns:
    def __init__(self, task: KernelTask) -> None:
        self._graph: Graph = task.graph
        self._nodes: dict[str, Node] = {}
        self._dtypes: Mapping[str, TensorSpec] = {operand.name: operand.spec for operand in task.graph.inputs}

    def rewritten(self, node: Node) -> Node:
        """The node, or the scan that it stands for; nodes come in order."""
        if node.op in SCANS:
            result = self._scan(node)
        elif node.op == "aten.flip.default":
            result = self._reversed(node)
        elif node.op == "aten.cat.default":
            result = self._behind_identity(node)
        else:
            result = None
        self._nodes[node.name] = result or node
        return self._nodes[node.name]

    def _node(self, ref: Arg) -> Node | None:
        return self._nodes.get(ref.name) if isinstance(ref, ValueRef) and not ref.index else None

    def _spec(self, ref: ValueRef) -> TensorSpec:
        node = self._nodes.get(ref.name)
        return node.outputs[ref.index] if node else self._dtypes[ref.name]

    def _scan(self, node: Node) -> Node | None:
        """One node for a scan of floating point numbers whose other results nobody needs."""
        result = scan_node(node, self._spec)
        if result is None or self._others_are_read(node):
            return None
        x = result.args[0]
        shifted = self._shifted(x, literal(result.args[1]), str(result.args[2]))
        if shifted is not None:
            return _with(result, x=shifted, exclusive=True)
        masked = self._masked(x)
        return _with(result, x=masked[0], mask=masked[1]) if masked and result.args[2] == "sum" else result

    def _others_are_read(self, node: Node) -> bool:
        refs = [ref for other in self._graph.nodes for ref in other.operands()]
        return any(ref.name == node.name and ref.index for ref in (*refs, *self._graph.outputs))

    def _masked(self, x: Arg) -> tuple[ValueRef, ValueRef] | None:
        """The factors of a product with truth values of the same shape."""
        node = self._node(x)
        if node is None or node.op != "aten.mul.Tensor":
            return None
        factors = [ref for ref in node.args if isinstance(ref, ValueRef)]
        if len(factors) != 2 or node.outputs[0].dtype not in ("float32", "float16"):
            return None
        for number, truth in (factors, factors[::-1]):
            specs = self._spec(number), self._spec(truth)
            same = [list(map(extent, spec.shape)) for spec in (*specs, node.outputs[0])]
            kinds = (specs[0].dtype, specs[1].dtype)
            if kinds == (node.outputs[0].dtype, "bool") and same[0] == same[1] == same[2]:
                return number, truth
        return None

    def _reversed(self, node: Node) -> Node | None:
        """flip(scan(flip(x))) along one dimension."""
        scan = self._node(node.args[0])
        if scan is None or scan.op != SCAN.name or scan.args[5] is not None:
            return None
        inner = self._node(scan.args[0])
        rank = len(node.outputs[0].shape)
        if inner is None or inner.op != "aten.flip.default":
            return None
        dim = literal(scan.args[1]) % rank
        if _dims(node, rank) != [dim] or _dims(inner, rank) != [dim]:
            return None
        return evolve(_with(scan, x=inner.args[0], reverse=not scan.args[3]), name=node.name)

    def _behind_identity(self, node: Node) -> Node | None:
        """An identity in front of a scan of all elements but the last, or of all results but the last."""
        parts, rank = node.args[0], len(node.outputs[0].shape)
        dim = (literal(node.args[1]) if len(node.args) > 1 else 0) % rank
        if not isinstance(parts, tuple) or len(parts) != 2:
            return None
        below = self._node(parts[1])
        if below is not None and below.op == SCAN.name:
            scan, x = below, self._but_the_last(below.args[0], dim, node)
        else:
            results = self._but_the_last(parts[1], dim, node)
            inner = self._node(results)
            if inner is None or inner.op != SCAN.name:
                return None
            scan, x = inner, inner.args[0]
        fits = x is not None and scan.args[3:] == (False, False, None) and literal(scan.args[1]) % rank == dim
        if not fits or not self._is_identity(parts[0], dim, str(scan.args[2])):
            return None
        return evolve(_with(scan, x=x, exclusive=True), name=node.name, outputs=node.outputs)

    def _but_the_last(self, ref: Arg, dim: int, whole: Node) -> Arg:
        """What a slice takes all but the last element of, if that has the shape of ``whole``."""
        node = self._node(ref)
        if node is None or node.op != "aten.slice.Tensor" or not self._starts_at_zero(node, dim):
            return None
        x = node.args[0]
        same = isinstance(x, ValueRef) and _same_shape(self._spec(x), whole.outputs[0])
        return x if same else None

    @staticmethod
    def _starts_at_zero(node: Node, dim: int) -> bool:
        rank = len(node.outputs[0].shape)
        along = literal(node.args[1]) % rank if len(node.args) > 1 else 0
        start = node.args[2] if len(node.args) > 2 else 0
        step = node.args[4] if len(node.args) > 4 else 1
        return along == dim and start in (0, None) and step == 1

    def _shifted(self, x: Arg, dim: int, op: str) -> Arg:
        """What an identity was put in front of and the last element cut off."""
        node = self._node(x)
        if node is None or node.op != "aten.slice.Tensor":
            return None
        rank = len(node.outputs[0].shape)
        joined = self._node(node.args[0])
        if joined is None or joined.op != "aten.cat.default" or not self._starts_at_zero(node, dim % rank):
            return None
        parts = joined.args[0]
        along = (literal(joined.args[1]) if len(joined.args) > 1 else 0) % rank
        if not isinstance(parts, tuple) or len(parts) != 2 or along != dim % rank:
            return None
        last = parts[1]
        fits = isinstance(last, ValueRef) and _same_shape(self._spec(last), node.outputs[0])
        return last if fits and self._is_identity(parts[0], along, op) else None

    def _is_identity(self, ref: Arg, dim: int, op: str) -> bool:
        """Whether one element along a dimension is what leaves a scan as it is."""
        node = self._node(ref)
        if node is None or op not in _IDENTITY or node.outputs[0].shape[dim] != 1:
            return False
        packet = node.op.split(".")[1]
        value = node.args[1] if packet in _GIVEN_FILLS and len(node.args) > 1 else _FILLS.get(packet)
        return isinstance(value, (int, float)) and float(value) == _IDENTITY[op]


def _with(node: Node, x: Arg = None, reverse: Arg = None, exclusive: Arg = None, mask: Arg = None) -> Node:
    """A scan with other arguments where they are given."""
    given = (x, None, None, reverse, exclusive, mask)
    args = tuple(old if new is None else new for old, new in zip(node.args, given, strict=True))
    return evolve(node, args=args)


def _dims(node: Node, rank: int) -> list[int]:
    dims = node.args[1]
    return [literal(dim) % rank for dim in dims] if isinstance(dims, tuple) else []


def _same_shape(a: TensorSpec, b: TensorSpec) -> bool:
    return list(map(extent, a.shape)) == list(map(extent, b.shape))
