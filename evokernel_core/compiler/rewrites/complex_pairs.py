"""Complex values that stay pairs of numbers in memory: views of pairs, and products that take them so."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.compiler.limits import sharing
from evokernel_core.compiler.ops import COMPLEX_MULTIPLY
from evokernel_core.compiler.rewrites.complex_parts import REAL, Complex, size_argument
from evokernel_core.compiler.rewrites.layout import viewed
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.compiler.shapes.boxes import dimension_order
from evokernel_core.compiler.shapes.views import BROADCASTS, PERMUTATIONS, SAME_ORDER
from evokernel_core.domain.graph import Node, ValueRef, literal
from evokernel_core.domain.tensor import Dim

_ALONG_A_DIMENSION = ("aten.slice.Tensor", "aten.select.int")


def pairs_of(writer: GraphWriter, node: Node, value: Complex, rank: int) -> ValueRef | None:
    """The pairs of a view of a value of ``rank`` dimensions, as the same view of its pairs; None where the
    operation is no view of one value."""
    if value.pairs is None:
        return None
    shape = (*node.outputs[0].shape, 2)
    if node.op in SAME_ORDER:
        return viewed(writer, value.pairs, shape)
    if node.op in BROADCASTS:
        sizes = tuple(map(size_argument, shape))
        return writer.call("aten.expand.default", value.pairs, sizes, shape=shape, dtype=REAL)
    if node.op in PERMUTATIONS:
        order = (*dimension_order(node, rank), rank)
        return writer.call("aten.permute.default", value.pairs, order, shape=shape, dtype=REAL)
    if node.op in _ALONG_A_DIMENSION:
        dim = literal(node.args[1]) % rank if len(node.args) > 1 else 0
        return writer.call(node.op, value.pairs, dim, *node.args[2:], shape=shape, dtype=REAL)
    return None


def paired(writer: GraphWriter, a: Complex, b: Complex) -> ValueRef | None:
    """The product of two values that are pairs, as pairs; None where that is no work for one kernel."""
    if a.pairs is None or b.pairs is None:
        return None
    for x, w in ((a.pairs, b.pairs), (b.pairs, a.pairs)):
        shape = writer.shape(x)
        if sharing(shape[:-1], writer.shape(w)[:-1]) is not None:
            return writer.call(
                COMPLEX_MULTIPLY.name, x, _without_leading(writer, w, shape), shape=shape, dtype=REAL
            )
    return None


def _without_leading(writer: GraphWriter, w: ValueRef, shape: Sequence[Dim]) -> ValueRef:
    """Factors of fewer dimensions get those of size one that they lack."""
    own = writer.shape(w)
    missing = len(shape) - len(own)
    return viewed(writer, w, ((1,) * missing + tuple(own))) if missing else w
