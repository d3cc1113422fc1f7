"""Nodes that compute the same from the same are one."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.task import KernelTask


def merged(task: KernelTask) -> KernelTask:
    """The task without nodes that repeat an earlier one. Operations that draw numbers are none of a task."""
    known: dict[Any, str] = {}
    names: dict[str, str] = {}
    nodes: list[Node] = []
    for node in task.graph.nodes:
        moved = evolve(
            node,
            args=tuple(_renamed(arg, names) for arg in node.args),
            kwargs=tuple((key, _renamed(arg, names)) for key, arg in node.kwargs),
        )
        key = (moved.op, repr(moved.args), repr(moved.kwargs), moved.outputs)
        if key in known:
            names[node.name] = known[key]
        else:
            known[key] = node.name
            nodes.append(moved)
    outputs = tuple(ValueRef(names.get(ref.name, ref.name), ref.index) for ref in task.graph.outputs)
    if len(set(outputs)) < len(set(task.graph.outputs)):
        return task  # two results of the task are one value, which no kernel writes twice
    return evolve(task, graph=evolve(task.graph, nodes=tuple(nodes), outputs=outputs))


def _renamed(arg: Arg, names: dict[str, str]) -> Arg:
    if isinstance(arg, ValueRef):
        return ValueRef(names.get(arg.name, arg.name), arg.index)
    return tuple(_renamed(item, names) for item in arg) if isinstance(arg, tuple) else arg
