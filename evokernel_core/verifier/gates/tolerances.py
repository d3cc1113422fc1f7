"""How far a result may be from PyTorch's: by the graph, the dtype, and what rounding was seen to do."""

from __future__ import annotations

from attrs import evolve

from evokernel_core.capture.reference import base_of
from evokernel_core.domain.task import KernelTask, Tolerance, tolerance_for
from evokernel_core.verifier.gates.compare import (
    AGREEMENT,
    FLOATS,
    OWN_ROUNDING,
    Expected,
    largest_rounding,
    mean_magnitude,
    own_rounding,
)
from evokernel_core.verifier.gates.parts import FLOOR

_LONG_SUMS = frozenset(
    f"aten.{name}"
    for name in (
        "mm.default", "bmm.default", "convolution.default", "scaled_dot_product_attention.default",
        "cumsum.default", "sum.default", "sum.dim_IntList", "mean.default", "mean.dim",
        "var.correction", "var_mean.correction", "linalg_vector_norm.default", "native_layer_norm.default",
    )
)  # fmt: skip

_RESIZED = frozenset(
    f"aten.{name}.default"
    for name in (
        "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
        "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
    )
)  # fmt: skip
"""Sums of a few terms whose weights are differences of places, rounded as those are."""


def tolerance_of(task: KernelTask, expected: Expected, dtype: str, *, is_random: bool = False) -> Tolerance:
    """The product's for the graph, with its absolute part in units of the output's magnitude behind a long
    sum, and of small outputs where the inputs are random and a result in wider types tells how far PyTorch's
    own rounding goes.

    The terms of a long sum cancel: two right results in another order of summation then differ by
    rounding of the terms, not of the sum, which the relative part alone would measure. Where
    a clamp or a difference behind the sum hides its magnitude, the result with the sum moved as
    float32 rounds it tells what can be asked; where values are of half types, PyTorch's own result is
    the one that is rounded on the way.
    """
    table = tolerance_for(task.graph)
    if dtype not in FLOATS or not table.rtol:
        return table
    sums = any(node.op in _LONG_SUMS for node in task.graph.nodes)
    scale = mean_magnitude(expected.precise or expected.eager, dtype)
    is_known = is_random and expected.precise is not None
    least = table.atol * (min(1.0, scale) if is_known else 1.0) * (max(1.0, scale) if sums else 1.0)
    if sums:
        most = max(least, largest_rounding(expected, dtype, table.rtol), FLOOR.get(dtype, 0.0))
        return evolve(table, atol=most)
    if not is_known:
        return evolve(table, atol=least)
    least = max(least, FLOOR.get(dtype, 0.0))
    own = least + 2 * OWN_ROUNDING * own_rounding(expected, dtype)
    if any(node.op in _RESIZED for node in task.graph.nodes):
        # Terms of all sizes cancel in some elements: what rounds most is no matter of the mean.
        own = max(own, largest_rounding(expected, dtype, table.rtol))
    return evolve(table, atol=own)


def agreement_of(expected: Expected, dtype: str) -> float:
    """The relative root-mean-square difference that is taken for rounding: the product's own for the dtype,
    or a few times that of PyTorch's result where rounding on the way weighs more."""
    if dtype not in FLOATS:
        return 0.0
    scale = mean_magnitude(expected.precise or expected.eager, dtype)
    own = OWN_ROUNDING * own_rounding(expected, dtype) / scale if scale else 0.0
    return max(AGREEMENT[dtype], own)


RANDOM = frozenset(
    ("normal", "uniform", "wide", "ties", "signs", "scales", "sorted", "large", "mixed", "alike", "columns")
)
"""Distributions of random values; on others the true output may be nothing but rounding noise."""


def is_random(distribution: str) -> bool:
    """Whether values are random, whatever their magnitude."""
    return base_of(distribution) in RANDOM
