"""Element-wise nodes whose results have the shape that their operands broadcast to."""

from __future__ import annotations

from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.graph import Arg, ValueRef
from evokernel_core.domain.tensor import Dim


def apply(writer: GraphWriter, op: str, *args: Arg, dtype: str = "float32") -> ValueRef:
    """``aten.op`` of operands and numbers."""
    shapes = [writer.shape(arg) for arg in args if isinstance(arg, ValueRef)]
    return writer.call(f"aten.{op}", *args, shape=broadcast(shapes), dtype=dtype)


def broadcast(shapes: list[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    rank = max(map(len, shapes))
    whole = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(
        next((dim for dim in dims if not extent(dim).is_one), 1) for dims in zip(*whole, strict=True)
    )


def cast(writer: GraphWriter, x: ValueRef, dtype: str) -> ValueRef:
    if writer.spec(x).dtype == dtype:
        return x
    return writer.call("aten._to_copy.default", x, shape=writer.shape(x), dtype=dtype)


def part(writer: GraphWriter, x: ValueRef, dim: int, index: int) -> ValueRef:
    """One element of a dimension, which is kept with a size of 1."""
    shape = writer.shape(x)
    dim %= len(shape)
    kept = (*shape[:dim], 1, *shape[dim + 1 :])
    return writer.call("aten.slice.Tensor", x, dim, index, index + 1, shape=kept, dtype=writer.spec(x).dtype)
