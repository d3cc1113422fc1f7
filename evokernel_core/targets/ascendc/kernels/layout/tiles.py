"""Layout, method turn: how a tile of a permuted box lies in device memory and in the unified buffer.

The tile is loaded in runs along the axes that are dense in the input, turned in the unified buffer, and
stored in runs along the axes that are dense in the result. The kernel (turned.py) keeps to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from evokernel_core.compiler.shapes.boxes import Box
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LINE_BYTES
from evokernel_core.targets.ascendc.ir.traffic import Burst, Tile, grain_of

ROWS = 16
"""Blocks that one transposition of the vector unit takes; documentation of TransDataTo5HD."""
MOST_ROWS = most_of("DataCopyPadIn", "blockCount")
_SPARSE = 8
"""A run may skip to every eighth element: a block of 32 bytes still holds one of 4 bytes."""


@frozen
class Extents:
    """One axis at given sizes: elements, and distances in the input and in the result."""

    size: int
    from_stride: int
    to_stride: int


@frozen
class Sides:
    """A tile: for each axis its elements and its distance in the loaded and in the turned tile, the axes
    of runs and of rows (innermost first), and elements of a row and of the whole tile."""

    tile: tuple[int, ...]
    from_local: tuple[int, ...]
    to_local: tuple[int, ...]
    from_run: tuple[int, ...]
    from_rows: tuple[int, ...]
    to_run: tuple[int, ...]
    to_rows: tuple[int, ...]
    from_span: int
    to_span: int
    from_elements: int
    to_elements: int


def numeric(box: Box, sizes: Mapping[str, int]) -> tuple[Extents, ...]:
    return tuple(
        Extents(a.size.evaluate(sizes), a.from_stride.evaluate(sizes), a.to_stride.evaluate(sizes))
        for a in box.axes
    )


def input_order(axes: tuple[Extents, ...]) -> tuple[int, ...]:
    """The axes, those first whose elements lie nearest in the input."""
    return tuple(sorted(range(len(axes)), key=lambda i: (abs(axes[i].from_stride), -i)))


def even(size: int, most: int, width: int) -> int:
    """Elements of one of the fewest equal parts of at most ``most``; whole lines where a part has any."""
    if size <= most:
        return size
    part, line = math.ceil(size / math.ceil(size / most)), LINE_BYTES // width
    return rounded(part, line) if rounded(part, line) <= most else part


def rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def gathered(axes: tuple[Extents, ...], most: tuple[int, ...], width: int) -> Sides:
    """The tile of the method that picks elements by a table: any axes make up the runs."""
    tile = tuple(even(axis.size, limit, width) for axis, limit in zip(axes, most, strict=True))
    unit = BLOCK_BYTES // width
    from_local = [0] * len(axes)
    span, pitch, rows = 1, 0, 1
    runs: list[int] = []
    others: list[int] = []
    for i in input_order(axes):
        distance = abs(axes[i].from_stride)
        near = distance <= _SPARSE if span == 1 else distance * 8 <= span * 9
        if tile[i] <= 1:
            continue
        if not others and near:
            from_local[i] = distance
            span += (tile[i] - 1) * distance
            runs.append(i)
        else:
            pitch = pitch or rounded(span, unit)
            from_local[i] = pitch * rows
            rows *= tile[i]
            others.append(i)
    to_local, to_run, to_rows, to_span, to_elements = _result(axes, tile, unit)
    return Sides(tile, tuple(from_local), to_local, tuple(runs), tuple(others), to_run, to_rows, span,
                 to_span, rounded(span, unit) * rows, to_elements)  # fmt: skip


def _result(
    axes: tuple[Extents, ...], tile: tuple[int, ...], unit: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int, int]:
    """The turned tile: its runs go on as long as it has whole axes."""
    local = [0] * len(axes)
    span, pitch, rows, whole = 1, 0, 1, True
    runs: list[int] = []
    others: list[int] = []
    for i in reversed(range(len(axes))):
        if whole:
            local[i] = span
            span *= tile[i]
            runs.append(i)
            whole = tile[i] == axes[i].size
        elif tile[i] > 1:
            pitch = pitch or rounded(span, unit)
            local[i] = pitch * rows
            rows *= tile[i]
            others.append(i)
    return tuple(local), tuple(runs), tuple(others), span, rounded(span, unit) * rows


def transposed(axes: tuple[Extents, ...], most: tuple[int, ...], width: int) -> Sides | None:
    """The tile of the method that transposes squares: one axis is the run of the input, the last one
    that of the result. None where those are not two axes."""
    column = next((i for i, axis in enumerate(axes) if axis.from_stride == 1), None)
    row = len(axes) - 1
    if column is None or column == row or any(axis.from_stride < 0 for axis in axes):
        return None
    tile = tuple(even(axis.size, limit, width) for axis, limit in zip(axes, most, strict=True))
    square = squares(width)
    unit = max(square, BLOCK_BYTES // width)
    pitch, height = rounded(tile[column], unit), rounded(tile[row], ROWS)
    to_pitch, to_height = rounded(tile[row], max(ROWS, unit)), rounded(tile[column], square)
    others = [i for i in input_order(axes) if i not in (row, column) and tile[i] > 1]
    from_local, to_local = [0] * len(axes), [0] * len(axes)
    from_local[column], from_local[row], to_local[row], to_local[column] = 1, pitch, 1, to_pitch
    planes = 1
    for i in others:
        from_local[i], to_local[i] = pitch * height * planes, to_pitch * to_height * planes
        planes *= tile[i]
    return Sides(tile, tuple(from_local), tuple(to_local), (column,), (row, *others), (row,),
                 (column, *others), tile[column], tile[row], pitch * height * planes,
                 to_pitch * to_height * planes)  # fmt: skip


def squares(width: int) -> int:
    """Columns of one transposition: elements of a block; single bytes are transposed as 16 bits."""
    return BLOCK_BYTES // max(width, 2)


# -- cost -----------------------------------------------------------------------------------------


def cost(
    axes: tuple[Extents, ...], sides: Sides, width: int, transposes: bool, chip: Chip
) -> tuple[float, Tile]:
    """How many tiles there are, and what one costs."""
    start = chip.vector.startup_cycles
    number = math.prod(math.ceil(axis.size / part) for axis, part in zip(axes, sides.tile, strict=True))
    shrink = math.prod(a.size / math.ceil(a.size / t) / t for a, t in zip(axes, sides.tile, strict=True))
    froms = _Side(
        [a.from_stride for a in axes], sides.from_span, sides.from_run, sides.from_rows, sides.from_local
    )
    tos = _Side([a.to_stride for a in axes], sides.to_span, sides.to_run, sides.to_rows, sides.to_local)
    whole = [part == axis.size for axis, part in zip(axes, sides.tile, strict=True)]
    load, store = (_burst(side, sides.tile, whole, width) for side in (froms, tos))
    gather = chip.vector.elements_per_cycle.gather
    vector = _transposing(sides, width, chip) if transposes else start + sides.to_elements / gather
    if width == 1:
        vector += (
            2 * start + (sides.from_elements + sides.to_elements) / chip.vector.elements_per_cycle.simple_b16
        )
    return number, Tile((load,), (store,), vector * max(shrink, 0.5))


@frozen
class _Side:
    """One side of a tile: the axes' strides in memory, and how its runs and rows lie."""

    strides: list[int]
    span: int
    runs: tuple[int, ...]
    rows: tuple[int, ...]
    local: tuple[int, ...]


