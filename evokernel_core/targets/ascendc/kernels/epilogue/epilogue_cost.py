"""What the vector cores' part of a fused kernel costs, from the instructions of its tile."""

from __future__ import annotations

import math

from attrs import frozen

from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip, Mte
from evokernel_core.hardware.ascend.isa import LANES, REQUEST_BYTES
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.settings import Form

_SLOW = frozenset({"Exp", "Ln", "Sqrt", "Div"})


@frozen
class Cost:
    """Cycles of one vector core: ``each`` an element, ``tile`` a tile, and ``slab`` for each 64 columns
    of a tile; bytes an element of each tensor that is read from device memory beside the result
    (``beside``), of the result (``handed``), of each tensor that is written (``made``), and of each that
    has one number for all channels of a pixel (``reduced``). ``requests``: pieces of memory a cycle that
    all cores may ask for; ``mte``: their copy engines."""

    each: float
    tile: float
    slab: float
    beside: tuple[int, ...]
    handed: int
    made: tuple[int, ...]
    reduced: tuple[int, ...]
    tile_elements: int
    requests: float
    mte: Mte

    @property
    def read(self) -> int:
        """Bytes an element from device memory."""
        return sum(self.beside)

    @property
    def written(self) -> int:
        """Bytes an element to device memory."""
        return sum(self.made)

    def written_of(self, channels: int) -> float:
        """Bytes an element to device memory, where a result has so many channels."""
        return sum(self.made) + sum(self.reduced) / channels

    def cycles(self, rows: int, columns: int, pitch: int | None = None, cores: int = 0) -> float:
        """Of a region of a result: the slowest pipe of one of its two vector cores. ``pitch``: elements
        from row to row of the whole result, where a region has not whole rows; ``cores`` at work."""
        mine = math.ceil(rows / 2)
        elements = mine * columns
        tiles = math.ceil(elements / self.tile_elements)
        vector = elements * self.each + tiles * (self.tile + math.ceil(columns / LANES) * self.slab)
        apart = [
            mine * (0.0 if pitch is None else self._row(columns * size, pitch * size, cores))
            for size in (*self.beside, *self.made)
        ]
        rates = [self.mte.load_bytes_per_cycle] * len(self.beside)
        rates += [self.mte.store_bytes_per_cycle] * len(self.made)
        sizes = (*self.beside, *self.made)
        flat = [elements * size / rate for size, rate in zip(sizes, rates, strict=True)]
        copies = list(map(max, apart, flat))
        loaded = sum(copies[: len(self.beside)]) + elements * self.handed / self.mte.load_bytes_per_cycle
        stored = sum(copies[len(self.beside) :])
        loaded += tiles * self.mte.load_latency_cycles
        return max(vector, loaded, stored + tiles * self.mte.store_latency_cycles)

    def _row(self, run: int, pitch: int, cores: int) -> float:
        """Cycles in which memory takes ``run`` bytes of a row, with rows ``pitch`` bytes apart."""
        if run == pitch:
            return 0.0
        aligned = run % self.mte.aligned_bytes == 0 and pitch % self.mte.aligned_bytes == 0
        pieces = run / REQUEST_BYTES + (
            0.0 if aligned and run % REQUEST_BYTES == 0 else 0.75 if aligned else 1
        )
        return pieces * cores / self.requests


def cost_of(kernel: Kernel, source: str, chip: Chip) -> Cost:
    """The cost of an epilogue from the instructions of its tile."""
    each = tile = slab = 0.0
    rates = chip.vector.elements_per_cycle
    for statement in kernel.programs[0].body:
        start = chip.vector.startup_cycles + chip.vector.counter_tail_cycles
        if statement.op in _SLOW:
            start = chip.vector.startup_transcendental_cycles
        if statement.op == "fold_steps":  # halves of a tile, a quarter, and so on
            each += 1 / rates.simple_b32
            tile += start * (2 + math.log2(kernel.schedule.rows))
            continue
        if statement.domain is not Domain.FULL:
            tile += start + 1
            if kernel.form is Form.CHANNELS:
                rate = rates.transcendental if statement.op in _SLOW else rates.simple_b32
                each += 1 / rate / kernel.schedule.rows
            continue
        twice = 2 if statement.op == "rounded" else 1
        each += twice / (rates.transcendental if statement.op in _SLOW else rates.simple_b32)
        if statement.op.startswith("expand_") or statement.op.endswith(("Rows", "Columns")):
            slab += start
        else:
            tile += start * twice
    inputs = [tensor for tensor in kernel.queued if tensor.domain is Domain.FULL]
    return Cost(
        each,
        tile,
        slab,
        tuple(ITEM_SIZE[operand.dtype] for operand in inputs if operand.source != source),
        sum(ITEM_SIZE[operand.dtype] for operand in inputs if operand.source == source),
        tuple(ITEM_SIZE[output.dtype] for output in kernel.plan.outputs if output.domain is Domain.FULL),
        tuple(ITEM_SIZE[output.dtype] for output in kernel.plan.outputs if output.domain is not Domain.FULL),
        kernel.schedule.tile,
        chip.gm.requests_per_cycle,
        chip.mte,
    )
