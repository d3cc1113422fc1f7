"""Matrices of parameters that keep the size of what passes through them.

Layers that saturate hide errors, and a long chain of layers that grow makes values leave their type, where
PyTorch itself has no result to compare with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from .precision import SUMS, magnitude
from .reduction_rounding import SHALLOW

_RANDOM = ("normal", "wide", "ties", "signs", "scales", "sorted", "large", "mixed", "columns")
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
