"""Products with few results and a long k: one sum for each part of k, so that every cube core has work."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.ascendc.families.products import QUANT, SPLIT
from evokernel_core.ascendc.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.tensor import ITEM_SIZE, evaluate_dim

_CORES = 24
"""Cube cores of the largest chip; fewer cores take the parts in turns."""
_TILE_M, _TILE_N = 128, 256
"""The largest tile of a result, of which a core computes one at a time."""
_LEAST_DEPTH = 1024
"""A part this deep pays for its start."""
_MHZ, _LOADED, _LAUNCH_US, _BYTES_PER_US = 1850.0, 32.0, 8.0, 3e6
"""To weigh a split by: clock, bytes a cycle into a core, a launch, and the rate of L2."""


def rewrite_product(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """``aten.mm`` as a sum of partial products where the cores that it keeps busy are too few."""
    left, right = node.operands()
    spec = node.outputs[0]
    if spec.dtype not in QUANT:
        return None
    m, n = (evaluate_dim(dim, writer.sizes) for dim in spec.shape)
    parts = split_count(m, n, evaluate_dim(writer.shape(left)[1], writer.sizes), ITEM_SIZE[spec.dtype])
    if parts < 2:
        return None
    sums = writer.call(SPLIT, left, right, parts, shape=(parts, *spec.shape), dtype="float32")
    total = writer.call("aten.sum.dim_IntList", sums, (0,), shape=spec.shape, dtype="float32")
    if spec.dtype == "float32":
        return (total,)
    return (writer.call("aten._to_copy.default", total, shape=spec.shape, dtype=spec.dtype),)


def split_count(m: int, n: int, k: int, size: int) -> int:
    """Into how many parts k is cut, 1 where cutting does not pay. ``size``: bytes an element."""
    most = max(1, min(_CORES, k // _LEAST_DEPTH))
    return min(range(1, most + 1), key=lambda parts: _product_us(m, n, k, size, parts))


def _product_us(m: int, n: int, k: int, size: int, parts: int) -> float:
    """Modelled microseconds of all waves of tiles, and of adding the parts."""
    tiles = parts * math.ceil(m / _TILE_M) * math.ceil(n / _TILE_N)
    rows, columns = min(m, _TILE_M), min(n, _TILE_N)
    depth = 32 // size / (2 if size == 4 else 1)  # of one cycle of the matrix unit
    cycles = max(rows * columns / 256 / depth, (rows + columns) * size / _LOADED) * k / parts
    added = _LAUNCH_US + 2 * parts * m * n * 4 / _BYTES_PER_US if parts > 1 else 0.0
    return math.ceil(tiles / _CORES) * cycles / _MHZ + added


REWRITES: Mapping[str, Rewrite] = {"aten.mm.default": rewrite_product}
