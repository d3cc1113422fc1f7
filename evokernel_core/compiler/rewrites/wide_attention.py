"""Attention whose values are too wide for one kernel: a product, a softmax, a product.

The fused kernel keeps a row of results in the unified buffer for as long as it goes through the keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from evokernel_core.compiler.aten import attention_arguments
from evokernel_core.compiler.ops import SIZE
from evokernel_core.compiler.rewrites.elementwise import cast
from evokernel_core.compiler.rewrites.layout import flat_size, viewed
from evokernel_core.compiler.rewrites.picking import as_arg
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.domain.graph import Node, SymbolicInt, ValueRef
from evokernel_core.domain.tensor import Dim

WIDEST = 1024
"""Numbers of a row of the values up to which the fused kernel has a schedule on every chip."""


def row_widths(node: Node, writer: GraphWriter) -> tuple[int, int]:
    """Numbers of a row of queries and keys, and of a row of values."""
    query, _, value, *_ = attention_arguments(node)
    depth, width = (extent(writer.shape(ref)[-1]).evaluate(writer.sizes) for ref in (query, value))
    return depth, width


def in_parts(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """The attention in several kernels; None where what it asks for is not covered."""
    query, key, value, mask, dropout, causal, scale = attention_arguments(node)
    shape, width = writer.shape(query), writer.shape(value)[-1]
    if dropout or (scale is not None and scale <= 0):
        return None
    sharing = _sharing(writer.shape(query), writer.shape(key))
    if sharing is None or extent(writer.shape(value)[-2]) != extent(writer.shape(key)[-2]):
        return None
    keys, dtype = writer.shape(key)[-2], node.outputs[0].dtype
    scores = _scores(writer, query, _shared(writer, key, sharing), scale)
    scores = viewed(writer, scores, (*shape[:-1], keys))
    whole = writer.shape(scores)
    if mask is not None:
        scores = _masked(writer, scores, mask)
    if causal:
        seen = _causal(writer, whole[-2], keys)
        scores = writer.call("aten.where.self", seen, scores, -math.inf, shape=whole, dtype="float32")
    weights = writer.call("aten._softmax.default", scores, -1, False, shape=whole, dtype="float32")
    if mask is not None:  # a query that sees no key gets zeros
        hidden = writer.call("aten.eq.Scalar", scores, -math.inf, shape=whole, dtype="bool")
        weights = writer.call("aten.where.self", hidden, 0.0, weights, shape=whole, dtype="float32")
    weights = cast(writer, weights, dtype)
    flat = viewed(writer, weights, (flat_size(shape[:-2]), *whole[-2:]))
    values = _shared(writer, value, sharing)
    result = writer.call(
        "aten.bmm.default", flat, values, shape=(*writer.shape(flat)[:-1], width), dtype=dtype
    )
    return (viewed(writer, result, node.outputs[0].shape),)


def _sharing(query: Sequence[Dim], key: Sequence[Dim]) -> Extent | None:
    """How many matrices of queries share one of keys; None where their batches broadcast otherwise."""
    if list(map(extent, query[:-3])) != list(map(extent, key[:-3])):
        return None
    result = product(map(extent, query[:-2])).divided_by(product(map(extent, key[:-2])))
    return result if result is not None and result.constant is not None else None


def _shared(writer: GraphWriter, x: ValueRef, sharing: Extent) -> ValueRef:
    """[batch, rows, columns], each matrix as often as queries share it."""
    shape, times = writer.shape(x), sharing.constant
    batch = flat_size(shape[:-2])
    if times == 1:
        return viewed(writer, x, (batch, *shape[-2:]))
    assert times is not None
    apart = viewed(writer, x, (batch, 1, *shape[-2:]))
    wide = (batch, times, *shape[-2:])
    repeated = writer.call(
        "aten.expand.default", apart, tuple(map(as_arg, wide)), shape=wide, dtype=writer.spec(x).dtype
    )
    return viewed(writer, repeated, (flat_size(wide[:2]), *shape[-2:]))


def _scores(writer: GraphWriter, query: ValueRef, key: ValueRef, scale: float | None) -> ValueRef:
    """query @ key^T * scale in float32, in which the scores of half types are large enough to matter."""
    query, key = cast(writer, query, "float32"), cast(writer, key, "float32")
    shape = writer.shape(query)
    query = viewed(writer, query, (flat_size(shape[:-2]), *shape[-2:]))
    batch, rows, depth = writer.shape(query)
    keys = writer.shape(key)[1]
    turned = writer.call("aten.transpose.int", key, 1, 2, shape=(batch, depth, keys), dtype="float32")
    whole = (batch, rows, keys)
    scores = writer.call("aten.bmm.default", query, turned, shape=whole, dtype="float32")
    if scale is not None:
        return writer.call("aten.mul.Tensor", scores, scale, shape=whole, dtype="float32")
    if isinstance(depth, int):
        return writer.call("aten.mul.Tensor", scores, depth**-0.5, shape=whole, dtype="float32")
    length = writer.call(SIZE.name, SymbolicInt(depth), shape=(), dtype="float32")
    root = writer.call("aten.sqrt.default", length, shape=(), dtype="float32")
    return writer.call("aten.div.Tensor", scores, root, shape=whole, dtype="float32")


def _masked(writer: GraphWriter, scores: ValueRef, mask: ValueRef) -> ValueRef:
    """Numbers are added; truth values say which keys a query sees."""
    whole = writer.shape(scores)
    if writer.spec(mask).dtype == "bool":
        return writer.call("aten.where.self", mask, scores, -math.inf, shape=whole, dtype="float32")
    return writer.call("aten.add.Tensor", scores, cast(writer, mask, "float32"), shape=whole, dtype="float32")


def _causal(writer: GraphWriter, queries: Dim, keys: Dim) -> ValueRef:
    """Whether a key is not behind a query."""
    shape = (queries, keys)
    sizes = tuple(map(as_arg, shape))
    ones = writer.call("aten.full.default", sizes, True, shape=shape, dtype="bool")
    return writer.call("aten.tril.default", ones, shape=shape, dtype="bool")
