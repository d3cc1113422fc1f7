"""Convolutions as the cube family takes them: padded, with W cut into phases, and their weights turned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evokernel_core.compiler.limits import MOST_INNER, WIDTH_UNIT
from evokernel_core.compiler.ops import CONVOLUTION, SPACE_TO_DEPTH
from evokernel_core.compiler.rewrites.picking import permuted
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.graph import Node, ValueRef, literals
from evokernel_core.domain.tensor import Dim

_WORTH_TURNING = 2**30
"""Multiply-adds from which on a launch that turns weights is small beside them."""


def rewrite_convolution(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """``aten.convolution``; depthwise and transposed ones stay as they are."""
    x, weight, bias, stride, padding, dilation, transposed, _, groups = node.args
    assert isinstance(x, ValueRef)
    assert isinstance(weight, ValueRef)
    if transposed or _is_depthwise(writer, weight, groups):
        return None
    rank = len(writer.shape(weight)) - 2
    steps, pads, gaps = (literals(arg, rank) for arg in (stride, padding, dilation))
    spec = node.outputs[0]
    if steps[-1] > 1 or any(pads):
        x = _framed(writer, x, pads, steps[-1])
    phases = steps[-1]
    rows_first = _gains_by_rows(node, writer, steps)
    if rows_first:
        weight = _rows_first(writer, weight)
    args = (x, weight, (*steps[:-1], 1), tuple(gaps), groups, phases, rows_first, bias)
    return (writer.like(spec, CONVOLUTION.name, *args),)


def _gains_by_rows(node: Node, writer: GraphWriter, steps: Sequence[int]) -> bool:
    """Whether rows of the input may stay on the core for the rows of the kernel that they meet, and enough
    is computed to pay for turning the weights."""
    shape = writer.shape(next(ref for ref in node.args[1:2] if isinstance(ref, ValueRef)))
    if len(shape) < 4 or not all(isinstance(dim, int) for dim in shape):
        return False
    channels, height, width = (int(shape[place]) for place in (1, -2, -1))
    inner = channels * width * (int(shape[2]) if len(shape) == 5 else 1)
    if height == 1 or steps[-2] > 1 or (width == 1 and steps[-1] == 1) or inner > MOST_INNER:
        return False
    made = math.prod(node.outputs[0].sizes(writer.sizes))
    return made * inner * height > _WORTH_TURNING


def _rows_first(writer: GraphWriter, weight: ValueRef) -> ValueRef:
    """The weight with the rows of the kernel before the channels."""
    rank = writer.spec(weight).rank
    return permuted(writer, weight, (0, rank - 2, *range(1, rank - 2), rank - 1))


def _framed(writer: GraphWriter, x: ValueRef, pads: Sequence[int], phases: int) -> ValueRef:
    """The input with zeros around it, and with the phases of its rows one after the other."""
    spec = writer.spec(x)
    padded = [_plus(dim, 2 * pad) for dim, pad in zip(spec.shape[2:], pads, strict=True)]
    width = _rounded_up(padded[-1], phases * WIDTH_UNIT)
    last = (phases, width) if phases > 1 else (width,)
    shape = (*spec.shape[:2], *padded[:-1], *last)
    return writer.call(SPACE_TO_DEPTH.name, x, tuple(pads), phases, shape=shape, dtype=spec.dtype)


def _plus(dim: Dim, more: int) -> Dim:
    if isinstance(dim, int):
        return dim + more
    return f"({dim}) + {more}" if more else dim


def _rounded_up(dim: Dim, phased_unit: int) -> Dim:
    """Elements of one phase that hold ``dim`` elements of all, in whole units."""
    if isinstance(dim, int):
        return -(-dim // phased_unit) * WIDTH_UNIT
    return f"(({dim}) + {phased_unit - 1}) // {phased_unit} * {WIDTH_UNIT}"


def _is_depthwise(writer: GraphWriter, weight: ValueRef, groups: object) -> bool:
    return groups != 1 and writer.shape(weight)[1] == 1


REWRITES: Mapping[str, Rewrite] = {"aten.convolution.default": rewrite_convolution}
