"""Schedules of a matrix product: what is legal, what one step changes, and what each is thought to cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.problems.products import Product, Side, Triangle
from evokernel_core.compiler.schedule import Named, Range, Scaled, Schedule, Shifted, Word
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.kernels.epilogue.epilogue_cost import Cost
from evokernel_core.targets.ascendc.kernels.lowest import lowest
from evokernel_core.targets.ascendc.kernels.machine import asked
from evokernel_core.targets.ascendc.kernels.settings import whole_step

_MOST_PITCH = most_of("DataCopyNd2Nz", "srcDValue")
_WHOLE_HEIGHT = 65536
"""A strip that no product is higher than."""
_OVERLAP = 5
"""Pipes that are equally busy stand in each other's way: of what exponent their sum is the time of both
(fitted to timings of the twin)."""
_SPREAD = 0.05
"""How much longer loads take where no core reads what another one reads (fitted likewise)."""
MOST_HANDED = 256
"""Rows and columns of a result that vector cores take up."""
_HANDOVER = 400.0
"""Cycles from a cube core's store to the first load of its vector cores."""
_STRIPS = (1, 2, 4, 8, _WHOLE_HEIGHT)
_BASES = (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256)


def _one_result(schedule: MatmulSchedule) -> bool:
    return schedule.parts == 1


_IN_FRACTALS = Range(FRACTAL, unit=FRACTAL)
_ORDERS = Named(
    {count: Sentence("tiles in strips of {count}", count=count) for count in _STRIPS[:-1]}
    | {_WHOLE_HEIGHT: Sentence("tiles in whole columns")}
)


@frozen
class MatmulSchedule(Schedule):
    """A tile of the result is ``parts`` results of ``base_m`` x ``base_n`` beside each other. Steps are
    ``base_k`` deep in L0 and ``panel_k`` in L1, ``results`` fit L0C at a time. Tiles go down a strip of
    ``strip`` tiles and then to the right."""

    base_m: Annotated[
        int,
        _IN_FRACTALS,
        Shifted("one row of fractals more", "one row of fractals less", FRACTAL),
        Scaled("taller tile", "lower tile"),
    ]
    base_n: Annotated[int, _IN_FRACTALS, Scaled("wider results", "narrower results")]
    base_k: Annotated[
        int,
        Word("depth"),
        _IN_FRACTALS,
        Scaled(down="shallower step in L0"),
        Scaled("deeper step in L0", also=whole_step),
    ]
    panel_k: Annotated[
        int, Word("panel"), Range(FRACTAL), Scaled("deeper panel in L1", "shallower panel in L1")
    ]
    parts: Annotated[int, Range()] = 1
    results: Annotated[
        int, Range(), Named({2: "two results in L0C", 1: "one result in L0C"}, when=_one_result)
    ] = 1
    strip: Annotated[int, Range(), _ORDERS] = 1

    @property
    def tile(self) -> str:
        return f"{self.base_m} x {self.base_n * self.parts}"


def notes(schedule: MatmulSchedule) -> Iterator[str]:
    """A schedule in words."""
    yield Sentence("Tiles of {tile}, {depth} deep in L0 and {panel} in L1.")
    if schedule.results > 1:
        yield Sentence("One result is stored while the next is computed.")
    else:
        yield Sentence("One result in L0C.")


