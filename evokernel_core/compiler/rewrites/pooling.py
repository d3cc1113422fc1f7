"""Pools that are something simpler: adaptive ones become plain, windows over whole images reductions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from evokernel_core.compiler.aten import AVERAGE_POOLS, MAX_POOLS
from evokernel_core.compiler.rewrites.elementwise import apply, cast
from evokernel_core.compiler.rewrites.picking import numbers, view
from evokernel_core.compiler.rewrites.resizing import product_along
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef, literals
from evokernel_core.domain.tensor import Dim

_MOST_SLICES = 64
"""Windows of different widths that are cut out one by one."""
_MOST_EXACT = 2**24
"""Whole numbers below it are exact in float32."""


@frozen
class PoolingKind:
    """A way to combine a window: its reduction and its pool, by ATen name without the rank."""

    reduction: str
    pool: str

    def reduced(self, writer: GraphWriter, x: ValueRef, dims: Sequence[int]) -> ValueRef:
        shape = [1 if dim in dims else size for dim, size in enumerate(writer.shape(x))]
        return writer.call(
            self.reduction, x, tuple(dims), True, shape=tuple(shape), dtype=writer.spec(x).dtype
        )

    def pooled(self, writer: GraphWriter, x: ValueRef, taps: Mapping[int, int], rank: int) -> ValueRef:
        """Windows side by side, of ``taps`` elements by dimension."""
        shape = list(writer.shape(x))
        for dim, number in taps.items():
            size = shape[dim]
            assert isinstance(size, int)
            shape[dim] = size // number
        kernel = tuple(taps.get(dim, 1) for dim in range(len(shape) - rank, len(shape)))
        op = self.pool.format(rank=rank)
        dtype = writer.spec(x).dtype
        return writer.call(op, x, kernel, kernel, shape=tuple(shape), dtype=dtype)


_AVERAGE = PoolingKind("aten.mean.dim", "aten.avg_pool{rank}d.default")
_MAXIMUM = PoolingKind("aten.amax.default", "aten.max_pool{rank}d_with_indices.default")


def rewrite_adaptive_average(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """``aten._adaptive_avg_pool2d`` and ``3d``."""
    return (_adapted(node, writer, _AVERAGE),)


def rewrite_adaptive_maximum(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """``aten.adaptive_max_pool2d`` and ``3d``; with indices only where all windows are alike."""
    if _reads_indices(node, writer):
        return _alike(node, writer)
    result = _adapted(node, writer, _MAXIMUM)
    return (result, result)


def _alike(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """The plain pool of an adaptive one."""
    x = next(iter(node.operands()))
    rank = 3 if "3d" in node.op else 2
    shape, results = writer.shape(x), node.outputs[0].shape
    taps = tuple(map(_taps, shape[-rank:], results[-rank:]))
    if not all(taps):
        raise PlanError("Indices of an adaptive pool with windows of different widths are not covered.")
    return writer.call_many(_MAXIMUM.pool.format(rank=rank), x, taps, taps, outputs=node.outputs)


def _reads_indices(node: Node, writer: GraphWriter) -> bool:
    graph, second = writer.task.graph, ValueRef(node.name, 1)
    return second in graph.outputs or any(second in other.operands() for other in graph.nodes)


def _adapted(node: Node, writer: GraphWriter, kind: PoolingKind) -> ValueRef:
    """Dimensions of one window first, then those whose windows are alike, then the others."""
    x = next(iter(node.operands()))
    shape, results = writer.shape(x), node.outputs[0].shape
    rank = 3 if "3d" in node.op else 2
    if len(shape) != len(results) or len(shape) < rank:
        raise PlanError(
            "{op} of a tensor of {count} dimensions is not covered.", op=node.op, count=len(shape)
        )
    dims = range(len(shape) - rank, len(shape))
    if whole := [dim for dim in dims if results[dim] == 1 and shape[dim] != 1]:
        x = kind.reduced(writer, x, whole)
    left = [dim for dim in dims if dim not in whole and shape[dim] != results[dim]]
    taps = {dim: result for dim in left if (result := _taps(shape[dim], results[dim]))}
    if taps:
        x = kind.pooled(writer, x, taps, rank)
    for dim in left:
        if dim not in taps:
            x = _unlike(writer, x, dim, results[dim], kind)
    return x


def _taps(size: Dim, result: Dim) -> int:
    """The width of every window, 0 where they differ."""
    if not isinstance(size, int) or not isinstance(result, int):
        raise PlanError("An adaptive pool of a size that is not known in advance is not covered.")
    return 0 if size % result else size // result


def _unlike(writer: GraphWriter, x: ValueRef, dim: int, result: Dim, kind: PoolingKind) -> ValueRef:
    """Windows of different widths along one dimension."""
    size = writer.shape(x)[dim]
    assert isinstance(size, int)
    assert isinstance(result, int)
    if kind is _AVERAGE and size * result < _MOST_EXACT:
        weights = _shares(writer, size, result)
        return cast(
            writer, product_along(writer, cast(writer, x, "float32"), dim, weights), writer.spec(x).dtype
        )
    return _cut(writer, x, dim, size, result, kind)


def _shares(writer: GraphWriter, size: int, result: int) -> ValueRef:
    """The matrix of [windows, elements] that averages each window.

    Window i has the elements j with j < (i + 1) * size / result and j + 1 > i * size / result: those where
    j * result - i * size lies between -result and size.
    """
    column = apply(writer, "mul.Scalar", numbers(writer, size), float(result))
    row = apply(writer, "mul.Scalar", numbers(writer, result), float(size))
    apart = apply(writer, "sub.Tensor", column, view(writer, row, (result, 1)))
    above = apply(writer, "add.Scalar", apart, float(result))
    below = apply(writer, "rsub.Scalar", apart, float(size))
    inside = apply(writer, "clamp.default", apply(writer, "minimum.default", above, below), 0.0, 1.0)
    count = writer.call("aten.sum.dim_IntList", inside, (1,), True, shape=(result, 1), dtype="float32")
    return apply(writer, "div.Tensor", inside, count)


def _cut(writer: GraphWriter, x: ValueRef, dim: int, size: int, result: int, kind: PoolingKind) -> ValueRef:
    """Windows of different widths along one dimension, cut out and joined."""
    spec = writer.spec(x)
    if result > _MOST_SLICES:
        raise PlanError(
            "An adaptive pool with {result} windows of different widths is not covered.", result=result
        )
    parts = []
    for index in range(result):
        start, end = index * size // result, -(-(index + 1) * size // result)
        shape = (*spec.shape[:dim], end - start, *spec.shape[dim + 1 :])
        part = writer.call("aten.slice.Tensor", x, dim, start, end, shape=shape, dtype=spec.dtype)
        parts.append(kind.reduced(writer, part, [dim]))
    shape = (*spec.shape[:dim], result, *spec.shape[dim + 1 :])
    return writer.call("aten.cat.default", tuple(parts), dim, shape=shape, dtype=spec.dtype)


def rewrite_pool(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """A pool with one window in some dimensions, and nothing to combine in the others, reduces those."""
    rank = 3 if "3d" in node.op else 2 if "2d" in node.op else 1
    is_max = node.op in MAX_POOLS
    x = next(iter(node.operands()))
    shape = writer.shape(x)
    taps, stride, padding = (_each(node, number, rank) for number in (1, 2, 3))
    divisor = node.args[6] if not is_max and len(node.args) > 6 else None
    if any(padding) or divisor or (is_max and _reads_indices(node, writer)):
        return None
    whole = []
    for dim, each, step in zip(range(len(shape) - rank, len(shape)), taps, stride or taps, strict=True):
        if each > 1 and shape[dim] == each:
            whole.append(dim)
        elif (each, step) != (1, 1) and shape[dim] != 1:
            return None
    if not whole:
        return None
    result = (_MAXIMUM if is_max else _AVERAGE).reduced(writer, x, whole)
    return (result, result) if is_max else (result,)


def _each(node: Node, number: int, rank: int) -> tuple[int, ...]:
    """A number for each dimension, none where the call has none."""
    return literals(node.args[number] if number < len(node.args) else (), rank)


REWRITES: Mapping[str, Rewrite] = {
    **dict.fromkeys(("aten._adaptive_avg_pool2d.default", "aten._adaptive_avg_pool3d.default"),
                    rewrite_adaptive_average),
    **dict.fromkeys(("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default"),
                    rewrite_adaptive_maximum),
    **dict.fromkeys(sorted(MAX_POOLS | AVERAGE_POOLS), rewrite_pool),
}  # fmt: skip
