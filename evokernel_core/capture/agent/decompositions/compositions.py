"""Composite ops said in simpler ones that fuse: torch's own decompositions go through strides or scratch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)


def _wide(x: torch.Tensor) -> torch.Tensor:
    """Half types are normalised in float32, as PyTorch does."""
    return x.float() if x.dtype in _HALF else x


def _by_channel(x: torch.Tensor, parameter: torch.Tensor | None) -> torch.Tensor | None:
    """A parameter with one number a channel, of the rank of ``x`` behind the batch."""
    return None if parameter is None else _wide(parameter).view([-1] + [1] * (x.dim() - 2))


def _affine(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, dtype: torch.dtype
) -> torch.Tensor:
    scale, shift = _by_channel(x, weight), _by_channel(x, bias)
    x = x if scale is None else x * scale
    x = x if shift is None else x + shift
    return x.to(dtype) if x.dtype != dtype else x


def group_norm(  # noqa: PLR0913, PLR0917 - as its op
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    images: int,
    channels: int,
    pixels: int,
    groups: int,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """aten.native_group_norm: each group of channels of an image has its own mean and variance."""
    grouped = _wide(x).view(x.shape[0], groups, channels // groups, *x.shape[2:])
    dims = list(range(2, grouped.dim()))
    variance, mean = torch.var_mean(grouped, dim=dims, correction=0, keepdim=True)
    scale = torch.rsqrt(variance + eps)
    normal = ((grouped - mean) * scale).view(x.shape)
    shape = (x.shape[0], groups)
    return _affine(normal, weight, bias, x.dtype), mean.view(shape), scale.view(shape)


def rms_norm(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    eps: float | None = None,
) -> torch.Tensor:
    """torch.rms_norm, with its own names of arguments: the roots of mean squares of the last dimensions."""
    x, last = input, len(normalized_shape)
    if list(x.shape[x.dim() - last :]) != list(normalized_shape):
        raise RuntimeError(f"the last dimensions of {tuple(x.shape)} are not {tuple(normalized_shape)}")
    wide = _wide(x)
    least = torch.finfo(wide.dtype).eps if eps is None else eps
    squares = wide.square().mean(list(range(-last, 0)), keepdim=True)
    normal = wide * torch.rsqrt(squares + least)
    normal = normal if weight is None else normal * weight
    return normal.to(x.dtype) if normal.dtype != x.dtype else normal


def batch_norm(  # noqa: PLR0913, PLR0917 - as its op
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """aten.native_batch_norm: each channel has one mean, which its running statistics follow."""
    wide = _wide(x)
    if training or running_mean is None or running_var is None:
        dims = [0, *range(2, x.dim())]
        variance, mean = torch.var_mean(wide, dim=dims, correction=0, keepdim=True)
        if running_mean is not None and running_var is not None:
            _follow(running_mean, mean, momentum)
            _follow(running_var, torch.var(wide, dim=dims, correction=1, keepdim=True), momentum)
    else:
        shape = [-1] + [1] * (x.dim() - 2)
        variance, mean = _wide(running_var).view(shape), _wide(running_mean).view(shape)
    scale = torch.rsqrt(variance + eps)
    normal = (wide - mean) * scale
    return _affine(normal, weight, bias, x.dtype), mean.flatten(), scale.flatten()


def _batch_norm_in_evaluation(
    x: torch.Tensor, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    return batch_norm(x, weight, bias, mean, variance, False, momentum, eps)


def _batch_norm_without_statistics(
    x: torch.Tensor, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    return batch_norm(x, weight, bias, None, None, training, momentum, eps)


def _follow(running: torch.Tensor, value: torch.Tensor, momentum: float) -> None:
    """A running statistic moves towards the batch's: the share ``momentum`` of the way."""
    moved = _wide(running) * (1 - momentum) + value.flatten() * momentum
    running.copy_(moved.to(running.dtype) if moved.dtype != running.dtype else moved)


