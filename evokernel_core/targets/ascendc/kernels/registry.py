"""The schedule families in the order in which they are asked."""

from __future__ import annotations

from evokernel_core.compiler.family import Family
from evokernel_core.targets.ascendc.kernels.argmax import argmax_family as arg
from evokernel_core.targets.ascendc.kernels.attention import attention_family as attention
from evokernel_core.targets.ascendc.kernels.complex_multiply import complex_multiply_family as paired
from evokernel_core.targets.ascendc.kernels.conv_transpose import conv_transpose_family as transposed
from evokernel_core.targets.ascendc.kernels.convolution import convolution_family as convolution
from evokernel_core.targets.ascendc.kernels.embedding_bag import embedding_bag_family as bag
from evokernel_core.targets.ascendc.kernels.fused.fused_family import FusedFamily
from evokernel_core.targets.ascendc.kernels.gather import gather_family as take
from evokernel_core.targets.ascendc.kernels.grid_sample import grid_sample_family as grid_sample
from evokernel_core.targets.ascendc.kernels.integers import integers_family as integers
from evokernel_core.targets.ascendc.kernels.integers import integers_rows as integer_rows
from evokernel_core.targets.ascendc.kernels.interleave import interleave_family as interleave
from evokernel_core.targets.ascendc.kernels.iota import iota_family as iota
from evokernel_core.targets.ascendc.kernels.layout import layout_family as layout
from evokernel_core.targets.ascendc.kernels.matmul import matmul_family as matmul
from evokernel_core.targets.ascendc.kernels.pooling import pooling_family as windowed
from evokernel_core.targets.ascendc.kernels.recurrent import recurrent_family as recurrent
from evokernel_core.targets.ascendc.kernels.resize import resize_family as resize
from evokernel_core.targets.ascendc.kernels.scan import scan_family as scan
from evokernel_core.targets.ascendc.kernels.scatter import scatter_family as put
from evokernel_core.targets.ascendc.kernels.sort import sort_family as sort
from evokernel_core.targets.ascendc.kernels.space_to_depth import space_to_depth_family as phases
from evokernel_core.targets.ascendc.kernels.tril import tril_family as triangle

FAMILIES: tuple[Family, ...] = (
    FusedFamily(),
    matmul.FAMILY,
    attention.FAMILY,
    windowed.FAMILY,
    convolution.FAMILY,
    phases.FAMILY,
    paired.FAMILY,
    interleave.FAMILY,
    transposed.FAMILY,
    layout.FAMILY,
    triangle.FAMILY,
    arg.FAMILY,
    iota.FAMILY,
    integers.FAMILY,
    integer_rows.FAMILY,
    take.FAMILY,
    put.FAMILY,
    bag.FAMILY,
    resize.FAMILY,
    grid_sample.FAMILY,
    scan.FAMILY,
    sort.FAMILY,
    recurrent.FAMILY,
)
