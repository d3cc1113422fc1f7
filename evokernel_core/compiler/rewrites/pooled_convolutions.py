"""Average pools behind convolutions: one convolution whose weights are sums of the old ones.

A window of W places of a convolution of stride 1 with T taps meets W + T - 1 elements, each with the sum of
the taps that reach it. Behind a transposed convolution of stride s, a pool whose step is r times s meets
every r-th element, with every s-th of those sums: a plain convolution of stride r.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import frozen

from evokernel_core.compiler.rewrites.picking import permuted
from evokernel_core.compiler.rewrites.summed_convolutions import SummedAxis, axes_of
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.tensor import Dim

_MOST_WORK = 0.75
"""The share of the multiplications that may be left."""


@frozen
class _Pooled:
    """One dimension of the convolution that a pool behind another one makes. Weights get ``front`` and
    ``behind`` zeros and are averaged over windows of ``window``, ``apart`` from each other."""

    window: int
    apart: int
    front: int
    behind: int
    taps: int
    stride: int
    padding: int
    dilation: int


def pooled_convolution(
    root: Node,
    writer: GraphWriter,
    windows: Sequence[int],
    steps: Sequence[int],
    shape: tuple[Dim, ...],
) -> ValueRef | None:
    """The convolution that is the average pool of another one, None where there is none that is less work.
    ``shape``: of the result."""
    axes = axes_of(root, writer)
    is_transposed, groups = root.args[6] is True, root.args[8]
    if axes is None or len(axes) < 2 or (is_transposed and groups != 1):
        return None
    result = [_pooled(*each) for each in zip(axes, windows, steps, strict=True)]
    made = [element for element in result if element is not None]
    if len(made) < len(result):
        return None
    now: float = math.prod(axis.taps * step for axis, step in zip(axes, steps, strict=True))
    if is_transposed:
        now /= math.prod(axis.stride for axis in axes)
    if math.prod(kernel.taps for kernel in made) > _MOST_WORK * now:
        return None
    x, weight, bias = root.args[:3]
    assert isinstance(weight, ValueRef)
    weight = _averaged(writer, weight, made)
    if is_transposed:
        weight = _turned(writer, weight)
    stride, padding, dilation = (
        tuple(getattr(kernel, name) for kernel in made) for name in ("stride", "padding", "dilation")
    )
    args: tuple[Arg, ...] = (x, weight, bias, stride, padding, dilation, False, (0,) * len(made), groups)
    return writer.call("aten.convolution.default", *args, shape=shape, dtype="float32")


def _pooled(axis: SummedAxis, window: int, step: int) -> _Pooled | None:
    """One dimension, None where it is not covered."""
    if axis.is_transposed:
        return _behind_transposed(axis, window, step)
    if window == 1:
        return _Pooled(1, 1, 0, 0, axis.taps, axis.stride * step, axis.padding, axis.dilation)
    if axis.stride != 1 or axis.dilation != 1:
        return None
    more = window - 1
    return _Pooled(window, 1, more, more, axis.taps + more, step, axis.padding, 1)


def _behind_transposed(axis: SummedAxis, window: int, step: int) -> _Pooled | None:
    """Result o of the pool meets element o * step / stride - m with the average of the taps from
    stride * m + padding on, for the m for which there are any."""
    if axis.dilation != 1 or step % axis.stride:
        return None
    first = -((window - 1 + axis.padding) // axis.stride)
    last = (axis.taps - 1 - axis.padding) // axis.stride
    start = axis.stride * first + axis.padding
    # Zeros behind the input that the last result may meet; a plain convolution has as many as in front.
    rest = axis.taps + axis.output_padding - 2 * axis.padding - window
    if last < 0 or start > 0 or rest // axis.stride - first != last:
        return None
    behind = max(0, axis.stride * last + axis.padding + window - axis.taps)
    return _Pooled(
        window, axis.stride, -start, behind, last - first + 1, step // axis.stride, last, 1
    )  # fmt: skip


def _averaged(writer: GraphWriter, weight: ValueRef, made: Sequence[_Pooled]) -> ValueRef:
    shape = writer.shape(weight)
    pads = tuple(count for kernel in reversed(made) for count in (kernel.front, kernel.behind))
    if any(pads):
        longer = (
            *shape[:2],
            *(_plus(dim, kernel.front + kernel.behind) for dim, kernel in zip(shape[2:], made, strict=True)),
        )
        weight = writer.call("aten.constant_pad_nd.default", weight, pads, 0.0, shape=longer, dtype="float32")
    taps = (*shape[:2], *(kernel.taps for kernel in made))
    if all(kernel.window == kernel.apart == 1 for kernel in made):
        return weight
    op = f"aten.avg_pool{len(made)}d.default"
    windows, apart = tuple(kernel.window for kernel in made), tuple(kernel.apart for kernel in made)
    return writer.call(op, weight, windows, apart, shape=taps, dtype="float32")


def _plus(dim: Dim, more: int) -> int:
    assert isinstance(dim, int)  # taps are known
    return dim + more


def _turned(writer: GraphWriter, weight: ValueRef) -> ValueRef:
    """Weights of a transposed convolution as a plain one has them."""
    weight = permuted(writer, weight, (1, 0, *range(2, len(writer.shape(weight)))))
    shape = writer.shape(weight)
    dims = tuple(dim for dim in range(2, len(shape)) if shape[dim] != 1)
    return writer.call("aten.flip.default", weight, dims, shape=shape, dtype="float32") if dims else weight
