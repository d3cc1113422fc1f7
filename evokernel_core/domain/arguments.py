"""What a graph's operator is passed. PyTorch's operators take at most 64 arguments, so one with more inputs
takes its tensors in a list, then the numbers."""

from __future__ import annotations

from evokernel_core.domain.graph import Graph, GraphInput, InputKind

MOST_ARGUMENTS = 64
"""Of one operator (c10's dispatcher refuses schemas with more)."""


def takes_lists(graph: Graph) -> bool:
    return len(graph.inputs) > MOST_ARGUMENTS


def numbers_of(graph: Graph) -> tuple[GraphInput, ...]:
    """The inputs that are Python numbers."""
    return tuple(operand for operand in graph.inputs if operand.kind is InputKind.SCALAR)
