"""Norms of many elements, whose terms PyTorch adds one after another on a CPU.

Of four million normal numbers the sum of their sizes is off by 3e-4, of sixteen million by 5e-3. Here they
are added in pairs, as ``sum`` does; what is beyond float32 on the way stays so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

NORM = "aten.linalg_vector_norm.default"
_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def vector_norm(
    x: torch.Tensor,
    ord: float = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """aten.linalg_vector_norm: the root of the sum of powers over ``dim``, or over all dimensions."""
    rounded = dtype or x.dtype
    if ord in (0, float("inf"), -float("inf")) or rounded.is_complex or x.is_complex() or x.numel() == 0:
        return torch.ops.aten.linalg_vector_norm.default(x, ord, dim, keepdim, dtype=dtype)
    wide = x.to(_WIDER.get(rounded, rounded))
    terms = wide * wide if ord == 2 else wide.abs() if ord == 1 else wide.abs().pow(ord)
    dims = list(dim) if dim else list(range(x.dim()))
    total = terms.sum(dims, keepdim=keepdim)
    root = total.sqrt() if ord == 2 else total if ord == 1 else total.pow(1 / ord)
    return root.to(rounded)


RULES: dict[str, Any] = {NORM: vector_norm}
