"""Quantisation of activations and weights to eight bits, and the products of such matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .table import OutsideTable, documented, outside, rounded, wide

_INT8_MAX = 127
_OF_QUANTISED = {torch.qint8: torch.int8, torch.quint8: torch.uint8}
"""The integer types that hold PyTorch's quantised ones."""


def _saturated(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Rounded to the nearest, halves to even, and clamped to the type's range."""
    bounds = torch.iinfo(dtype)
    if dtype == torch.int32:  # its bounds are no float32 numbers
        return torch.round(x).to(dtype)
    return torch.round(x).clamp(bounds.min, bounds.max).to(dtype)


def _integer(dtype: Any, what: str, results: tuple[Tensor, ...]) -> torch.dtype:
    """The type of a quantised result. Raises OutsideTable for those that pack several numbers."""
    known = _OF_QUANTISED.get(dtype, dtype)
    if known not in (torch.int8, torch.uint8, torch.int32):
        raise OutsideTable(f"{what} is {dtype}", results)
    return known


def _by_token(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in eight bits, and the scale of each."""
    scale = x.abs().amax(-1) / _INT8_MAX
    return _saturated(x / scale.unsqueeze(-1), torch.int8), scale.float()


def _smoothed(x: Tensor, scales: Tensor | None, ends: Tensor | None) -> Tensor:
    """The tensor times its scales: one row for all, or for each group of rows that ends behind a number."""
    if scales is None:
        return x
    if ends is None:
        return x * wide(scales)
    rows = torch.arange(x.numel() // x.shape[-1], dtype=ends.dtype, device=x.device).unsqueeze(-1)
    group = (ends <= rows).sum(-1).clamp(max=scales.shape[0] - 1)
    of_rows = wide(scales).reshape(scales.shape[0], -1).index_select(0, group)
    return x * of_rows.reshape(*x.shape[:-1], -1)


@documented
def npu_dynamic_quant(
    input: Tensor,
    *,
    smooth_scales: Tensor | None = None,
    group_index: Tensor | None = None,
    dst_type: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """torch_npu.npu_dynamic_quant: each row over its largest magnitude, and that scale in float32. Before
    that, rows are multiplied by ``smooth_scales``, of which each has a group of rows where ``group_index``
    says their ends."""
    if dst_type not in (None, torch.int8):
        raise OutsideTable(f"dst_type is {dst_type}")
    return _by_token(_smoothed(wide(input), smooth_scales, group_index))


@documented
def npu_quantize(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    dtype: torch.dtype,
    axis: int = 1,
    div_mode: bool = True,
) -> Tensor:
    """torch_npu.npu_quantize: ``input / scales + zero_points``, or times ``scales``, in integers."""
    kind = _integer(dtype, "dtype", (input,))
    if not div_mode:
        axis = -2 if axis == -2 else -1
    shape = [1] * input.dim()
    shape[axis] = -1

    def placed(values: Tensor) -> Tensor:
        return wide(values).reshape(shape) if values.dim() == 1 else wide(values)

    x = wide(input)
    x = x / placed(scales) if div_mode else x * placed(scales)
    return _saturated(x if zero_points is None else x + placed(zero_points), kind)


@documented
def npu_anti_quant(
    x: Tensor,
    scale: Tensor,
    *,
    offset: Tensor | None = None,
    dst_dtype: torch.dtype | None = None,
    src_dtype: torch.dtype | None = None,
) -> Tensor:
    """torch_npu.npu_anti_quant: ``(x + offset) * scale``, in float16 unless another type is asked for."""
    if x.dtype != torch.int8:
        raise OutsideTable(f"x is {x.dtype}, which packs numbers")
    values = x.to(torch.float32)
    values = values if offset is None else values + wide(offset)
    return (values * wide(scale)).to(dst_dtype or torch.float16)


@documented
def npu_quant_matmul(
    x1: Tensor,
    x2: Tensor,
    scale: Tensor,
    *,
    offset: Tensor | None = None,
    pertoken_scale: Tensor | None = None,
    bias: Tensor | None = None,
    output_dtype: torch.dtype | None = None,
    group_sizes: list[int] | None = None,
) -> Tensor:
    """torch_npu.npu_quant_matmul: a product of eight-bit matrices times ``scale`` (of columns) and
    ``pertoken_scale`` (of rows), with an integer bias before the scale or another behind it."""
    if x1.dtype != torch.int8 or scale.dtype == torch.int64:
        raise OutsideTable("numbers are packed")
    outside(group_sizes=group_sizes)
    total = torch.matmul(x1.to(torch.int32), x2.to(torch.int32))
    if bias is not None and bias.dtype == torch.int32:
        total = total + bias
    if output_dtype == torch.int32:
        return total
    out = total.to(torch.float32) * wide(scale)
    if pertoken_scale is not None:
        out = out * wide(pertoken_scale).unsqueeze(-1)
    if bias is not None and bias.dtype != torch.int32:
        out = out + wide(bias)
    if offset is not None:
        out = out + wide(offset)
    return _saturated(out, torch.int8) if output_dtype in (None, torch.int8) else out.to(output_dtype)


def _spread(values: Tensor, group: int, rows: int) -> Tensor:
    """Scales of groups of rows, one for each row."""
    return wide(values).repeat_interleave(group, 0)[:rows] if group else wide(values)


@documented
def npu_weight_quant_batchmatmul(
    x: Tensor,
    weight: Tensor,
    antiquant_scale: Tensor,
    antiquant_offset: Tensor | None = None,
    quant_scale: Tensor | None = None,
    quant_offset: Tensor | None = None,
    bias: Tensor | None = None,
    antiquant_group_size: int = 0,
    inner_precise: int = 0,
) -> Tensor:
    """torch_npu.npu_weight_quant_batchmatmul: ``x @ ((weight + offset) * scale) + bias``, in eight bits
    again where ``quant_scale`` is given."""
    if weight.dtype != torch.int8 or antiquant_scale.dtype == torch.int64:
        raise OutsideTable("numbers are packed")
    values = weight.to(torch.float32)
    if antiquant_offset is not None:
        values = values + _spread(antiquant_offset, antiquant_group_size, weight.shape[0])
    values = values * _spread(antiquant_scale, antiquant_group_size, weight.shape[0])
    out = x @ rounded(values, x)
    if bias is not None:
        out = rounded(wide(out) + wide(bias), x)
    if quant_scale is None:
        return out
    scaled = wide(out) * wide(quant_scale)
    return _saturated(scaled if quant_offset is None else scaled + wide(quant_offset), torch.int8)


@documented
def npu_swiglu_quant(
    x: Tensor,
    *,
    smooth_scales: Tensor | None = None,
    offsets: Tensor | None = None,
    group_index: Tensor | None = None,
    activate_left: bool = False,
    quant_mode: int = 0,
    group_list_type: int = 0,
    dst_type: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """torch_npu.npu_swiglu_quant with ``quant_mode`` 1: SwiGLU of either half, smoothed, and quantised by
    rows as in npu_dynamic_quant. ``group_index`` has the groups' ends, or with ``group_list_type`` 1 their
    sizes."""
    if quant_mode != 1 or dst_type not in (None, torch.int8):
        raise OutsideTable("the quantisation is static or not of eight bits")
    left, right = wide(x).chunk(2, -1)
    gated = functional.silu(left) * right if activate_left else functional.silu(right) * left
    ends = group_index
    if ends is not None and group_list_type == 1:
        ends = ends.cumsum(0).to(ends.dtype)
    return _by_token(_smoothed(gated, smooth_scales, ends))
