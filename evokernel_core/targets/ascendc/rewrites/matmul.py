"""Products that are computed another way than they are written.

With few results and a long k there is one sum for each part of k, so that every cube core has work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve, frozen

from evokernel_core.compiler.ops import FLOATS, SPACE_TO_DEPTH, SPLIT_K_MM
from evokernel_core.compiler.rewrites.picking import as_arg, view
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.tensor import ITEM_SIZE, Dim, evaluate_dim
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip, chip_of
from evokernel_core.hardware.ascend.isa import FRACTAL, REQUEST_BYTES

_PANEL_BYTES = 640
"""Of a row, what is loaded at once where rows run along k."""
_MOST_PITCH = most_of("DataCopyNd2Nz", "srcDValue")
"""Elements from row to row that one copy can step over."""
_COPY_RATE = 1.08
"""Of the rate from memory, that of a copy's reads and writes together (fitted)."""
_LEAST_COPY_GAIN = 0.9
_TILE_N = 256


@frozen
class _Operand:
    """Rows of memory and their length in numbers; whether they run along k; the value itself below what swaps
    its dimensions, and whether it is swapped."""

    value: ValueRef
    swapped: bool
    rows: int
    length: int
    along_k: bool
    size: int

    @property
    def moves(self) -> bool:
        """Whether its rows begin anywhere, and a copy can be stepped over."""
        padded = _whole(self.length, self.size)
        return self.length != padded and padded <= _MOST_PITCH

    def copy_us(self, chip: Chip) -> float:
        rate = _COPY_RATE * chip.gm.memory_bytes_us
        read = self.rows * self.length * self.size
        return chip.launch_us + (read + self.rows * _whole(self.length, self.size) * self.size) / rate

    def requests(self, tile: int, copied: bool) -> float:
        """For a tile's rows or columns and one element along k."""
        begun = 0.0 if copied or self.length * self.size % REQUEST_BYTES == 0 else 1.0
        if not self.along_k:
            return tile * self.size / REQUEST_BYTES + begun
        panel = min(self.length, _PANEL_BYTES // self.size)
        return tile / panel * (panel * self.size / REQUEST_BYTES + begun)


def largest_tile(chip: Chip) -> tuple[int, int]:
    """Rows and columns of the largest tile of a result, of which a core computes one at a time."""
    return chip.memory.l0c_bytes // (_TILE_N * ITEM_SIZE["float32"]), _TILE_N


def aligned_operands(
    left: ValueRef, right: ValueRef, writer: GraphWriter
) -> tuple[ValueRef, ValueRef] | None:
    """Operands of a product in place of ``left`` [m, k] and ``right`` [k, n], some of which are copies; None
    where no copy pays."""
    sides = _operand(left, writer, is_left=True), _operand(right, writer, is_left=False)
    m, k = (evaluate_dim(dim, writer.sizes) for dim in writer.shape(left))
    n = evaluate_dim(writer.shape(right)[1], writer.sizes)
    choices = [
        (a, b) for a in (False, True) for b in (False, True) if a <= sides[0].moves and b <= sides[1].moves
    ]
    times = {copied: _with_copies_us(sides, copied, (m, n, k), chip_of(writer.device)) for copied in choices}
    best = min(times, key=times.__getitem__)
    if times[best] >= _LEAST_COPY_GAIN * times[False, False]:
        return None
    a, b = (
        _copied(side, writer) if copies else ref
        for side, copies, ref in zip(sides, best, (left, right), strict=True)
    )
    return a, b


def _operand(ref: ValueRef, writer: GraphWriter, is_left: bool) -> _Operand:
    node = next((node for node in writer.nodes if node.name == ref.name), None)
    swapped = node is not None and node.op in PERMUTATIONS
    value = next(iter(node.operands())) if node is not None and swapped else ref
    rows, length = (evaluate_dim(dim, writer.sizes) for dim in writer.shape(value))
    return _Operand(value, swapped, rows, length, is_left is not swapped, ITEM_SIZE[writer.spec(ref).dtype])


def _with_copies_us(
    sides: tuple[_Operand, _Operand], copied: tuple[bool, bool], shape: tuple[int, int, int], chip: Chip
) -> float:
    """Modelled microseconds of the copies and of the product."""
    (m, n, k), size = shape, sides[0].size
    tile_m, tile_n = map(min, (m, n), largest_tile(chip))
    multiplied = tile_m * tile_n / FRACTAL**2 / chip.cube.depth_a_cycle(size)
    requests = sides[0].requests(tile_m, copied[0]) + sides[1].requests(tile_n, copied[1])
    tiles = m / tile_m * n / tile_n
    cycles = (
        math.ceil(tiles / chip.aic) * k * max(multiplied, requests * chip.aic / chip.gm.requests_per_cycle)
    )
    copies = sum(side.copy_us(chip) for side, copies in zip(sides, copied, strict=True) if copies)
    return max(cycles / chip.mhz, (m + n) * k * size / chip.gm.memory_bytes_us) + copies


def _copied(side: _Operand, writer: GraphWriter) -> ValueRef:
    """The operand as the front of longer rows."""
    spec = writer.spec(side.value)
    rows, length = spec.shape
    pitch = _pitch(length, side.size)
    image = view(writer, side.value, (1, 1, rows, length))
    framed = writer.call(SPACE_TO_DEPTH.name, image, (0, 0), 1, shape=(1, 1, rows, pitch), dtype=spec.dtype)
    long = view(writer, framed, (rows, pitch))
    front = writer.call("aten.slice.Tensor", long, 1, 0, as_arg(length), shape=spec.shape, dtype=spec.dtype)
    if not side.swapped:
        return front
    return writer.call("aten.permute.default", front, (1, 0), shape=(length, rows), dtype=spec.dtype)


def _whole(length: int, size: int) -> int:
    """The length in whole requests."""
    unit = REQUEST_BYTES // size
    return -(-length // unit) * unit


def _pitch(length: Dim, size: int) -> Dim:
    if isinstance(length, int):
        return _whole(length, size)
    unit = REQUEST_BYTES // size
    return f"(({length}) + {unit - 1}) // {unit} * {unit}"


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
