"""Kernels whose cores all wait for each other start only when every one of their cores is free.

Two such kernels on two streams may otherwise hold part of the cores each and wait for the rest for ever:
the documentation of SyncAll and of CrossCoreSetFlag in mode 0 advises the batch mode of ``__schedmode__``.
"""

from __future__ import annotations

from evokernel_core.ascendc.kernels.family import StageText

GLOBAL, BATCHED = 'extern "C" __global__', 'extern "C" __schedmode__(1) __global__'
"""How a global function begins, without and with the batch mode."""


def batched(stage: StageText) -> str:
    """The text of one kernel, in batch mode where its cores wait for each other."""
    return stage.kernel.replace(GLOBAL, BATCHED) if stage.facts.waits_for_all else stage.kernel
