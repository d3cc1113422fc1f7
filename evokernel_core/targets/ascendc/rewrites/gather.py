"""Gathers along another dimension than the last one: the vector unit picks elements of rows faster than
copies fetch them one by one, so that the dimension comes last first."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.compiler.rewrites import indexing
from evokernel_core.compiler.rewrites.picking import permuted, producer
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.graph import Node, ValueRef, literal
from evokernel_core.domain.tensor import ITEM_SIZE, evaluate_dim
from evokernel_core.hardware.ascend.chip import Chip, chip_of

_OP = "aten.gather.default"
_LEAST_BYTES = 2
"""Of an element that the vector unit picks."""


def rewrite_gather(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """``aten.gather`` with the dimension last, and its result transposed back, where that is faster."""
    x, index = indexing.tensor(node, 0), indexing.unwidened(writer, indexing.tensor(node, 2))
    rank = len(writer.shape(x))
    dim = literal(node.args[1]) % max(rank, 1)
    order = (*(axis for axis in range(rank) if axis != dim), dim)
    if order == tuple(range(rank)) or not _pays(writer, x, index, dim):
        return indexing.REWRITES[_OP](node, writer)
    back = tuple(order.index(axis) for axis in range(rank))
    turned, places = permuted(writer, x, order), permuted(writer, index, order)
    made = writer.call(_OP, turned, rank - 1, places, shape=writer.shape(places), dtype=writer.spec(x).dtype)
    return (permuted(writer, made, back),)


def _pays(writer: GraphWriter, x: ValueRef, index: ValueRef, dim: int) -> bool:
    """Whether elements are moved by themselves, and transpositions take less time than a copy of each."""
    below, chip = producer(writer, index), chip_of(writer.device)
    chosen = writer.shape(index)
    moves_runs = indexing.without_expansion(writer, index, dim)[1] != len(chosen)
    is_remainder = below is not None and below.op == "aten.remainder.Scalar"  # its sign is read with it
    if moves_runs or is_remainder or ITEM_SIZE[writer.spec(x).dtype] < _LEAST_BYTES:
        return False
    number = math.prod(evaluate_dim(size, writer.sizes) for size in chosen)
    copies = number / chip.aiv * chip.mte.min_copy_cycles / chip.mhz
    return _transposed_us(writer, x, index, number, chip) < copies


def _transposed_us(writer: GraphWriter, x: ValueRef, index: ValueRef, number: int, chip: Chip) -> float:
    """Of three transpositions, and of picking."""
    (item, place), sizes = (ITEM_SIZE[writer.spec(ref).dtype] for ref in (x, index)), writer.sizes
    elements = math.prod(evaluate_dim(size, sizes) for size in writer.shape(x))
    moved = 2 * (elements * item + number * (place + item))
    picked = number / chip.vector.elements_per_cycle.gather / chip.aiv / chip.mhz
    return 3 * chip.launch_us + moved / chip.gm.memory_bytes_us + picked


REWRITES: Mapping[str, Rewrite] = {_OP: rewrite_gather}
