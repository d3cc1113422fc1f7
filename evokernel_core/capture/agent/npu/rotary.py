"""Rotary position embeddings, and the cache update that is fused with one."""

from __future__ import annotations

import torch
from torch import Tensor

from .norms import rms
from .table import OutsideTable, documented, outside, rounded, wide


def _turned_halves(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def _turned_pairs(x: Tensor) -> Tensor:
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, mode: str) -> Tensor:
    turns = {"half": _turned_halves, "interleave": _turned_pairs}
    if mode not in turns:
        raise OutsideTable(f"rotary_mode is {mode}", (x,))
    return x * wide(cos) + turns[mode](x) * wide(sin)


def _pairs_apart(x: Tensor) -> Tensor:
    """Even places of the last dimension in front of odd ones."""
    return x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)


@documented
def npu_rotary_mul(
    input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half", rotate: Tensor | None = None
) -> Tensor:
    """torch_npu.npu_rotary_mul: ``x * cos + rotate(x) * sin``, where a matrix may say the rotation."""
    x = wide(input)
    if rotate is None:
        return rounded(_rotated(x, r1, r2, rotary_mode), input)
    return rounded(x * wide(r1) + (x @ wide(rotate)) * wide(r2), input)


@documented
def npu_interleave_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """torch_npu.npu_interleave_rope: pairs are taken apart, then rotated by halves."""
    return rounded(_rotated(_pairs_apart(wide(x)), cos, sin, "half"), x)


@documented
def npu_apply_rotary_pos_emb(
    query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, layout: str = "BSND", rotary_mode: str = "half"
) -> tuple[Tensor, Tensor]:
    """torch_npu.npu_apply_rotary_pos_emb: query and key are rotated in place."""
    first, second = (rounded(_rotated(wide(x), cos, sin, rotary_mode), x) for x in (query, key))
    return query.copy_(first), key.copy_(second)


@documented
def npu_kv_rmsnorm_rope_cache(
    kv: Tensor,
    gamma: Tensor,
    cos: Tensor,
    sin: Tensor,
    index: Tensor,
    k_cache: Tensor,
    ckv_cache: Tensor,
    *,
    k_rope_scale: Tensor | None = None,
    c_kv_scale: Tensor | None = None,
    k_rope_offset: Tensor | None = None,
    c_kv_offset: Tensor | None = None,
    v: Tensor | None = None,
    epsilon: float = 1e-5,
    cache_mode: str = "Norm",
    is_output_kv: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """torch_npu.npu_kv_rmsnorm_rope_cache in mode "Norm": the RMS norm of the first part of ``kv`` and the
    rotated second part are written into the caches, at the places that ``index`` gives."""
    norm, rope = kv.split([gamma.shape[0], kv.shape[-1] - gamma.shape[0]], -1)
    if cache_mode != "Norm":
        raise OutsideTable(f"cache_mode is {cache_mode}", (k_cache, ckv_cache, rope, norm))
    outside(scale=k_rope_scale, c_kv_scale=c_kv_scale, offset=k_rope_offset, c_kv_offset=c_kv_offset, v=v)
    value = rounded(rms(wide(norm), gamma, epsilon)[0], kv)
    key = rounded(_rotated(_pairs_apart(wide(rope)), cos, sin, "half"), kv)
    places = index[:, None, :, None]
    k_cache.scatter_(2, places.expand(key.shape), key.to(k_cache.dtype))
    ckv_cache.scatter_(2, places.expand(value.shape), value.to(ckv_cache.dtype))
    return k_cache, ckv_cache, key, value
