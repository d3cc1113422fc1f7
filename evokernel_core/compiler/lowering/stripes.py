"""Slices that lie in memory as every second, or third, of rows of their length."""

from __future__ import annotations

import math

from evokernel_core.compiler.lowering.values import Stripe
from evokernel_core.domain.graph import Node, literal
from evokernel_core.domain.tensor import ITEM_SIZE, TensorSpec

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
    start, _, step = (*node.args[2:], *(0, None, 1)[len(node.args[2:]) :])
    whole, length = operand.shape[dim], node.outputs[0].shape[dim]
    if not isinstance(whole, int) or not isinstance(length, int) or not isinstance(start, int | None):
        return None
    if step != 1 or not length or whole % length:
        return None
    first = max(start or 0, -whole) % whole
    behind = [size for size in operand.shape[dim + 1 :] if isinstance(size, int)]
    if first % length or length * math.prod(behind) * ITEM_SIZE[operand.dtype] < _LEAST_BYTES:
        return None
    return Stripe(whole // length, first // length)