def scaled_sum(
    added: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    """aten.addmm and aten.baddbmm: the product is a kernel's, the sum its epilogue's."""
    product = torch.mm(left, right) if left.dim() == 2 else torch.bmm(left, right)
    product = product if alpha == 1 else product * alpha
    return product + (added if beta == 1 else added * beta)


def bilinear(
    left: torch.Tensor, right: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """aten.bilinear: a matrix for each output between both vectors. The right one's products with all rows
    of all matrices are one matrix product; the left one weighs them."""
    outputs, depth, others = weight.shape
    rows = torch.mm(right.reshape(-1, others), weight.reshape(outputs * depth, others).t())
    weighed = rows.view(-1, outputs, depth) * left.reshape(-1, 1, depth)
    result = weighed.sum(-1).view([*left.shape[:-1], outputs])
    return result if bias is None else result + bias


def is_nan(x: torch.Tensor) -> torch.Tensor:
    """aten.isnan: only what is no number differs from itself."""
    return torch.ne(x, x)


def x_log_y(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """aten.xlogy: 0 where x is, whatever the logarithm, unless y is no number."""
    product = torch.where(x == 0, 0.0, x * torch.log(y))
    return product if x is y else torch.where(is_nan(y), y, product)


def identity(
    rows: int, columns: int | None = None, *, dtype: torch.dtype | None = None, **others: Any
) -> torch.Tensor:
    """aten.eye, of the indices' own dtype: torch's takes the narrowest that the size fits in."""
    across = torch.arange(rows if columns is None else columns)
    return torch.eq(torch.arange(rows).unsqueeze(1), across).to(dtype or torch.get_default_dtype())


def diagonal_filled(x: torch.Tensor, value: Any, wrap: bool = False) -> torch.Tensor:
    """aten.fill_diagonal_: the elements whose indices are all alike. With ``wrap`` the diagonal of a tall
    matrix starts again below its end, one row left free."""
    rank = x.dim()
    numbers = [torch.arange(size).view([-1] + [1] * (rank - 1 - dim)) for dim, size in enumerate(x.shape)]
    first = numbers[0] % (x.shape[1] + 1) if wrap and rank == 2 and x.shape[0] > x.shape[1] else numbers[0]
    alike = torch.eq(first, numbers[1])
    for other in numbers[2:]:
        alike = alike & torch.eq(numbers[0], other)
    return x.copy_(x.masked_fill(alike, value))


def quantised(
    x: torch.Tensor, scale: float, zero: int, least: int, most: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """aten.fake_quantize_per_tensor_affine_cachemask: rounded to a grid of integers, and what was inside."""
    return _on_grid(x, 1.0 / scale, scale, zero, least, most)


def quantised_by(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, enabled: torch.Tensor, least: int, most: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same with a scale and a zero point in tensors, unless it is switched off."""
    result, inside = _on_grid(x, 1.0 / scale, scale, zero.to(x.dtype), least, most)
    return torch.where(enabled != 0, result, x), inside | (enabled == 0)


def quantised_by_channel(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, axis: int, least: int, most: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """aten.fake_quantize_per_channel_affine_cachemask: a scale and a zero point for each channel."""
    shape = [-1 if dim == axis else 1 for dim in range(x.dim())]
    scale, zero = scale.view(shape), zero.view(shape).to(x.dtype)
    return _on_grid(x, 1.0 / scale, scale, zero, least, most)


def _on_grid(
    x: torch.Tensor, inverse: Any, scale: Any, zero: Any, least: int, most: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """As PyTorch multiplies by the inverse of the scale and rounds halves to even numbers."""
    number = torch.round(x * inverse) + zero
    inside = (number >= least) & (number <= most)
    return (torch.clamp(number, least, most) - zero) * scale, inside


TABLE = {
    aten.eye.default: identity,
    aten.eye.m: identity,
    aten.fake_quantize_per_tensor_affine_cachemask.default: quantised,
    aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: quantised_by,
    aten.fake_quantize_per_channel_affine_cachemask.default: quantised_by_channel,
    aten.isnan.default: is_nan,
    aten.xlogy.Tensor: x_log_y,
    aten.native_group_norm.default: group_norm,
    aten.native_batch_norm.default: batch_norm,
    aten._native_batch_norm_legit.default: batch_norm,
    aten._native_batch_norm_legit.no_stats: _batch_norm_without_statistics,
    aten._native_batch_norm_legit_no_training.default: _batch_norm_in_evaluation,
    aten.addmm.default: scaled_sum,
    aten.baddbmm.default: scaled_sum,
}


_WITHOUT_WRITES: dict[Any, Callable[..., torch.Tensor]] = {
    torch.rms_norm: rms_norm,
    torch.nn.functional.rms_norm: rms_norm,
}


class WithoutWrites(TorchFunctionMode):
    """While it is on, such a function is called in its other form."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _WITHOUT_WRITES.get(func, func)(*args, **(kwargs or {}))
