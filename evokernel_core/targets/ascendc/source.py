"""Kernels in AscendC as sources: their target, their files, and what stands in which."""

from __future__ import annotations

from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.hardware.ascend.abi import FILES, KERNEL, TILING

__all__ = ["FILES", "KERNEL", "TARGET", "TILING", "ascendc_source"]

TARGET = "ascendc"


def ascendc_source(tiling: str, kernel: str, strategy: Strategy) -> KernelSource:
    """The source of the texts of ``TILING`` and ``KERNEL``."""
    return KernelSource(TARGET, {TILING: tiling, KERNEL: kernel}, strategy)
