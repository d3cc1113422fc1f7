"""Inputs whose elements are multiplied along a dimension: their products must stay in range.

A running product of numbers far from one overflows or vanishes after a few dozen of them; what comes out
then depends on the order and the width of the multiplications, also in PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .indices import Shapes, origins

_PRODUCTS = ("aten.cumprod.default",)


def lengths(graph: Mapping[str, Any], shapes: Shapes) -> dict[str, int]:
    """Of every input that a running product takes its factors from: the number of factors, by name."""
    nodes = {node["name"]: node for node in graph["nodes"]}
    inputs = {item["name"] for item in graph["inputs"]}
    found: dict[str, int] = {}
    for node in graph["nodes"]:
        if node["op"] not in _PRODUCTS:
            continue
        ref, dim = node["args"][0], node["args"][1]
        shape = shapes[ref["ref"], ref["index"]]
        for name in origins(ref["ref"], nodes, inputs, shapes) if shape else ():
            found[name] = max(found.get(name, 1), shape[dim])
    return found


def near_one(values: torch.Tensor, length: int) -> torch.Tensor:
    """Factors of which any ``length`` have a product in range: 1 and a share of the value each."""
    return (1 + values.float() / max(length, 1)).to(values.dtype)
