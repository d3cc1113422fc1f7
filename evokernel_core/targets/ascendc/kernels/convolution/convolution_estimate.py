"""What a convolution on the cube cores costs in the time model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from attrs import evolve, frozen

from evokernel_core.compiler.problems.convolution import Convolution
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL, REQUEST_BYTES
from evokernel_core.targets.ascendc.kernels.convolution.convolution_rows_schedule import (
    RowsSchedule,
    halo,
    tiles_of,
)
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import (
    MOST_SLOTS,
    ConvolutionSchedule,
    TileShape,
    has_rows,
    is_product,
    whole,
)
from evokernel_core.targets.ascendc.kernels.convolution.padding import framed_sizes, framing_of
from evokernel_core.targets.ascendc.kernels.epilogue.epilogue_cost import Cost

_MEETING = 0.5
"""The share of requests that meet those of other cores at one address, and take longer."""
_FRICTION = 0.02
"""Pipes that are busy at a time stand in each other's way (fitted to timings of the twin)."""
_WAITING = 0.6
"""The same where products of weights and pixels are ranked: with one tap steps are few, and wait for each
other (fitted to the order of the twin's timings of 32 such tasks, not to the timings)."""
_WIDTH_COUNTS = 0.03
"""Among these, tiles of twice the pixels are better where they cost up to 2 % more: what begins and ends a
tile is left out (fitted likewise)."""


@frozen
class _Sizes:
    """Sizes of the task, ``depth`` of the product, bytes of an element and of the tensors; ``beside_bytes``:
    what is read beside the results; ``friction``: how far pipes stand in each other's way."""

    batch: int
    channels: int
    outputs: int
    read: tuple[int, ...]
    made: tuple[int, ...]
    depth: int
    size: int
    x_bytes: int
    y_bytes: int
    weight_bytes: int
    beside_bytes: int = 0
    friction: float = _FRICTION


def _sizes(problem: Convolution, sizes: Mapping[str, int]) -> _Sizes:
    batch, channels, outputs = (
        each.evaluate(sizes) for each in (problem.batch, problem.channels, problem.outputs)
    )
    read = tuple(each.evaluate(sizes) for each in problem.read)
    made = tuple(each.evaluate(sizes) for each in problem.made)
    depth, size = channels * math.prod(problem.kernel), ITEM_SIZE[problem.dtype]
    x_bytes = batch * problem.groups * channels * math.prod(read) * size
    if problem.frame is not None:
        read = framed_sizes(problem, made)
    else:
        x_bytes *= problem.phases
    y_bytes = batch * problem.groups * outputs * math.prod(made) * size
    weight_bytes = problem.groups * outputs * depth * size
    return _Sizes(batch, channels, outputs, read, made, depth, size, x_bytes, y_bytes, weight_bytes)


@frozen
class _Tile:
    """Of one tile: output channels, columns of pixels and of its parts, rows and their width; steps in L0;
    cycles of copies that find their data in L2, and requests of theirs; the share of its work that is
    fetched ahead, and before the first tile begins; the part of the input that is read anew for other output
    channels; into how many pieces rows of an image that is one row are cut, and whether those begin at whole
    lines of memory."""

    count: int
    outputs: int
    columns: int
    parts: int
    rows: int
    width: int
    steps: int
    depth: int
    copied: float
    asked: float
    ahead: float
    before: float
    again: int
    pieces: int = 1
    aligned: bool = False


def estimate_us(
    problem: Convolution,
    schedule: ConvolutionSchedule | RowsSchedule,
    sizes: Mapping[str, int],
    chip: Chip,
    behind: Cost | None = None,
) -> float:
    """Modelled microseconds: the slowest pipe of the busiest core, or the chip's memory. ``behind``: what
    vector cores do to the results."""
    return estimator(problem, sizes, chip, behind)(schedule)


def estimator(
    problem: Convolution,
    sizes: Mapping[str, int],
    chip: Chip,
    behind: Cost | None = None,
    *,
    ranks: bool = False,
) -> Callable[[ConvolutionSchedule | RowsSchedule], float]:
    """``estimate_us`` of any schedule, for thousands of which the sizes are read once; ``ranks``: what tells
    better from worse ones instead."""
    known = _sizes_with(problem, sizes, behind)
    if not ranks or not is_product(problem):
        return lambda item: _estimate_us(problem, item, known, chip, behind)
    known = evolve(known, friction=_WAITING)
    return lambda item: _for_width(item, _estimate_us(problem, item, known, chip, behind))


