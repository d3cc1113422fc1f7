"""Family scan: running sums, products, maxima, minima and log-sum-exps along any dimension.

Scans whose elements are neighbours in memory are turned in the unified buffer, so that pieces of a row
become the lanes of vectors; scans along other dimensions are lanes as they lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import VECTORS_ALONE, StageText
from evokernel_core.ascendc.kernels.rendering import addresses, kernel_text, sized, tensors_of
from evokernel_core.ascendc.kernels.scan.problem import Scan, read_scan
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.ops import SCAN, categories
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import LANES
from evokernel_core.twin.roofline import launch_us

_INSTRUCTION = {"sum": "Add", "prod": "Mul", "max": "Max", "min": "Min", "logaddexp": ""}
_IDENTITY = {"sum": "0.0f", "prod": "1.0f", "max": "-INFINITE", "min": "INFINITE", "logaddexp": "-INFINITE"}
_PAD = {"sum": "0.0f", "prod": "1.0f", "max": "-INFINITE", "min": "INFINITE", "logaddexp": "-INFINITE"}
_MOST_STEPS = 240
"""A repeat count is at most 255."""
_LANES = (128, 256, 512, 1024)
_TILES = (2048, 4096, 8192, 12288, 16384)


@frozen
class ScanSchedule(Settings):
    """``lanes`` and ``steps`` of a tile for scans in rows, elements of a ``tile`` for those in columns,
    and the tiles that wait to be written."""

    lanes: int = 0
    steps: int = 0
    tile: int = 0
    out_buffers: int = 1

    def settings(self) -> dict[str, bool | int | float | str]:
        shape = {"lanes": self.lanes, "steps": self.steps} if self.lanes else {"tile": self.tile}
        return {**shape, "out_buffers": self.out_buffers}


def _text(scan: Scan, schedule: ScanSchedule, task: KernelTask, name: str) -> StageText:
    sizes = sized(task, {key: getattr(scan, key) for key in ("outer", "length", "inner")})
    # the code calls its operands by what they are for
    names = {scan.input: "input", scan.mask: "inputMask"}
    tensors = [names.get(item, f"unused{index}") for index, item in enumerate(tensors_of(task))]
    block = _block(scan)
    context = {
        "lanes": schedule.lanes,
        "steps": schedule.steps,
        "tile": schedule.tile,
        "out_buffers": schedule.out_buffers,
        "most_lanes": _most_lanes(schedule),
        "step_block": block,
        "row_block": _row_block(scan),
        "least_width": 2048 // 4 if scan.dtype == "float32" else 2048 // 2,
    }
    return kernel_text(
        "scan/rows" if scan.in_rows else "scan/columns",
        name,
        VECTORS_ALONE,
        s=context,
        type=CPP_TYPE[scan.dtype],
        narrow=scan.dtype != "float32",
        op=scan.op,
        instruction=_INSTRUCTION[scan.op],
        identity=_IDENTITY[scan.op],
        pad=f"static_cast<{CPP_TYPE[scan.dtype]}>({_PAD[scan.op]})" if block == 16 else _PAD[scan.op],
        reverse=scan.reverse,
        exclusive=scan.exclusive,
        masked=bool(scan.mask),
        parameters=addresses(*tensors, "output"),
        used=", ".join(("input", *(["inputMask"] if scan.mask else []), "output")),
        **sizes,
    )


def _block(scan: Scan) -> int:
    """Elements of 32 bytes."""
    return 32 // ITEM_SIZE[scan.dtype]


def _row_block(scan: Scan) -> int:
    """Elements that a row of a tile is made of: truth values take whole blocks too."""
    return 32 if scan.mask else _block(scan)


def _most_lanes(item: ScanSchedule) -> int:
    return max(item.lanes, 512)


def _refusal(scan: Scan, item: ScanSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if scan.in_rows != bool(item.lanes):
        return "The schedule is for scans that lie otherwise."
    if scan.in_rows:
        if item.lanes not in _LANES or not 0 < item.steps <= _MOST_STEPS or item.steps % _block(scan):
            return "A tile has a power of two of lanes, and whole blocks of steps."
    elif item.tile not in _TILES:
        return "The tile has another size."
    if not 1 <= item.out_buffers <= 2:
        return "One or two tiles wait to be written."
    return "The tiles do not fit the unified buffer." if _bytes(scan, item) > chip.ub_bytes else None


def _bytes(scan: Scan, item: ScanSchedule) -> int:
    """Bytes of the unified buffer that the kernel takes."""
    size = ITEM_SIZE[scan.dtype]
    tile = item.lanes * item.steps if scan.in_rows else item.tile
    total = (2 + item.out_buffers) * tile * size
    total += (2 * tile + 2048 * (2 + 4 * (size == 4))) if scan.mask else 0
    if not scan.in_rows:
        wide = (2 if scan.exclusive else 1) * tile * 4 * (size == 2)
        return total + wide + tile // 4 * 4 * (3 if scan.op == "logaddexp" else 1)
    most = _most_lanes(item)
    total += (tile + most) * 4 + (3 * (item.lanes * 3 // 2) + 2 * item.lanes) * 4
    return total + tile * 2 * (size == 2) + most * 8 * (scan.op == "logaddexp")


def _starts(scan: Scan, sizes: Sizes, chip: Chip) -> Iterator[ScanSchedule]:
    for out_buffers in (1, 2):
        if not scan.in_rows:
            yield from (ScanSchedule(tile=tile, out_buffers=out_buffers) for tile in _TILES)
            continue
        for lanes in _LANES:
            for blocks in (1, 3, 5, 7, 9, 11, 13, 15):
                yield ScanSchedule(lanes, blocks * _block(scan), out_buffers=out_buffers)


def _steps(scan: Scan, here: ScanSchedule, sizes: Sizes, chip: Chip) -> Iterator[tuple[str, ScanSchedule]]:
    yield "two tiles to be written", evolve(here, out_buffers=2)
    yield "one tile to be written", evolve(here, out_buffers=1)
    if not scan.in_rows:
        place = _TILES.index(here.tile)
        yield "larger tile", evolve(here, tile=_TILES[min(place + 1, len(_TILES) - 1)])
        yield "smaller tile", evolve(here, tile=_TILES[max(place - 1, 0)])
        return
    block = _block(scan)
    yield "more steps a lane", evolve(here, steps=here.steps + 2 * block)
    yield "fewer steps a lane", evolve(here, steps=here.steps - 2 * block)
    yield "more lanes", evolve(here, lanes=here.lanes * 2)
    yield "fewer lanes", evolve(here, lanes=here.lanes // 2)
    halved = max(here.steps // block // 2, 1) | 1
    yield "more lanes of fewer steps", evolve(here, lanes=here.lanes * 2, steps=halved * block)
    yield (
        "fewer lanes of more steps",
        evolve(here, lanes=here.lanes // 2, steps=(here.steps // block * 2 - 1) * block),
    )


# -- estimate -------------------------------------------------------------------------------------


def _cost_us(scan: Scan, item: ScanSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the slower of the copies and the busiest core's instructions."""
    outer, length, inner = (getattr(scan, key).evaluate(sizes) for key in ("outer", "length", "inner"))
    size = ITEM_SIZE[scan.dtype]
    moved = outer * length * inner * (2 * size + bool(scan.mask))
    cost = 1 + chip.gm.write_back_cost
    memory = outer * length * inner * (size * cost + bool(scan.mask)) / chip.gm.hbm_achieved_gbps / 1e3
    memory = memory if moved > chip.l2_bytes else moved / chip.gm.l2_gbps / 1e3
    busy = (_row_cycles if scan.in_rows else _column_cycles)(scan, item, (outer, length, inner), chip)
    one_tile = (item.lanes * item.steps or item.tile) * size / chip.mte.load_bytes_per_cycle * 2
    return float(launch_us(chip) + max(memory, busy / chip.mhz) + one_tile / chip.mhz)


