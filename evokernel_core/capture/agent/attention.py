"""aten.scaled_dot_product_attention in products, a softmax and a sum."""

from __future__ import annotations

import math

import torch

from . import draws


def attention(  # noqa: PLR0913 - as its op
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """softmax(query @ key^T * scale + mask) @ value over the last two dimensions; the others are a
    batch. With ``enable_gqa``, heads (the third dimension from the end) of key and value are shared by
    several heads of query."""
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    factor = 1 / math.sqrt(int(query.shape[-1])) if scale is None else scale
    scores = torch.matmul(query, key.transpose(-2, -1)) * factor
    if is_causal:
        rows, columns = query.shape[-2], key.shape[-2]
        visible = torch.ones((rows, columns), dtype=torch.bool, device=query.device).tril()
        weights = torch.softmax(torch.where(visible, scores, -math.inf), -1)
    elif attn_mask is not None and attn_mask.dtype == torch.bool:
        hidden = torch.softmax(torch.where(attn_mask, scores, -math.inf), -1)
        weights = torch.where(attn_mask, hidden, 0.0)  # a row that sees nothing is zero, not 0 / 0
    else:
        weights = torch.softmax(scores if attn_mask is None else scores + attn_mask, -1)
    return torch.matmul(draws.dropout(weights, dropout_p, True), value)
