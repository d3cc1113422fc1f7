"""How families read the one operation of a task that is theirs, through views that keep elements in order."""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve

from evokernel_core.compiler.shapes.views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

_INDICES = frozenset({"int32", "int64"})


def one_node(task: KernelTask, ops: Collection[str], reason: Sentence) -> Node:
    """The node of a task with one of ``ops``. Raises PlanError with the reason where it has none or
    several."""
    nodes = [node for node in task.graph.nodes if node.op in ops]
    if len(nodes) != 1:
        raise PlanError(reason)
    return nodes[0]


def only_node(task: KernelTask, ops: Collection[str], reason: Sentence) -> Node:
    """The node that the task consists of, views aside. Raises PlanError with the reason where there is
    more to compute, or more than one result."""
    graph, node = task.graph, one_node(task, ops, reason)
    more = any(other.op not in ops and other.op not in SAME_ORDER for other in graph.nodes)
    if more or len(graph.outputs) != 1 or below_views(graph, graph.outputs[0]).name != node.name:
        raise PlanError(reason)
    return node


def below_views(graph: Graph, ref: ValueRef) -> ValueRef:
    """The value under a chain of views that keep the order of elements."""
    nodes = graph.nodes_by_name
    while ref.name in nodes and nodes[ref.name].op in SAME_ORDER:
        ref = next(iter(nodes[ref.name].operands()))
    return ref


def input_below(graph: Graph, ref: ValueRef, reader: str) -> str:
    """The input that ``reader`` reads through views. Raises PlanError where it is computed first."""
    base = below_views(graph, ref).name
    if computed := graph.nodes_by_name.get(base):
        raise PlanError(
            "{computed} before {reader} is a kernel of its own.", computed=computed.op, reader=reader
        )
    return base


def index_dtype(graph: Graph, ref: ValueRef) -> str:
    """The dtype of indices. Raises PlanError where they have another one."""
    dtype = graph.spec(ref).dtype
    if dtype not in _INDICES:
        raise PlanError("Indices of dtype {dtype} are not covered; int32 and int64 are.", dtype=dtype)
    return dtype


def behind(task: KernelTask, ref: ValueRef) -> KernelTask:
    """The part of a task that reads the value ``ref``, which becomes an input, on the way to the outputs.
    Raises PlanError where nothing is left to do."""
    graph = task.graph
    nodes = graph.nodes_by_name
    names: set[str] = set()
    read: set[str] = set()
    waiting = list(graph.outputs)
    while waiting:
        value = waiting.pop()
        if value == ref or value.name not in nodes:
            read.add(value.name)
        elif value.name not in names:
            names.add(value.name)
            waiting.extend(nodes[value.name].operands())
    if not names:
        raise PlanError("Nothing is computed behind the result.")
    inputs = [operand for operand in graph.inputs if operand.kind is InputKind.SCALAR or operand.name in read]
    kept: tuple[Node, ...] = tuple(node for node in graph.nodes if node.name in names)
    part = Graph((*inputs, GraphInput(ref.name, graph.spec(ref))), kept, graph.outputs)
    return evolve(task, graph=part)
