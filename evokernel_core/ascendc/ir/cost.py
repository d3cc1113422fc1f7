"""The modelled time of a kernel: one walk over its nodes, for every kernel.

A tile's copies become bursts, its instructions cycles of the vector unit; traffic.py says what tiles with
so much of each cost when all cores share the chip. Every constant is the chip's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from evokernel_core.ascendc.ir import allocation
from evokernel_core.ascendc.ir.allocation import Use
from evokernel_core.ascendc.ir.nodes import Buffer, Copy, Instruction, Kernel
from evokernel_core.ascendc.ir.tile import Met, nodes_of_tile
from evokernel_core.ascendc.ir.traffic import Burst, Tile, grain_of, kernel_us
from evokernel_core.twin.api import api_row
from evokernel_core.twin.chip import Chip

REPEAT_BYTES = 256
"""What a vector instruction works on in one repeat (hardware specification)."""


def estimate_us(kernel: Kernel, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds of one launch, for given sizes of the task's symbols."""
    tiles = kernel.tiles.end.evaluate(sizes)
    met = [item for item in nodes_of_tile(kernel, sizes) if item.inside]
    loads, stores = tuple(_bursts(kernel, sizes, load=True)), tuple(_bursts(kernel, sizes, load=False))
    vector = math.fsum(
        item.times * cycles(item.node, item.values, chip)
        for item in met
        if isinstance(item.node, Instruction)
    )
    used = allocation.uses(kernel)
    through = Use.THROUGH in used.values()
    held = tiles * math.fsum(burst.bytes for burst in (*loads, *stores))
    stages = _stages(used, Use.INPUT), _stages(used, Use.OUTPUT)
    return kernel_us([(tiles, Tile(loads, stores, vector, bound=through))], held, stages, chip)


def cycles(node: Instruction, values: Mapping[str, int], chip: Chip) -> float:
    """Cycles of one instruction: what it costs beside its repeats, and its repeats."""
    cost = api_row(node.key).cost or "simple"
    width = max(item.buffer.item_bytes for _, item in node.slices())
    return _startup(cost, chip) + node.repeats.evaluate(values) * _repeat_cycles(cost, width, chip)


def _startup(cost: str, chip: Chip) -> float:
    table = chip.constants
    return table.get(f"vector.startup_{cost}_cycles", table["vector.startup_cycles"])


def _repeat_cycles(cost: str, width: int, chip: Chip) -> float:
    """Cycles of one repeat; a transposition's repeat has 16 blocks, two times what others work on."""
    table, bits = chip.constants, min(64, max(16, 8 * width))
    rates = (f"vector.elements_per_cycle.{cost}_b{bits}", f"vector.elements_per_cycle.{cost}")
    rate = next((table[name] for name in rates if name in table), None)
    if rate is None:
        rate = table[f"vector.elements_per_cycle.simple_b{bits}"]
    blocks = 2 if cost == "transpose" else 1
    return blocks * REPEAT_BYTES / width / rate


def _bursts(kernel: Kernel, sizes: Mapping[str, int], *, load: bool) -> Iterator[Burst]:
    """The copies of a tile in one direction; where they start follows from what other tiles and turns start
    at."""
    here, tile, turn = (
        [item for item in nodes_of_tile(kernel, sizes, *other) if item.inside and _is_copy(item, load)]
        for other in ((0, 0), (1, 0), (0, 1))
    )
    for first, *others in zip(here, tile, turn, strict=True):
        assert isinstance(first.node, Copy)
        width = first.node.region.tensor.item_bytes
        start = _start(first)
        steps = [abs(_start(other) - start) for other in others]
        length = first.node.count.evaluate(first.values) * width
        yield Burst(first.times, 1, length, grain_of([start, *steps]))


def _is_copy(item: Met, load: bool) -> bool:
    return isinstance(item.node, Copy) and item.node.is_load is load


def _start(item: Met) -> int:
    """Bytes into the tensor."""
    assert isinstance(item.node, Copy)
    region = item.node.region
    return region.offset.evaluate(item.values) * region.tensor.item_bytes


def _stages(used: Mapping[Buffer, Use], use: Use) -> int:
    """Tiles under way in one direction: those of the queue with the fewest stages."""
    known = [buffer.stages for buffer, kind in used.items() if kind in (use, Use.THROUGH)]
    return min(known, default=1)
