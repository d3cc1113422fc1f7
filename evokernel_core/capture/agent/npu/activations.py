"""Activations and gated units."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .table import documented, outside, rounded, wide


@documented
def npu_gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """torch_npu.npu_gelu: ``x * cdf(x)`` by erf, or by its approximation with tanh."""
    return functional.gelu(input, approximate=approximate)


@documented
def npu_fast_gelu(input: Tensor) -> Tensor:
    """torch_npu.npu_fast_gelu: ``x / (1 + exp(-1.702 x))``."""
    x = wide(input)
    return rounded(x * torch.sigmoid(1.702 * x), input)


@documented
def fast_gelu(input: Tensor) -> Tensor:
    """torch_npu.fast_gelu (beta): FastGelu of each element."""
    return npu_fast_gelu(input)


@documented
def npu_silu(input: Tensor) -> Tensor:
    """torch_npu.npu_silu (beta): ``x * sigmoid(x)``."""
    return functional.silu(input)


@documented
def npu_silu_(input: Tensor) -> Tensor:
    """torch_npu.npu_silu_ (beta): ``x * sigmoid(x)``, in place."""
    return input.copy_(functional.silu(input))


@documented
def npu_mish(input: Tensor) -> Tensor:
    """torch_npu.npu_mish (beta): ``x * tanh(softplus(x))``."""
    return functional.mish(input)


@documented
def npu_swiglu(input: Tensor, dim: int = -1) -> Tensor:
    """torch_npu.npu_swiglu (beta): swish of the first half along ``dim``, times the second."""
    gate, value = wide(input).chunk(2, dim)
    return rounded(functional.silu(gate) * value, input)


@documented
def npu_clipped_swiglu(
    x: Tensor,
    *,
    group_index: Tensor | None = None,
    dim: int = -1,
    alpha: float = 1.702,
    limit: float = 7.0,
    bias: float = 1.0,
    interleaved: bool = True,
) -> Tensor:
    """torch_npu.npu_clipped_swiglu: a clipped gate of even places, or of the first half, times the rest."""
    outside(group_index=group_index)
    flat = wide(x).flatten(dim % x.dim())  # the split counts elements from that dimension on
    gate, value = (flat[..., ::2], flat[..., 1::2]) if interleaved else flat.chunk(2, -1)
    gate, value = gate.clamp(max=limit), value.clamp(-limit, limit)
    shape = list(x.shape)
    shape[dim] //= 2
    return rounded(gate * torch.sigmoid(alpha * gate) * (value + bias), x).reshape(shape)


@documented
def npu_geglu(
    input: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False
) -> tuple[Tensor, Tensor]:
    """torch_npu.npu_geglu, and aclnnGeGluV3 for ``activate_left``: one half times GELU of the other (by tanh
    where ``approximate`` is 1), and that GELU."""
    left, right = wide(input).chunk(2, dim)
    gate, value = (left, right) if activate_left else (right, left)
    gelu = functional.gelu(gate, approximate="tanh" if approximate else "none")
    return rounded(value * gelu, input), rounded(gelu, input)


@documented
def npu_gelu_mul(input: Tensor, *, approximate: str = "none") -> Tensor:
    """torch_npu.npu_gelu_mul: GELU of the first half of the last dimension, times the second."""
    gate, value = wide(input).chunk(2, -1)
    return rounded(functional.gelu(gate, approximate=approximate) * value, input)
