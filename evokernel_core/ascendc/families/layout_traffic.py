"""What copies between device memory and a core cost in the time model: bursts, requests and bytes.

The rules are those of the chip file: a copy takes the longest of its own engine, its share of the
chip's rates and its share of the requests of 512 bytes; bursts that do not start at multiples of
``aligned_bytes`` move whole requests. All figures are modelled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attrs import frozen

from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

REQUEST_BYTES = 512
_FLAGS = 60.0
"""Scalar cycles of the queue operations and the loop of one tile."""


@frozen
class Burst:
    """``copies`` instructions of ``blocks`` bursts of ``length`` bytes; ``aligned``: all of them start
    at multiples of the chip's aligned bytes."""

    copies: float
    blocks: float
    length: float
    aligned: bool

    @property
    def bytes(self) -> float:
        return self.copies * self.blocks * self.length


@frozen
class Tile:
    """What one core does again and again: loads, stores and vector cycles in between; ``bound`` where
    one buffer serves a load and its store."""

    loads: tuple[Burst, ...]
    stores: tuple[Burst, ...]
    vector: float = 0.0
    bound: bool = False


def kernel_us(tiles: Iterable[tuple[float, Tile]], held: float, buffers: int, chip: Chip) -> float:
    """Modelled microseconds of tiles (each with its number) dealt to all cores, ``held`` bytes being
    read and written altogether."""
    known = list(tiles)
    count = math.fsum(number for number, _ in known)
    cores = max(1, min(chip.aiv, math.ceil(count)))
    rounds = math.ceil(count / cores) / max(count / cores, 1e-9)
    cycles = alone = 0.0
    for number, tile in known:
        period, once = _cycles(tile, held, cores, buffers, chip)
        cycles += number / cores * period * rounds
        alone = max(alone, once)
    return (cycles + (alone if buffers > 1 else 0.0)) / chip.mhz + launch_us(chip, cores)


def _cycles(tile: Tile, held: float, cores: int, buffers: int, chip: Chip) -> tuple[float, float]:
    """Cycles from one tile to the next, and of a tile alone."""
    table = chip.constants
    share = 1e3 / chip.mhz / cores
    spilled = max(0.0, held - chip.l2_bytes) / max(held, 1.0)
    load = math.fsum(_engine(item, table["mte.load_bytes_per_cycle"], table) for item in tile.loads)
    store = math.fsum(_engine(item, table["mte.store_bytes_per_cycle"], table) for item in tile.stores)
    read, written = math.fsum(map(_wire, tile.loads)), math.fsum(map(_wire, tile.stores))
    device_rate, cache_rate = table["gm.hbm_achieved_gbps"] * share, table["gm.l2_gbps"] * share
    request = cores / table["gm.requests_per_cycle"]
    asked = [request * math.fsum(map(_requests, items)) for items in (tile.loads, tile.stores)]
    back = spilled * written * table["gm.write_back_cost"] / device_rate
    load = max(load, read / device_rate, asked[0])
    store = max(store, written / cache_rate, back, asked[1])
    shared = max(read / device_rate + back, (read + written) / cache_rate, sum(asked))
    load_latency, store_latency = table["mte.load_latency_cycles"], table["mte.store_latency_cycles"]
    compute = tile.vector + (table["vector.tail_cycles"] if tile.vector else 0.0)
    arrives, leaves = load + load_latency if tile.loads else 0.0, store + store_latency
    once = arrives + compute + leaves
    turns = [once] if tile.bound else [arrives + compute, compute + leaves]
    period = max(load, store, tile.vector, shared, _FLAGS, *(time / buffers for time in turns))
    return (period if buffers > 1 else once), once


def _requests(item: Burst) -> float:
    slack = (item.length - 1) / REQUEST_BYTES
    return item.copies * item.blocks * (1 + (math.floor(slack) if item.aligned and slack < 1 else slack))


def _wire(item: Burst) -> float:
    return item.bytes if item.aligned else max(item.bytes, _requests(item) * REQUEST_BYTES)


def _engine(item: Burst, rate: float, table: Mapping[str, float]) -> float:
    one = max(_wire(item) / max(item.copies, 1e-9) / rate, table["mte.min_copy_cycles"],
              table["mte.min_burst_cycles"] * item.blocks)  # fmt: skip
    return item.copies * one
