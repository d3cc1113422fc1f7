"""The modelled time of a kernel: one walk over its nodes, for every kernel.

A tile's copies become bursts, its instructions cycles of the vector unit; traffic.py says what tiles with
so much of each cost when all cores share the chip. Every constant is the chip's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from attrs import define, field

from evokernel_core.hardware.ascend.api import api_row
from evokernel_core.hardware.ascend.chip import Chip, Vector
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, REPEAT_BYTES
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.allocation import Use
from evokernel_core.targets.ascendc.ir.nodes import (
    Assign,
    Buffer,
    Clear,
    Copy,
    Element,
    Fence,
    Get,
    Instruction,
    Kernel,
    Let,
    Node,
    Put,
    flat,
)
from evokernel_core.targets.ascendc.ir.steps import hand_overs, pipelines
from evokernel_core.targets.ascendc.ir.tile import known_values, samples, walk
from evokernel_core.targets.ascendc.ir.traffic import Burst, Tile, grain_of, kernel_us


def estimate_us(kernel: Kernel, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds of one launch, for given sizes of the task's symbols that it takes."""
    known, _ = known_values(kernel, sizes, chip.aiv)
    tiles = kernel.tiles.end.evaluate(known)
    chosen = samples(kernel, known)
    used = allocation.uses(kernel)
    handed = Counter(id(node) for node in hand_overs(kernel))
    ledger = _Ledger(chip, used, frozenset(id(node) for _, node in pipelines(kernel)), handed)
    counted = [ledger.tile(kernel, known, number) for number in chosen]
    ledger.compare_places(kernel, known)
    bound = Use.THROUGH in used.values()
    each = [ledger.priced(node, bound=bound) for node in counted]
    share = tiles / max(1, len(each))
    held = share * math.fsum(map(_held, counted))
    stages = _stages(used, Use.INPUT), _stages(used, Use.OUTPUT)
    return kernel_us([(share, tile) for tile in each], held, stages, chip, apart=False)


@define
class _Counted:
    """What one tile does: its copies with how often, how many rows, how many bytes in each and whether each
    begins where the one before ends; cycles of the vector unit, of the scalar unit, and of stores that wait
    for others; how often buffers are handed over."""

    copies: list[tuple[Copy, float, int, int, bool]] = field(factory=list)
    vector: float = 0.0
    scalar: float = 0.0
    fenced: float = 0.0
    turns: float = 0


_QUEUE_CALLS = 4
"""AllocTensor, EnQue, DeQue and FreeTensor."""


def _held(counted: _Counted) -> float:
    """Bytes that come to lie in L2."""
    return math.fsum(
        times * rows * length
        for node, times, rows, length, _ in counted.copies
        if not node.region.tensor.bypass_l2
    )


