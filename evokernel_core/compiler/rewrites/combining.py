"""Values combined with those at indices: sums, products, means and extremes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.compiler.rewrites.elementwise import apply, cast
from evokernel_core.compiler.rewrites.indexing import places_of
from evokernel_core.compiler.rewrites.picking import argument, as_arg, view
from evokernel_core.compiler.rewrites.putting import scatter_arguments, scattered, values_of
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.tensor import Dim

_KINDS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}
_INTEGERS = {"int32": 31, "int64": 63}
"""Bits of a magnitude."""


def _reduce(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """``x.scatter_reduce(dim, index, values, reduce)``: without ``include_self`` what is at an index does not
    count, and what no index says stays."""
    x, index, dim = scatter_arguments(node, writer)
    dtype, reduce = writer.spec(x).dtype, str(node.args[4])
    values = values_of(writer, node.args[3], index, dtype)
    includes = bool(argument(node, 5, "include_self", True))
    if reduce == "mean":
        return (_mean(writer, x, dim, index, values, includes),)
    kind = _KINDS[reduce]
    if includes:
        return (scattered(writer, x, dim, index, values, kind),)
    result = scattered(writer, _filled(writer, x, _neutral(kind, dtype), dtype), dim, index, values, kind)
    return (_where_counted(writer, _counts(writer, x, dim, index, 0.0), result, x),)


def _filled(writer: GraphWriter, x: ValueRef, number: float, dtype: str) -> ValueRef:
    """The number in the shape of ``x``."""
    shape = writer.shape(x)
    return writer.call("aten.full.default", tuple(map(as_arg, shape)), number, shape=shape, dtype=dtype)


def _where_counted(writer: GraphWriter, counts: ValueRef, value_ref: ValueRef, x: ValueRef) -> ValueRef:
    """What was found where there is an index, and what was there anywhere else."""
    spec = writer.spec(x)
    chosen = apply(writer, "gt.Scalar", counts, 0.0, dtype="bool")
    return writer.like(spec, "aten.where.self", chosen, value_ref, x)


def _neutral(kind: str, dtype: str) -> int | float:
    """What changes nothing."""
    if kind in ("add", "mul"):
        return int(kind == "mul")
    bits = _INTEGERS.get(dtype)
    if bits is None:
        return -math.inf if kind == "max" else math.inf
    return -(1 << bits) if kind == "max" else (1 << bits) - 1


def _mean(
    writer: GraphWriter, x: ValueRef, dim: int, index: ValueRef, values: ValueRef, includes: bool
) -> ValueRef:
    """Sums over counts; both in float32."""
    dtype = writer.spec(x).dtype
    if dtype in _INTEGERS:
        raise PlanError("Means of {dtype} at indices are not covered: convert them to float32.", dtype=dtype)
    start = cast(writer, x, "float32") if includes else _filled(writer, x, 0.0, "float32")
    total = scattered(writer, start, dim, index, cast(writer, values, "float32"), "add")
    counts = _counts(writer, x, dim, index, float(includes))
    mean = apply(writer, "div.Tensor", total, apply(writer, "clamp_min.default", counts, 1.0))
    result = cast(writer, mean, dtype)
    return result if includes else _where_counted(writer, counts, result, x)


def _counts(writer: GraphWriter, x: ValueRef, dim: int, index: ValueRef, start: float) -> ValueRef:
    """How often each place is an index, on top of ``start``; once for all that move with one index."""
    shape, chosen = writer.shape(x), writer.shape(index)
    places, behind = places_of(writer, index, dim)
    if behind == dim + 1 and not _is_part(shape, chosen, dim):
        leading = tuple(1 for _ in shape[:dim]) if extent(writer.shape(places)[0]).is_one else shape[:dim]
        trailing = (1,) * (len(shape) - behind)
        shape = (*leading, shape[dim], *trailing)
        index = view(writer, places, (*leading, chosen[dim], *trailing))
    first = writer.call("aten.full.default", tuple(map(as_arg, shape)), start, shape=shape, dtype="float32")
    return scattered(writer, first, dim, index, values_of(writer, 1.0, index, "float32"), "add")


def _is_part(shape: tuple[Dim, ...], chosen: tuple[Dim, ...], dim: int) -> bool:
    """Whether there are fewer indices than another dimension has elements."""
    sizes = enumerate(zip(shape, chosen, strict=True))
    return any(axis != dim and extent(size) != extent(count) for axis, (size, count) in sizes)


def _scatter_reduce(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """``x.scatter(dim, index, values, reduce=...)``."""
    x, index, dim = scatter_arguments(node, writer)
    values = values_of(writer, node.args[3], index, writer.spec(x).dtype)
    reduce = str(argument(node, 4, "reduce"))
    return (scattered(writer, x, dim, index, values, _KINDS[reduce]),)


REWRITES: Mapping[str, Rewrite] = {
    "aten.scatter_reduce.two": _reduce,
    "aten.scatter.reduce": _scatter_reduce,
    "aten.scatter.value_reduce": _scatter_reduce,
}
