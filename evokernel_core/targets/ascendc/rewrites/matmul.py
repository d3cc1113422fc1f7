"""Products that are computed another way than they are written.

With few results and a long k there is one sum for each part of k, so that every cube core has work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve

from evokernel_core.compiler.ops import FLOATS, SPLIT_K_MM
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.tensor import ITEM_SIZE, evaluate_dim
from evokernel_core.hardware.ascend.chip import Chip, chip_of
from evokernel_core.hardware.ascend.isa import FRACTAL
from evokernel_core.targets.ascendc.rewrites.pitched import aligned_operands, largest_tile

_LEAST_DEPTH = 1024
"""A part this deep pays for its start."""
_SUMS_RATE, _HIT_RATE, _UNEVEN = 0.48, 0.75, 1.1
"""The shares of their rates at which sums come from L2, and operands from L2 into a core (fitted); what tiles
of whole fractals compute in vain."""
_LEAST_GAIN = 0.97


def rewrite_product(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """``aten.mm`` as a sum of partial products where the cores that it keeps busy are too few; otherwise with
    copies of operands whose rows are slow to load where they lie."""
    left, right = node.operands()
    spec = node.outputs[0]
    if spec.dtype not in FLOATS:
        return None
    m, n = (evaluate_dim(dim, writer.sizes) for dim in spec.shape)
    k = evaluate_dim(writer.shape(left)[1], writer.sizes)
    parts = split_count(m, n, k, ITEM_SIZE[spec.dtype], chip_of(writer.device))
    if parts < 2:
        aligned = aligned_operands(left, right, writer)
        return None if aligned is None else writer.keep(evolve(node, args=aligned))
    sums = writer.call(SPLIT_K_MM.name, left, right, parts, shape=(parts, *spec.shape), dtype="float32")
    total = writer.call("aten.sum.dim_IntList", sums, (0,), shape=spec.shape, dtype="float32")
    if spec.dtype == "float32":
        return (total,)
    return (writer.call("aten._to_copy.default", total, shape=spec.shape, dtype=spec.dtype),)


def split_count(m: int, n: int, k: int, size: int, chip: Chip) -> int:
    """Into how many parts k is cut, 1 where cutting does not pay. ``size``: bytes an element."""
    most = max(1, min(chip.aic, k // _LEAST_DEPTH))
    times = {parts: _product_us(m, n, k, size, parts, chip) for parts in range(1, most + 1)}
    best = min(times, key=times.__getitem__)
    return best if times[best] < _LEAST_GAIN * times[1] else 1


def _product_us(m: int, n: int, k: int, size: int, parts: int, chip: Chip) -> float:
    """Modelled microseconds of the sums of all parts, and of adding them."""
    per_cycle = FRACTAL**2 * chip.cube.depth_a_cycle(size)  # multiply-adds of the matrix unit
    tile_m, tile_n = largest_tile(chip)
    tiles = parts * math.ceil(m / tile_m) * math.ceil(n / tile_n)
    waves = math.ceil(tiles / chip.aic)
    cycles = waves * min(m, tile_m) * min(n, tile_n) * k / parts / per_cycle
    busy = tiles / waves
    fractals = math.ceil(m / FRACTAL) * math.ceil(n / FRACTAL)
    if parts == 1 and fractals >= chip.aic:  # smaller tiles, which load more
        hits = _HIT_RATE * chip.mte.cube_load_hit_bytes_per_cycle
        share = m * n / chip.aic
        rows = min(m, max(math.sqrt(share), share / n))
        small = max(share / per_cycle, (rows + share / rows) * size / hits) * k
        cycles, busy = min(cycles, _UNEVEN * small), fractals / math.ceil(fractals / chip.aic)
    one_core = chip.mte.load_bytes_per_cycle * chip.mhz
    loaded = (m + n) * k * size / min(chip.gm.memory_bytes_us, busy * one_core)
    if parts == 1:
        return max(cycles / chip.mhz, loaded)
    added = 2 * parts * m * n * 4 / (_SUMS_RATE * chip.gm.l2_bytes_us)
    return max(cycles / chip.mhz, loaded) + chip.launch_us + added


REWRITES: Mapping[str, Rewrite] = {"aten.mm.default": rewrite_product}
