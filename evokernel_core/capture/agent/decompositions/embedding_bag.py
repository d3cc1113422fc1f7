"""Bags of embeddings that all have the same number of rows, said as rows that are read and reduced."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import embedding
from torch.nn.functional import embedding_bag as own
from torch.overrides import TorchFunctionMode


class BagsOfRows(TorchFunctionMode):
    """While it is entered, ``F.embedding_bag`` of indices with two dimensions reads rows and reduces them:
    PyTorch says it with offsets, whose numbers would make the batch size a condition of the graph."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is own:
            return embedding_bag(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def embedding_bag(  # noqa: PLR0913, PLR0917 - as its function
    input: torch.Tensor,
    weight: torch.Tensor,
    offsets: torch.Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> torch.Tensor:
    """F.embedding_bag, with its own names of arguments."""
    if input.dim() != 2 or offsets is not None or max_norm is not None or not input.shape[1]:
        return own(
            input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
            per_sample_weights, include_last_offset, padding_idx,
        )  # fmt: skip
    rows = embedding(input, weight)
    if per_sample_weights is not None:
        if mode != "sum" or per_sample_weights.shape != input.shape:
            raise ValueError("embedding_bag takes weights of the indices' shape, and for sums only")
        rows = rows * per_sample_weights.unsqueeze(-1)
    if padding_idx is not None:
        padding = padding_idx if padding_idx >= 0 else padding_idx + weight.shape[0]
        return _without_padding(rows, input != padding, mode)
    return {"sum": rows.sum, "mean": rows.mean, "max": rows.amax}[mode](1)


def _without_padding(rows: torch.Tensor, kept: torch.Tensor, mode: str) -> torch.Tensor:
    """Of the rows that are kept; a bag without any is zero."""
    counts = kept.sum(1, keepdim=True)
    if mode == "max":
        most = torch.where(kept.unsqueeze(-1), rows, float("-inf")).amax(1)
        return torch.where(counts > 0, most, 0.0)
    total = torch.where(kept.unsqueeze(-1), rows, 0.0).sum(1)
    return total if mode == "sum" else total / counts.clamp(min=1).to(rows.dtype)
