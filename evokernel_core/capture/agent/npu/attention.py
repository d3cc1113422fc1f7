"""Attention of training and inference. Masks are one where a pair of positions does not take part."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .table import OutsideTable, documented, outside, rounded, wide

_ALL_TOKENS = 2147483647
_STATISTICS = 8
"""How many times each row's maximum and sum are repeated along the last dimension."""


def _split(x: Tensor, layout: str, heads: int) -> Tensor:
    """The tensor as (batch, heads, positions, features)."""
    if layout in ("BNSD", "BNSD_BSND"):
        return x
    if layout == "BSND":
        return x.transpose(1, 2)
    if layout == "BSH":
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)
    if layout == "SBH":
        return x.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)
    raise OutsideTable(f"input_layout is {layout}")


def _joined(x: Tensor, layout: str) -> Tensor:
    """The reverse of ``_split``, with the query's layout, or the one behind the underscore."""
    if layout == "BNSD":
        return x
    if layout in ("BSND", "BNSD_BSND"):
        return x.transpose(1, 2)
    return x.transpose(1, 2).flatten(2) if layout == "BSH" else x.permute(2, 0, 1, 3).flatten(2)


def _hidden(mask: Tensor | None, mode: int, query: Tensor, key: Tensor, before: int, behind: int) -> Any:
    """The pairs that do not take part, broadcastable; None where all do. Modes 2 to 4 come with a triangle
    of a fixed size, of which only the rule counts."""
    if mask is None:
        return None
    if mode in (0, 1):
        return mask.bool()
    rows = torch.arange(query.shape[2], device=query.device)[:, None]
    columns = torch.arange(key.shape[2], device=query.device)
    if mode == 2:
        return columns > rows
    distance = columns - rows - (key.shape[2] - query.shape[2])
    if mode == 3:
        return distance > 0
    if mode == 4:
        return (distance > behind) | (distance < -before)
    raise OutsideTable(f"sparse_mode is {mode}")


def _placed(mask: Tensor | None, query: Tensor, pairs: bool) -> Tensor | None:
    """A mask of fewer than four dimensions said with four: (B, S, S), or (B, S) where ``pairs`` is false."""
    if mask is None or mask.dim() == 4 or (mask.dim() == 2 and pairs):
        return mask
    return mask.reshape(mask.shape[0], 1, -1, mask.shape[-1])


def _shared(x: Tensor, heads: int) -> Tensor:
    """Keys or values with one head for each of the query's."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def _attention(query: Tensor, key: Tensor, value: Tensor, hidden: Any, bias: Any, scale: float) -> Tensor:
    mask = None if hidden is None else ~hidden
    if bias is not None:
        mask = bias if hidden is None else bias.masked_fill(hidden, float("-inf"))
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)


def _scores(query: Tensor, key: Tensor, hidden: Any, bias: Any, scale: float) -> Tensor:
    scores = wide(query) @ wide(key).transpose(-1, -2) * scale
    scores = scores if bias is None else scores + wide(bias)
    return scores if hidden is None else scores.masked_fill(hidden, float("-inf"))


def _infer(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    hidden_of: Any,
    heads: int,
    shared_heads: int,
    layout: str,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """The attention in the query's layout, and query, key and mask as (batch, heads, positions, features)."""
    q = _split(query, layout, heads)
    k, v = (_shared(_split(x, layout, shared_heads or heads), heads) for x in (key, value))
    hidden = hidden_of(q, k)
    return _joined(_attention(q, k, v, hidden, None, scale), layout), q, k, hidden


