"""Products whose operands lie in rows that begin anywhere: copies whose rows are whole requests.

A piece of a row that begins off a multiple of 512 bytes takes one request more. In half types loads of such
rows take longer than the products; vector cores copy them once, each to the beginning of a request, and the
product reads the copy row by row as it lies there.
"""

from __future__ import annotations

import math

from attrs import frozen

from evokernel_core.compiler.ops import SPACE_TO_DEPTH
from evokernel_core.compiler.rewrites.picking import as_arg, view
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.domain.graph import ValueRef
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
_LEAST_GAIN = 0.9
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
    times = {copied: _product_us(sides, copied, (m, n, k), chip_of(writer.device)) for copied in choices}
    best = min(times, key=times.__getitem__)
    if times[best] >= _LEAST_GAIN * times[False, False]:
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


def _product_us(
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
