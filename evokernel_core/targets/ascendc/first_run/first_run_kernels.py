"""The kernels of a first run on an Ascend host: small, exact in any order of additions, and as the author
writes them today.

``add`` starts vector cores only, ``linear`` cube and vector cores side by side (``__mix__``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.graph import Arg, Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import Dim, TensorSpec

ROWS = 130
"""Not a multiple of any tile."""
COLUMNS = 256
_SEED = 7


@frozen
class Probe:
    """A task and what it computes, in numpy."""

    name: str
    task: KernelTask
    expected: Callable[..., Any]

    @property
    def sizes(self) -> dict[str, int]:
        return self.task.sizes

    def source(self, author: KernelAuthor) -> KernelSource:
        """The kernel as the schedule proposer drafts it."""
        return author.plan(self.task).write()

    def inputs(self) -> list[Any]:
        """Whole numbers so small that float32 holds every sum of their products exactly."""
        rng = np.random.default_rng(_SEED)
        shapes = [operand.spec.sizes(self.sizes) for operand in self.task.graph.inputs]
        return [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]


def probes() -> tuple[Probe, ...]:
    """The kernels in the order in which they run."""
    return (
        Probe("add", _add(), lambda x, y: x + y),
        Probe("linear", _linear(), lambda x, weight, bias: np.maximum(x @ weight.T + bias, 0) * bias),
    )


def _add() -> KernelTask:
    shape: tuple[Dim, ...] = ("rows", COLUMNS)
    node = _node("add.Tensor", ValueRef("x"), ValueRef("y"), shape=shape)
    return _task("first_add", [_input("x", *shape), _input("y", *shape)], [node])


def _linear() -> KernelTask:
    inputs = [
        _input("x", "rows", COLUMNS),
        _input("weight", COLUMNS, COLUMNS, parameter=True),
        _input("bias", COLUMNS, parameter=True),
    ]
    shape: tuple[Dim, ...] = ("rows", COLUMNS)
    nodes = [
        _node("t.default", ValueRef("weight"), shape=(COLUMNS, COLUMNS)),
        _node("mm.default", ValueRef("x"), ValueRef("t"), shape=shape),
        _node("add.Tensor", ValueRef("mm"), ValueRef("bias"), shape=shape),
        _node("relu.default", ValueRef("add"), shape=shape),
        _node("mul.Tensor", ValueRef("relu"), ValueRef("bias"), shape=shape),  # by vector cores
    ]
    return _task("first_linear", inputs, nodes)


def _node(op: str, *args: Arg, shape: Sequence[Dim]) -> Node:
    name = op.partition(".")[0]
    return Node(name, f"aten.{op}", args, (), (TensorSpec(tuple(shape), "float32"),))


def _input(name: str, *shape: Dim, parameter: bool = False) -> GraphInput:
    kind = InputKind.PARAMETER if parameter else InputKind.TENSOR
    return GraphInput(name, TensorSpec(shape, "float32"), kind, name)


def _task(name: str, inputs: Sequence[GraphInput], nodes: Sequence[Node]) -> KernelTask:
    graph = Graph(tuple(inputs), tuple(nodes), (ValueRef(nodes[-1].name),))
    return KernelTask(name, graph, (Symbol("rows", ROWS),), TOLERANCES["float32"], "other")
