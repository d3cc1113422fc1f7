"""A sum or mean over dimensions of a value, and the same of what is broadcast to it."""

from __future__ import annotations

import math

from attrs import frozen

from evokernel_core.compiler.rewrites.split_reductions import size
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.domain.graph import Arg, ValueRef
from evokernel_core.domain.tensor import Dim


@frozen
class Summing:
    """The reduction of a value of ``shape`` over ``dims``, which become 1; ``is_mean``: divided by how many
    elements that are."""

    writer: GraphWriter
    shape: tuple[Dim, ...]
    dims: tuple[int, ...]
    is_mean: bool

    @property
    def kept_shape(self) -> tuple[Dim, ...]:
        return tuple(1 if dim in self.dims else length for dim, length in enumerate(self.shape))

    def varies(self, operand: Arg) -> tuple[int, ...]:
        """The reduced dimensions along which what is broadcast to the value differs, as its own."""
        if not isinstance(operand, ValueRef):
            return ()
        shape = self.writer.shape(operand)
        missing = len(self.shape) - len(shape)
        return tuple(dim - missing for dim in self.dims if dim >= missing and shape[dim - missing] != 1)

    def operand(self, operand: Arg) -> Arg:
        """The reduction of what is broadcast to the value."""
        dims = self.varies(operand)
        if isinstance(operand, ValueRef) and dims:
            operand = reduced(self.writer, operand, dims, is_mean=self.is_mean)
        if self.is_mean:
            return operand
        missing = 0
        if isinstance(operand, ValueRef):
            missing = len(self.shape) - len(self.writer.shape(operand))
        times = tuple(self.shape[dim] for dim in self.dims if dim - missing not in dims)
        return operand if not times else self.scaled("mul", operand, times)

    def count(self) -> Arg:
        """How many elements are reduced to one."""
        return _count(self.writer, tuple(self.shape[dim] for dim in self.dims))

    def scaled(self, op: str, operand: Arg, dims: tuple[Dim, ...]) -> Arg:
        """A value or number, multiplied with a number of elements or divided by it."""
        count = _count(self.writer, dims)
        if isinstance(operand, (int, float)) and isinstance(count, int):
            return operand * count
        first, second = (operand, count) if isinstance(operand, ValueRef) else (count, operand)
        assert isinstance(first, ValueRef)
        shape = self.writer.shape(first)
        return self.writer.call(f"aten.{op}.Tensor", first, second, shape=shape, dtype="float32")


def _count(writer: GraphWriter, dims: tuple[Dim, ...]) -> Arg:
    if all(isinstance(dim, int) for dim in dims):
        return math.prod(int(dim) for dim in dims)
    return size(writer, dims)


def reduced(writer: GraphWriter, x: ValueRef, dims: tuple[int, ...], *, is_mean: bool) -> ValueRef:
    """The sum or mean over dimensions, which become 1."""
    op = "aten.mean.dim" if is_mean else "aten.sum.dim_IntList"
    shape = tuple(1 if dim in dims else length for dim, length in enumerate(writer.shape(x)))
    if shape == writer.shape(x):
        return x
    return writer.call(op, x, dims, True, shape=shape, dtype="float32")
