"""What a call of a graph's operator passes. PyTorch's operators take at most 64 arguments, so a call with
more tensors passes them in lists: those that it reads, those that it writes, then the numbers."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Update

MOST_ARGUMENTS = 64
"""Of one operator (c10's dispatcher refuses schemas with more)."""


@frozen
class Lists:
    """The two lists and the numbers behind them."""

    read: tuple[GraphInput, ...]
    written: tuple[GraphInput | Update, ...]
    numbers: tuple[GraphInput, ...]


def takes_lists(graph: Graph) -> bool:
    return len(graph.inputs) + len(graph.counters) > MOST_ARGUMENTS


def lists(graph: Graph) -> Lists:
    """Each in the order of the inputs; buffers that are only written come last."""
    changed = {item.name for item in graph.updates}
    tensors = [item for item in graph.inputs if item.kind is not InputKind.SCALAR]
    return Lists(
        tuple(item for item in tensors if item.name not in changed),
        (*(item for item in tensors if item.name in changed), *graph.counters),
        tuple(item for item in graph.inputs if item.kind is InputKind.SCALAR),
    )


def expressions(graph: Graph) -> list[str | list[str]]:
    """The Python texts that a call passes."""
    if not takes_lists(graph):
        passed: list[GraphInput | Update] = [*graph.inputs, *graph.counters]
        return [item.expression for item in passed]
    parts = lists(graph)
    read = [item.expression for item in parts.read]
    written = [item.expression for item in parts.written]
    return [read, *([written] if graph.updates else []), *(item.expression for item in parts.numbers)]
