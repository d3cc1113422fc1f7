"""Inputs that must be in order: boundaries that values are placed between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .index_ranges import Shapes, origins

_BOUNDARIES = {"aten.searchsorted.Tensor": 0, "aten.searchsorted.Scalar": 0, "aten.bucketize.Tensor": 1}
"""Operations that look for places between boundaries, and which argument these are."""


def boundaries(graph: Mapping[str, Any], shapes: Shapes) -> set[str]:
    """The names of inputs that hold boundaries: without order PyTorch finds one place or another."""
    nodes = {node["name"]: node for node in graph["nodes"]}
    inputs = {operand["name"] for operand in graph["inputs"]}
    result: set[str] = set()
    for node in graph["nodes"]:
        if node["op"] in _BOUNDARIES:
            ref = node["args"][_BOUNDARIES[node["op"]]]
            result.update(origins(ref["ref"], nodes, inputs, shapes))
    return result