def _combination(scan: Scan, elements: int, chip: Chip) -> float:
    """Cycles of one combination of that many elements."""
    one = chip.vector.startup_cycles + math.ceil(elements / LANES)
    return 10 * one if scan.op == "logaddexp" else one


def _row_cycles(scan: Scan, item: ScanSchedule, sizes: tuple[int, int, int], chip: Chip) -> float:
    rows, columns, _ = sizes
    start = chip.vector.startup_cycles
    tile, block = item.lanes * item.steps, _block(scan)
    lanes, steps = item.lanes, item.steps
    if columns <= tile // 16 // _row_block(scan) * _row_block(scan):
        steps = math.ceil(columns / _row_block(scan)) * _row_block(scan)
        share = math.ceil(math.ceil(rows / chip.aiv) / 16) * 16
        lanes = min(tile // steps // 16 * 16, _most_lanes(item), share)
        tiles = math.ceil(math.ceil(rows / lanes) / chip.aiv)
        across = 0.0
    else:
        parts = math.ceil(columns / tile)
        steps = min((math.ceil(math.ceil(columns / parts) / lanes / block) | 1) * block, item.steps)
        tiles = math.ceil(rows / chip.aiv) * math.ceil(columns / (lanes * steps))
        gathers = 4 * (start + lanes / chip.vector.elements_per_cycle.gather)
        across = gathers + (math.log2(lanes) + 1) * _combination(scan, lanes, chip)
        whole = lanes / LANES * (start + steps)
        across += steps * _combination(scan, lanes, chip) if scan.op == "logaddexp" else whole
    turns = 2 * steps / (8 if block == 8 else 16) * (start + 2 * lanes / 16)
    casts = 2 * (start + lanes * steps / LANES) if block == 16 else 0.0
    masks = lanes * steps * 3 / LANES if scan.mask else 0.0
    return tiles * (turns + casts + masks + across + steps * _combination(scan, lanes, chip))


def _column_cycles(scan: Scan, item: ScanSchedule, sizes: tuple[int, int, int], chip: Chip) -> float:
    outer, length, inner = sizes
    least = 2048 // ITEM_SIZE[scan.dtype]
    share = math.ceil(inner / math.ceil(chip.aiv / outer))
    width = min(max(share, least), item.tile // 4, inner)
    rows = min(item.tile // width, length)
    units = math.ceil(outer * math.ceil(inner / width) / chip.aiv)
    each = _combination(scan, width, chip) * (3 if _block(scan) == 16 else 1)
    return units * (length * each + math.ceil(length / rows) * 3 * _combination(scan, width, chip))


def _strategy(scan: Scan, item: ScanSchedule, move: str) -> Strategy:
    shape = (
        f"Tiles of {item.lanes} segments of {item.steps} elements, turned so that segments are lanes."
        if item.lanes
        else f"Tiles of {item.tile} elements; neighbouring scans are lanes."
    )
    notes = (shape, "One tile travels while another is computed.")
    return Strategy("scan", item.settings(), notes, Descriptor(2, 1, 2), move)


FAMILY = SearchingFamily(
    name="scan",
    ops=categories(SCAN),
    read=on_any_chip(read_scan),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=ScanSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