def _for_width(tile: TileShape | ConvolutionSchedule | RowsSchedule, us: float) -> float:
    return us / float((tile.parts * tile.part_n) ** _WIDTH_COUNTS)


def bounder(
    problem: Convolution, sizes: Mapping[str, int], chip: Chip, behind: Cost | None = None
) -> Callable[[TileShape], float]:
    """What no schedule with tiles of a shape is ranked below: weights stay, panels hold the whole depth,
    steps are as deep as two of them fit L0, and framing takes no time."""
    known = _sizes_with(problem, sizes, behind)
    if is_product(problem):
        known = evolve(known, friction=_WAITING)

    def at_least_us(shape: TileShape) -> float:
        base_m, part_n, parts = shape.base_m, shape.part_n, shape.parts
        base_k = whole(max(1, chip.memory.l0_bytes // 2 // known.size // max(base_m, part_n)))
        depth = whole(known.depth)
        least = []
        for flat in (False, True)[: 1 + has_rows(problem)]:
            schedule = ConvolutionSchedule(
                base_m, part_n, parts, base_k, depth, MOST_SLOTS, stay=True, flat=flat, outputs_first=True
            )
            tile = evolve(_tile_of_panels(problem, schedule, known, chip), before=0.0)
            least.append(max(_products_us(problem, tile, parts, known, chip, behind)))
        bound = float(_launch_us(behind, chip) + min(least))
        return _for_width(shape, bound) if is_product(problem) else bound

    return at_least_us


def _launch_us(behind: Cost | None, chip: Chip) -> float:
    """The launch; vector cores are started beside the cube cores where there is work for them."""
    return chip.launch_of(chip.aic) if behind is None else chip.mixed_launch_of(chip.aic)


def _sizes_with(problem: Convolution, sizes: Mapping[str, int], behind: Cost | None) -> _Sizes:
    """With vector cores ``behind``, what is written is theirs, and they read more."""
    known = _sizes(problem, sizes)
    if behind is None:
        return known
    elements = known.y_bytes // known.size
    return evolve(known, y_bytes=int(elements * behind.written), beside_bytes=int(elements * behind.read))


def _estimate_us(
    problem: Convolution,
    schedule: ConvolutionSchedule | RowsSchedule,
    known: _Sizes,
    chip: Chip,
    behind: Cost | None,
) -> float:
    make = _tile_of_rows if isinstance(schedule, RowsSchedule) else _tile_of_panels
    tile = make(problem, schedule, known, chip)  # type: ignore[arg-type]
    products_us, memory = _products_us(problem, tile, schedule.parts, known, chip, behind)
    if problem.frame is None or isinstance(schedule, RowsSchedule):
        return float(_launch_us(behind, chip) + max(products_us, memory))
    framing = framing_of(
        problem,
        known.batch,
        problem.groups * known.channels,
        known.made,
        known.size,
        schedule.chunk_kib * 1024,
        chip,
    )
    taken_us = max(products_us, memory + framing.between_us, framing.busy_us) + _FRICTION * products_us
    return float(chip.mixed_launch_of(chip.aic) + taken_us + framing.busy_us / framing.chunks)


def _products_us(
    problem: Convolution, tile: _Tile, tile_parts: int, known: _Sizes, chip: Chip, behind: Cost | None
) -> tuple[float, float]:
    """Microseconds of the busiest core, and of the device's memory; a tile is for ``tile_parts`` results in
    L0C."""
    mine = math.ceil(tile.count / chip.aic)
    multiplied = tile.outputs * tile.columns / FRACTAL**2 * tile.depth / chip.cube.depth_a_cycle(known.size)
    multiplied += chip.cube.mmad_overhead_cycles * tile.steps
    if problem.bias is not None:  # one more product
        multiplied += tile.parts * chip.cube.mmad_overhead_cycles
        multiplied += tile.outputs * tile.columns / FRACTAL**2 * chip.cube.fractal_cycles(known.size)
    loaded = tile.depth * known.size * tile.outputs * tile.parts / chip.cube.l1_l0a_bytes_per_cycle
    loaded += tile.depth * known.size * tile.columns / chip.cube.l1_l0b_bytes_per_cycle
    loaded += 2 * chip.cube.load_overhead_cycles * tile.steps

    # Memory: what is read once is missed once; results push each other out of L2.
    total = known.x_bytes + known.y_bytes
    back = max(0, total - chip.l2_bytes) / total * known.y_bytes * chip.gm.write_back_cost
    device = chip.gm.memory_bytes_us / chip.mhz / chip.aic
    # Images that vector cores frame are in L2 when they are read.
    from_memory = known.x_bytes * tile.again if problem.frame is None else 0
    missed = (from_memory + known.beside_bytes) / tile.count
    pushed = back / tile.count / device
    copied = tile.copied + missed / chip.mte.load_bytes_per_cycle
    run = math.ceil(tile.width / tile.pieces) * known.size, tile.aligned
    runs = tile.rows * tile.pieces
    stored = tile.outputs * runs * _moved(*run) / chip.cube.fixpipe_gm_bytes_per_cycle
    stored += chip.cube.fixpipe_overhead_cycles * runs
    asked = tile.asked + tile.outputs * runs * _requests(*run)
    asked *= 1 + _MEETING * (chip.gm.same_address_cost - 1)
    asked *= chip.aic / chip.gm.requests_per_cycle  # requests of all cores pass one by one

    # What is fetched ahead hides that copies wait behind results on their way to memory.
    waits = max(0.0, pushed - multiplied * tile.ahead)
    if tile_parts == 1:
        waits = max(waits, stored)
    else:  # the other part's work hides that a part waits for its last result
        waits = max(waits, stored / tile.parts - multiplied * min(1.0, tile.ahead) / tile.parts)
    taken = 0.0
    if behind is not None:  # vector cores load the results and store them
        waits = stored if tile_parts == 1 else 0.0
        taken = behind.cycles(tile.outputs, math.ceil(tile.columns / tile.parts)) * tile.parts
    busy = max(taken, multiplied + waits, copied, loaded, stored, missed / device + pushed, asked)
    busy += known.friction * (multiplied + copied + loaded + stored + asked)
    read = known.x_bytes * tile.again + known.beside_bytes + known.weight_bytes
    memory = (read + back) / chip.gm.memory_bytes_us
    first = copied * tile.before + stored + taken / tile.parts
    first += known.weight_bytes / problem.groups / chip.mte.load_bytes_per_cycle
    return (mine * busy + first) / chip.mhz, memory


def _tile_of_panels(problem: Convolution, schedule: ConvolutionSchedule, known: _Sizes, chip: Chip) -> _Tile:
    """The tiles that ComputeTiles of the kernel makes, each panel read anew."""
    height, width = known.made[1:]
    of_outputs = math.ceil(known.outputs / schedule.base_m)
    outputs = whole(math.ceil(known.outputs / of_outputs))
    if width > schedule.part_n:
        across = math.ceil(width / schedule.base_n)
        width = pitch = whole(math.ceil(width / across))
        rows, of_plane, run = 1, height * math.ceil(known.made[2] / width), True
    else:
        pitch = known.read[2]
        run = schedule.flat and pitch % FRACTAL == 0 and pitch <= schedule.part_n
        pitch = pitch if run else whole(width)
        most = min(height, schedule.parts * (schedule.part_n // pitch))
        rows = math.ceil(height / math.ceil(height / most))
        of_plane, run = math.ceil(height / rows), run or rows == 1
    columns = whole((rows - 1) * pitch + width)
    parts = math.ceil(columns / schedule.part_n)
    a_tap, asked = _copy(problem, known, chip, rows, width, (rows - 1) * pitch + width if run else 0)
    copied, asked = a_tap * known.depth, asked * known.depth
    panels = math.ceil(known.depth / schedule.panel_k)
    if is_product(problem):
        copied += panels * chip.mte.load_hit_latency_cycles
    is_cut = is_product(problem) and known.made[2] > schedule.part_n
    cuts = known.made[2], width, whole(math.ceil(width / schedule.parts))
    if not schedule.stay:
        burst, hit = chip.mte.min_burst_cycles, chip.mte.cube_load_hit_bytes_per_cycle
        nbytes, aligned = (
            schedule.panel_k * known.size,
            known.depth * known.size % chip.mte.aligned_bytes == 0,
        )
        copied += outputs * panels * max(burst, _moved(nbytes, aligned) / hit)
        asked += outputs * panels * _requests(nbytes, aligned)
    ahead = min(1.0, (schedule.slots - 1) * schedule.panel_k / known.depth)
    return _Tile(
        count=known.batch * known.made[0] * of_plane * of_outputs * problem.groups,
        outputs=outputs,
        columns=columns,
        parts=parts,
        rows=rows,
        width=width,
        steps=math.ceil(known.depth / schedule.base_k) * parts,
        depth=whole(known.depth, int(chip.cube.depth_a_cycle(known.size))),
        copied=copied,
        asked=asked,
        ahead=ahead,
        before=ahead,
        again=of_outputs
        if not schedule.outputs_first and known.x_bytes > chip.l2_bytes and problem.frame is None
        else 1,
        pieces=parts if is_cut else 1,
        aligned=is_cut and all(cut * known.size % chip.mte.aligned_bytes == 0 for cut in cuts),
    )


def _tile_of_rows(problem: Convolution, schedule: RowsSchedule, known: _Sizes, chip: Chip) -> _Tile:
    """Tiles below each other share rows; the first of a strip reads those below it too."""
    tiles = tiles_of(problem, schedule, known.outputs, known.read[2] * problem.phases, known.made)
    columns = whole((tiles.rows - 1) * tiles.pitch + tiles.width)
    parts = math.ceil(columns / schedule.part_n)
    length = (tiles.rows - 1) * tiles.pitch + tiles.width if tiles.run else 0
    a_tap, asked = _copy(problem, known, chip, tiles.rows, tiles.width, length)
    more = 1 + halo(problem) * tiles.strips / tiles.of_plane / tiles.rows
    inner = problem.inner
    each = whole(inner, BLOCK_BYTES // known.size)
    return _Tile(
        count=known.batch * known.made[0] * tiles.of_plane * tiles.of_outputs * problem.groups,
        outputs=tiles.outputs,
        columns=columns,
        parts=parts,
        rows=tiles.rows,
        width=tiles.width,
        steps=problem.kernel[1] * math.ceil(inner / schedule.base_k) * parts,
        depth=problem.kernel[1] * each,
        copied=a_tap * inner * more,
        asked=asked * inner * more,
        ahead=1.0,
        before=1.0,
        again=tiles.of_outputs if known.x_bytes > chip.l2_bytes else 1,
    )


def _copy(
    problem: Convolution, known: _Sizes, chip: Chip, rows: int, width: int, length: int
) -> tuple[float, float]:
    """Cycles and requests of the copies of one channel's tap: one run of ``length`` pixels, or rows."""
    hit, shortest = chip.mte.cube_load_hit_bytes_per_cycle, chip.mte.min_copy_cycles
    burst = chip.mte.min_burst_cycles
    if not length:
        nbytes = width * known.size
        return max(rows * max(burst, _moved(nbytes, False) / hit), shortest), rows * _requests(nbytes, False)
    aligned = problem.kernel[2] == 1 and known.read[2] * known.size % chip.mte.aligned_bytes == 0
    nbytes = length * known.size
    cycles = max(_moved(nbytes, aligned) / hit, shortest / _run(problem, known.channels))
    return cycles, _requests(nbytes, aligned)


def _moved(nbytes: int, aligned: bool) -> int:
    """Bytes that a copy of one row moves; rows that begin anywhere move pieces whole."""
    return nbytes if aligned else nbytes + REQUEST_BYTES


def _requests(nbytes: int, aligned: bool) -> float:
    """Pieces that a copy of one row touches, on average over where it begins."""
    return -(-nbytes // REQUEST_BYTES) if aligned else nbytes / REQUEST_BYTES + 1


def _run(problem: Convolution, channels: int) -> int:
    """Taps along the innermost dimension that has several, which one copy fetches."""
    if problem.phases > 1:
        return 1
    return next((taps for taps in reversed(problem.kernel) if taps > 1), channels)
