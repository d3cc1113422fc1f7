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
    """What one core does again and again: loads, stores and vector cycles in between."""

    loads: tuple[Burst, ...]
    stores: tuple[Burst, ...]
    vector: float = 0.0


def kernel_us(tiles: Iterable[tuple[float, Tile]], held: float, buffers: int, chip: Chip) -> float:
    """Modelled microseconds of tiles (each with its number) dealt to all cores, ``held`` bytes being
    read and written altogether."""
    known = list(tiles)
    count = sum(number for number, _ in known)
    cores = max(1, min(chip.aiv, math.ceil(count)))
    rounds = math.ceil(count / cores) / max(count / cores, 1e-9)
    cycles = fill = 0.0
    for number, tile in known:
        load, store, shared = _pipes(tile, held, cores, chip)
        each = max(load, store, tile.vector, shared, _FLAGS) if buffers > 1 else load + store + tile.vector
        cycles += number / cores * each * rounds
        fill = max(fill, load + store + tile.vector)
    latency = chip.constants["mte.load_latency_cycles"] + chip.constants["mte.store_latency_cycles"]
    return (cycles + (fill if buffers > 1 else 0.0) + latency) / chip.mhz + launch_us(chip, cores)


def _pipes(tile: Tile, held: float, cores: int, chip: Chip) -> tuple[float, float, float]:
    """Cycles of the loads, of the stores, and of this core's share of the chip for one tile."""
    table = chip.constants
    share = 1e3 / chip.mhz / cores
    spilled = max(0.0, held - chip.l2_bytes) / max(held, 1.0)
    load = math.fsum(_engine(item, table["mte.load_bytes_per_cycle"], table) for item in tile.loads)
    store = math.fsum(_engine(item, table["mte.store_bytes_per_cycle"], table) for item in tile.stores)
    read, written = sum(map(_wire, tile.loads)), sum(map(_wire, tile.stores))
    back = spilled * written * table["gm.write_back_cost"]
    device = (read + back) / (table["gm.hbm_achieved_gbps"] * share)
    requests = sum(map(_requests, (*tile.loads, *tile.stores))) * cores / table["gm.requests_per_cycle"]
    return load, store, max(device, (read + written) / (table["gm.l2_gbps"] * share), requests)


def _requests(item: Burst) -> float:
    slack = (item.length - 1) / REQUEST_BYTES
    return item.copies * item.blocks * (1 + (math.floor(slack) if item.aligned and slack < 1 else slack))


def _wire(item: Burst) -> float:
    return item.bytes if item.aligned else max(item.bytes, _requests(item) * REQUEST_BYTES)


def _engine(item: Burst, rate: float, table: Mapping[str, float]) -> float:
    one = max(_wire(item) / max(item.copies, 1e-9) / rate, table["mte.min_copy_cycles"],
              table["mte.min_burst_cycles"] * item.blocks)  # fmt: skip
    return item.copies * one
