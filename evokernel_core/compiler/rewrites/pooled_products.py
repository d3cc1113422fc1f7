"""Average pools along the columns of a matrix product: a product with pooled weights."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.rewrites.picking import view
from evokernel_core.compiler.rewrites.summed_products import operand_of
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.tensor import Dim


@frozen
class Columns:
    """Windows of ``window`` columns, ``step`` apart, that all lie inside; ``count``: how many there are."""

    writer: GraphWriter
    window: int
    step: int
    count: Dim

    def pooled(self, matrix: ValueRef, dim: int) -> ValueRef:
        """The averages along one dimension of a matrix."""
        shape = self.writer.shape(matrix)
        made = tuple(self.count if place == dim else size for place, size in enumerate(shape))
        windows, steps = (
            tuple(size if place == dim else 1 for place in range(2)) for size in (self.window, self.step)
        )
        plane = view(self.writer, matrix, (1, 1, *shape))
        result = self.writer.call(
            "aten.avg_pool2d.default", plane, windows, steps, shape=(1, 1, *made), dtype="float32"
        )
        return view(self.writer, result, made)

    def operand(self, operand: Arg) -> Arg:
        """The same of what is broadcast to the product."""
        if not isinstance(operand, ValueRef):
            return operand
        shape = self.writer.shape(operand)
        if not shape or shape[-1] == 1:
            return operand
        return self.pooled(view(self.writer, operand, (1, shape[-1])), 1)


def pooled_product(root: Node, columns: Columns) -> ValueRef:
    """The pool of a product [m, n] along n."""
    writer, (a, b) = columns.writer, root.args[:2]
    assert isinstance(a, ValueRef)
    assert isinstance(b, ValueRef)
    weight = operand_of(writer, b)
    matrix = columns.pooled(weight.ref, 0 if weight.is_turned else 1)
    rows, depth = writer.shape(a)
    if weight.is_turned:
        matrix = writer.call("aten.t.default", matrix, shape=(depth, columns.count), dtype="float32")
    return writer.call("aten.mm.default", a, matrix, shape=(rows, columns.count), dtype="float32")
