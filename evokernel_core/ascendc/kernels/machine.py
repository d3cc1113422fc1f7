"""Figures of a core that the families' limits and estimates share.

Sizes are those of the hardware; cycles are those of the time model, whose sources are in the chip files
(evokernel_core/twin/chips).
"""

from __future__ import annotations

LANES = 64
"""float32 elements of one repeat of a vector instruction."""
RESERVED_BYTES = 256
"""Bytes at the end of the unified buffer that no kernel of several core types may use (hardware
specification: 192 KiB less 256 bytes)."""
VECTOR_START = 22.0
"""Cycles that a vector instruction costs before its first repeat (vector.startup_cycles)."""
LOAD_START = 149.0
"""Cycles until the first byte of a copy into the unified buffer (mte.load_latency_cycles)."""
STORE_START = 39.0
"""Cycles until the first byte of a copy out of the unified buffer (mte.store_latency_cycles)."""
TILE_FLAGS = 40.0
"""Scalar cycles of one tile's queue operations."""
TILE_START = LOAD_START + TILE_FLAGS
"""Cycles before the first byte of a tile that nothing fetches ahead of time."""
COPY_BYTES = 32.0
"""Bytes that one core copies in a cycle, from device memory or to it (mte.load_bytes_per_cycle)."""
