"""Normalisations, alone and with what is fused before or behind them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .table import documented, rounded, wide


def rms(x: Tensor, gamma: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """``x / rms(x) * gamma`` over the dimensions of ``gamma``, and the reciprocal of the root."""
    over = list(range(x.dim() - gamma.dim(), x.dim()))
    rstd = torch.rsqrt(x.pow(2).mean(over, keepdim=True) + epsilon)
    return x * rstd * wide(gamma), rstd


@documented
def npu_rms_norm(input: Tensor, gamma: Tensor, epsilon: float = 1e-06) -> tuple[Tensor, Tensor]:
    """torch_npu.npu_rms_norm (beta): the norm, and in float32 the reciprocal of the root mean square."""
    norm, rstd = rms(wide(input), gamma, epsilon)
    return rounded(norm, input), rstd


@documented
def npu_add_rms_norm(
    x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-06
) -> tuple[Tensor, Tensor, Tensor]:
    """torch_npu.npu_add_rms_norm: the norm of the sum, the reciprocal of its root in float32, the sum."""
    total = wide(x1) + wide(x2)
    norm, rstd = rms(total, gamma, epsilon)
    return rounded(norm, x1), rstd, rounded(total, x1)


@documented
def npu_deep_norm(
    x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, alpha: float = 0.3, epsilon: float = 1e-06
) -> tuple[Tensor, Tensor, Tensor]:
    """npu_deep_norm of op-plugin, formula of aclnnDeepNorm: mean and reciprocal deviation of
    ``alpha * x + gx`` over the dimensions of ``gamma`` in float32, and its layer norm."""
    mixed = alpha * wide(x) + wide(gx)
    over = list(range(x.dim() - gamma.dim(), x.dim()))
    mean = mixed.mean(over, keepdim=True)
    centred = mixed - mean
    rstd = torch.rsqrt(centred.pow(2).mean(over, keepdim=True) + epsilon)
    return mean, rstd, rounded(centred * rstd * wide(gamma) + wide(beta), x)


@documented
def npu_layer_norm_eval(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """torch_npu.npu_layer_norm_eval (beta): as torch.nn.functional.layer_norm."""
    return functional.layer_norm(input, normalized_shape, weight, bias, eps)


def _grouped(
    x: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The group norm of ``x``, and mean and reciprocal deviation of each group."""
    rows = wide(x).reshape(x.shape[0], groups, -1)
    mean = rows.mean(-1)
    centred = rows - mean.unsqueeze(-1)
    rstd = torch.rsqrt(centred.pow(2).mean(-1) + eps)
    norm = (centred * rstd.unsqueeze(-1)).reshape(x.shape)
    channels = [-1] + [1] * (x.dim() - 2)
    if weight is not None:
        norm = norm * wide(weight).reshape(channels)
    if bias is not None:
        norm = norm + wide(bias).reshape(channels)
    return norm, rounded(mean, x), rounded(rstd, x)


@documented
def npu_group_norm_silu(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, group: int, eps: float = 0.00001
) -> tuple[Tensor, Tensor, Tensor]:
    """torch_npu.npu_group_norm_silu: SiLU of the group norm, mean and reciprocal deviation of each group."""
    norm, mean, rstd = _grouped(input, group, weight, bias, eps)
    return rounded(functional.silu(norm), input), mean, rstd


@documented
def npu_group_norm_swish(
    input: Tensor,
    num_groups: int,
    weight: Tensor,
    bias: Tensor,
    eps: float = 1e-5,
    swish_scale: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """torch_npu.npu_group_norm_swish: ``y / (1 + exp(-scale * y))`` of the group norm, mean and reciprocal
    deviation of each group."""
    norm, mean, rstd = _grouped(input, num_groups, weight, bias, eps)
    return rounded(norm * torch.sigmoid(swish_scale * norm), input), mean, rstd
