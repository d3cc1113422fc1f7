"""Operations of which PyTorch leaves open in what order equal elements come: here the first comes first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

Pair = tuple[torch.Tensor, torch.Tensor]


def in_order(x: torch.Tensor, dim: int = -1, descending: bool = False) -> Pair:
    """aten.sort"""
    values, indices = torch.sort(x, stable=True, dim=dim, descending=descending)
    return values, indices


def first(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    """aten.topk; ``sorted`` is the op's name for whether the order matters, which it may."""
    values, indices = in_order(x, dim, largest)
    return (values, indices) if not x.dim() else (values.narrow(dim, 0, k), indices.narrow(dim, 0, k))


def kth(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    """aten.kthvalue"""
    if not x.dim():
        return in_order(x)
    result = [element.narrow(dim, k - 1, 1) for element in in_order(x, dim)]
    values, indices = result if keepdim else [element.squeeze(dim) for element in result]
    return values, indices


RULES: Mapping[str, Callable[..., Any]] = {
    "aten.kthvalue.default": kth,
    "aten.sort.default": in_order,
    "aten.topk.default": first,
}
"""By ATen name, how the operation is computed where kernels are compared with it."""
