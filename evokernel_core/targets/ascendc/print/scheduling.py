"""Kernels whose cores all wait for each other start only when every one of their cores is free.

Two such kernels on two streams may otherwise hold part of the cores each and wait for the rest for ever:
the documentation of SyncAll and of CrossCoreSetFlag in mode 0 advises the batch mode of ``__schedmode__``.
"""

from __future__ import annotations

import re

from evokernel_core.targets.ascendc.kernels.family import StageText

GLOBAL, BATCHED = 'extern "C" __global__', 'extern "C" __schedmode__(1) __global__'
"""How a global function begins, without and with the batch mode."""


def batched(stage: StageText) -> str:
    """The text of one kernel, in batch mode where its cores wait for each other."""
    return _begun(stage.kernel, GLOBAL, BATCHED) if stage.facts.waits_for_all else stage.kernel


def as_function(kernel: str, cores: str) -> str:
    """The text of a kernel for some ``cores`` with its global function as an ordinary one, which another
    kernel calls."""
    return _begun(kernel, f"{GLOBAL} {cores} void", "__aicore__ inline void")


def _begun(kernel: str, words: str, others: str) -> str:
    """A kernel whose global function begins with other words; a line may be wrapped between any two of them.
    Raises ValueError where it does not begin with these."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    text, count = re.subn(pattern, lambda _: others, kernel)
    if count != 1:
        raise ValueError(f"{count} functions of the kernel begin with {words}")
    return text
