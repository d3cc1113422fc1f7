"""Writing a graph anew, node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, evolve, field

from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.hardware.device import Device

Rewrite = Callable[[Node, "GraphWriter"], "tuple[ValueRef, ...] | None"]
"""Writes simpler nodes in place of one whose operands are already those of the new graph, and gives one
value for each of its results; None leaves the node as it is. Raises PlanError with the reason where the
node can be computed by no kernel."""


@define
class GraphWriter:
    """A new graph over the inputs of ``task``. Every node that is written is itself rewritten as long as
    ``rewrites`` has something for its op. ``device``: to choose between right rewrites by."""

    task: KernelTask
    rewrites: Mapping[str, Rewrite]
    device: Device
    nodes: list[Node] = field(factory=list)
    _specs: dict[ValueRef, TensorSpec] = field(init=False)
    _names: set[str] = field(init=False)
    _line: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        graph = self.task.graph
        self._specs = {ValueRef(operand.name): operand.spec for operand in graph.inputs}
        self._names = {operand.name for operand in graph.inputs} | {node.name for node in graph.nodes}

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the symbols in the user's file, to choose between right rewrites by."""
        return self.task.sizes

    def at(self, line: int) -> None:
        """The source line of the nodes that follow."""
        self._line = line

    def spec(self, ref: ValueRef) -> TensorSpec:
        return self._specs[ref]

    def shape(self, ref: ValueRef) -> tuple[Dim, ...]:
        return self._specs[ref].shape

    def call(self, op: str, *args: Arg, shape: tuple[Dim, ...], dtype: str, **kwargs: Arg) -> ValueRef:
        """A new node of one result; ``op`` is a whole name such as ``aten.add.Tensor``."""
        return self.call_many(op, *args, outputs=(TensorSpec(shape, dtype),), **kwargs)[0]

    def like(self, spec: TensorSpec, op: str, *args: Arg, **kwargs: Arg) -> ValueRef:
        """A new node whose one result has the shape and the dtype of a spec."""
        return self.call(op, *args, shape=spec.shape, dtype=spec.dtype, **kwargs)

    def call_many(
        self, op: str, *args: Arg, outputs: tuple[TensorSpec, ...], **kwargs: Arg
    ) -> tuple[ValueRef, ...]:
        """A new node with one result for each spec in ``outputs``."""
        name = self._fresh(op.split(".")[1])
        return self.write(Node(name, op, args, tuple(sorted(kwargs.items())), outputs, self._line))

    def _fresh(self, stem: str) -> str:
        number, name = 1, stem
        while name in self._names:
            name, number = f"{stem}_{number}", number + 1
        self._names.add(name)
        return name

    def write(self, node: Node) -> tuple[ValueRef, ...]:
        """The node itself, or what its rewrite makes of it."""
        self._line = node.line
        rewrite = self.rewrites.get(node.op)
        result = rewrite(node, self) if rewrite is not None else None
        return self.keep(node) if result is None else result

    def keep(self, node: Node) -> tuple[ValueRef, ...]:
        """The node as it is."""
        self.nodes.append(node)
        results = tuple(ValueRef(node.name, index) for index in range(len(node.outputs)))
        self._specs |= dict(zip(results, node.outputs, strict=True))
        return results


def rewritten(task: KernelTask, rewrites: Mapping[str, Rewrite], device: Device) -> KernelTask:
    """The task with every node rewritten that has a rewrite; nodes that nothing reads any more go."""
    if not any(node.op in rewrites for node in task.graph.nodes):
        return task
    writer = GraphWriter(task, rewrites, device)
    values: dict[ValueRef, ValueRef] = {}
    for node in task.graph.nodes:
        moved = evolve(
            node,
            args=tuple(_moved(arg, values) for arg in node.args),
            kwargs=tuple((key, _moved(arg, values)) for key, arg in node.kwargs),
        )
        for index, result in enumerate(writer.write(moved)):
            values[ValueRef(node.name, index)] = result
    outputs = tuple(values.get(ref, ref) for ref in task.graph.outputs)
    return evolve(task, graph=task.graph.computed_by(alive(writer.nodes, outputs), outputs))


def _moved(arg: Any, values: Mapping[ValueRef, ValueRef]) -> Arg:
    if isinstance(arg, ValueRef):
        return values.get(arg, arg)
    return tuple(_moved(item, values) for item in arg) if isinstance(arg, tuple) else arg


def alive(nodes: list[Node], outputs: tuple[ValueRef, ...]) -> tuple[Node, ...]:
    """The nodes that the outputs depend on."""
    wanted = {ref.name for ref in outputs}
    kept = []
    for node in reversed(nodes):
        if node.name in wanted:
            wanted |= {ref.name for ref in node.operands()}
            kept.append(node)
    return tuple(reversed(kept))
