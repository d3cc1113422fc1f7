"""Family phases: images with a frame of zeros, their rows cut into phases, for convolutions.

Copies place the rows of an image in the unified buffer, where zeros surround them. Where a convolution
steps by several elements along a row, GatherMask picks each phase out of all rows of the tile at once.
Elements are moved as bits, whatever their type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import VECTORS_ALONE, StageText
from evokernel_core.ascendc.kernels.reading import input_below, only_node
from evokernel_core.ascendc.kernels.rendering import kernel_text, parameter, parameters_of, sized
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.ascendc.limits import WIDTH_UNIT
from evokernel_core.ascendc.ops import SPACE_TO_DEPTH, categories
from evokernel_core.ascendc.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.domain.graph import literal
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

BITS = {4: "uint32_t", 2: "uint16_t"}
FIXED_PATTERNS = {2: 1, 4: 3}
"""The first of GatherMask's own patterns for every second and every fourth element."""


@frozen
class Framed:
    """``sizes`` of x and ``made`` of the result, ``before``: zeros in front, all (depth, height, width).

    ``images`` counts batch and channels; ``made``'s width is that of one phase.
    """

    x: str
    images: Extent
    sizes: tuple[Extent, ...]
    made: tuple[Extent, ...]
    before: tuple[int, ...]
    phases: int
    size: int


@frozen
class PhasesSchedule(Settings):
    """Most bytes of a tile; two tiles are under way, in and (with several phases) out."""

    tile_bytes: int


def read_phases(task: KernelTask) -> Framed:
    """The one framing of a task. Raises PlanError where the task is anything else."""
    node = only_node(task, {SPACE_TO_DEPTH.name}, "The kernel is not exactly one image with a frame.")
    ref = next(iter(node.operands()))
    read, made = task.graph.spec(ref).shape, node.outputs[0].shape
    before = node.args[1]
    phases = literal(node.args[2])
    assert isinstance(before, tuple)
    if phases > 1:
        made = (*made[:-2], made[-1])
    missing = 3 - len(before)
    return Framed(
        input_below(task.graph, ref, "an image with a frame"),
        product(map(extent, read[:2])),
        (ONE,) * missing + tuple(map(extent, read[2:])),
        (ONE,) * missing + tuple(map(extent, made[2:])),
        (0,) * missing + tuple(literal(item) for item in before),
        phases,
        ITEM_SIZE[node.outputs[0].dtype],
    )


def _starts(found: Framed, sizes: Sizes, chip: Chip) -> Iterator[PhasesSchedule]:
    yield from (PhasesSchedule(kib * 1024) for kib in (8, 16, 32, 40, 64, 88))


def _steps(
    found: Framed, here: PhasesSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, PhasesSchedule]]:
    yield "larger tiles", PhasesSchedule(here.tile_bytes * 2)
    yield "smaller tiles", PhasesSchedule(here.tile_bytes // 2)


def _refusal(found: Framed, item: PhasesSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if item.tile_bytes < found.phases * WIDTH_UNIT * found.size:
        return "A tile has at least one block of each phase."
    tiles = 4 if found.phases > 1 else 2
    if tiles * item.tile_bytes + found.phases * WIDTH_UNIT * found.phases > chip.ub_bytes - 4096:
        return "The tiles do not fit the unified buffer."
    return None


def _strategy(found: Framed, item: PhasesSchedule, move: str) -> Strategy:
    notes = (f"Tiles of at most {item.tile_bytes} bytes, two under way.",)
    return Strategy("phases", item.settings(), notes, Descriptor(3, 0, 2), move)


def _cost_us(found: Framed, item: PhasesSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: memory, or the copies of the busiest core."""
    images = found.images.evaluate(sizes)
    taken = [each.evaluate(sizes) for each in found.sizes]
    made = [each.evaluate(sizes) for each in found.made]
    row = made[2] * found.phases
    read = images * math.prod(taken) * found.size
    written = images * made[0] * made[1] * row * found.size
    rows = max(1, min(made[1], item.tile_bytes // (row * found.size)))
    pieces = max(1, math.ceil(row * found.size / item.tile_bytes))
    tiles = images * made[0] * math.ceil(made[1] / rows) * pieces
    mine = math.ceil(tiles / chip.aiv)
    tile = written / tiles
    loaded = chip.mte.load_latency_cycles + tile / chip.mte.load_bytes_per_cycle
    loaded = max(loaded, rows * chip.mte.min_burst_cycles)
    stored = chip.mte.store_latency_cycles + tile / chip.mte.store_bytes_per_cycle
    picked = 0.0
    if found.phases > 1:
        lanes = chip.vector.elements_per_cycle.of("gather_mask", found.size * 8)
        picked = found.phases * (tile / found.size / lanes + chip.vector.startup_cycles)
    back = max(0, read + written - chip.l2_bytes) * written / (read + written)
    memory = (read + back * chip.gm.write_back_cost) / chip.gm.memory_bytes_us
    busy = mine * max(loaded + 100, stored, picked + 100) + loaded + stored
    return float(launch_us(chip, min(chip.aiv, tiles)) + max(busy / chip.mhz, memory))


def _text(found: Framed, item: PhasesSchedule, task: KernelTask, name: str) -> StageText:
    """What convolutions need of their input before the cube cores read it."""
    return kernel_text(
        "space_to_depth",
        name,
        VECTORS_ALONE,
        s=item,
        f=found,
        x=parameter(found.x),
        bits=BITS[found.size],
        unit=WIDTH_UNIT,
        fixed_pattern=FIXED_PATTERNS.get(found.phases, 0),
        parameters=parameters_of(task),
        **sized(task, {key: getattr(found, key) for key in ("images", "sizes", "made")}),
    )


FAMILY = SearchingFamily(
    name="phases",
    ops=categories(SPACE_TO_DEPTH),
    read=on_any_chip(read_phases),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=PhasesSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
