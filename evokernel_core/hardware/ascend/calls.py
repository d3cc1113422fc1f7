"""The operations that eager PyTorch runs for a graph: each node by itself, or several that it was taken
apart into."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby

from attrs import evolve, frozen

from evokernel_core.domain.graph import Graph, Node, ValueRef
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.hardware.indexed import chosen_bytes
from evokernel_core.hardware.roofline import FREE_OPS, op_name


@frozen
class Operand:
    """A tensor that an operation reads or writes. ``nbytes``: what is read or written of it. ``is_given``:
    the caller passes it, or what it is a view of."""

    sizes: tuple[int, ...]
    dtype: str
    nbytes: int
    is_given: bool = False

    @property
    def elements(self) -> int:
        return math.prod(self.sizes)


@frozen
class Operation:
    """One call. ``name``: the ATen operation without its overload. ``node``: the one whose arguments tell how
    it was called; ``sizes``: of the graph's symbols."""

    name: str
    nodes: tuple[Node, ...]
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    graph: Graph
    sizes: Mapping[str, int]

    @property
    def node(self) -> Node:
        return self.nodes[0]

    @property
    def elements(self) -> int:
        """Of the largest tensor that it reads or writes."""
        return max((operand.elements for operand in (*self.operands, *self.results)), default=0)

    @property
    def written(self) -> int:
        """Bytes of its results."""
        return sum(result.nbytes for result in self.results)

    @property
    def read(self) -> int:
        """Bytes of its operands."""
        return sum(operand.nbytes for operand in self.operands)

    @property
    def given(self) -> int:
        """Bytes of those that the caller passes."""
        return sum(operand.nbytes for operand in self.operands if operand.is_given)


def operations(graph: Graph, sizes: Mapping[str, int]) -> tuple[Operation, ...]:
    """In the order of the program, views left out."""
    groups = (tuple(nodes) for _, nodes in groupby(graph.nodes, _call))
    return tuple(_operation(nodes, graph, sizes) for nodes in groups if not all(map(is_view, nodes)))


def operand_of(graph: Graph, ref: ValueRef, sizes: Mapping[str, int]) -> Operand:
    """A value of the graph. A broadcast view is read at the size of what it views."""
    maker = graph.nodes_by_name.get(ref.name)
    while maker is not None and op_name(maker.op) == "expand" and (viewed := next(maker.operands(), None)):
        ref = viewed
        maker = graph.nodes_by_name.get(viewed.name)
    return evolve(_operand(graph.spec(ref), sizes), is_given=_is_given(graph, ref))


def _is_given(graph: Graph, ref: ValueRef) -> bool:
    viewed: ValueRef | None = ref
    while viewed is not None and (maker := graph.nodes_by_name.get(viewed.name)):
        if not is_view(maker):
            return False
        viewed = next(maker.operands(), None)
    return viewed is not None


def is_view(node: Node) -> bool:
    """Whether PyTorch answers a node without a launch."""
    return op_name(node.op) in FREE_OPS


def _call(node: Node) -> tuple[str, object]:
    return (node.op, node.name) if node.call is None else (node.call.op, node.call.number)


def _operation(nodes: tuple[Node, ...], graph: Graph, sizes: Mapping[str, int]) -> Operation:
    inner = {node.name for node in nodes}
    read = dict.fromkeys(ref for node in nodes for ref in node.operands() if ref.name not in inner)
    # what nothing outside of a call reads is no result of it
    used = {ref.name for node in graph.nodes if node.name not in inner for ref in node.operands()}
    used |= {ref.name for ref in graph.outputs}
    last = [node for node in nodes if node.name in used] or [nodes[-1]]
    call = nodes[0].call
    return Operation(
        op_name(call.op if call else nodes[0].op),
        nodes,
        tuple(_read_of(nodes, ref, graph, sizes) for ref in read),
        tuple(_operand(spec, sizes) for node in last for spec in node.outputs[:1]),
        graph,
        sizes,
    )


def _read_of(nodes: tuple[Node, ...], ref: ValueRef, graph: Graph, sizes: Mapping[str, int]) -> Operand:
    """An operand with the bytes that are read of it: of one that indices choose from, whole blocks."""
    operand = operand_of(graph, ref, sizes)
    readers = [node for node in nodes if ref in set(node.operands())]
    chosen = [chosen_bytes(node, ref, graph, sizes, BLOCK_BYTES) for node in readers]
    told = [count for count in chosen if count is not None]
    return evolve(operand, nbytes=sum(told)) if len(told) == len(readers) else operand


def _operand(spec: TensorSpec, sizes: Mapping[str, int]) -> Operand:
    return Operand(spec.sizes(sizes), spec.dtype, spec.nbytes(sizes))
