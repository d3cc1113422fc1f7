"""Builders of captured graphs, so that tests need no torch and no capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from evokernel_core.domain.graph import Arg, Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import Dim, TensorSpec


class GraphBuilder:
    """Collects inputs and nodes; every method returns the name's ValueRef."""

    def __init__(self) -> None:
        self.inputs: list[GraphInput] = []
        self.nodes: list[Node] = []
        self.symbols: dict[str, int] = {}

    def input(
        self, name: str, shape: Sequence[Dim], dtype: str = "float32", parameter: bool = False
    ) -> ValueRef:
        kind = InputKind.PARAMETER if parameter else InputKind.TENSOR
        self.inputs.append(GraphInput(name, TensorSpec(shape, dtype), kind, name))
        return ValueRef(name)

    def scalar(self, name: str) -> ValueRef:
        self.inputs.append(GraphInput(name, TensorSpec((), "float32"), InputKind.SCALAR, name))
        return ValueRef(name)

    def call(
        self, op: str, *args: Arg, shape: Sequence[Dim], dtype: str = "float32", **kwargs: Arg
    ) -> ValueRef:
        """One node with a single result; ``op`` is the ATen name without ``aten.``."""
        return self.calls(op, *args, outputs=[TensorSpec(shape, dtype)], **kwargs)

    def calls(self, op: str, *args: Arg, outputs: Sequence[TensorSpec], **kwargs: Arg) -> ValueRef:
        name = f"{op.split('.', maxsplit=1)[0].lstrip('_')}_{len(self.nodes)}"
        self.nodes.append(Node(name, f"aten.{op}", args, tuple(kwargs.items()), tuple(outputs)))
        return ValueRef(name)

    def task(self, *outputs: ValueRef, symbols: Mapping[str, int] | None = None) -> KernelTask:
        graph = Graph(tuple(self.inputs), tuple(self.nodes), outputs)
        dtype = graph.output_specs()[0].dtype
        tolerance = TOLERANCES.get(dtype, TOLERANCES["float32"])
        named = tuple(Symbol(name, size) for name, size in (symbols or {}).items())
        return KernelTask("kernel", graph, named, tolerance, "elementwise")


@pytest.fixture
def builder() -> Any:
    """A fresh GraphBuilder each time it is called."""
    return GraphBuilder
