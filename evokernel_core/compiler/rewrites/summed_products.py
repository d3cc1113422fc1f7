"""Sums and means of matrix products along rows or columns: products with summed operands."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from evokernel_core.compiler.rewrites.picking import producer, view
from evokernel_core.compiler.rewrites.summing import Summing, reduced
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.tensor import Dim

PRODUCTS = frozenset(("aten.mm.default", "aten.bmm.default"))
_SWAPS = frozenset(("aten.t.default", "aten.transpose.int", "aten.permute.default"))


def summed_product(root: Node, summing: Summing) -> ValueRef | None:
    """The reduction of a product over its rows, its columns or both; None for other dimensions.

    With a [.., m, k] and b [.., k, n], the sum over n is the product of a with b's sum over n, and so on.
    """
    a, b = (ref for ref in root.args[:2] if isinstance(ref, ValueRef))
    rows, columns = len(summing.shape) - 2, len(summing.shape) - 1
    if not set(summing.dims) <= {rows, columns}:
        return None
    writer = summing.writer
    left, right = operand_of(writer, a), operand_of(writer, b)
    if columns not in summing.dims:
        vector = left.reduced(0, summing.is_mean)
        return right.times(vector, 0)
    vector = right.reduced(1, summing.is_mean)
    if rows not in summing.dims:
        return left.times(vector, 1)
    other = left.reduced(0, summing.is_mean)
    product = writer.call("aten.mul.Tensor", other, vector, shape=writer.shape(vector), dtype="float32")
    dims = (columns,)
    return reduced(writer, product, dims, is_mean=False)


@frozen
class Operand:
    """A matrix of a product as it lies in memory; ``is_turned``: the product takes it transposed."""

    writer: GraphWriter
    ref: ValueRef
    is_turned: bool

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.writer.shape(self.ref)

    def _place(self, side: int) -> int:
        """The dimension of the matrix that is the product's rows (0) or columns (1)."""
        return len(self.shape) - 2 + (1 - side if self.is_turned else side)

    def reduced(self, side: int, is_mean: bool) -> ValueRef:
        """The sum or mean over rows or columns, [.., 1, k]."""
        value = reduced(self.writer, self.ref, (self._place(side),), is_mean=is_mean)
        return view(self.writer, value, (*self.shape[:-2], 1, self.shape[self._place(1 - side)]))

    def times(self, vector: ValueRef, side: int) -> ValueRef:
        """The product with a vector [.., 1, k] along rows, which gives [.., 1, n], or columns, [.., m, 1]."""
        place, batch = self._place(side), self.shape[:-2]
        kept: Dim = self.shape[self._place(1 - side)]
        along = (*batch, 1, self.shape[place])
        shape: Sequence[Dim] = along if place == len(self.shape) - 1 else (*along[:-2], along[-1], 1)
        spread = view(self.writer, vector, tuple(shape))
        product = self.writer.call("aten.mul.Tensor", self.ref, spread, shape=self.shape, dtype="float32")
        value = reduced(self.writer, product, (place,), is_mean=False)
        return view(self.writer, value, (*batch, 1, kept) if side == 0 else (*batch, kept, 1))


def operand_of(writer: GraphWriter, ref: ValueRef) -> Operand:
    """A matrix below the transpose that a product reads, if there is one."""
    node = producer(writer, ref)
    if node is None or node.op not in _SWAPS:
        return Operand(writer, ref, False)
    source = node.args[0]
    assert isinstance(source, ValueRef)
    rank = len(writer.shape(ref))
    order = list(range(rank))
    if node.op == "aten.permute.default":
        dims = node.args[1]
        given = [dim % rank for dim in dims if isinstance(dim, int)] if isinstance(dims, tuple) else []
        order[-2:] = order[:-3:-1]
        is_turned = given == order
    elif node.op == "aten.transpose.int":
        is_turned = {dim % rank for dim in node.args[1:3] if isinstance(dim, int)} == {rank - 2, rank - 1}
    else:
        is_turned = rank == 2
    return Operand(writer, source, True) if is_turned else Operand(writer, ref, False)
