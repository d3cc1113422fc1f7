"""What code that knows no target may ask of hardware."""

from __future__ import annotations

from typing import Protocol

SECTOR_BYTES = 32
"""What memory moves at least: a block of an Ascend vector core, a sector of a GPU's L2."""


class Device(Protocol):
    """One model of an accelerator. ``parallel``: workers that run independently of each other, vector cores
    or multiprocessors. All figures are estimates unless the device's file names a measurement."""

    @property
    def name(self) -> str: ...

    def __hash__(self) -> int: ...

    @property
    def parallel(self) -> int: ...

    @property
    def clock_mhz(self) -> float:
        """Cycles of a worker in a microsecond."""

    @property
    def memory_bytes(self) -> int: ...

    @property
    def l2_bytes(self) -> int: ...

    @property
    def peak_bytes_us(self) -> float:
        """Bytes a microsecond from device memory that no kernel can exceed."""

    @property
    def memory_bytes_us(self) -> float:
        """Bytes a microsecond from device memory that well-written kernels reach."""

    @property
    def l2_bytes_us(self) -> float: ...

    @property
    def worker_bytes_us(self) -> float:
        """Bytes a microsecond that one worker can load."""

    @property
    def launch_us(self) -> float:
        """What a launch on all workers costs before any work."""

    @property
    def shares_rows(self) -> bool:
        """Whether workers of one launch can reduce a row together, waiting for each other."""

    @property
    def shortens_convolutions(self) -> bool:
        """Whether libraries may multiply fewer digits in float32 convolutions, as PyTorch's settings say."""

    def cores_of(self, unit: str) -> int:
        """How many cores have a unit, by the name that timings count its work under; of one that each core
        has, all cores of any kind."""

    def product_us(self, multiply_adds: int, dtype: str) -> float:
        """Microseconds of so many multiply-adds of matrix products with every matrix unit busy."""

    def elementwise_us(self, elements: int, dtype: str) -> float:
        """Microseconds of one simple instruction for each element, with every worker busy."""

    def transcendental_us(self, elements: int) -> float:
        """The same of an exponential, a logarithm or their kin."""
