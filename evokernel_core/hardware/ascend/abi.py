"""What a kernel in AscendC consists of (docs/kernel-abi.md)."""

from __future__ import annotations

TILING = "tiling.h"
"""Plain C++17: a POD struct, and the function of the host that fills it from sizes."""
KERNEL = "op_kernel.cpp"
"""The device code and its launcher."""
FILES = (TILING, KERNEL)
"""In the order in which they are read."""
