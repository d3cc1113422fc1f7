"""What families' estimates share that no chip file states."""

from __future__ import annotations

from evokernel_core.hardware.ascend.chip import Chip

TILE_FLAGS = 40.0
"""Scalar cycles of one tile's queue operations."""


def tile_start(chip: Chip) -> float:
    """Cycles before the first byte of a tile that nothing fetches ahead of time."""
    return chip.mte.load_latency_cycles + TILE_FLAGS
