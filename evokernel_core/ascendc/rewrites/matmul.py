"""Products that are computed another way than they are written.

With few results and a long k there is one sum for each part of k, so that every cube core has work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve

from evokernel_core.ascendc.kernels.matmul.problem import QUANT, SPLIT
from evokernel_core.ascendc.rewrites.pitched import aligned_operands
from evokernel_core.ascendc.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.tensor import ITEM_SIZE, evaluate_dim

_CORES = 24
"""Cube cores of the largest chip; fewer cores take the parts in turns."""
_TILE_M, _TILE_N = 128, 256
"""The largest tile of a result, of which a core computes one at a time."""
_LEAST_DEPTH = 1024
"""A part this deep pays for its start."""
_MHZ, _LAUNCH_US = 1850.0, 8.0
_CORE_RATE, _MEMORY_RATE, _L2_RATE = 59_200.0, 1.48e6, 3e6
"""To weigh a split by: clock, a launch, and bytes a microsecond: from memory into one core, into all, and
of L2."""
_HIT_BYTES, _UNEVEN = 82.0, 1.1
"""Bytes a cycle into a core from L2; what tiles of whole fractals compute in vain."""
_LEAST_GAIN = 0.97


def rewrite_product(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """``aten.mm`` as a sum of partial products where the cores that it keeps busy are too few; otherwise with
    copies of operands whose rows are slow to load where they lie."""
    left, right = node.operands()
    spec = node.outputs[0]
    if spec.dtype not in QUANT:
        return None
    m, n = (evaluate_dim(dim, writer.sizes) for dim in spec.shape)
    parts = split_count(m, n, evaluate_dim(writer.shape(left)[1], writer.sizes), ITEM_SIZE[spec.dtype])
    if parts < 2:
        aligned = aligned_operands(left, right, writer)
        return None if aligned is None else writer.keep(evolve(node, args=aligned))
    sums = writer.call(SPLIT, left, right, parts, shape=(parts, *spec.shape), dtype="float32")
    total = writer.call("aten.sum.dim_IntList", sums, (0,), shape=spec.shape, dtype="float32")
    if spec.dtype == "float32":
        return (total,)
    return (writer.call("aten._to_copy.default", total, shape=spec.shape, dtype=spec.dtype),)


def split_count(m: int, n: int, k: int, size: int) -> int:
    """Into how many parts k is cut, 1 where cutting does not pay. ``size``: bytes an element."""
    most = max(1, min(_CORES, k // _LEAST_DEPTH))
    times = {parts: _product_us(m, n, k, size, parts) for parts in range(1, most + 1)}
    best = min(times, key=times.__getitem__)
    return best if times[best] < _LEAST_GAIN * times[1] else 1


def _product_us(m: int, n: int, k: int, size: int, parts: int) -> float:
    """Modelled microseconds of the sums of all parts, and of adding them."""
    per_cycle = 256 * (32 // size / (2 if size == 4 else 1))  # multiply-adds of the matrix unit
    tiles = parts * math.ceil(m / _TILE_M) * math.ceil(n / _TILE_N)
    waves = math.ceil(tiles / _CORES)
    cycles = waves * min(m, _TILE_M) * min(n, _TILE_N) * k / parts / per_cycle
    busy = tiles / waves
    fractals = math.ceil(m / 16) * math.ceil(n / 16)
    if parts == 1 and fractals >= _CORES:  # smaller tiles, which load more
        share = m * n / _CORES
        rows = min(m, max(math.sqrt(share), share / n))
        small = max(share / per_cycle, (rows + share / rows) * size / _HIT_BYTES) * k
        cycles, busy = min(cycles, _UNEVEN * small), fractals / math.ceil(fractals / _CORES)
    loaded = (m + n) * k * size / min(_MEMORY_RATE, busy * _CORE_RATE)
    added = _LAUNCH_US + 2 * parts * m * n * 4 / _L2_RATE if parts > 1 else 0.0
    return max(cycles / _MHZ, loaded) + added


REWRITES: Mapping[str, Rewrite] = {"aten.mm.default": rewrite_product}