def descriptor_of(schedule: MatmulSchedule) -> Descriptor:
    """Tiles beside each other share rows of the left operand, those below each other columns of the right
    one, and those of a strip both; of a tile of several results L1 keeps the left operand's panel. Loads
    always overlap, stores where L0C has another place."""
    split = {1: Split.COLUMNS, _WHOLE_HEIGHT: Split.ROWS}.get(schedule.strip, Split.TILES)
    reuse = memories.L1 if schedule.parts > 1 else memories.L0
    stores = Overlap.of(schedule.results // schedule.parts)
    return Descriptor(Dataflow.OUTPUT_STATIONARY, reuse, split, Algorithm.MATRIX_PRODUCT, stores)


def refusal(problem: Product, schedule: MatmulSchedule, chip: Chip, behind: Cost | None = None) -> str | None:
    """Why a schedule with its fields in range breaks a rule of the hardware; None where it is legal."""
    size, memory = ITEM_SIZE[problem.dtype], chip.memory
    bases = (schedule.base_m, schedule.base_n, schedule.base_k)
    rules = (
        (schedule.panel_k % schedule.base_k, "Panels are whole steps."),
        (
            2 * max(bases[:2]) * schedule.base_k * size > memory.l0_bytes,
            "Two steps of an operand do not fit L0.",
        ),
        (_l1_bytes(problem, schedule) > memory.l1_bytes, "Two panels of each operand do not fit L1."),
        (schedule.parts > schedule.results, "The results of a tile are in L0C together."),
        (
            schedule.results * schedule.base_m * schedule.base_n * 4 > memory.l0c_bytes,
            "The results do not fit L0C.",
        ),
        (behind is not None and max(bases[:2]) > MOST_HANDED, "The vector cores take smaller results."),
    )
    return next((reason for broken, reason in rules if broken), None)


def _l1_bytes(problem: Product, schedule: MatmulSchedule) -> int:
    panels = 2 * (schedule.base_m + schedule.parts * schedule.base_n) * schedule.panel_k
    return panels * ITEM_SIZE[problem.dtype] + 2 * _bias_bytes(problem, schedule)


def _bias_bytes(problem: Product, schedule: MatmulSchedule) -> int:
    """Bytes in L1 of a row of biases, which takes a row of fractals."""
    elements = 0 if problem.bias is None else schedule.parts * schedule.base_n * FRACTAL
    return elements * ITEM_SIZE[problem.dtype]


def best(
    problem: Product, sizes: Mapping[str, int], chip: Chip, behind: Cost | None = None
) -> MatmulSchedule:
    """The legal schedule of the lowest estimate; ``behind``: what vector cores do to the results."""
    return _best(problem, tuple(sizes.items()), chip, behind)


@lru_cache(maxsize=256)
def _best(
    problem: Product, sizes: tuple[tuple[str, int], ...], chip: Chip, behind: Cost | None
) -> MatmulSchedule:
    given = dict(sizes)
    fixed = problem.at(given)
    cheapest = lowest(
        shapes(problem, chip),
        at_least=lambda shape: at_least_us(fixed, shape, given, chip, behind),
        items=lambda shape: (
            schedule
            for schedule in of_shape(problem, shape, chip)
            if refusal(problem, schedule, chip, behind) is None
        ),
        cost=lambda schedule: estimate_us(fixed, schedule, given, chip, behind),
    )
    if cheapest is None:
        raise PlanError("No schedule of the product fits the memories of a cube core.")
    return cheapest


def shapes(problem: Product, chip: Chip) -> Iterator[MatmulSchedule]:
    """Every shape of tile, in the deepest steps that L0 holds."""
    size, memory = ITEM_SIZE[problem.dtype], chip.memory
    ways = ((1, 1), (1, 2), (2, 2))
    for base_m, base_n, (parts, results) in product(_BASES, _BASES, ways):
        deepest = memory.l0_bytes // 2 // size // max(base_m, base_n) // FRACTAL * FRACTAL
        deepest = min(512 // size, deepest)
        if deepest and results * base_m * base_n * 4 <= memory.l0c_bytes:
            yield MatmulSchedule(base_m, base_n, deepest, deepest, parts, results)


def _half(depth: int) -> int:
    """Whole fractals."""
    return max(depth // 2 // FRACTAL, 1) * FRACTAL


def of_shape(problem: Product, shape: MatmulSchedule, chip: Chip) -> Iterator[MatmulSchedule]:
    """The schedules of a shape of tile: they differ in depths and strips."""
    size, deepest = ITEM_SIZE[problem.dtype], shape.base_k
    for base_k in {deepest, _half(deepest)}:
        room = chip.memory.l1_bytes // 2 - _bias_bytes(problem, shape)
        most = room // size // (shape.base_m + shape.parts * shape.base_n) // base_k
        panels = {most, min(most, 1024 // size // base_k), min(most, 2)} - {0}
        for count, strip in product(panels, _STRIPS):
            yield MatmulSchedule(
                shape.base_m, shape.base_n, base_k, count * base_k, shape.parts, shape.results, strip
            )


def steps(here: MatmulSchedule) -> Iterator[tuple[str, MatmulSchedule]]:
    """The named changes of a schedule, legal or not."""
    yield from here.neighbours("base_m", "base_n")
    if here.parts == 1:
        yield "tile of two results", evolve(here, parts=2, results=2)
        shallow = evolve(here, parts=2, results=2, panel_k=here.panel_k // 2)
        yield "tile of two results in shallower panels", shallow
    else:
        yield "tile of one result", evolve(here, parts=1)
        together = evolve(here, base_n=here.base_n * 2, base_k=here.base_k // 2, parts=1, results=1)
        yield "tile of one wide result", together
    yield from here.neighbours("results")
    yield "tile turned", evolve(here, base_m=here.base_n, base_n=here.base_m)
    yield from here.neighbours("panel_k", "base_k", "strip")


# -- what it costs --------------------------------------------------------------------------------


@frozen
class _Cut:
    """The tiles that a schedule cuts a product into, in numbers."""

    tile_m: int
    tile_n: int
    part_n: int
    parts: int
    tiles_m: int
    tiles_n: int
    tiles: int
    depth: int
    cores: int


def _cut(problem: Product, schedule: MatmulSchedule, sizes: Mapping[str, int], chip: Chip) -> _Cut:
    return _cut_of(
        problem.evaluate(sizes),
        max(problem.splits, 1),
        problem.triangle,
        schedule.base_m,
        schedule.base_n,
        schedule.parts,
        chip.aic,
    )


@lru_cache(maxsize=1024)  # many schedules of a product differ in depth and strips alone
def _cut_of(
    shape: tuple[int, int, int, int],
    sums: int,
    triangle: Triangle | None,
    base_m: int,
    base_n: int,
    parts: int,
    cores: int,
) -> _Cut:
    """The tiles of a product whose batch, m, n and k are ``shape``, on ``cores`` cube cores."""
    batch, m, n, k = shape
    tile_m, tile_n = _equal(m, base_m), _equal(n, parts * base_n)
    part_n = _equal(tile_n, base_n)
    tiles_m, tiles_n = math.ceil(m / tile_m), math.ceil(n / tile_n)
    tiles = batch * sums * _full_tiles(triangle, (m, n), (tile_m, tile_n))
    return _Cut(tile_m, tile_n, part_n, math.ceil(tile_n / part_n), tiles_m, tiles_n, tiles,
                math.ceil(k / sums), min(tiles, cores))  # fmt: skip


def _full_tiles(triangle: Triangle | None, shape: tuple[int, int], tile: tuple[int, int]) -> int:
    """Tiles of a matrix of which something is kept, at least one."""
    (m, n), (tile_m, tile_n) = shape, tile
    columns = math.ceil(n / tile_n)
    if triangle is None:
        return math.ceil(m / tile_m) * columns
    count = 0
    for row in range(0, m, tile_m):
        if triangle.upper:  # of the columns from row + diagonal on
            count += columns - min(columns, max(0, row + triangle.diagonal) // tile_n)
        else:  # up to the column of the last row
            last = min(row + tile_m, m) - 1 + triangle.diagonal
            count += min(columns, last // tile_n + 1) if last >= 0 else 0
    return max(count, 1)


def _equal(length: int, most: int) -> int:
    """Equal tiles in whole fractals, as ComputeTiling cuts them."""
    return math.ceil(math.ceil(length / math.ceil(length / most)) / FRACTAL) * FRACTAL


def estimate_us(
    problem: Product,
    schedule: MatmulSchedule,
    sizes: Mapping[str, int],
    chip: Chip,
    behind: Cost | None = None,
) -> float:
    """Modelled microseconds: the slowest pipe of the busiest core, or the device's memory."""
    cut = _cut(problem, schedule, sizes, chip)
    moved = _memory_bytes(problem, schedule.strip, cut, sizes, chip)
    missed = min(1.0, moved / (cut.tiles * _tile_bytes(problem, cut)))
    sides, panel = (problem.a, problem.b), _Panel(schedule.panel_k)
    loads = sum(_load_cycles(problem, side, panel, cut, sizes, missed, chip) for side in sides)
    loads *= 1 + _SPREAD * _spread(schedule.strip, cut)
    return _taken_us(problem, schedule, cut, (moved, loads), sizes, chip, behind)


def at_least_us(
    problem: Product,
    shape: MatmulSchedule,
    sizes: Mapping[str, int],
    chip: Chip,
    behind: Cost | None = None,
) -> float:
    """Modelled microseconds that no schedule of a shape of tile goes below: its strips move the fewest
    bytes, and its panels are as deep as two of each operand fit L1."""
    cut = _cut(problem, shape, sizes, chip)
    moved = min(_memory_bytes(problem, strip, cut, sizes, chip) for strip in _STRIPS)
    missed = min(1.0, moved / (cut.tiles * _tile_bytes(problem, cut)))
    if chip.mte.cube_load_hit_bytes_per_cycle < chip.mte.load_bytes_per_cycle:
        missed = 1.0  # what is not in L2 comes sooner
    depth = (
        chip.memory.l1_bytes // 2 // ITEM_SIZE[problem.dtype] // (shape.base_m + shape.parts * shape.base_n)
    )
    panel = _Panel(depth, at_most=True)
    loads = sum(
        _load_cycles(problem, side, panel, cut, sizes, missed, chip) for side in (problem.a, problem.b)
    )
    loads *= 1 + _SPREAD * min(_spread(strip, cut) for strip in _STRIPS)
    return _taken_us(
        problem, evolve(shape, panel_k=_half(shape.base_k)), cut, (moved, loads), sizes, chip, behind
    )


def _taken_us(
    problem: Product,
    schedule: MatmulSchedule,
    cut: _Cut,
    reads: tuple[float, float],
    sizes: Mapping[str, int],
    chip: Chip,
    behind: Cost | None,
) -> float:
    """``reads``: bytes that operands take from device memory, and cycles in which those of a tile are
    loaded."""
    moved, loads = reads
    store = _store_cycles(problem, cut, problem.n.evaluate(sizes) if behind is None else None, chip)
    pipes = (
        _matrix_cycles(problem, schedule, cut, chip),
        _step_cycles(problem, schedule, cut, chip),
        loads,
        store,
    )
    vector = 0.0
    if behind is not None:
        vector = behind.cycles(cut.tile_m, cut.part_n, problem.n.evaluate(sizes), 2 * cut.cores)
    tile = _together(*pipes, vector * cut.parts) + (store if schedule.results == 1 else 0.0)
    first = (cut.tile_m + cut.tile_n) * min(schedule.panel_k, cut.depth) * ITEM_SIZE[problem.dtype]
    fill = first / chip.mte.load_bytes_per_cycle + chip.mte.load_latency_cycles
    cycles = math.ceil(cut.tiles / cut.cores) * tile + fill + store / cut.parts
    if behind is not None:
        cycles += vector + _HANDOVER
        moved += math.prod(problem.evaluate(sizes)[:3]) * behind.read
    written = _written_bytes(problem, behind.written if behind is not None else 0, sizes, chip)
    memory = (moved + written) / chip.gm.memory_bytes_us
    launch = chip.launch_of(cut.cores) if behind is None else chip.mixed_launch_of(cut.cores)
    return _together(cycles / chip.mhz, memory) + launch


def _spread(strip: int, cut: _Cut) -> float:
    """The share of what the cores read at a time that no two of them share."""
    down = min(strip, cut.tiles_m, cut.cores)
    right = min(math.ceil(cut.cores / down), cut.tiles_n)
    return (down * cut.tile_m + right * cut.tile_n) / (down * right) / (cut.tile_m + cut.tile_n)


def _together(*times: float) -> float:
    return float(sum(time**_OVERLAP for time in times) ** (1 / _OVERLAP))


def _tile_bytes(problem: Product, cut: _Cut) -> int:
    return (cut.tile_m + cut.tile_n) * cut.depth * ITEM_SIZE[problem.dtype]


def _matrix_cycles(problem: Product, schedule: MatmulSchedule, cut: _Cut, chip: Chip) -> float:
    size = ITEM_SIZE[problem.dtype]
    fractals = cut.tile_m // FRACTAL * (cut.part_n // FRACTAL)
    a_fractal = chip.cube.fractal_cycles(size)
    start = chip.cube.mmad_overhead_cycles if fractals >= 10 else chip.cube.mmad_latency_cycles
    count = math.ceil(cut.depth / schedule.base_k)
    blocks = math.ceil(cut.depth * size / BLOCK_BYTES)
    if problem.bias is not None:  # one more product
        count, blocks = count + 1, blocks + 1
    return cut.parts * (fractals * blocks * a_fractal + start * count)


def _step_cycles(problem: Product, schedule: MatmulSchedule, cut: _Cut, chip: Chip) -> float:
    """From L1 to L0."""
    nbytes = cut.depth * ITEM_SIZE[problem.dtype]
    left = cut.tile_m * nbytes / chip.cube.l1_l0a_bytes_per_cycle
    right = cut.part_n * nbytes / chip.cube.l1_l0b_bytes_per_cycle
    count = math.ceil(cut.depth / schedule.base_k)
    return cut.parts * (left + right + 2 * count * chip.cube.load_overhead_cycles)


@frozen
class _Panel:
    """How deep panels are; ``at_most``: or less, in whichever depth suits the operand's place in memory."""

    depth: int
    at_most: bool = False


def _load_cycles(
    problem: Product,
    side: Side,
    panel: _Panel,
    cut: _Cut,
    sizes: Mapping[str, int],
    missed: float,
    chip: Chip,
) -> float:
    """From device memory or L2 to L1, for one tile."""
    size = ITEM_SIZE[problem.dtype]
    length, depth = cut.tile_m if side is problem.a else cut.tile_n, min(panel.depth, cut.depth)
    along_k = side.transposed is (side is problem.b)
    bursts, run = (length, depth * size) if along_k else (depth, length * size)
    pitch = side.pitch.evaluate(sizes)
    any_run = panel.at_most and along_k
    step = 0 if any_run else (panel.depth if along_k else length) * size
    requests, wire = (bursts * each for each in asked(run, chip, pitch * size, step))
    hit, miss = chip.mte.cube_load_hit_bytes_per_cycle, chip.mte.load_bytes_per_cycle
    # Cores that meet at one address take turns, and most of them do.
    at_once = requests * chip.gm.same_address_cost * cut.cores / chip.gm.requests_per_cycle
    pieces = bursts * chip.mte.min_copy_cycles if pitch > _MOST_PITCH else 0.0
    own = max(wire * ((1 - missed) / hit + missed / miss), bursts * chip.mte.min_burst_cycles, pieces)
    share = chip.gm.l2_bytes_us / chip.mhz / cut.cores
    return float(max(own, at_once, wire / share) * cut.depth / depth)


def _store_cycles(problem: Product, cut: _Cut, columns: int | None, chip: Chip) -> float:
    """Of a tile's results; ``columns`` of the whole product, None where vector cores take them densely."""
    size = ITEM_SIZE[problem.out_dtype]
    rows, run = cut.tile_m * cut.parts, min(cut.part_n, columns or cut.part_n) * size
    requests, wire = asked(run, chip, run if columns is None else columns * size, run)
    at_once = rows * requests * cut.cores / chip.gm.requests_per_cycle
    cycles = cut.tile_m * cut.tile_n / chip.cube.fixpipe_elements(size)
    cycles += cut.parts * chip.cube.fixpipe_overhead_cycles
    return float(max(cycles, rows * wire / chip.cube.fixpipe_gm_bytes_per_cycle, at_once))


def _memory_bytes(problem: Product, strip: int, cut: _Cut, sizes: Mapping[str, int], chip: Chip) -> float:
    """Bytes that the operands take from device memory: what is read again is in L2 or not."""
    _, m, n, k = problem.evaluate(sizes)
    size = ITEM_SIZE[problem.dtype]
    left, right = m * k * size, k * n * size
    height = min(strip, cut.tiles_m)
    strips = math.ceil(cut.tiles_m / height)
    again = strips if right + height * cut.tile_m * k * size > chip.l2_bytes else 1
    columns_at_once = max(1, cut.cores // height)
    rows = math.ceil(cut.tiles_n / columns_at_once) if left / strips > chip.l2_bytes // 2 else 1
    each = _operand_bytes(problem, sizes)
    return each[0] * rows + each[1] * again


def _operand_bytes(problem: Product, sizes: Mapping[str, int]) -> tuple[int, int]:
    """Of all matrices of both operands."""
    batch, m, n, k = problem.evaluate(sizes)
    size = ITEM_SIZE[problem.dtype]
    return m * k * size * (batch if problem.a.loops else 1), k * n * size * (batch if problem.b.loops else 1)


def _written_bytes(problem: Product, behind: float, sizes: Mapping[str, int], chip: Chip) -> float:
    """What falls out of L2 unwritten, in bytes that take as long to read; ``behind``: bytes an element
    that vector cores write instead of the product."""
    batch, m, n, _ = problem.evaluate(sizes)
    out = batch * max(problem.splits, 1) * m * n * (behind or ITEM_SIZE[problem.out_dtype])
    inputs = sum(_operand_bytes(problem, sizes))
    spilled = max(0.0, out + inputs - chip.l2_bytes) * out / (out + inputs)
    return spilled * chip.gm.write_back_cost
