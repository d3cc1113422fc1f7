"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .activations import npu_fast_gelu
from .table import OutsideTable, documented, outside


@documented
def npu_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch_npu.npu_linear (beta): as torch.nn.functional.linear, as its example of shapes says."""
    return functional.linear(input, weight, bias)


@documented
def npu_bmmV2(input: Tensor, mat2: Tensor, output_sizes: list[int]) -> Tensor:  # noqa: N802
    """torch_npu.npu_bmmV2 (beta): a product of matrices, viewed in ``output_sizes`` where they are given."""
    out = torch.matmul(input, mat2)
    return out.reshape(output_sizes) if len(output_sizes) else out


@documented
def npu_grouped_matmul(
    x: list[Tensor],
    weight: list[Tensor],
    *,
    bias: list[Tensor] | None = None,
    group_list: Any = None,
    split_item: int | None = 0,
    group_type: int | None = None,
    group_list_type: int | None = 0,
    act_type: int | None = 0,
    tuning_config: list[int] | None = None,
    **others: Any,
) -> list[Tensor]:
    """torch_npu.npu_grouped_matmul without quantisation: one product, with its bias, for each group. The
    rows of one ``x`` are cut behind the numbers of ``group_list``; where a tensor holds these, the sizes are
    outside the table."""
    outside(act_type=act_type, **others)
    if isinstance(group_list, Tensor):
        columns = weight[0].shape[-1]
        raise OutsideTable("group_list is a tensor", (x[0].new_empty(x[0].shape[0], columns),))
    if group_list is not None and len(x) == 1:
        x = [x[0][start:end] for start, end in zip([0, *group_list], group_list)]  # noqa: B905
    products = [torch.matmul(a, b) for a, b in zip(x, weight)]  # noqa: B905
    if bias:
        products = [a + b for a, b in zip(products, bias)]  # noqa: B905
    return products if split_item in (None, 0, 1) else [torch.cat(products)]


def _gated(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def gated(x: Tensor) -> Tensor:
        left, right = x.chunk(2, -1)
        return activation(left) * right

    return gated


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "fastgelu": npu_fast_gelu,
    "gelu": functional.gelu,
    "relu": functional.relu,
    "silu": functional.silu,
    "geglu": _gated(functional.gelu),
    "swiglu": _gated(functional.silu),
    "reglu": _gated(functional.relu),
}


@documented
def npu_ffn(
    x: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    activation: str,
    *,
    bias1: Tensor | None = None,
    bias2: Tensor | None = None,
    inner_precise: int | None = None,
    **others: Any,
) -> Tensor:
    """torch_npu.npu_ffn without experts and quantisation: ``activation(x @ weight1 + bias1) @ weight2 +
    bias2``."""
    outside(**others)
    if activation not in _ACTIVATIONS:
        raise OutsideTable(f"activation is {activation}")
    inner = torch.matmul(x, weight1)
    inner = _ACTIVATIONS[activation](inner if bias1 is None else inner + bias1.to(x.dtype))
    out = torch.matmul(inner, weight2)
    return out if bias2 is None else out + bias2.to(x.dtype)


@documented
def npu_conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    """torch_npu.npu_conv2d (beta): a convolution of images."""
    return functional.conv2d(input, weight, bias, stride, padding, dilation, groups)


@documented
def npu_conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    """torch_npu.npu_conv3d (beta): a convolution of volumes."""
    return functional.conv3d(input, weight, bias, stride, padding, dilation, groups)


@documented
def npu_conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    padding: list[int],
    output_padding: list[int],
    stride: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    """torch_npu.npu_conv_transpose2d (beta): a transposed convolution of images."""
    return functional.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)
