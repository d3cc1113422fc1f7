"""Inputs that are drawn within what an operation can take: factors, weights, states, boundaries.

A product of numbers far from one, running or not, overflows or vanishes after a few dozen of them; what
comes out then depends on the order and the width of the multiplications, also in PyTorch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from ..graph.names import refs_in
from .index_ranges import Shapes, origins
from .precision import SUMS, magnitude
from .reduction_rounding import SHALLOW

_PRODUCTS = frozenset({"aten.cumprod.default", "aten.prod.dim_int", "aten.prod.default"})

_MOST = 512
"""Each factor rounds the product by 2**-24 at most, and equal factors all in one direction: so many stay
below half of the tolerance of 1e-4."""
_MOST_EXPONENT = 100
"""Of a product of two: what a kernel multiplies first stays in float32, too."""


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
    """Factors of which any ``length`` have a product in range, in whatever order: 1 and a share of the value
    each, up to a limit. Of more than float32 can multiply within a tolerance, most are 1, drawn alike each
    time."""
    count = max(min(length, _MOST), 1)
    limit = 2.0 ** (_MOST_EXPONENT / count)
    factors = 1 + values.float() / count
    factors = torch.where(factors.isfinite(), factors.clamp(-limit, limit), factors)
    if length > _MOST:
        generator = torch.Generator().manual_seed(length)
        factors[torch.rand(factors.shape, generator=generator) > _MOST / length] = 1
    return factors.to(values.dtype)


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


_LAYERS = frozenset(f"aten.{kind}.input" for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu"))
_TURNS = ("aten.t.default", "aten.permute.default", "aten.transpose.int")
"""What a layer does to its weights each time."""
_LEAST_STEPS = 4
_ROW = 3**-0.5
"""Length of a row of weights as PyTorch draws them: uniform, within 1 / sqrt(hidden)."""


def layers_take(graph: dict[str, Any]) -> frozenset[str]:
    """The names of inputs that are weights, biases or first states of a recurrent layer, or weights that a
    loop over steps multiplies with again and again."""
    names = {operand["name"] for operand in graph["inputs"]}
    layers = (node for node in graph["nodes"] if node["op"] in _LAYERS)
    taken = {name for node in layers for name in refs_in(node["args"][1:3])}
    factors = Counter(
        name for node in graph["nodes"] if node["op"] in _TURNS for name in refs_in(node["args"])
    )
    again = {name for name, count in factors.items() if count >= _LEAST_STEPS}
    return frozenset((taken | again) & names)


def steadied(value: torch.Tensor) -> torch.Tensor:
    """Rows of a matrix at most as long as those that layers begin with, anything else within [-1, 1]."""
    if not value.is_floating_point() or value.numel() == 0:
        return value
    if value.dim() == 2:
        lengths = torch.linalg.vector_norm(value.float(), dim=1, keepdim=True)
        return (value * (_ROW / lengths.clamp(min=_ROW))).to(value.dtype)
    return (value / value.abs().max().clamp(min=1)).to(value.dtype)


_RANDOM = ("normal", "wide", "ties", "signs", "scales", "sorted", "large", "mixed", "columns", "peaks")
"""Distributions whose terms have random signs, so that sums grow by the root of their number."""


def is_deep(graph: Mapping[str, Any]) -> bool:
    """Whether more products follow each other than values pass through without growing by much."""
    return sum(node["op"] in SUMS for node in graph["nodes"]) > SHALLOW


def as_weights(value: torch.Tensor, distribution: str, *, deep: bool) -> torch.Tensor:
    """A drawn parameter; a matrix of random signs is divided by the root of its rows' length, as layers begin
    with them. In deep graphs such rows have unit length, and matrices of the other distributions have rows
    and columns whose magnitudes sum to one at most: where all signs are equal, all terms add up."""
    if value.dim() < 2 or not value.is_floating_point() or not value.numel():
        return value
    if distribution in _RANDOM:
        return value / math.sqrt(value[0].numel()) / (max(1.0, magnitude(value)) if deep else 1.0)
    if not deep:
        return value
    magnitudes = value.abs().float()
    sides = (magnitudes, magnitudes.transpose(0, 1))
    return value / max(1.0, *(float(side.flatten(1).sum(1).max()) for side in sides))
