"""The schedules of a recurrence."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.schedule import Range, Scaled, Schedule, Word
from evokernel_core.targets.ascendc.kernels.settings import whole_step

MOST_BATCH = 128
"""Sequences of a tile: strides of the instructions that turn rows into columns hold them."""


@frozen
class RecurrentSchedule(Schedule):
    """Units of ``batch`` sequences and ``hidden`` hidden units; steps of ``base_k`` in L0; L1 holds
    ``panels`` panels of weights, ``panel_k`` deep, and two of states, ``states_k`` deep; ``kept`` panels
    of weights more stay in L0."""

    batch: Annotated[
        int,
        Range(16, MOST_BATCH, unit=16),
        Scaled("more sequences a core", "fewer sequences a core", unit=16),
    ]
    hidden: Annotated[int, Range(16, unit=16)]
    base_k: Annotated[
        int,
        Word("depth"),
        Range(16, unit=16),
        Scaled("deeper step in L0", "shallower step in L0", also=whole_step),
    ]
    panel_k: Annotated[int, Word("panel"), Scaled("deeper panel in L1", "shallower panel in L1")]
    states_k: int
    panels: Annotated[int, Range(3)]
    kept: int = 0
