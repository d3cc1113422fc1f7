"""What families' estimates share that no chip file states."""

from __future__ import annotations

import math

from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import REQUEST_BYTES

TILE_FLAGS = 40.0
"""Scalar cycles of one tile's queue operations."""


def tile_start(chip: Chip) -> float:
    """Cycles before the first byte of a tile that nothing fetches ahead of time."""
    return chip.mte.load_latency_cycles + TILE_FLAGS


def asked(run: int, chip: Chip, *apart: int) -> tuple[float, float]:
    """Requests that a row of ``run`` bytes takes on average, and bytes that it moves, where rows begin at
    multiples of ``apart`` bytes: steps of memory that are not aligned move pieces whole."""
    unit = math.gcd(REQUEST_BYTES, *apart)
    requests = 1 + (run - min(unit, run)) / REQUEST_BYTES
    return requests, run if unit % chip.mte.aligned_bytes == 0 else max(run, requests * REQUEST_BYTES)
