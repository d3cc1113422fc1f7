"""The families of kernels in Triton, in the order in which they are asked."""

from __future__ import annotations

from evokernel_core.compiler.family import Family
from evokernel_core.targets.triton.kernels.fused.fused_family import FusedFamily

FAMILIES: tuple[Family, ...] = (FusedFamily(),)
