"""The families of kernels in Triton, in the order in which they are asked."""

from __future__ import annotations

from evokernel_core.compiler.family import Family
from evokernel_core.targets.triton.kernels.attention import attention_family
from evokernel_core.targets.triton.kernels.fused.fused_family import FusedFamily
from evokernel_core.targets.triton.kernels.matmul import matmul_family

FAMILIES: tuple[Family, ...] = (FusedFamily(), matmul_family.FAMILY, attention_family.FAMILY)
