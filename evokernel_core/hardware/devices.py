"""Devices by their names, for code that asks no more of them than ``Device`` says.

This module and those of a maker's own hardware alone know makers by name; they are imported when a device is
asked for, since the language server starts without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evokernel_core.hardware.device import Device


def load_device(name: str) -> Device:
    """The device of that name, the same object each time. Raises UsageError for an unknown one."""
    from evokernel_core.hardware.gpu.gpu import load_gpu
    from evokernel_core.hardware.gpu.gpu_files import gpu_names

    if name in gpu_names():
        return load_gpu(name)
    from evokernel_core.hardware.ascend.chip import load_chip

    return load_chip(name)
