"""What programs cost that multiply panels of two operands into one tile."""

from __future__ import annotations

import math

from attrs import frozen

from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.occupancy import THREAD_REGISTERS, resident
from evokernel_core.targets.triton.kernels.precision import Precision, on_vector_units, product_rate

_SUMS, _PANELS = 2, 2
"""Tiles of sums, and panels of each operand, that are alive at once beside what follows (counted over what
triton-ascend's front makes of them)."""
STEP_US = 0.35
"""Assumed: from a load's request to the product of what it brought, with nothing ahead."""
_LATENCY_US = 0.55
"""From a load's request to the product of what it brought, in steps that wait (products of float16 with 2, 3
and 4 stages on an H200, docs/results/gpu_search.md)."""
_FEW_BEHIND, _WITH_BEHIND = 8.0, 1.4
"""Instructions behind a sum from which on it takes more registers than its own, and how many times those."""
_OTHER_REGISTERS = 40
"""A thread's registers beside sums: addresses, masks and what is on its way."""
_ADDRESS = 5.0
"""Registers of an element that has an address and a mask of its own (by what ptxas took of such kernels)."""


@frozen
class ProductTile:
    """``rows`` x ``columns`` sums of a program, from panels ``depth`` deep. ``scattered``: each element of
    the right panel has an address of its own, as those of patches have."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int
    precision: Precision
    dtype: str
    scattered: bool = False

    def live_bytes(self, behind: int) -> int:
        """Of all tiles at once: sums with what becomes of them, as many tiles ``behind``, and both panels."""
        panels = (self.rows + self.columns) * self.depth * ITEM_SIZE[self.dtype]
        return 4 * self.rows * self.columns * (_SUMS + behind) + _PANELS * panels

    def resident(self, gpu: Gpu, behind: float = 0.0) -> int:
        """Programs that share a multiprocessor, 0 where none fits."""
        panel = (self.rows + self.columns) * self.depth * ITEM_SIZE[self.dtype]
        return resident(gpu, self.warps, panel * self.stages, self._registers(gpu, behind))

    def _registers(self, gpu: Gpu, behind: float) -> int:
        """Of a thread: sums, with what becomes of them, operands where they do not come from shared memory,
        and addresses."""
        threads = self.warps * gpu.threads_per_warp
        held = self.rows * self.columns / threads
        if behind > _FEW_BEHIND:  # spilled rather than refused
            held = max(held, min(_WITH_BEHIND * held, THREAD_REGISTERS - _OTHER_REGISTERS))
        if on_vector_units(self.precision, self.dtype, gpu):
            held += (self.rows + self.columns) * min(self.depth, 16) / threads
        elif self.precision is Precision.TF32X3:
            held += 2 * self._operands_of_warp() / gpu.threads_per_warp
        if self.scattered:
            held += _ADDRESS * self.columns * self.depth / threads
        return math.ceil(held) + _OTHER_REGISTERS

    def _operands_of_warp(self) -> float:
        """Elements of both operands that a warp multiplies: warps lie in a grid over the tile, and those in a
        row or a column of it have the same."""
        across = 1 << ((self.warps.bit_length() - 1) // 2)
        return (self.rows * across / self.warps + self.columns / across) * self.depth

    def computed_us(self, gpu: Gpu, programs: int, depth: int, behind: float = 0.0) -> float:
        """Microseconds of the arithmetic of so many programs whose sums have ``depth`` terms, and ``behind``
        instructions for each of them."""
        held = max(self.resident(gpu, behind), 1)
        rounds = math.ceil(programs / (gpu.multiprocessors * held))
        at_once = min(held, math.ceil(programs / gpu.multiprocessors))
        rate = self._rate(gpu) / gpu.multiprocessors
        product = 2 * self.rows * self.columns * self.depth / rate
        # a step waits for what it loads as long as no stage is ahead
        step = max(at_once * product, (_LATENCY_US + product) / max(self.stages - 1, 1))
        ends = self.rows * self.columns * behind * 2 * gpu.multiprocessors / gpu.vector_flops
        return rounds * (depth / self.depth * step + at_once * ends)

    def _rate(self, gpu: Gpu) -> float:
        """Operations a microsecond of the whole GPU: where operands go through registers, small tiles load
        more than they compute with."""
        if self.dtype != "float32":
            return product_rate(gpu, self.precision, self.dtype)
        shape = self.rows * self.columns / (self.rows + self.columns)
        enough = 32 if on_vector_units(self.precision, self.dtype, gpu) else 64
        return product_rate(gpu, self.precision, self.dtype) * min(1.0, shape / enough)
