"""What one kernel of the vendor costs: its launch, and the longest of what its units do side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from evokernel_core.hardware.ascend.chip import Chip

ANY = 0
"""Pieces of work that falls into any number of equal ones."""


@frozen
class Launch:
    """One kernel. ``kernel``: the vendor's name of it, or of the operation. ``read`` and ``written``: bytes,
    and ``warm``: those of the read ones that L2 holds.
    ``cycles``: of vector cores in sum. ``pieces``: of the work, equal ones that no two cores share.
    ``cube_us``: microseconds of products. ``serial_us``: of what nothing hides."""

    kernel: str
    read: float = 0.0
    written: float = 0.0
    cycles: float = 0.0
    pieces: int = ANY
    cube_us: float = 0.0
    serial_us: float = 0.0
    warm: float = 0.0

    @property
    def moved(self) -> float:
        return self.read + self.written


def launch_us(launch: Launch, chip: Chip) -> float:
    """Microseconds of a kernel as a profiler of the device tells them."""
    costs = chip.eager
    cores = max(1, min(chip.aiv, launch.pieces or chip.aiv, math.ceil(launch.moved / costs.core_bytes)))
    share = math.ceil(launch.pieces / cores) / launch.pieces if launch.pieces else 1.0 / cores
    vector = launch.cycles * share / chip.mhz
    one_core = launch.moved * share / (chip.mte.load_bytes_per_cycle * chip.mhz)
    busy = max(copied_us(launch, chip), one_core, vector, launch.cube_us)
    return costs.launch_us + cores * costs.core_us + busy + launch.serial_us


def copied_us(launch: Launch, chip: Chip) -> float:
    """Microseconds of a kernel's copies. L2 takes what is written; what does not fit pushes other lines
    back to memory."""
    costs = chip.eager
    back = max(0.0, launch.moved - chip.l2_bytes) * launch.written / max(launch.moved, 1.0)
    return (
        (launch.read - launch.warm) / costs.read_gbps
        + launch.warm / costs.hit_gbps
        + launch.written / costs.write_gbps
        + back / costs.write_back_gbps
    ) / 1e3


def in_order(launches: Iterable[Launch], given: float, chip: Chip) -> Iterator[Launch]:
    """The launches of an operation. All that they read but the ``given`` bytes, which the first one reads,
    was made just before, and L2 holds it in so far as it fits beside what the launch moves."""
    for launch in launches:
        room = max(0.0, chip.l2_bytes - launch.moved)
        yield evolve(launch, warm=min(room, max(0.0, launch.read - given)))
        given = 0.0
