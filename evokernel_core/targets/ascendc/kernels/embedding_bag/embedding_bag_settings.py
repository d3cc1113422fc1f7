"""The schedules of bags of embeddings."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.schedule import Range, Scaled, Schedule
from evokernel_core.targets.ascendc.kernels.indexed import MOST_INDICES

MOST_RUN = 2048
"""Elements of a row that one core combines at a time."""


@frozen
class EmbeddingBagSchedule(Schedule):
    """Tiles of at most ``runs`` rows, each with its index, and ``bytes`` bytes."""

    runs: Annotated[int, Range(16, MOST_INDICES, unit=16), Scaled("more indices")]
    bytes: Annotated[int, Range(MOST_RUN * 4, unit=512), Scaled("larger tile", "smaller tile")]
