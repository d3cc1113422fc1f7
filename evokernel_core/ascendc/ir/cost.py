"""The modelled time of a kernel: one walk over its nodes, for every kernel.

A tile's copies become bursts, its instructions cycles of the vector unit; traffic.py says what tiles with
so much of each cost when all cores share the chip. Every constant is the chip's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from evokernel_core.ascendc.ir import allocation
from evokernel_core.ascendc.ir.allocation import Use
from evokernel_core.ascendc.ir.nodes import Buffer, Copy, For, Instruction, Kernel
from evokernel_core.ascendc.ir.steps import pipelines
from evokernel_core.ascendc.ir.tile import Met, nodes_of_tile, samples
from evokernel_core.ascendc.ir.traffic import Burst, Tile, grain_of, kernel_us
from evokernel_core.twin.api import api_row
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import REPEAT_BYTES


def estimate_us(kernel: Kernel, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds of one launch, for given sizes of the task's symbols."""
    tiles = kernel.tiles.end.evaluate(sizes)
    chosen = samples(kernel, sizes)
    used = allocation.uses(kernel)
    grains = _grains(kernel, sizes)
    piped = pipelines(kernel)
    each = [_tile(nodes_of_tile(kernel, sizes, number), grains, piped, used, chip) for number in chosen]
    share = tiles / max(1, len(each))
    held = share * math.fsum(burst.bytes for tile in each for burst in (*tile.loads, *tile.stores))
    stages = _stages(used, Use.INPUT), _stages(used, Use.OUTPUT)
    return kernel_us([(share, tile) for tile in each], held, stages, chip)


def _tile(
    nodes: Iterable[Met],
    grains: Sequence[int],
    piped: Sequence[For],
    used: Mapping[Buffer, Use],
    chip: Chip,
) -> Tile:
    """What one tile does; ``grains``: of its copies' places, ``piped``: the loops that hand buffers over."""
    met = [item for item in nodes if item.inside]
    copies = [item for item in met if isinstance(item.node, Copy)]
    bursts = [(_is_load(item), _burst(item, grain)) for item, grain in zip(copies, grains, strict=True)]
    vector = math.fsum(
        item.times * cycles(item.node, item.values, chip)
        for item in met
        if isinstance(item.node, Instruction)
    )
    turns = sum(_turns(item) for item in met if any(item.node is loop for loop in piped))
    return Tile(
        tuple(burst for is_load, burst in bursts if is_load and burst.copies),
        tuple(burst for is_load, burst in bursts if not is_load and burst.copies),
        vector,
        bound=Use.THROUGH in used.values(),
        turns=max(1, turns + any(loop.cores for loop in piped)),
    )


def cycles(node: Instruction, values: Mapping[str, int], chip: Chip) -> float:
    """Cycles of one instruction: what it costs beside its repeats, and its repeats."""
    cost = api_row(node.key).cost or "simple"
    width = max(item.buffer.item_bytes for _, item in node.slices())
    return chip.vector.startup(cost) + node.repeats.evaluate(values) * _repeat_cycles(cost, width, chip)


def _repeat_cycles(cost: str, width: int, chip: Chip) -> float:
    """Cycles of one repeat; a transposition's repeat has 16 blocks, two times what others work on."""
    rate = chip.vector.elements_per_cycle.of(cost, min(64, max(16, 8 * width)))
    blocks = 2 if cost == "transpose" else 1
    return blocks * REPEAT_BYTES / width / rate


def _turns(item: Met) -> int:
    assert isinstance(item.node, For)
    return item.times * item.node.end.evaluate(item.values)


def _burst(item: Met, grain: int) -> Burst:
    assert isinstance(item.node, Copy)
    length = item.node.count.evaluate(item.values) * item.node.region.tensor.item_bytes
    return Burst(item.times, item.node.rows.evaluate(item.values), length, grain)


def _grains(kernel: Kernel, sizes: Mapping[str, int]) -> list[int]:
    """For each copy of a tile what its places are multiples of: those of its rows, and of other tiles and
    turns."""
    here, *others = (
        [item for item in nodes_of_tile(kernel, sizes, *place) if item.inside and _is_copy(item)]
        for place in ((0, 0), (1, 0), (0, 1))
    )
    return [
        grain_of([_start(first), _apart(first), *(abs(_start(item) - _start(first)) for item in rest)])
        for first, *rest in zip(here, *others, strict=True)
    ]


def _is_copy(item: Met) -> bool:
    return isinstance(item.node, Copy)


def _is_load(item: Met) -> bool:
    return isinstance(item.node, Copy) and item.node.is_load


def _apart(item: Met) -> int:
    """Bytes from row to row of a copy."""
    assert isinstance(item.node, Copy)
    return item.node.apart.evaluate(item.values) * item.node.region.tensor.item_bytes


def _start(item: Met) -> int:
    """Bytes into the tensor."""
    assert isinstance(item.node, Copy)
    region = item.node.region
    return region.offset.evaluate(item.values) * region.tensor.item_bytes


def _stages(used: Mapping[Buffer, Use], use: Use) -> int:
    """Tiles under way in one direction: those of the queue with the fewest stages."""
    known = [buffer.stages for buffer, kind in used.items() if kind in (use, Use.THROUGH)]
    return min(known, default=1)
