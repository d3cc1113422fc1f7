"""Kernels in Triton as sources: their target, their files, and what stands in which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.kernel_files import KernelFiles
from evokernel_core.domain.language import Language
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.gpu.present import has_driver

if TYPE_CHECKING:
    from evokernel_core.targets.triton.launch import LaunchRecord

TARGET = "triton"
KERNEL, LAUNCH = "kernel.py", "launch.json"
"""The jit functions, and the record of what a host launches."""
FILES = (KERNEL, LAUNCH)
HEADER = "import triton\nimport triton.language as tl\n"
"""The imports that a kernel has, and the only ones."""


def _devices() -> tuple[str, ...]:
    from evokernel_core.hardware.gpu.gpu_files import device_names

    return device_names()


def _language() -> Language:
    from evokernel_core.targets.triton.language import LANGUAGE

    return LANGUAGE


KERNEL_FILES = KernelFiles(
    TARGET,
    FILES,
    main=KERNEL,
    devices=_devices,
    title="Triton",
    language=_language,
    kind="Triton",
    workers=Sentence("programs"),
    judge="interpreter",
    is_present=has_driver,
)


def triton_source(kernel: str, record: LaunchRecord, strategy: Strategy) -> KernelSource:
    """The source of a text of jit functions and its launch record."""
    return KernelSource(TARGET, {KERNEL: kernel, LAUNCH: record.text()}, strategy)
