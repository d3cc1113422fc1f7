"""What one kernel of the vendor costs: its launch, and the longest of what its units do side by side."""

from __future__ import annotations

import math

from attrs import frozen

from evokernel_core.hardware.ascend.chip import Chip

ANY = 1 << 30
"""As many cores as the chip has."""


@frozen
class Launch:
    """One kernel. ``kernel``: the vendor's name of it, or of the operation. ``read`` and ``written``: bytes.
    ``cycles``: of vector cores in sum, on at most ``cores`` of them. ``cube_us``: microseconds of products.
    ``serial_us``: of what nothing hides."""

    kernel: str
    read: float = 0.0
    written: float = 0.0
    cycles: float = 0.0
    cores: int = ANY
    cube_us: float = 0.0
    serial_us: float = 0.0

    @property
    def moved(self) -> float:
        return self.read + self.written


def launch_us(launch: Launch, chip: Chip) -> float:
    """Microseconds of a kernel as a profiler of the device tells them."""
    costs = chip.eager
    cores = max(1, min(chip.aiv, launch.cores, math.ceil(launch.moved / costs.core_bytes)))
    busy = max(copied_us(launch, chip), launch.cycles / cores / chip.mhz, launch.cube_us)
    return costs.launch_us + cores * costs.core_us + busy + launch.serial_us


def copied_us(launch: Launch, chip: Chip) -> float:
    """Microseconds of a kernel's copies. L2 takes what is written; what does not fit pushes other lines
    back to memory."""
    costs = chip.eager
    back = max(0.0, launch.moved - chip.l2_bytes) * launch.written / max(launch.moved, 1.0)
    return (
        launch.read / costs.read_gbps + launch.written / costs.write_gbps + back / costs.write_back_gbps
    ) / 1e3
