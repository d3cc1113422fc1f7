"""The schedule of a windowed kernel whose lanes are planes: how much of a plane a tile has, and its cost.

Every element of a plane fills one block with the values of eight planes, so that any distance within a
plane is one in blocks. What a tile reads of a plane is one piece of memory, however short its rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.pooling.buffers import Buffer
from evokernel_core.ascendc.kernels.pooling.problem import Axis, Combine, Window
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.ascendc.shapes.sizes import ONE
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.api import most_of
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import LANES, REQUEST_BYTES
from evokernel_core.twin.roofline import launch_us

GROUP = 16
"""Planes that TransDataTo5HD turns together."""
_BLOCK = 8
_MOST_REPEATED = most_of("Max", "src0RepStride") // _BLOCK
"""Columns between windows up to which one instruction takes many: eight of them are a repeat stride."""
_MOST_POSITIONS = most_of("TransDataTo5HD", "repeatTimes") // 2 * 2 * _BLOCK
"""Elements of a plane up to which one instruction turns a group: an even number of repeats of eight."""
_SHARES = (32, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024)


@frozen
class PlaneSchedule(Settings):
    """Tiles of at most ``positions`` elements of a plane's result, in ``buffers`` buffers of the input."""

    positions: int
    buffers: int = 2


def as_planes(window: Window) -> Window:
    """The window as lanes of planes take it: rows with weights of their own are planes of one row each."""
    if not window.weighs_rows:
        return window
    return evolve(window, planes=window.rows.result, rows=Axis(ONE, ONE), weighs_rows=False)


def applies(window: Window) -> bool:
    """Whether planes can lie side by side: neighbours are combined within planes of several rows, or each
    row has weights of its own."""
    several = window.is_across and not (window.rows.is_plain and window.depth.is_plain)
    lies_side_by_side = several or window.finds or window.weighs_rows
    return lies_side_by_side and window.columns.stride <= _MOST_REPEATED and window.spread == 1


def starts() -> Iterator[PlaneSchedule]:
    for positions in _SHARES:
        yield PlaneSchedule(positions, 2)
        yield PlaneSchedule(positions, 1)


def steps(here: PlaneSchedule) -> Iterator[tuple[str, PlaneSchedule]]:
    """Named steps, legal or not."""
    place = _SHARES.index(here.positions)
    if place + 1 < len(_SHARES):
        yield "larger tile", evolve(here, positions=_SHARES[place + 1])
    if place > 0:
        yield "smaller tile", evolve(here, positions=_SHARES[place - 1])
    yield "one buffer" if here.buffers > 1 else "two buffers", evolve(here, buffers=3 - here.buffers)


