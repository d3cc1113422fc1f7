"""The schedule of a windowed kernel: its tile, the buffers that follow from it, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.pooling.buffers import Buffer
from evokernel_core.ascendc.kernels.pooling.problem import Combine, Window
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.api import most_of
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import BLOCK_BYTES, LANES, LINE_BYTES, REQUEST_BYTES
from evokernel_core.twin.roofline import launch_us

GROUP = 16
"""Rows that TransDataTo5HD turns together."""
_BLOCK = 8
MOST_REPEATED = most_of("Max", "src0RepStride") // _BLOCK
"""Blocks between columns up to which one instruction takes all columns: eight of them are a repeat stride."""
_TURN = 128
"""float32 elements of one turn over the bank groups (architecture page 2201: 16 groups of 32 bytes)."""
_WHOLE = 256
"""Elements of which every buffer has a multiple: whole turns in each type."""
_ROWS = (1, 2, 4, 8, 16, 32, 48, 64, 128)
_COLUMNS = (1, 8, 16, 32, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1024, 1536, 2016)
_PLAIN_COLUMNS = (*_COLUMNS, 4096, 8192)


@frozen
class WindowSchedule(Settings):
    """A tile of ``rows`` x ``columns`` of the result, in ``buffers`` buffers of each queue. Where
    ``whole_turns``, rows lie whole turns over the memory banks apart, so that none that an instruction
    reads together with the result meets it in a bank."""

    rows: int
    columns: int
    buffers: int = 2
    whole_turns: bool = False


def starts(window: Window) -> Iterator[WindowSchedule]:
    """Every tile that is worth a look."""
    across = window.is_across
    for rows in _ROWS:
        for columns in _COLUMNS if across else _PLAIN_COLUMNS:
            for buffers in (2, 1):
                yield WindowSchedule(rows, columns, buffers)
                yield WindowSchedule(rows, columns, buffers, whole_turns=True)


def steps(here: WindowSchedule, window: Window) -> Iterator[tuple[str, WindowSchedule]]:
    """Named steps, legal or not."""
    rows = _ROWS
    columns = _COLUMNS if window.is_across else _PLAIN_COLUMNS
    for name, offset in (("more rows", 1), ("fewer rows", -1)):
        place = rows.index(here.rows) + offset if here.rows in rows else -1
        if 0 <= place < len(rows):
            yield name, evolve(here, rows=rows[place])
    for name, offset in (("wider tile", 1), ("narrower tile", -1)):
        place = columns.index(here.columns) + offset if here.columns in columns else -1
        if 0 <= place < len(columns):
            yield name, evolve(here, columns=columns[place])
    turns = not here.whole_turns
    yield "rows by banks" if turns else "rows close together", evolve(here, whole_turns=turns)
    yield "one buffer" if here.buffers > 1 else "two buffers", evolve(here, buffers=3 - here.buffers)


# -- the unified buffer ---------------------------------------------------------------------------


def unit(window: Window, item: WindowSchedule) -> int:
    """Elements of which every row has a multiple, so that it starts on 32 bytes before and after a cast."""
    return _TURN if item.whole_turns else max(32 // ITEM_SIZE[window.dtype], _BLOCK)


def doubles(window: Window) -> bool:
    """Whether windows along the columns are combined by doubling them, two windows into a wider one."""
    taps, stride = window.columns.taps, window.columns.stride
    whole = window.combine is Combine.MAX or taps & (taps - 1) == 0
    return stride == 1 and taps > 3 and whole and window.combine is not Combine.WEIGHTED


def folds_rows(window: Window) -> bool:
    """Whether windows combine rows, or leave some out."""
    return not (window.rows.taps == window.rows.stride == window.depth.taps == 1)


def turns_slab(window: Window) -> bool:
    """Whether rows are turned once for each row of weights, and columns weighed in the lanes: where all rows
    have the same weights."""
    return window.combine is Combine.WEIGHTED and window.is_across and not window.weighs_rows


def lead(window: Window) -> int:
    """Most columns that are loaded in front of a tile's first window, to start at an aligned address."""
    return LINE_BYTES // ITEM_SIZE[window.dtype] - 1 if window.is_across else 0


