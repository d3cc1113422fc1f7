"""Kernels whose cores all wait for each other start only when every one of their cores is free.

Two such kernels on two streams may otherwise hold part of the cores each and wait for the rest for ever:
the documentation of SyncAll and of CrossCoreSetFlag in mode 0 advises the batch mode of ``__schedmode__``.
"""

from __future__ import annotations

import re

WAITS = re.compile(r"\bSyncAll\b|\bCrossCoreSetFlag<0\b")
"""What makes all cores of a kind wait for each other; mode 0 of the flags does."""
_ENTRY = 'extern "C" __global__'


def batched(kernel: str) -> str:
    """The text of one kernel, in batch mode where its cores wait for each other."""
    if not WAITS.search(kernel):
        return kernel
    return kernel.replace(_ENTRY, 'extern "C" __schedmode__(1) __global__')
