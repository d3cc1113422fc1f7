"""Kernels in AscendC as sources: their target, their files, and what stands in which."""

from __future__ import annotations

from pathlib import Path

from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.kernel_files import KernelFiles
from evokernel_core.domain.language import Language
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.abi import FILES, KERNEL, TILING

__all__ = ["FILES", "KERNEL", "KERNEL_FILES", "TARGET", "TILING", "ascendc_source"]

TARGET = "ascendc"


def _chips() -> tuple[str, ...]:
    from evokernel_core.hardware.ascend.chip_files import chip_names

    return chip_names()


def _language() -> Language:
    from evokernel_core.targets.ascendc.language import LANGUAGE

    return LANGUAGE


KERNEL_FILES = KernelFiles(
    TARGET,
    FILES,
    main=KERNEL,
    devices=_chips,
    title="AscendC",
    language=_language,
    kind="NPU",
    workers=Sentence("cores"),
    judge="twin",
    is_present=Path("/dev/davinci_manager").exists,
    has_timelines=True,
    has_time_model=True,
)


def ascendc_source(tiling: str, kernel: str, strategy: Strategy) -> KernelSource:
    """The source of the texts of ``TILING`` and ``KERNEL``."""
    return KernelSource(TARGET, {TILING: tiling, KERNEL: kernel}, strategy)
