"""Shapes of products, convolutions, pooling and images."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.rewrites.call_shapes.call import Rule, ShapedCall, Shapes, need
from evokernel_core.compiler.rewrites.call_shapes.pointwise import broadcast


def _mm(call: ShapedCall) -> Shapes:
    (m, k), (depth, n) = call.shape(), call.shape(1)
    need(k == depth)
    return [(m, n)]


def _bmm(call: ShapedCall) -> Shapes:
    (b, m, k), (batch, depth, n) = call.shape(), call.shape(1)
    need((b, k) == (batch, depth))
    return [(b, m, n)]


def _linear(call: ShapedCall) -> Shapes:
    x, weight, bias = call.shape(), call.shape(1), call.shape(2)
    need(len(weight) in (1, 2) and bool(x) and x[-1] == weight[-1])
    result = (*x[:-1], *weight[:-1])
    broadcast([result, bias])
    need(len(bias) <= 1)
    return [result]


def _convolved(call: ShapedCall) -> Shapes:
    x, weight, rank = call.shape(), call.shape(1), len(call.shape(1)) - 2
    need(rank in (1, 2, 3) and len(x) == rank + 2)
    stride, padding, dilation = call.each(3, rank, 1), call.each(4, rank, 0), call.each(5, rank, 1)
    extra, groups, turned = call.each(7, rank, 0), call.number(8, 1), bool(call.at(6))
    need(min(stride) > 0 and min(dilation) > 0 and min(padding) >= 0 and groups > 0)
    need(x[1] == (weight[0] if turned else weight[1] * groups))
    need(weight[0] % groups == 0)
    results = weight[1] * groups if turned else weight[0]
    need(call.at(2) is None or call.shape(2) == (results,))
    result = []
    for axis in range(rank):
        size, span = x[2 + axis], dilation[axis] * (weight[2 + axis] - 1) + 1
        if turned:
            need(0 <= extra[axis] < max(stride[axis], dilation[axis]))
            result.append((size - 1) * stride[axis] - 2 * padding[axis] + span + extra[axis])
        else:
            result.append((size + 2 * padding[axis] - span) // stride[axis] + 1)
    need(min(result) > 0)
    return [(x[0], results, *result)]


def _pooled(rank: int, dilates: bool) -> Rule:
    def rule(call: ShapedCall) -> Shapes:
        shape = call.shape()
        need(len(shape) in (rank + 1, rank + 2))
        taps = call.each(1, rank, 1)
        stride = call.each(2, rank, 1) if call.numbers(2) else taps
        padding = call.each(3, rank, 0)
        dilation = call.each(4, rank, 1) if dilates else (1,) * rank
        up = bool(call.at(5 if dilates else 4))
        need(min(taps) > 0 and min(stride) > 0 and min(dilation) > 0)
        result = []
        for axis, size in enumerate(shape[-rank:]):
            need(0 <= padding[axis] <= taps[axis] // 2)
            result.append(_windows(size, taps[axis], stride[axis], padding[axis], dilation[axis], up))
        need(min(result) > 0)
        return [(*shape[:-rank], *result)] * len(call.node.outputs)

    return rule


def _windows(size: int, taps: int, stride: int, padding: int, dilation: int, up: bool) -> int:
    room = size + 2 * padding - dilation * (taps - 1) - 1
    count = (room + (stride - 1 if up else 0)) // stride + 1
    return count - (up and (count - 1) * stride >= size + padding)


def _resized(rank: int, batched: bool) -> Rule:
    def rule(call: ShapedCall) -> Shapes:
        shape, wanted = call.shape(), call.numbers(1)
        need(len(wanted) == rank and min(wanted) > 0)
        need(len(shape) == rank + 2 or (not batched and len(shape) == rank + 1))
        return [(*shape[:-rank], *wanted)] * len(call.node.outputs)

    return rule


def _sampled(call: ShapedCall) -> Shapes:
    x, grid = call.shape(), call.shape(1)
    need(len(x) == len(grid) and grid[-1] == len(x) - 2 and x[0] == grid[0])
    return [(*x[:2], *grid[1:-1])]


def _grid(call: ShapedCall) -> Shapes:
    theta, size = call.shape(), call.numbers(1)
    need(len(size) in (4, 5) and theta == (size[0], len(size) - 2, len(size) - 1))
    return [(size[0], *size[2:], len(size) - 2)]


RULES: Mapping[str, Rule] = {
    **{f"avg_pool{rank}d": _pooled(rank, dilates=False) for rank in (1, 2, 3)},
    **{f"max_pool{rank}d_with_indices": _pooled(rank, dilates=True) for rank in (2, 3)},
    **{f"_adaptive_avg_pool{rank}d": _resized(rank, batched=False) for rank in (2, 3)},
    **{f"adaptive_max_pool{rank}d": _resized(rank, batched=False) for rank in (2, 3)},
    **dict.fromkeys(("upsample_bilinear2d", "upsample_bicubic2d"), _resized(2, batched=True)),
    **dict.fromkeys(("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"), _resized(2, batched=True)),
    **dict.fromkeys(("grid_sampler_2d", "grid_sampler_3d"), _sampled),
    "mm": _mm,
    "bmm": _bmm,
    "linear": _linear,
    "convolution": _convolved,
    **{f"upsample_nearest{rank}d": _resized(rank, batched=True) for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d": _resized(rank, batched=True) for rank in (1, 2, 3)},
    "upsample_linear1d": _resized(1, batched=True),
    "upsample_trilinear3d": _resized(3, batched=True),
    "affine_grid_generator": _grid,
}
"""By name with the overload, or without it."""
