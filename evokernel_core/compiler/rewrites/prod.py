"""Products of the elements of a dimension, so that factors lie in different vectors.

The vector unit adds up the numbers of one vector but does not multiply them with each other. A product
over the innermost dimension is turned around first; one that leaves a single number is the end of a
running product.
"""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.rewrites.elementwise import cast
from evokernel_core.compiler.rewrites.layout import flat_size, viewed
from evokernel_core.compiler.rewrites.picking import permuted
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef

_DTYPES = ("float32", "float16", "bfloat16")


def _converted(node: Node, writer: GraphWriter) -> ValueRef:
    """The operand in the type of the result."""
    x, dtype = next(iter(node.operands())), node.outputs[0].dtype
    if dtype not in _DTYPES:
        raise PlanError(
            "{op} of {dtype} is not covered; float32, float16 and bfloat16 are.", op=node.op, dtype=dtype
        )
    return cast(writer, x, dtype)


def _along(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    x, dim, result = _converted(node, writer), node.args[1], node.outputs[0]
    shape, dtype = writer.shape(x), result.dtype
    if not isinstance(dim, int):
        raise PlanError("{op} is covered along a dimension that is a literal.", op=node.op)
    if not shape:
        return (x,)
    dim %= len(shape)
    kept = [i for i in range(len(shape)) if i != dim and not extent(shape[i]).is_one]
    if not kept:
        return (viewed(writer, _last_of_running(writer, x), result.shape),)
    if kept[-1] > dim:
        if x == node.args[0] and "dtype" not in dict(node.kwargs):
            return None
        return writer.keep(_again(node, x))
    order = (dim, *(i for i in range(len(shape)) if i != dim))
    turned = permuted(writer, x, order)
    product = writer.call("aten.prod.dim_int", turned, 0, shape=writer.shape(turned)[1:], dtype=dtype)
    return (viewed(writer, product, result.shape),)


def _again(node: Node, x: ValueRef) -> Node:
    """The same product of an operand of the result's type."""
    return Node(node.name, node.op, (x, *node.args[1:3]), (), node.outputs, node.line)


def _of_all(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    x = _converted(node, writer)
    return (viewed(writer, _last_of_running(writer, x), ()) if writer.shape(x) else x,)


def _last_of_running(writer: GraphWriter, x: ValueRef) -> ValueRef:
    """The product of all elements, as a tensor of one element."""
    count, dtype = flat_size(writer.shape(x)), writer.spec(x).dtype
    flat = viewed(writer, x, (count,))
    running = writer.call("aten.cumprod.default", flat, 0, shape=(count,), dtype=dtype)
    return writer.call("aten.slice.Tensor", running, 0, -1, shape=(1,), dtype=dtype)


REWRITES: Mapping[str, Rewrite] = {
    "aten.prod.dim_int": _along,
    "aten.prod.default": _of_all,
}
"""Operation to its rewrite."""
