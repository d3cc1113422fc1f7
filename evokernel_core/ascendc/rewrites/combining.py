"""Values combined with those at indices: sums, products, means and extremes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.ascendc.families.put import LAST
from evokernel_core.ascendc.lowering_sizes import extent
from evokernel_core.ascendc.rewrites.elementwise import apply, cast
from evokernel_core.ascendc.rewrites.indexing import places_of
from evokernel_core.ascendc.rewrites.picking import argument, as_arg, view
from evokernel_core.ascendc.rewrites.putting import scatter_arguments, scattered, values_of
from evokernel_core.ascendc.rewrites.writer import GraphWriter, Rewrite
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
    if not includes:
        blank = values_of(writer, _neutral(kind, dtype), index, dtype)
        x = scattered(writer, x, dim, index, blank, LAST)
    return (scattered(writer, x, dim, index, values, kind),)


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
        raise PlanError(f"Means of {dtype} at indices are not covered: convert them to float32.")
    start, given = cast(writer, x, "float32"), cast(writer, values, "float32")
    if not includes:
        start = scattered(writer, start, dim, index, values_of(writer, 0.0, index, "float32"), LAST)
    total = scattered(writer, start, dim, index, given, "add")
    divisor = apply(writer, "clamp_min.default", _counts(writer, x, dim, index, float(includes)), 1.0)
    return cast(writer, apply(writer, "div.Tensor", total, divisor), dtype)


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
