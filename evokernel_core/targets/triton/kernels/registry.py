"""The families of kernels in Triton, in the order in which they are asked."""

from __future__ import annotations

from evokernel_core.compiler.family import Family
from evokernel_core.targets.triton.kernels.argmax import argmax_family
from evokernel_core.targets.triton.kernels.attention import attention_family
from evokernel_core.targets.triton.kernels.convolution import convolution_family
from evokernel_core.targets.triton.kernels.embedding_bag import embedding_bag_family
from evokernel_core.targets.triton.kernels.fused.fused_family import FusedFamily
from evokernel_core.targets.triton.kernels.gather import gather_family
from evokernel_core.targets.triton.kernels.layout import layout_family
from evokernel_core.targets.triton.kernels.library.library_family import LibraryFamily
from evokernel_core.targets.triton.kernels.matmul import matmul_family
from evokernel_core.targets.triton.kernels.pooling import pooling_family
from evokernel_core.targets.triton.kernels.recurrent import recurrent_family
from evokernel_core.targets.triton.kernels.scan import scan_family
from evokernel_core.targets.triton.kernels.scatter import scatter_family
from evokernel_core.targets.triton.kernels.tril import tril_family

FAMILIES: tuple[Family, ...] = (
    FusedFamily(),
    LibraryFamily(),
    matmul_family.FAMILY,
    attention_family.FAMILY,
    pooling_family.FAMILY,
    convolution_family.FAMILY,
    layout_family.FAMILY,
    tril_family.FAMILY,
    argmax_family.FAMILY,
    gather_family.FAMILY,
    scan_family.FAMILY,
    scatter_family.FAMILY,
    embedding_bag_family.FAMILY,
    recurrent_family.FAMILY,
)
"""A library's operation before ours: it declines where ours is estimated to be as fast."""
