"""Inputs whose elements are multiplied along a dimension: their products must stay in range.

A product of numbers far from one, running or not, overflows or vanishes after a few dozen of them; what
comes out then depends on the order and the width of the multiplications, also in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from .index_ranges import Shapes, origins

_PRODUCTS = frozenset({"aten.cumprod.default", "aten.prod.dim_int", "aten.prod.default"})

_MOST = 512
"""Each factor rounds the product by 2**-24 at most, and equal factors all in one direction: so many stay
below half of the tolerance of 1e-4."""


def lengths(graph: Mapping[str, Any], shapes: Shapes) -> dict[str, int]:
    """Of every input that a product takes its factors from: the number of factors, by name."""
    nodes = {node["name"]: node for node in graph["nodes"]}
    inputs = {operand["name"] for operand in graph["inputs"]}
    result: dict[str, int] = {}
    for node in graph["nodes"]:
        if node["op"] not in _PRODUCTS:
            continue
        ref, *rest = node["args"]
        shape = shapes[ref["ref"], ref["index"]]
        count = math.prod(shape) if node["op"] == "aten.prod.default" else shape[rest[0]] if shape else 1
        for name in origins(ref["ref"], nodes, inputs, shapes) if shape else ():
            result[name] = max(result.get(name, 1), count)
    return result


def near_one(values: torch.Tensor, length: int) -> torch.Tensor:
    """Factors of which any ``length`` have a product in range: 1 and a share of the value each. Of more than
    float32 can multiply within a tolerance, most are 1, drawn alike each time."""
    factors = 1 + values.float() / max(min(length, _MOST), 1)
    if length > _MOST:
        generator = torch.Generator().manual_seed(length)
        factors[torch.rand(factors.shape, generator=generator) > _MOST / length] = 1
    return factors.to(values.dtype)
