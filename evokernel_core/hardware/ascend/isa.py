"""Figures of the instruction set that every chip of the architecture shares (architecture page 2201, and the
documentation of data copies). What differs from chip to chip is in the chip files."""

from __future__ import annotations

BLOCK_BYTES = 32
"""What local memories are addressed in."""
REPEAT_BYTES = 256
"""What a vector instruction works on in one repeat."""
LANES = 64
"""float32 elements of a repeat."""
FRACTAL = 16
"""Rows and columns of the matrices that the cube unit multiplies; each is a block deep."""
REQUEST_BYTES = 512
"""What a request of a copy engine moves at most, and what it moves whole where its start is not aligned."""
LINE_BYTES = 128
"""Of device memory: runs that start at multiples of it move no more bytes than they have on any chip."""
RESERVED_BYTES = 256
"""At the end of the unified buffer and of L1, which no kernel of several core types may use."""
RESERVED_BY_APIS_BYTES = 8 * 1024
"""Of the unified buffer, what Select and other functions reserve for themselves."""