def pitch(window: Window, item: WindowSchedule) -> int:
    """Most elements from row to row of the slab."""
    width = lead(window) + (item.columns - 1) * window.columns.stride + window.columns.reach
    return -(-width // unit(window, item)) * unit(window, item)


def start(window: Window) -> int:
    """Where in the lanes the columns of each tap begin that are added to a sum, half a turn from it."""
    least = lead(window) + window.columns.reach - 1
    return -(-(least - _BLOCK) // GROUP) * GROUP + _BLOCK if least > _BLOCK else _BLOCK


def line(window: Window, item: WindowSchedule) -> int:
    """Most columns in the lanes: what tiles reach, and what the last instruction of one reads beyond."""
    over = _BLOCK if window.columns.stride <= MOST_REPEATED else 0
    beyond = (item.columns + over) * window.columns.stride + window.columns.reach
    before = start(window) if window.combine is Combine.WEIGHTED else lead(window)
    return -(-(before + beyond + GROUP) // GROUP) * GROUP


def slab_rows(window: Window, item: WindowSchedule) -> int:
    return (item.rows - 1) * window.rows.stride + window.rows.reach


def column_unit(window: Window, item: WindowSchedule) -> int:
    """Columns of which tiles have a multiple, so that they start where copies lose nothing."""
    return min(32, item.columns) if window.is_across else 32 // ITEM_SIZE[window.dtype]


def result_pitch(window: Window, item: WindowSchedule) -> int:
    """Most elements from row to row of the result."""
    return -(-item.columns // GROUP) * GROUP if window.is_across else pitch(window, item)


def _whole(elements: int) -> int:
    return -(-elements // _WHOLE) * _WHOLE


def buffers(window: Window, item: WindowSchedule, cpp_type: str) -> tuple[Buffer, ...]:
    """In the order in which they lie in the unified buffer."""
    width, across = ITEM_SIZE[window.dtype], window.is_across
    slab = _whole(slab_rows(window, item) * pitch(window, item))
    rows = -(-item.rows // GROUP) * GROUP if across else item.rows
    result = _whole(rows * result_pitch(window, item))
    found = [_near(window, item)] if turns_slab(window) else []  # far from the sums, in another bank
    found.append(Buffer("inQueue", cpp_type, "SLAB_ELEMENTS", slab, width, item.buffers, True))
    casts = window.dtype != "float32"
    if casts:
        found.append(Buffer("held", "float", "SLAB_ELEMENTS", slab, 4))
    found.append(Buffer("bankShift", "float", "LANES", LANES, 4))  # half a turn
    found.append(Buffer("outQueue", cpp_type, "RESULT_ELEMENTS", result, width, item.buffers, True))
    if across:
        found += _lanes(window, item)
        if casts:
            found.append(Buffer("result", "float", "RESULT_ELEMENTS", result, 4))
    elif casts:
        found.append(Buffer("folded", "float", "RESULT_ELEMENTS", result, 4))
    return tuple(found)


def _lanes(window: Window, item: WindowSchedule) -> Iterator[Buffer]:
    weighted = window.combine is Combine.WEIGHTED
    if turns_slab(window):
        yield Buffer(
            "turned", "float", "TURNED_ELEMENTS", _lanes_of_rows(item) * apart(window, item) * _BLOCK, 4
        )
        return
    if folds_rows(window) or weighted:
        yield Buffer("folded", "float", "FOLDED_ELEMENTS", _whole(item.rows * pitch(window, item)), 4)
    half = line(window, item) * _BLOCK
    turned = result_pitch(window, item) * _BLOCK
    yield _near(window, item)
    if doubles(window):
        yield Buffer("far", "float", "2 * HALF", 2 * half, 4)
    elif weighted:
        groups = -(-item.rows // GROUP)
        yield Buffer("turned", "float", "TURNED_ELEMENTS", groups * 2 * turned, 4)
    else:
        yield Buffer("turned", "float", "2 * TURNED_HALF", 2 * turned, 4)


def _near(window: Window, item: WindowSchedule) -> Buffer:
    if not turns_slab(window):
        return Buffer("near", "float", "2 * HALF", 2 * line(window, item) * _BLOCK, 4)
    stride = window.columns.stride
    held = start(window) + _lanes_of_rows(item) * apart(window, item) * stride
    beyond = _BLOCK * stride + window.columns.reach  # what the last instruction reads
    return Buffer("near", "float", "NEAR_ELEMENTS", (held + beyond) * _BLOCK, 4)


def _lanes_of_rows(item: WindowSchedule) -> int:
    """Lanes of eight rows, as whole turns fill them."""
    return 2 * -(-item.rows // GROUP)


def apart(window: Window, item: WindowSchedule) -> int:
    """Most columns of the result from the lanes of eight rows to those of the next."""
    reached = lead(window) + (item.columns - 1) * window.columns.stride + window.columns.reach + _BLOCK
    least = max(-(-reached // window.columns.stride), -(-item.columns // GROUP) * GROUP)
    return -(-least // _BLOCK) * _BLOCK


def _weighing(window: Window, item: WindowSchedule, chip: Chip) -> float:
    """Cycles of a repeat that adds weighed columns: sums in the same bank of memory conflict with them."""
    sizes = {buffer.name: buffer.total for buffer in buffers(window, item, "")}
    apart = sum(sizes.values()) - sizes["turned"] - sizes.get("result", 0) >= chip.vector.bank_bytes
    return 1.0 if apart else 1.0 + chip.vector.read_write_conflict_cycles


def is_legal(window: Window, item: WindowSchedule, chip: Chip) -> bool:
    """Whether the tile fits the unified buffer and the limits of instructions."""
    copied = slab_rows(window, item) <= most_of("DataCopyPadIn", "blockCount")
    few = copied and 1 <= item.rows <= most_of("Max", "repeatTime") and item.columns >= 1
    return few and sum(buffer.total for buffer in buffers(window, item, "")) <= chip.ub_bytes


# -- the estimate ---------------------------------------------------------------------------------


def estimate_us(window: Window, item: WindowSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: the slowest pipe of one core, or the memory that all share."""
    rows, columns = window.rows.result.evaluate(sizes), window.columns.result.evaluate(sizes)
    planes = window.planes.evaluate(sizes) * window.depth.result.evaluate(sizes)
    down, right = math.ceil(rows / item.rows), math.ceil(columns / item.columns)
    tile_rows = math.ceil(rows / down)
    step = column_unit(window, item)
    tile_columns = min(columns, math.ceil(columns / right / step) * step)
    tiles = planes * down * right
    cores = min(chip.aiv, tiles)
    width = ITEM_SIZE[window.dtype]
    in_columns = window.columns.size.evaluate(sizes)
    in_rows = window.rows.size.evaluate(sizes)
    loaded = min(
        in_columns, lead(window) // 2 + (tile_columns - 1) * window.columns.stride + window.columns.reach
    )
    slab = min(in_rows, (tile_rows - 1) * window.rows.stride + window.rows.reach)
    loads = (
        _burst_cycles(slab, loaded, in_columns, width, chip.mte.load_bytes_per_cycle, chip)
        * window.depth.taps
    )
    stores = _burst_cycles(tile_rows, tile_columns, columns, width, chip.mte.store_bytes_per_cycle, chip)
    vector = _vector_cycles(window, item, tile_rows, tile_columns, slab, chip)
    read = window.planes.evaluate(sizes) // window.spread * in_rows * in_columns * width
    read *= window.depth.size.evaluate(sizes)
    written = planes * rows * columns * width
    mine = math.ceil(tiles / cores)
    pipes = mine * (max(loads, stores, vector) if item.buffers > 1 else loads + stores + vector)
    fetched = tiles * slab * loaded * width * window.depth.taps
    waste = _wire_bytes(loaded, in_columns, width, chip) / (loaded * width)
    memory = _memory_us(read * waste, written, max(0.0, fetched - read), cores, chip)
    fill = (loads + stores + vector) / chip.mhz
    busy = pipes / chip.mhz
    return float(max(busy, memory) + 0.1 * min(busy, memory) + fill + launch_us(chip, cores))


def _memory_us(read: float, written: int, again: float, cores: int, chip: Chip) -> float:
    """Microseconds of device memory; while a core reads ``again`` what L2 holds, it does not read on."""
    back = max(0.0, read + written - chip.l2_bytes) * written / max(read + written, 1)
    first = (read + back * chip.gm.write_back_cost) / chip.gm.memory_bytes_us
    hits = again / cores / chip.mte.load_hit_bytes_per_cycle / chip.mhz
    return first + hits


def _burst_cycles(rows: int, columns: int, whole: int, width: int, rate: float, chip: Chip) -> float:
    """Cycles of one copy of a tile at ``rate`` bytes a cycle."""
    burst = columns * width
    if columns == whole and burst % BLOCK_BYTES == 0:
        return 100 + rows * burst / rate
    wire = _wire_bytes(columns, whole, width, chip)
    return 100 + rows * max(wire / rate, chip.mte.min_burst_cycles)


def _wire_bytes(columns: int, whole: int, width: int, chip: Chip) -> float:
    """Bytes that a part of a row moves: whole requests where rows do not start aligned."""
    burst = columns * width
    joined = columns == whole and burst % BLOCK_BYTES == 0
    aligned = whole * width % chip.mte.aligned_bytes == 0
    return burst if joined or aligned else (burst / REQUEST_BYTES + 1) * REQUEST_BYTES


def _vector_cycles(
    window: Window, item: WindowSchedule, rows: int, columns: int, slab: int, chip: Chip
) -> float:
    """Cycles of the instructions of one tile."""
    start = chip.vector.startup_cycles
    reached = (columns - 1) * window.columns.stride + window.columns.reach
    taps = window.depth.taps * window.rows.taps
    casts = (slab * reached / LANES + start) * 2 if window.dtype != "float32" else 0
    each = start
    if item.whole_turns:
        reached = -(-reached // _TURN) * _TURN
    vertical = rows * reached / LANES * 1.5 + each * (
        1 if window.rows.stride == 1 else math.ceil(reached / LANES)
    )
    if window.weighs_rows:
        vertical = rows * (reached / LANES + start)
    if not window.is_across:
        return casts + taps * vertical
    groups = math.ceil(rows / GROUP)
    turn = reached * GROUP / LANES + each + (0 if window.columns.stays_inside else 2 * start)
    fold = columns * GROUP / LANES * (1.0 if window.combine is Combine.WEIGHTED else 2.5) + 2 * start
    back = columns * GROUP / LANES + 2 * start
    if turns_slab(window):
        reached = lead(window) // 2 + (columns - 1) * window.columns.stride + window.columns.reach + _BLOCK
        lanes = math.ceil(rows / _BLOCK) * max(columns, reached / window.columns.stride)
        fold = lanes * _BLOCK / LANES * _weighing(window, item, chip) + start
        return casts + taps * (groups * turn + window.columns.taps * fold) + groups * back
    if window.combine is Combine.WEIGHTED:
        return casts + window.columns.taps * (taps * vertical + groups * (turn + fold)) + groups * back
    passes = math.ceil(math.log2(window.columns.taps)) if doubles(window) else max(window.columns.taps - 1, 1)
    down = taps * vertical if folds_rows(window) else 0
    return casts + down + groups * (turn + passes * fold + back)
