"""aten.scaled_dot_product_attention: one node, or products, a softmax and a sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ..tracing import random_samples

_OPERATION = torch.ops.aten.scaled_dot_product_attention.default
_LIBRARY = torch.library.Library("evokernel_capture", "FRAGMENT")
_LIBRARY.define(str(_OPERATION._schema).removeprefix("aten::scaled_dot_product_"))
_LIBRARY.impl(
    "attention",
    lambda query, key, value, *_, **__: query.new_empty([*query.shape[:-1], value.shape[-1]]),
    "CompositeExplicitAutograd",
)
MARK = "evokernel_capture.attention.default"


def rule(fits: Callable[[str], bool]) -> Callable[..., torch.Tensor]:
    """How attention is traced: as one node if it has kernels of its own and drops nothing out."""

    def run(*args: Any, dropout_p: float = 0.0, **kwargs: Any) -> torch.Tensor:
        share = args[4] if len(args) > 4 else dropout_p
        if share or not fits(str(_OPERATION)):
            given = {"dropout_p": dropout_p} if len(args) <= 4 else {}
            return apart(*args, **{**given, **kwargs})
        query, key, value, *rest = args
        _relate(query, key, value, rest[0] if rest else kwargs.get("attn_mask"))
        whole: torch.Tensor = torch.ops.evokernel_capture.attention(*args, **kwargs)
        return whole

    return run


def _relate(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None) -> None:
    """Tells the tracer which sizes are the same, by asking: nothing else of the node would. Dimensions of the
    mask that are 1 are spread, all others are those of the scores."""
    pairs = [*zip(key.shape[:-1], value.shape[:-1], strict=False), (query.shape[-1], key.shape[-1])]
    pairs += zip(query.shape[:-2], key.shape[:-2], strict=False)
    if mask is not None:
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(reversed(mask.shape), reversed(scores), strict=False)
        pairs += [(one, other) for one, other in sizes if not (isinstance(one, int) and one == 1)]
    for one, other in pairs:
        bool(one == other)


def apart(  # noqa: PLR0913 - as its op
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
    return torch.matmul(random_samples.dropout(weights, dropout_p, True), value)
