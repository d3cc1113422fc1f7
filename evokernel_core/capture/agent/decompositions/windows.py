"""Windows of images said in operations that kernels know: columns of them, back again, and drawn ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)


def unfolded(
    x: torch.Tensor,
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> torch.Tensor:
    """aten.im2col: [images, channels * window, windows] of [images, channels, rows, columns]."""
    image = x if x.dim() == 4 else x.unsqueeze(0)
    for axis in (2, 3):
        image = _framed(image, axis, padding[axis - 2], padding[axis - 2])
    for axis in (0, 1):
        span = (kernel[axis] - 1) * dilation[axis] + 1
        image = image.unfold(2 + axis, span, stride[axis])
        image = image[..., :: dilation[axis]] if dilation[axis] > 1 else image
    images, channels, rows, across = image.shape[:4]
    depth = channels * math.prod(kernel)
    columns = image.permute(0, 1, 4, 5, 2, 3).reshape(images, depth, rows * across)
    columns = columns.contiguous()
    return columns if x.dim() == 4 else columns.squeeze(0)


def folded(
    x: torch.Tensor,
    size: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> torch.Tensor:
    """aten.col2im: the sums of the windows' elements at each place of [images, channels, *size]."""
    columns = x if x.dim() == 3 else x.unsqueeze(0)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]  # noqa: B905
    counts = [(size[i] + 2 * padding[i] - spans[i]) // stride[i] + 1 for i in (0, 1)]
    channels = columns.shape[1] // math.prod(kernel)
    windows = columns.reshape(columns.shape[0], channels, *kernel, *counts)
    wide = windows.float() if x.dtype in _HALF else windows
    if list(kernel) == list(stride) and max(dilation) == 1:  # side by side: nothing is added
        sizes = (x_count * k for x_count, k in zip(counts, kernel))  # noqa: B905
        image = wide.permute(0, 1, 4, 2, 5, 3).reshape(columns.shape[0], channels, *sizes)
        for axis in (2, 3):
            more = padding[axis - 2] + size[axis - 2] - image.shape[axis]
            image = _framed(image, axis, -padding[axis - 2], more)
    else:
        # [images, channels, window rows, rows, window columns, columns], then without the last two
        image = _added(wide.transpose(3, 4), 4, size[1], dilation[1], padding[1], stride[1])
        image = _added(image, 2, size[0], dilation[0], padding[0], stride[0])
    image = image.to(x.dtype).contiguous()
    return image if x.dim() == 3 else image.squeeze(0)


def _added(x: torch.Tensor, dim: int, size: int, dilation: int, padding: int, stride: int) -> torch.Tensor:
    """Windows along ``dim``, their places behind it, as one dimension of ``size`` elements.

    A row of a window at all places, a stride apart, is a run of elements; without a dilation so are as
    many neighbouring rows as a stride is long.
    """
    window, count = x.shape[dim], x.shape[dim + 1]
    rows = stride if dilation == 1 else 1
    total: torch.Tensor | None = None
    for first in range(0, window, rows):
        before = first * dilation - padding
        if before >= size or before + count * stride <= 0:  # all of it in the padding
            continue
        part = x.narrow(dim, first, min(rows, window - first))
        part = _framed(part, dim, 0, stride - part.shape[dim]).transpose(dim, dim + 1)
        run = part.reshape(*x.shape[:dim], count * stride, *x.shape[dim + 2 :])
        run = _framed(run, dim, before, size - before - count * stride)
        total = run if total is None else total + run
    return x.new_zeros([*x.shape[:dim], size, *x.shape[dim + 2 :]]) if total is None else total


def _framed(x: torch.Tensor, dim: int, before: int, behind: int) -> torch.Tensor:
    """Zeros around a dimension; where there are fewer than none of them, that many elements go."""
    if before < 0:
        x = x.narrow(dim, -before, x.shape[dim] + before)
    if behind < 0:
        x = x.narrow(dim, 0, x.shape[dim] + behind)
    around = (max(before, 0), max(behind, 0)) if before > 0 or behind > 0 else (0, 0)
    if around == (0, 0):
        return x
    return torch.constant_pad_nd(x, [*[0, 0] * (x.dim() - 1 - dim), *around], 0.0)


def drawn_maximum(
    x: torch.Tensor, window: Sequence[int], size: Sequence[int], samples: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """aten.fractional_max_pool2d and 3d: the windows of each channel begin where its samples say.

    The values are maxima along one dimension after the other: so whole rows are read.
    """
    dims = len(window)
    images = x if x.dim() == dims + 2 else x.unsqueeze(0)
    lengths = images.shape[2:]
    # two dimensions have the sample of columns first
    order = (1, 0) if dims == 2 else range(dims)
    places = [
        _beginnings(samples[:, :, sample], lengths[axis], window[axis], size[axis]).unsqueeze(-2)
        + torch.arange(window[axis]).unsqueeze(-1)
        for axis, sample in enumerate(order)
    ]
    values = images
    for axis in range(dims - 1):
        rows = values.flatten(axis + 3)
        values = _row_maxima(rows, places[axis]).view(*rows.shape[:-2], size[axis], *lengths[axis + 1 :])
    values = _row_maxima(values.transpose(-1, -2), places[-1]).transpose(-1, -2)
    shape = [*x.shape[: x.dim() - dims], *size]
    return values.contiguous().view(shape), _drawn_places(images, window, size, places).view(shape)


def _row_maxima(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """For [images, channels, .., rows, columns] the maxima of the rows that ``places`` [images, channels,
    rows of a window, windows] chooses: in this order, since windows are many and their rows few."""
    *outer, rows, columns = x.shape
    first = (torch.arange(math.prod(outer)) * rows).view(*outer, 1, 1)
    between = [1] * (len(outer) - 2)
    index = first + places.view(*places.shape[:2], *between, *places.shape[2:])
    result = x.reshape(math.prod(outer) * rows, columns)[index.flatten()]
    return result.view(*outer, *places.shape[2:], columns).amax(-3)


def _drawn_places(
    images: torch.Tensor, window: Sequence[int], size: Sequence[int], places: list[torch.Tensor]
) -> torch.Tensor:
    """Where the maximum of each window lies among the pixels of a channel."""
    dims, place = len(window), torch.zeros((), dtype=torch.int64)
    for axis, count in enumerate(places):
        shape = [*count.shape[:2], *[1] * (2 * dims)]
        shape[2 + axis], shape[2 + dims + axis] = window[axis], size[axis]
        place = place * images.shape[2 + axis] + count.view(shape)
    flat = place.reshape(*images.shape[:2], math.prod(window) * math.prod(size))
    pixels = images.flatten(2).gather(2, flat)
    each = (*images.shape[:2], math.prod(window), math.prod(size))
    chosen = pixels.view(each).argmax(2, keepdim=True)
    return flat.view(each).gather(2, chosen)


def _beginnings(samples: torch.Tensor, length: int, window: int, count: int) -> torch.Tensor:
    """Where ``count`` windows of a dimension begin, which the last one ends."""
    last, places = length - window, torch.arange(count)
    share = last / max(count - 1, 1)
    start = (samples * share).long().unsqueeze(-1)
    begin = ((places.to(samples.dtype) + samples.unsqueeze(-1)) * share).long() - start
    # samples are shares of one: the bounds only say so to whoever reads the graph
    return torch.where(places == count - 1, last, begin.clamp(0, last))


TABLE = {
    aten.im2col.default: unfolded,
    aten.col2im.default: folded,
    aten.fractional_max_pool2d.default: drawn_maximum,
    aten.fractional_max_pool3d.default: drawn_maximum,
}