@define
class _Ledger:
    """Adds up what tiles do. ``piped``: the nodes that begin the loads of a hand-over; ``handed``: how many
    queues' buffers a node begins to fill; ``places``: for each copy the bytes at which its rows begin, in all
    tiles and turns that were met; all by the node's identity."""

    chip: Chip
    used: Mapping[Buffer, Use]
    piped: frozenset[int]
    handed: Mapping[int, int]
    places: dict[int, list[int]] = field(factory=dict)

    def tile(self, kernel: Kernel, known: Mapping[str, int], number: int) -> _Counted:
        """What a tile does."""
        counted = _Counted()

        def visit(node: Node, times: float, values: Mapping[str, int], inside: bool) -> None:
            if not inside:
                return
            if id(node) in self.piped:
                counted.turns += times
            if id(node) in self.handed:
                calls = _QUEUE_CALLS * self.handed[id(node)]
                counted.scalar += times * calls * self.chip.scalar.queue_cycles
            if isinstance(node, Instruction | Clear):
                work = node.instruction if isinstance(node, Clear) else node
                counted.vector += times * cycles(work, values, self.chip)
                counted.scalar += times * self.chip.scalar.issue_cycles
            elif isinstance(node, Copy):
                width = self._placed(node, values)
                rows, length = node.rows.evaluate(values), node.count.evaluate(values) * width
                counted.copies.append((node, times, rows, length, _is_dense(node, values)))
                counted.scalar += times * self._scalar(node, rows * length)
            elif isinstance(node, Let):
                counted.scalar += times * self._reads(node)
            elif isinstance(node, (Get, Put)):
                counted.scalar += times * self.chip.scalar.local_access_cycles
            elif isinstance(node, Fence):
                counted.fenced += times * (self.chip.mte.store_latency_cycles + self.chip.mte.min_copy_cycles)

        walk(kernel, known, visit, number)
        return counted

    def _reads(self, node: Let) -> float:
        """Cycles of the scalar unit for the elements of device memory that a constant is made of."""
        return self.chip.scalar.gm_hit_cycles if isinstance(node.value, Element) else 0.0

    def _scalar(self, node: Copy, length: int) -> float:
        """Cycles of the scalar unit for a copy: it waits for those of what it reads or has written."""
        mte, issued = self.chip.mte, self.chip.scalar.issue_cycles
        if self.used[node.slice.buffer] is not Use.NUMBERS:
            return issued
        if node.is_load:
            return issued + mte.load_latency_cycles + length / mte.load_bytes_per_cycle
        return issued + mte.store_latency_cycles + length / mte.store_bytes_per_cycle

    def compare_places(self, kernel: Kernel, known: Mapping[str, int]) -> None:
        """Notes where the copies of another tile, and of other turns, begin."""

        def visit(node: Node, times: float, values: Mapping[str, int], inside: bool) -> None:
            if isinstance(node, Copy) and inside:
                self._placed(node, values)

        for place in ((1, 0), (0, 1)):
            walk(kernel, known, visit, *place, without=_idle(kernel))

    def _placed(self, node: Copy, values: Mapping[str, int]) -> int:
        """Notes where a copy begins; the bytes of an element."""
        region = node.region
        width = region.tensor.item_bytes
        mine = self.places.setdefault(id(node), [])
        mine += (region.offset.evaluate(values) * width, node.apart.evaluate(values) * width)
        return width

    def priced(self, counted: _Counted, *, bound: bool) -> Tile:
        """A tile as the time model takes it."""
        bursts = [
            (
                node.is_load,
                Burst(times, rows, length, grain_of(self.places[id(node)]), dense=dense),
            )
            for node, times, rows, length, dense in counted.copies
        ]
        loads = tuple(burst for is_load, burst in bursts if is_load)
        stores = tuple(burst for is_load, burst in bursts if not is_load)
        turns = max(1, counted.turns)
        return Tile(loads, stores, counted.vector, bound, turns, counted.scalar, counted.fenced)


def _is_dense(node: Copy, values: Mapping[str, int]) -> bool:
    """Whether rows lie one behind the other in both memories, so that they are one run."""
    count, pitch = node.count.evaluate(values), node.pitch.evaluate(values)
    if node.apart.evaluate(values) != count:
        return False
    return count == pitch if pitch else count * node.slice.buffer.item_bytes % BLOCK_BYTES == 0


def _idle(kernel: Kernel) -> frozenset[int]:
    """The nodes that copy nothing and say no place, by their identity."""
    return frozenset(
        id(node)
        for node in kernel.nodes
        if not isinstance(node, (Copy, Let, Assign, Get))
        and not any(isinstance(child, Copy) for child in flat((node,)))
    )


def cycles(node: Instruction, values: Mapping[str, int], chip: Chip) -> float:
    """Cycles of one instruction: what it costs beside its repeats, and its repeats."""
    startup, repeat = _cycles_of(node, chip)
    return startup + node.repeats.evaluate(values) * repeat


def _cycles_of(node: Instruction, chip: Chip) -> tuple[float, float]:
    """Beside repeats and of one repeat."""
    width = max(child.buffer.item_bytes for _, child in node.slices)
    return _rates(node.key, width, chip.vector)


@lru_cache(maxsize=1024)
def _rates(key: str, width: int, unit: Vector) -> tuple[float, float]:
    """The same by the API table's row and the bytes of an element; a transposition's repeat has 16 blocks,
    two times what others work on."""
    cost = api_row(key).cost or "simple"
    rate = unit.elements_per_cycle.of(cost, min(64, max(16, 8 * width)))
    blocks = 2 if cost == "transpose" else 1
    return unit.startup(cost), blocks * REPEAT_BYTES / width / rate


def _stages(used: Mapping[Buffer, Use], use: Use) -> int:
    """Tiles under way in one direction: those of the queue with the fewest stages."""
    known = [buffer.stages for buffer, kind in used.items() if kind in (use, Use.THROUGH)]
    return min(known, default=1)
