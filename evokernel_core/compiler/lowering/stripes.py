"""Slices that lie in memory as every second, or third, of rows of their length."""

from __future__ import annotations

import math

from evokernel_core.compiler.lowering.values import Stripe
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.graph import Node, SymbolicInt, literal
from evokernel_core.domain.tensor import ITEM_SIZE, Dim, TensorSpec

SLICE = "aten.slice.Tensor"
_LEAST_BYTES = 256
"""Of a row of a slice: shorter ones are slow to copy, and are put side by side first."""


def sliced_dim(node: Node, rank: int) -> int:
    """The dimension that a slice takes a part of."""
    return literal(node.args[1]) % rank if len(node.args) > 1 else 0


def stripe_of(node: Node, operand: TensorSpec) -> Stripe | None:
    """Which rows of the operand a slice is, a row being all that one place of the dimensions in front of the
    sliced one has; None for a slice that is anything else."""
    dim = sliced_dim(node, len(operand.shape))
    start = node.args[2] if len(node.args) > 2 else 0
    step = node.args[4] if len(node.args) > 4 else 1
    whole, length = operand.shape[dim], node.outputs[0].shape[dim]
    if isinstance(start, int) and start < 0:
        start = whole + start if isinstance(whole, int) else None
    first = start.expression if isinstance(start, SymbolicInt) else start
    if step != 1 or not length or not isinstance(first, int | str):
        return None
    every, number = (_quotient(size, length) for size in (whole, first))
    known = math.prod(size for size in (length, *operand.shape[dim + 1 :]) if isinstance(size, int))
    is_short = isinstance(length, int) and known * ITEM_SIZE[operand.dtype] < _LEAST_BYTES
    return None if every is None or number is None or is_short else Stripe(every, number)


def _quotient(size: Dim, length: Dim) -> int | None:
    """How often a length is in a size, where that is the same for all sizes; None otherwise."""
    if size == 0:
        return 0
    quotient = extent(size).divided_by(extent(length))
    return None if quotient is None else quotient.constant
