"""Family paired: products of complex numbers whose parts lie side by side, as rotary embeddings take them.

Neither operand is taken apart in memory: the parts of each number change places in the unified buffer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import asdict, frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import VECTORS_ALONE, StageText
from evokernel_core.ascendc.kernels.machine import TILE_FLAGS
from evokernel_core.ascendc.kernels.reading import input_below, only_node
from evokernel_core.ascendc.kernels.rendering import kernel_text, parameter, parameters_of, sized
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.ascendc.limits import Sharing, sharing
from evokernel_core.ascendc.ops import COMPLEX_MULTIPLY, categories
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.api import most_of
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import LANES
from evokernel_core.twin.roofline import launch_us

_FLOAT = 4
_SQUARE = 128
"""Elements that are transposed at a time; the rest of a row is gathered."""
_TABLE_BYTES = 512


@frozen
class Paired:
    """The operands' names, and the grid."""

    x: str
    w: str
    grid: Sharing


@frozen
class PairedSchedule(Settings):
    """Most float32 elements of a tile, and how many tiles are under way."""

    tile: int
    buffers: int


def read_paired(task: KernelTask) -> Paired:
    """The one product of a task. Raises PlanError where the task is anything else."""
    node = only_node(
        task, {COMPLEX_MULTIPLY.name}, "The kernel is not exactly one product of complex numbers."
    )
    x, w = node.operands()
    grid = sharing(task.graph.spec(x).shape[:-1], task.graph.spec(w).shape[:-1])
    if grid is None:
        raise PlanError("The factors of a product of complex numbers are shared in no regular way.")
    names = [input_below(task.graph, ref, "a product of complex numbers") for ref in (x, w)]
    return Paired(names[0], names[1], grid)


def _starts(found: Paired, sizes: Sizes, chip: Chip) -> Iterator[PairedSchedule]:
    yield from (PairedSchedule(tile, 2) for tile in (512, 1024, 2048, 4096))


def _steps(
    found: Paired, here: PairedSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, PairedSchedule]]:
    yield "larger tiles", PairedSchedule(here.tile * 2, here.buffers)
    yield "smaller tiles", PairedSchedule(here.tile // 2, here.buffers)
    yield "one more tile under way", PairedSchedule(here.tile, here.buffers + 1)
    yield "one tile less under way", PairedSchedule(here.tile, here.buffers - 1)


def _refusal(found: Paired, item: PairedSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if item.tile < LANES or not 1 <= item.buffers <= 4:
        return "A tile has at least one repeat, and at most four are under way."
    if (3 * item.buffers + 4) * item.tile * _FLOAT + _TABLE_BYTES > chip.ub_bytes - 4096:
        return "The tiles do not fit the unified buffer."
    return None


def _cost_us(found: Paired, item: PairedSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: memory, or the busiest core's look-ups and copies."""
    start = chip.vector.startup_cycles
    grid = found.grid
    groups = grid.outer.evaluate(sizes) * grid.factors.evaluate(sizes)
    rows, columns = grid.rows.evaluate(sizes), 2 * grid.numbers.evaluate(sizes)
    pieces = math.ceil(columns / item.tile)
    width = math.ceil(columns / pieces)
    high = min(rows, max(1, item.tile // width), most_of("Mul", "repeatTime"))
    tiles = groups * math.ceil(rows / high) * pieces
    elements = high * width
    looked_up = (elements % _SQUARE + width % _SQUARE) / chip.vector.elements_per_cycle.gather
    computed = looked_up + (5 * elements + 6 * width) / LANES + 14 * start
    moved = (elements + width) * _FLOAT / chip.mte.load_bytes_per_cycle + chip.mte.load_latency_cycles
    tile = max(computed, moved) if item.buffers > 1 else computed + 2 * moved
    busy = math.ceil(tiles / chip.aiv) * (tile + 3 * TILE_FLAGS) + 3 * chip.mte.load_latency_cycles
    total = 2 * groups * rows * columns * _FLOAT
    memory = total / chip.gm.memory_bytes_us
    return float(launch_us(chip, min(chip.aiv, tiles)) + max(busy / chip.mhz, memory))


def _strategy(found: Paired, item: PairedSchedule, move: str) -> Strategy:
    notes = (
        f"Tiles of {item.tile} elements, {item.buffers} under way.",
        "The parts of a number stay together; transpositions let them change places.",
    )
    return Strategy("paired", item.settings(), notes, Descriptor(2, item.buffers, 1), move)


def _text(found: Paired, item: PairedSchedule, task: KernelTask, name: str) -> StageText:
    """What rotary embeddings do to queries and keys."""
    sizes = sized(task, asdict(found.grid, recurse=False))
    return kernel_text(
        "complex_multiply",
        name,
        VECTORS_ALONE,
        s=item,
        x=parameter(found.x),
        w=parameter(found.w),
        parameters=parameters_of(task),
        **sizes,
    )


FAMILY = SearchingFamily(
    name="paired",
    ops=categories(COMPLEX_MULTIPLY),
    read=on_any_chip(read_paired),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=PairedSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
