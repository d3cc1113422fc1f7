"""Casts, shapes, indices, and losses and filters over classes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .table import documented, outside, rounded, wide

_ND = 2
"""The number of the format that any tensor of PyTorch has."""


@documented
def npu_dtype_cast(input: Tensor, dtype: torch.dtype) -> Tensor:
    """torch_npu.npu_dtype_cast (beta): the tensor in another type."""
    return input.to(dtype)


@documented
def npu_format_cast(input: Tensor, acl_format: Any, customize_dtype: int | None = None) -> Tensor:
    """torch_npu.npu_format_cast (beta): the same values; a format is how a device stores them."""
    return input


@documented
def npu_format_cast_(input: Tensor, src: Any) -> Tensor:
    """torch_npu.npu_format_cast_ (beta): the same values, as above."""
    return input


@documented
def get_npu_format(input: Tensor) -> int:
    """torch_npu.get_npu_format: the number of the tensor's format, ND for those of other devices."""
    return _ND


@documented
def npu_transpose(input: Tensor, perm: list[int], require_contiguous: bool = True) -> Tensor:
    """torch_npu.npu_transpose (beta): dimensions in another order, contiguous."""
    return input.permute(perm).contiguous()


@documented
def npu_confusion_transpose(
    input: Tensor, perm: list[int], shape: list[int], transpose_first: bool
) -> Tensor:
    """torch_npu.npu_confusion_transpose (beta): a transposition and a reshape, in either order."""
    if transpose_first:
        return input.permute(perm).reshape(shape)
    return input.reshape(shape).permute(perm).contiguous()


@documented
def npu_broadcast(input: Tensor, size: list[int]) -> Tensor:
    """torch_npu.npu_broadcast (beta): the tensor repeated to a size."""
    return input.expand(size).contiguous()


@documented
def npu_reshape(input: Tensor, shape: list[int], can_refresh: bool = False) -> Tensor:
    """torch_npu.npu_reshape (beta): the same elements in another shape."""
    return input.reshape(shape)


@documented
def npu_slice(input: Tensor, offsets: list[int], size: list[int]) -> Tensor:
    """torch_npu.npu_slice (beta): a block from an offset in each dimension."""
    for dim, (start, length) in enumerate(zip(offsets, size)):  # noqa: B905
        input = input.narrow(dim, start, length)
    return input.contiguous()


@documented
def npu_pad(input: Tensor, paddings: list[int]) -> Tensor:
    """torch_npu.npu_pad (beta): zeros before and behind, in pairs from the first dimension on."""
    pairs = zip(paddings[::2], paddings[1::2])  # noqa: B905
    return functional.pad(input, [number for pair in reversed(list(pairs)) for number in pair])


@documented
def npu_max(input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """torch_npu.npu_max (beta): the largest along a dimension, and where (int32)."""
    values, indices = input.max(dim, keepdim)
    return values, indices.to(torch.int32)


@documented
def npu_min(input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """torch_npu.npu_min (beta): the smallest along a dimension, and where (int32)."""
    values, indices = input.min(dim, keepdim)
    return values, indices.to(torch.int32)


@documented
def npu_sort_v2(input: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """torch_npu.npu_sort_v2 (beta): the elements in order, without their indices."""
    return input.sort(dim, descending)[0]


def _places(indices: Tensor) -> tuple[Tensor, ...]:
    return tuple(indices.long().unbind(-1))


@documented
def npu_scatter_nd_update(input: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """torch_npu.npu_scatter_nd_update: ``updates`` at the places that the last dimension of ``indices``
    names, in a new tensor."""
    return input.index_put(_places(indices), updates)


@documented
def npu_scatter_nd_update_(input: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """torch_npu.npu_scatter_nd_update_: the same in place."""
    return input.index_put_(_places(indices), updates)


@documented
def npu_top_k_top_p(logits: Tensor, p: Tensor, k: Tensor) -> Tensor:
    """torch_npu.npu_top_k_top_p: minus infinity below the ``k`` largest of a row, and where the
    probabilities up to an element are at most ``1 - p``; the largest stays."""
    ordered, order = logits.sort(stable=True, dim=-1)
    least = ordered.gather(-1, (ordered.shape[-1] - k.long()).unsqueeze(-1))
    ordered = ordered.masked_fill(ordered < least, float("-inf"))
    summed = torch.softmax(wide(ordered), -1).cumsum(-1)
    dropped = summed <= 1 - wide(p).unsqueeze(-1)
    last = torch.arange(logits.shape[-1], device=logits.device) == logits.shape[-1] - 1
    ordered = ordered.masked_fill(dropped & ~last, float("-inf"))
    return torch.empty_like(ordered).scatter(-1, order, ordered)


@documented
def npu_softmax_cross_entropy_with_logits(features: Tensor, labels: Tensor) -> Tensor:
    """torch_npu.npu_softmax_cross_entropy_with_logits (beta): minus the labels times the log-softmax,
    summed over the classes of each row."""
    return rounded(-(wide(labels) * torch.log_softmax(wide(features), -1)).sum(-1), features)


@documented
def npu_cross_entropy_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """torch_npu.npu_cross_entropy_loss: the loss (of one element unless ``reduction`` is "none"), the
    log-probabilities, and two empty tensors."""
    outside(label_smoothing=label_smoothing, zloss=return_zloss, scale=lse_square_scale_for_zloss)
    log_prob = torch.log_softmax(wide(input), -1)
    loss = functional.nll_loss(
        log_prob, target, weight, ignore_index=ignore_index, reduction=reduction
    ).reshape(-1)
    return rounded(loss, input), rounded(log_prob, input), input.new_empty(0), input.new_empty(0)
