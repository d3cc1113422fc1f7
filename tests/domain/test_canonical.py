"""A task is its mathematics: names and the order of independent nodes are not part of it, all else is."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.canonical import node_order
from evokernel_core.domain.graph import Arg, Graph, GraphInput, InputKind, Node, SymbolicInt, Update, ValueRef
from evokernel_core.domain.task import TOLERANCES, ById, KernelTask, Symbol, in_order_of_use
from evokernel_core.domain.tensor import TensorSpec

SHAPE = ("s0", "s1*s0")
SPEC = TensorSpec(SHAPE, "float32")
OPS = ("aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor")


def task_of(graph: Graph) -> KernelTask:
    symbols = (Symbol("s0", 8), Symbol("s1", 4))
    return KernelTask("task", graph, symbols, TOLERANCES["float32"], "elementwise")


@st.composite
def tasks(draw: st.DrawFn) -> KernelTask:
    """Some inputs and binary operations on any earlier values, with a size among the arguments."""
    inputs = tuple(GraphInput(f"x{index}", SPEC) for index in range(draw(st.integers(1, 3))))
    names, nodes = [item.name for item in inputs], []
    for index in range(draw(st.integers(1, 7))):
        left, right = (ValueRef(draw(st.sampled_from(names))) for _ in range(2))
        kwargs = (("alpha", draw(st.sampled_from((1, 2, SymbolicInt("s1*s0"))))),)
        nodes.append(Node(f"n{index}", draw(st.sampled_from(OPS)), (left, right), kwargs, (SPEC,), index))
        names.append(f"n{index}")
    outputs = tuple(ValueRef(node.name) for node in nodes[-draw(st.integers(1, 2)) :])
    return in_order_of_use(task_of(Graph(inputs, tuple(nodes), outputs)))


def respelled(task: KernelTask, rng: random.Random) -> KernelTask:
    """Other names for everything, and the nodes in another order in which they can run."""
    graph = task.graph
    names = [item.name for item in graph.inputs] + [node.name for node in graph.nodes]
    new = dict(zip(names, rng.sample([f"v{n}" for n in range(100)], len(names)), strict=True))

    def arg(value: Arg) -> Arg:
        if isinstance(value, SymbolicInt):
            return SymbolicInt(sizes(value.expression))
        return ValueRef(new[value.name], value.index) if isinstance(value, ValueRef) else value

    def sizes(text: str) -> str:
        return "b*a" if text == "s1*s0" else {"s0": "a", "s1": "b"}[text]

    spec = TensorSpec(tuple(map(sizes, SHAPE)), "float32")
    left, done, nodes = list(graph.nodes), {item.name for item in graph.inputs}, []
    while left:
        node = rng.choice([node for node in left if {ref.name for ref in node.operands()} <= done])
        left.remove(node)
        done.add(node.name)
        kwargs = tuple((key, arg(value)) for key, value in node.kwargs)
        nodes.append(Node(new[node.name], node.op, tuple(map(arg, node.args)), kwargs, (spec,), 99))
    inputs = tuple(GraphInput(new[item.name], spec, item.kind, "self.secret") for item in graph.inputs)
    outputs = tuple(ValueRef(new[ref.name]) for ref in graph.outputs)
    symbols = (Symbol("a", 8), Symbol("b", 4))
    return evolve(task, name="other", graph=Graph(inputs, tuple(nodes), outputs), symbols=symbols)


@given(tasks(), st.randoms(use_true_random=False))
def test_any_spelling_is_the_same_task(task: KernelTask, rng: random.Random) -> None:
    other = respelled(task, rng)
    assert other.task_id == task.task_id
    assert in_order_of_use(other).task_id == task.task_id
    assert ById(other) != ById(task)  # a cache of what names values must not mix them


@given(tasks(), st.randoms(use_true_random=False))
def test_the_order_of_inputs_is_found_again(task: KernelTask, rng: random.Random) -> None:
    inputs = list(task.graph.inputs)
    rng.shuffle(inputs)
    shuffled = evolve(task, graph=evolve(task.graph, inputs=tuple(inputs)), symbols=task.symbols[::-1])
    found = in_order_of_use(shuffled)
    read = [ref.name for node in node_order(task.graph) for ref in node.operands()]
    used = [item.name for item in found.graph.inputs if item.name in read]
    assert used == list(dict.fromkeys(name for name in read if name in {item.name for item in inputs}))
    assert found.symbols == task.symbols
    unused = [item.name for item in found.graph.inputs if item.name not in read]
    assert len(unused) > 1 or found.task_id == task.task_id


X, Y = GraphInput("x", SPEC), GraphInput("y", SPEC)


def _graph(**changes: object) -> Graph:
    node = Node("n", "aten.sub.Tensor", (ValueRef("x"), ValueRef("y")), (), (SPEC,))
    graph = Graph((X, Y), (node,), (ValueRef("n"),))
    return evolve(graph, **changes)


@pytest.mark.parametrize(
    "change",
    [
        lambda task: evolve(task, tolerance=TOLERANCES["float16"]),
        lambda task: evolve(task, op_category="loss"),
        lambda task: evolve(task, symbols=(Symbol("s0", 9), Symbol("s1", 4))),
        lambda task: evolve(task, symbols=(Symbol("s0", 8, 2), Symbol("s1", 4))),
        lambda task: evolve(task, graph=_graph(inputs=(Y, X))),
        lambda task: evolve(task, graph=_graph(inputs=(evolve(X, kind=InputKind.PARAMETER), Y))),
        lambda task: evolve(task, graph=_graph(inputs=(evolve(X, spec=evolve(SPEC, dtype="float16")), Y))),
        lambda task: evolve(task, graph=_graph(inputs=(evolve(X, spec=evolve(SPEC, contiguous=False)), Y))),
        lambda task: evolve(task, graph=_graph(outputs=(ValueRef("n"), ValueRef("n")))),
        lambda task: evolve(task, graph=_graph(updates=(Update("x", SPEC, "self.x", 0),))),
        lambda task: evolve(
            task,
            graph=_graph(nodes=(Node("n", "aten.sub.Tensor", (ValueRef("y"), ValueRef("x")), (), (SPEC,)),)),
        ),
    ],
)
def test_what_is_part_of_the_identity(change: Callable[[KernelTask], KernelTask]) -> None:
    task = task_of(_graph())
    assert change(task).task_id != task.task_id


def test_nodes_that_nothing_needs_are_no_part_of_it() -> None:
    dead = Node("dead", "aten.neg.default", (ValueRef("x"),), (), (SPEC,))
    task = task_of(_graph())
    graph = evolve(task.graph, nodes=(*task.graph.nodes, dead))
    assert evolve(task, graph=graph).task_id == task.task_id
