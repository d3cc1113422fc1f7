"""Gradients of convolutions as convolutions and products: PyTorch's own op has no parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

aten = torch.ops.aten


def convolution_backward(  # noqa: PLR0913, PLR0917 - as its op
    gradient: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    asked: Sequence[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """aten.convolution_backward: the gradients of [images, channels, ...], of weights and of a bias, None
    where they are not ``asked``."""
    rank = x.dim() - 2
    steps, pads, gaps = (_each(given, rank) for given in (stride, padding, dilation))
    output, image = (x, gradient) if transposed else (gradient, x)
    _check(output, image, weight, steps, pads, gaps, groups)
    of_x = of_weight = of_bias = None
    if asked[0]:
        spans = [gaps[i] * (weight.shape[2 + i] - 1) + 1 for i in range(rank)]
        made = [(gradient.shape[2 + i] - 1) * steps[i] - 2 * pads[i] + spans[i] for i in range(rank)]
        more = [0] * rank if transposed else [x.shape[2 + i] - made[i] for i in range(rank)]
        of_x = aten.convolution(gradient, weight, None, steps, pads, gaps, not transposed, more, groups)
    if asked[1]:
        pair = (gradient, x) if transposed else (x, gradient)
        of_weight = _of_weight(*pair, list(weight.shape), steps, pads, gaps, groups)
    if asked[2]:
        of_bias = gradient.sum([0, *range(2, x.dim())])
    return of_x, of_weight, of_bias


def _check(
    output: torch.Tensor,
    image: torch.Tensor,
    weight: torch.Tensor,
    steps: Any,
    pads: Any,
    gaps: Any,
    groups: int,
) -> None:
    """Raises RuntimeError where no convolution of ``image`` has the sizes of ``output``."""
    sizes = [image.shape[0], weight.shape[0]]
    for i in range(len(steps)):
        span = gaps[i] * (weight.shape[2 + i] - 1) + 1
        sizes.append((image.shape[2 + i] + 2 * pads[i] - span) // steps[i] + 1)
    if image.shape[1] != weight.shape[1] * groups or list(output.shape) != sizes:
        raise RuntimeError(f"{tuple(output.shape)} is no result of a convolution of {tuple(image.shape)}")


def _of_weight(
    x: torch.Tensor, gradient: torch.Tensor, shape: list[int], steps: Any, pads: Any, gaps: Any, groups: int
) -> torch.Tensor:
    """One product over the pixels of all images: of the gradient with what each weight meets of the input."""
    images, channels, rank = x.shape[0], x.shape[1], len(steps)
    pixels = images * math.prod(gradient.shape[2:])
    frame = [side for pad in reversed(pads) for side in (pad, pad)]
    met = (aten.constant_pad_nd(x, frame) if any(pads) else x).transpose(0, 1)
    for axis in reversed(range(rank)):  # from the shortest runs of memory to the longest
        dim = met.dim() - rank + axis
        places = (_strided(met, dim, tap * gaps[axis], gradient.shape[2 + axis], steps[axis]) for tap in
                  range(shape[2 + axis]))  # fmt: skip
        met = torch.stack(list(places), 1)
    columns = met.reshape(groups, channels // groups * math.prod(shape[2:]), pixels)
    rows = gradient.transpose(0, 1).reshape(groups, shape[0] // groups, pixels)
    if groups == 1:
        return (rows[0] @ columns[0].t()).reshape(shape)
    return torch.bmm(rows, columns.transpose(1, 2)).reshape(shape)


def _strided(x: torch.Tensor, dim: int, first: int, size: int, step: int) -> torch.Tensor:
    return aten.slice.Tensor(x, dim, first, first + (size - 1) * step + 1, step)


def _each(given: Sequence[int], rank: int) -> list[int]:
    return list(given) * rank if len(given) == 1 else list(given)


TABLE = {aten.convolution_backward.default: convolution_backward}
