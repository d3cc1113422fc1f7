"""What copies between device memory and a core cost in the time model: bursts, requests and bytes.

The rules are those of the chip file: a copy takes the longest of its own engine, its share of the
chip's rates and its share of the requests of 512 bytes; bursts that do not start at multiples of
``aligned_bytes`` move whole requests. All figures are modelled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from attrs import frozen

from evokernel_core.hardware.ascend.chip import Chip, Mte
from evokernel_core.hardware.ascend.isa import REQUEST_BYTES

_FLAGS = 60.0
"""Scalar cycles of the queue operations and the loop of one tile."""
_SETTLING = 30.0
"""Cycles a tile that its copies lose to those of the other direction."""
_CROWD = 4
"""Parts that are nearly as busy as the busiest one delay each other: their norm of this power. Chosen so
that the estimate meets the time model for transpositions with bursts of 128 to 512 bytes."""


@frozen
class Burst:
    """``copies`` instructions of ``blocks`` bursts of ``length`` bytes that start at multiples of
    ``grain`` bytes (a divisor of a request); ``dense``: each where the one before ends."""

    copies: float
    blocks: float
    length: float
    grain: int
    dense: bool = False

    @property
    def bytes(self) -> float:
        return self.copies * self.blocks * self.length


@frozen
class Tile:
    """What one core does again and again: loads, stores and vector cycles in between; ``bound`` where
    one buffer serves a load and its store. ``turns``: how often buffers are handed over meanwhile.
    ``scalar``: cycles of the scalar unit, its waits for copies included; ``fenced``: cycles that stores wait
    for others."""

    loads: tuple[Burst, ...]
    stores: tuple[Burst, ...]
    vector: float = 0.0
    bound: bool = False
    turns: float = 1.0
    scalar: float = 0.0
    fenced: float = 0.0


def kernel_us(
    tiles: Iterable[tuple[float, Tile]],
    held: float,
    buffers: tuple[int, int],
    chip: Chip,
    *,
    apart: bool = True,
) -> float:
    """Modelled microseconds of tiles (each with its number) dealt to all cores, ``held`` bytes being
    read and written altogether, with so many tiles loaded and stored at a time. ``apart``: the whole time of
    a tile alone comes on top of all, as fits copies and transpositions; otherwise only what it takes longer
    than a tile among others."""
    known = list(tiles)
    count = math.fsum(number for number, _ in known)
    cores = max(1, min(chip.aiv, math.ceil(count)))
    rounds = math.ceil(count / cores) / max(count / cores, 1e-9)
    cycles = alone = 0.0
    for number, tile in known:
        period, once = _cycles(tile, held, cores, buffers, chip)
        cycles += number / cores * period * rounds
        alone = max(alone, once if apart else max(0.0, once - period / tile.turns))
    return (cycles + alone) / chip.mhz + chip.launch_of(cores)


def _cycles(tile: Tile, held: float, cores: int, buffers: tuple[int, int], chip: Chip) -> tuple[float, float]:
    """Cycles from one tile to the next, and of a tile alone."""
    share = 1e3 / chip.mhz / cores
    spilled = max(0.0, held - chip.l2_bytes) / max(held, 1.0)
    load = math.fsum(_engine(load, chip.mte.load_bytes_per_cycle, chip.mte) for load in tile.loads)
    store = math.fsum(_engine(store, chip.mte.store_bytes_per_cycle, chip.mte) for store in tile.stores)
    store += tile.fenced
    unit = chip.mte.aligned_bytes
    read, written = (math.fsum(_wire(item, unit) for item in items) for items in (tile.loads, tile.stores))
    device_rate, cache_rate = chip.gm.hbm_achieved_gbps * share, chip.gm.l2_gbps * share
    request = cores / chip.gm.requests_per_cycle
    asked = [request * math.fsum(map(_requests, items)) for items in (tile.loads, tile.stores)]
    back = spilled * written * chip.gm.write_back_cost / device_rate
    ports = (read / device_rate + back, max((read + written) / cache_rate, sum(asked)))
    arrives = max(load, read / device_rate, asked[0]) + tile.turns * chip.mte.load_latency_cycles
    leaves = max(store, written / cache_rate, back, asked[1]) + tile.turns * chip.mte.store_latency_cycles
    compute = tile.vector + (tile.turns * chip.vector.tail_cycles if tile.vector else 0.0)
    arrives = arrives if tile.loads else 0.0
    once = arrives + compute + leaves
    turns = [once / buffers[0]]
    if not tile.bound:
        turns = [(arrives + compute) / buffers[0], (compute + leaves) / buffers[1]]
    busy = (load, store, tile.vector, tile.scalar, *ports)
    together = math.fsum(part**_CROWD for part in busy) ** (1 / _CROWD)
    return max(together, tile.turns * _FLAGS, *turns) + tile.turns * _SETTLING, once / tile.turns


def grain_of(places: Iterable[int]) -> int:
    """The largest divisor of a request that divides all places, in bytes."""
    return math.gcd(REQUEST_BYTES, *places)


def _requests(burst: Burst) -> float:
    """Requests of all bursts; each start within a request is as likely as another."""
    blocks, length = (1.0, burst.blocks * burst.length) if burst.dense else (burst.blocks, burst.length)
    whole, rest = divmod(max(length, 1.0) - 1, REQUEST_BYTES)
    starts = REQUEST_BYTES // burst.grain
    crossing = max(0, starts - math.ceil((REQUEST_BYTES - rest) / burst.grain))
    return burst.copies * blocks * (1 + whole + crossing / starts)


def _wire(burst: Burst, unit: float) -> float:
    return burst.bytes if burst.grain % unit == 0 else max(burst.bytes, _requests(burst) * REQUEST_BYTES)


def _engine(burst: Burst, rate: float, mte: Mte) -> float:
    wire = _wire(burst, mte.aligned_bytes) / max(burst.copies, 1e-9)
    bursts = mte.min_burst_cycles * burst.blocks
    return burst.copies * max(wire / rate, mte.min_copy_cycles, bursts)
