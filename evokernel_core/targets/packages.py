"""Packages of kernels of any target."""

from __future__ import annotations

from pathlib import Path

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.package.verified import VerifiedKernel
from evokernel_core.package.write import Placed, write_kernel
from evokernel_core.targets import load_packaging


def write_package(
    root: Path, task: KernelTask, place: Placed, source: KernelSource, verdict: Verdict
) -> Path:
    """Write the package of a kernel, as ``package.write.write_kernel`` does, and return its folder."""
    return write_kernel(root, task, place, VerifiedKernel(source, verdict), load_packaging)