def unit(window: Window) -> int:
    """Elements that fill whole blocks before and after a cast."""
    return max(32 // ITEM_SIZE[window.dtype], _BLOCK)


def separates(window: Window) -> bool:
    """Whether columns are combined before rows."""
    return window.combine is not Combine.WEIGHTED and not window.finds


def in_positions(window: Window, item: PlaneSchedule, sizes: Mapping[str, int]) -> int:
    """Elements of a plane that a tile reads, so that its windows fit in at the user's sizes."""
    across, down = window.columns, window.rows
    columns = across.result.evaluate(sizes)
    if columns > item.positions // 2:
        columns = max(item.positions // 2, unit(window))
        width = (columns - 1) * across.stride + across.reach
    else:
        width = across.size.evaluate(sizes)
    rows = max(1, min(item.positions // columns, down.result.evaluate(sizes)))
    held = (rows - 1) * down.stride + down.reach
    least = down.reach * (
        -(-((unit(window) - 1) * across.stride + across.reach) // unit(window)) * unit(window)
    )
    return max(least, held * (-(-width // unit(window)) * unit(window)))


def middle_positions(window: Window, item: PlaneSchedule) -> int:
    """Elements after columns are combined, in the rows that are read."""
    return item.positions * max(window.rows.stride, 1) + window.rows.reach * _BLOCK * 4


def in_line(window: Window, item: PlaneSchedule, sizes: Mapping[str, int]) -> int:
    """Blocks of one half of the lanes, with what an instruction reads behind the last element."""
    beyond = _BLOCK * window.columns.stride + unit(window)
    return -(-(in_positions(window, item, sizes) + beyond) // GROUP) * GROUP


def out_line(item: PlaneSchedule) -> int:
    return -(-item.positions // GROUP) * GROUP + GROUP


def weights(window: Window) -> int:
    """Elements of a plane's weights in the unified buffer, its bias in a block behind them."""
    taps = window.depth.taps * window.rows.taps * window.columns.taps
    return -(-taps // unit(window)) * unit(window) + (unit(window) if window.bias else 0)


def buffers(
    window: Window, item: PlaneSchedule, sizes: Mapping[str, int], cpp_type: str
) -> tuple[Buffer, ...]:
    """Queues first, then scratch memory."""
    width, casts = ITEM_SIZE[window.dtype], window.dtype != "float32"
    inside, outside = in_line(window, item, sizes), out_line(item)
    found = [Buffer("inQueue", cpp_type, "SLAB_ELEMENTS", GROUP * inside, width, item.buffers, True)]
    if 0 in window.results:
        found.append(Buffer("outQueue", cpp_type, "RESULT_ELEMENTS", GROUP * outside, width, 1, True))
    if window.combine is Combine.WEIGHTED:
        held = GROUP * weights(window)
        found.append(Buffer("weightQueue", cpp_type, "GROUP * WEIGHTS", held, width, 1, True))
        found.append(Buffer("weights", "float", "GROUP * WEIGHTS", held, 4))
        if casts:
            found.append(Buffer("weightRows", "float", "GROUP * WEIGHTS", held, 4))
    if casts:
        found.append(Buffer("held", "float", "SLAB_ELEMENTS", GROUP * inside, 4))
    if casts or window.finds:
        found.append(Buffer("result", "float", "RESULT_ELEMENTS", GROUP * outside, 4))
    found.append(Buffer("lanes", "float", "2 * IN_HALF", GROUP * inside, 4))
    if separates(window):
        middle = GROUP * middle_positions(window, item)
        found.append(Buffer("middle", "float", "2 * MIDDLE_HALF", middle, 4))
    found.append(Buffer("folded", "float", "2 * OUT_HALF", GROUP * outside, 4))
    if window.finds:
        found += _finding(outside)
    return tuple(found)


def _finding(line: int) -> Iterator[Buffer]:
    """What finding the places of maxima takes besides."""
    yield Buffer("placeQueue", "int64_t", "RESULT_ELEMENTS", GROUP * line, 8, 1, True)
    yield Buffer("largest", "float", "2 * OUT_HALF", GROUP * line, 4)
    yield Buffer("places", "float", "2 * OUT_HALF", GROUP * line, 4)
    for name in ("origins", "candidates", "elements"):
        yield Buffer(name, "float", "OUT_HALF", _BLOCK * line, 4)
    for name in ("columnOrigins", "columnStarts"):
        yield Buffer(name, "float", "OUT_HALF", _BLOCK * line, 4)
    yield Buffer("mask", "uint8_t", "OUT_HALF / BITS_PER_BYTE", line, 1)


def is_legal(window: Window, item: PlaneSchedule, sizes: Mapping[str, int], chip: Chip) -> bool:
    if item.positions not in _SHARES:
        return False
    small = in_positions(window, item, sizes) <= 4 * _MOST_POSITIONS
    return small and sum(buffer.total for buffer in buffers(window, item, sizes, "")) <= chip.ub_bytes


def estimate_us(window: Window, item: PlaneSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: the slowest pipe of one core, or the memory that all share."""
    across, down = window.columns, window.rows
    planes, depth = window.planes.evaluate(sizes), window.depth.result.evaluate(sizes)
    rows, columns = down.result.evaluate(sizes), across.result.evaluate(sizes)
    width, in_columns = ITEM_SIZE[window.dtype], across.size.evaluate(sizes)
    room = in_positions(window, item, sizes)
    whole = in_columns * down.reach <= room and columns <= item.positions
    if whole:
        tile_columns, pitch = columns, in_columns
    else:
        fitting = (room // down.reach - across.reach) // across.stride + 1
        tile_columns = max(unit(window), min(fitting, item.positions) // unit(window) * unit(window))
        pitch = (tile_columns - 1) * across.stride + across.reach
    most = min((room // pitch - down.reach) // down.stride + 1, item.positions // tile_columns)
    tile_rows = math.ceil(rows / math.ceil(rows / max(1, min(most, rows))))
    held = min(down.size.evaluate(sizes), (tile_rows - 1) * down.stride + down.reach)
    groups = math.ceil(planes / GROUP)
    tiles = groups * depth * math.ceil(rows / tile_rows) * math.ceil(columns / tile_columns)
    cores = min(chip.aiv, tiles)
    lanes = min(planes, GROUP)
    pieces = 1 if whole else held
    burst = held * pitch * width / pieces
    request = REQUEST_BYTES / chip.mte.load_bytes_per_cycle  # cycles
    loads = (100 + lanes * pieces * (burst / REQUEST_BYTES + 1) * request) * window.depth.taps
    piece = tile_rows * tile_columns * width / (1 if whole else tile_rows)
    stores = 100 + lanes * (1 if whole else tile_rows) * (piece / REQUEST_BYTES + 1) * request
    vector = _vector_cycles(window, tile_rows, tile_columns, held, pitch, 2 if lanes > _BLOCK else 1, chip)
    mine = math.ceil(tiles / cores)
    pipes = mine * (max(loads, vector + stores) if item.buffers > 1 else loads + stores + vector)
    read = planes * window.depth.size.evaluate(sizes) * down.size.evaluate(sizes) * in_columns * width
    written = planes * depth * rows * columns * width
    back = max(0.0, read + written - chip.l2_bytes) * written / max(read + written, 1)
    moved = read * 1.1 + back * chip.gm.write_back_cost
    memory = moved / chip.gm.memory_bytes_us
    fill = (loads + stores + vector) / chip.mhz
    busy = pipes / chip.mhz
    return float(max(busy, memory) + 0.1 * min(busy, memory) + fill + launch_us(chip, cores))


def _vector_cycles(
    window: Window, rows: int, columns: int, held: int, pitch: int, halves: int, chip: Chip
) -> float:
    """Cycles of the instructions of one tile."""
    start = chip.vector.startup_cycles
    turn = held * pitch * GROUP / LANES + start
    back = halves * (rows * columns * _BLOCK / LANES + start)
    casts = (held * pitch + rows * columns) * GROUP / LANES + 2 * start if window.dtype != "float32" else 0
    first = halves * (rows * columns / _BLOCK + start)
    if window.combine is Combine.WEIGHTED:
        taps = window.depth.taps * window.rows.taps * window.columns.taps
        sweep = _sweep_cycles(rows, columns, window.rows.stride * pitch, chip) + rows * math.ceil(
            columns / _BLOCK
        )
        return casts + turn * window.depth.taps + first + back + halves * taps * sweep
    if window.finds:
        taps = window.depth.taps * window.rows.taps * window.columns.taps
        each = 8 * (rows * columns / _BLOCK + start) + _sweep_cycles(
            rows, columns, window.rows.stride * pitch, chip
        )
        return casts + turn * window.depth.taps + 6 * first + 2 * back + halves * taps * each
    side = window.columns.taps * _sweep_cycles(held, columns, pitch, chip)
    sweep = start + rows * columns / _BLOCK * 2
    if window.rows.stride > 1:
        sweep = _sweep_cycles(rows, columns, window.rows.stride * columns, chip)
    down = window.rows.taps * sweep
    each = turn + halves * (side + down + start + held * columns / _BLOCK)
    return casts + each * window.depth.taps + first + back


def _sweep_cycles(rows: int, columns: int, step: int, chip: Chip) -> float:
    start = chip.vector.startup_cycles
    chunks = math.ceil(columns / _BLOCK)
    instructions = chunks if step <= most_of("Max", "src0RepStride") and columns < rows * _BLOCK else 2 * rows
    return instructions * start + rows * chunks * 1.2