@documented
def npu_fusion_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    input_layout: str,
    pse: Tensor | None = None,
    padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = _ALL_TOKENS,
    next_tockens: int = _ALL_TOKENS,
    inner_precise: int = 0,
    prefix: list[int] | None = None,
    actual_seq_qlen: list[int] | None = None,
    actual_seq_kvlen: list[int] | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: Tensor | None = None,
    dropout_mask: Tensor | None = None,
    seed: int = 0,
    offset: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor, int, int, int]:
    """torch_npu.npu_fusion_attention: ``softmax(mask(scale * (pse + q k^T))) v``, the rows' maxima and sums
    in float32, an unused tensor, and three numbers of a dropout, which is outside the table."""
    if keep_prob != 1.0:
        raise OutsideTable("keep_prob is below one", (query,))
    outside(padding_mask=padding_mask, prefix=prefix, sink=sink, dropout_mask=dropout_mask)
    outside(actual_seq_qlen=actual_seq_qlen, actual_seq_kvlen=actual_seq_kvlen)
    q = _split(query, input_layout, head_num)
    width = q.shape[-1]
    k = _split(key, input_layout, key.shape[-1] // width)
    v = _split(value, input_layout, k.shape[1])
    k, v = _shared(k, head_num), _shared(v, head_num)
    hidden = _hidden(atten_mask, sparse_mode, q, k, pre_tockens, next_tockens)
    bias = None if pse is None else rounded(wide(pse) * scale, q)
    out = _joined(_attention(q, k, v, hidden, bias, scale), input_layout)
    scores = _scores(q, k, hidden, bias, scale)
    largest = scores.amax(-1, keepdim=True)
    total = torch.exp(scores - largest).sum(-1, keepdim=True)
    repeated = [*largest.shape[:-1], _STATISTICS]
    return out, largest.expand(repeated), total.expand(repeated), query.new_empty(0), 0, 0, 0


@documented
def npu_prompt_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    pse_shift: Tensor | None = None,
    padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None,
    actual_seq_lengths: list[int] | None = None,
    deq_scale1: Tensor | None = None,
    quant_scale1: Tensor | None = None,
    deq_scale2: Tensor | None = None,
    quant_scale2: Tensor | None = None,
    quant_offset2: Tensor | None = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    pre_tokens: int = _ALL_TOKENS,
    next_tokens: int = 0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    actual_seq_lengths_kv: list[int] | None = None,
    sparse_mode: int = 0,
) -> Tensor:
    """torch_npu.npu_prompt_flash_attention: ``softmax(scale * q k^T, masked) v``."""
    outside(pse_shift=pse_shift, padding_mask=padding_mask, lengths=actual_seq_lengths, deq=deq_scale1)
    outside(quant=quant_scale1, deq=deq_scale2, lengths_kv=actual_seq_lengths_kv)
    outside(quant_scale2=quant_scale2, offset=quant_offset2)

    def hidden(q: Tensor, k: Tensor) -> Any:
        return _hidden(_placed(atten_mask, q, True), sparse_mode, q, k, pre_tokens, next_tokens)

    return _infer(query, key, value, hidden, num_heads, num_key_value_heads, input_layout, scale_value)[0]


@documented
def npu_incre_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    padding_mask: Tensor | None = None,
    pse_shift: Tensor | None = None,
    atten_mask: Tensor | None = None,
    actual_seq_lengths: list[int] | None = None,
    dequant_scale1: Tensor | None = None,
    quant_scale1: Tensor | None = None,
    dequant_scale2: Tensor | None = None,
    quant_scale2: Tensor | None = None,
    quant_offset2: Tensor | None = None,
    antiquant_scale: Tensor | None = None,
    antiquant_offset: Tensor | None = None,
    block_table: Tensor | None = None,
    kv_padding_size: Tensor | None = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    block_size: int = 0,
    inner_precise: int = 1,
) -> Tensor:
    """torch_npu.npu_incre_flash_attention: one query position against all keys."""
    outside(padding_mask=padding_mask, pse_shift=pse_shift, lengths=actual_seq_lengths, table=block_table)
    outside(dequant=dequant_scale1, quant=quant_scale1, dequant2=dequant_scale2, quant2=quant_scale2)
    outside(offset=quant_offset2, antiquant=antiquant_scale, shift=antiquant_offset, padding=kv_padding_size)

    def hidden(q: Tensor, k: Tensor) -> Any:
        return _hidden(_placed(atten_mask, q, False), 0, q, k, 0, 0)

    return _infer(query, key, value, hidden, num_heads, num_key_value_heads, input_layout, scale_value)[0]


@documented
def npu_fused_infer_attention_score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    pse_shift: Tensor | None = None,
    atten_mask: Tensor | None = None,
    num_heads: int = 1,
    scale: float = 1.0,
    pre_tokens: int = _ALL_TOKENS,
    next_tokens: int = _ALL_TOKENS,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    inner_precise: int = 0,
    softmax_lse_flag: bool = False,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """torch_npu.npu_fused_infer_attention_score: ``softmax(scale * q k^T, masked) v``, and the logarithm of
    the rows' sums in float32, or a zero. Lengths, pages, quantisation and a prefix are outside the table."""
    outside(pse_shift=pse_shift, **others)
    pairs = _split(query, input_layout, num_heads).shape[2] > 1

    def hidden(q: Tensor, k: Tensor) -> Any:
        return _hidden(_placed(atten_mask, q, pairs), sparse_mode, q, k, pre_tokens, next_tokens)

    out, q, k, mask = _infer(query, key, value, hidden, num_heads, num_key_value_heads, input_layout, scale)
    if not softmax_lse_flag:
        return out, torch.zeros(1, dtype=torch.float32, device=query.device)
    return out, _scores(q, k, mask, None, scale).logsumexp(-1, keepdim=True).float()


@documented
def npu_scaled_masked_softmax(
    x: Tensor, mask: Tensor, scale: float = 1.0, fixed_triu_mask: bool = False
) -> Tensor:
    """torch_npu.npu_scaled_masked_softmax: the softmax over the last dimension of ``x * scale``, where masked
    elements count as -10000 (op-plugin, test_scaled_masked_softmax)."""
    outside(fixed_triu_mask=fixed_triu_mask)
    return rounded(torch.softmax((wide(x) * scale).masked_fill(mask, -10000.0), -1), x)
