"""Routing of tokens to experts and back (mixture of experts)."""

from __future__ import annotations

import torch
from torch import Tensor

from .table import OutsideTable, documented, outside, rounded, wide

_BY_ROWS, _DROPPED = (2, 3), (1, 3)
"""Modes of ``npu_moe_finalize_routing`` with rows in the order of tokens, and with dropped rows."""


def _int32(tensor: Tensor) -> Tensor:
    return tensor.to(torch.int32)


@documented
def npu_moe_gating_top_k_softmax(
    x: Tensor, finished: Tensor | None = None, k: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """torch_npu.npu_moe_gating_top_k_softmax, and aclnnMoeGatingTopKSoftmax for ``finished``: the ``k``
    largest of the softmax of each row, their experts (of a finished row, the number of experts), and the
    number of each in an order by columns."""
    largest, experts = torch.softmax(wide(x), -1).topk(k, -1)
    if finished is not None:
        experts = experts.masked_fill(finished.unsqueeze(-1), x.shape[-1])
    rows = torch.arange(experts.numel(), dtype=torch.int32, device=x.device)
    return rounded(largest, x), _int32(experts), rows.reshape(k, -1).transpose(0, 1).reshape(experts.shape)


@documented
def npu_moe_gating_top_k(
    x: Tensor,
    k: int,
    *,
    bias: Tensor | None = None,
    k_group: int = 1,
    group_count: int = 1,
    group_select_mode: int = 0,
    renorm: int = 0,
    norm_type: int = 0,
    out_flag: bool = False,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
) -> tuple[Tensor, Tensor, Tensor]:
    """torch_npu.npu_moe_gating_top_k: experts are chosen among those of the best groups, by their softmax or
    sigmoid and a bias; the weights do not see the bias."""
    outside(renorm=renorm)
    norm = torch.sigmoid(wide(x)) if norm_type else torch.softmax(wide(x), -1)
    choice = norm if bias is None else norm + wide(bias)
    if group_count > 1:
        choice = _in_best_groups(choice, group_count, k_group, group_select_mode)
    experts = choice.topk(k, -1).indices
    weights = norm.gather(-1, experts)
    if norm_type:
        weights = weights / (weights.sum(-1, keepdim=True) + eps)
    return rounded(weights * routed_scaling_factor, x), _int32(experts), norm.float()


def _in_best_groups(choice: Tensor, groups: int, kept: int, mode: int) -> Tensor:
    """The scores with minus infinity outside the groups of the largest maxima, or sums of two."""
    grouped = choice.unflatten(-1, (groups, -1))
    score = grouped.topk(2, -1).values.sum(-1) if mode else grouped.amax(-1)
    best = torch.zeros_like(score).scatter(-1, score.topk(kept, -1).indices, 1.0)
    return grouped.masked_fill((best == 0).unsqueeze(-1), float("-inf")).flatten(-2)


@documented
def npu_moe_compute_expert_tokens(sorted_expert_for_source_row: Tensor, num_expert: int) -> Tensor:
    """torch_npu.npu_moe_compute_expert_tokens: behind which row each expert's rows end."""
    rows = sorted_expert_for_source_row
    experts = torch.arange(num_expert, dtype=rows.dtype, device=rows.device)
    return (rows <= experts.unsqueeze(-1)).sum(-1).to(rows.dtype)


@documented
def npu_moe_init_routing(
    x: Tensor, row_idx: Tensor, expert_idx: Tensor, active_num: int
) -> tuple[Tensor, Tensor, Tensor]:
    """torch_npu.npu_moe_init_routing: rows in the order of their experts, where each went, the experts."""
    experts, order = expert_idx.flatten().sort(stable=True)
    sources = row_idx.flatten().gather(0, order)
    places = torch.arange(sources.shape[0], dtype=torch.int32, device=x.device)
    went = torch.zeros_like(places).scatter(0, sources.long(), places)
    taken = sources[: min(active_num, x.shape[0]) * expert_idx.shape[-1]]
    return x.index_select(0, taken.long() % x.shape[0]), went, experts


@documented
def npu_moe_finalize_routing(
    expanded_permuted_rows: Tensor,
    skip1: Tensor | None,
    skip2: Tensor | None,
    bias: Tensor | None,
    scales: Tensor | None,
    expanded_src_to_dst_row: Tensor,
    export_for_source_row: Tensor | None,
    drop_pad_mode: int = 0,
) -> Tensor:
    """torch_npu.npu_moe_finalize_routing: the weighted sum of what a token's experts gave, with their bias,
    and up to two residuals. Dropped rows (modes 1 and 3) are -1 and count as zeros."""
    tokens = expanded_src_to_dst_row.shape[0] // (1 if scales is None else scales.shape[1])
    rows = wide(expanded_permuted_rows).reshape(-1, expanded_permuted_rows.shape[-1])
    places = expanded_src_to_dst_row.long()
    result = rows.index_select(0, places.clamp(min=0))
    if drop_pad_mode in _DROPPED:
        result = result.masked_fill((places < 0).unsqueeze(-1), 0.0)
    if drop_pad_mode in _BY_ROWS:
        result = result.reshape(tokens, -1, rows.shape[-1])
    else:
        result = result.reshape(-1, tokens, rows.shape[-1]).transpose(0, 1)
    if bias is not None:
        if export_for_source_row is None:
            raise OutsideTable("the experts of a bias are missing", (rows[:tokens],))
        result = result + wide(bias)[export_for_source_row.long()]
    total = (result if scales is None else result * wide(scales).unsqueeze(-1)).sum(1)
    for skip in (skip1, skip2):
        total = total if skip is None else total + wide(skip)
    return rounded(total, expanded_permuted_rows)