def _burst(side: _Side, tile: tuple[int, ...], whole: list[bool], width: int) -> Burst:
    """The copies of one side: a block for each row of the first axis of rows, a copy for each of others."""
    steps = [
        abs(stride) * (tile[i] if i in side.runs else 1) * width
        for i, stride in enumerate(side.strides)
        if not (i in side.runs and whole[i])
    ]
    grain = grain_of(steps)
    blocks = min(tile[side.rows[0]], MOST_ROWS) if side.rows else 1
    copies = math.prod(tile[i] for i in side.rows) / blocks
    length = float(side.span * width)
    if side.rows:
        stride = side.strides[side.rows[0]]
        gap = stride * width - length
        if gap == 0 and side.local[side.rows[0]] == side.span and length % BLOCK_BYTES == 0:
            return Burst(copies, 1, length * blocks, grain)
        if gap < 0:
            return Burst(copies * blocks, 1, length, grain)
    return Burst(copies, blocks, length, grain)


def _transposing(sides: Sides, width: int, chip: Chip) -> float:
    """Cycles of the transpositions of a tile: two for each 16 blocks."""
    start = chip.vector.startup_cycles
    column, row = sides.from_run[0], sides.to_run[0]
    down = math.ceil(sides.tile[row] / ROWS)
    right = math.ceil(sides.tile[column] / squares(width))
    planes = math.prod(sides.tile) / (sides.tile[row] * sides.tile[column])
    return planes * min(down, right) * (start + 2.0 * max(down, right))
