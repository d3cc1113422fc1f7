"""How matrix products of a dtype are computed, and how fast."""

from __future__ import annotations

from enum import StrEnum

from evokernel_core.hardware.gpu.gpu import Gpu

VECTOR_EFFICIENCY, MATRIX_EFFICIENCY = 0.45, 0.75
"""Assumed shares of the peak rate that Triton's products reach on vector and on matrix units."""
TF32X3_EFFICIENCY = 0.41
"""The share of a third of TF32's rate that float32 products in three parts reach (17_Matmul_with_transposed_B
of KernelBench's level 1 took 2,150 us on an H200, docs/results/h200.md)."""
TURNED = 2.08
"""How many times as long they take where neighbours of the right operand in memory are not along k: Hopper's
matrix units take TF32 from shared memory along k alone (1_Square_matrix_multiplication there, 4,463 us)."""


class Precision(StrEnum):
    """How float32 operands are multiplied; other dtypes have one way."""

    IEEE = "ieee"
    TF32X3 = "tf32x3"
    """On matrix units in three parts, which keep float32's accuracy."""
    TF32 = "tf32"
    """Where the caller's own PyTorch setting allows it; no first schedule has it."""


FIRST = (Precision.IEEE, Precision.TF32X3)
"""What first schedules choose from, by their estimates."""
PRECISION_NAMES = {Precision.IEEE: "float32 products", Precision.TF32X3: "products of three TF32 parts"}


def first_precisions(dtype: str, gpu: Gpu) -> tuple[Precision, ...]:
    """The precisions of first schedules of products of a dtype."""
    return FIRST if dtype == "float32" and gpu.has_tf32 else (Precision.IEEE,)


def why_not(precision: Precision, dtype: str, gpu: Gpu) -> str | None:
    """Why operands of a dtype are not multiplied so."""
    if precision is not Precision.IEEE and dtype != "float32":
        return "Only products in float32 have a precision."
    if precision is not Precision.IEEE and not gpu.has_tf32:
        return "The device multiplies no TF32."
    if precision is Precision.TF32:
        return "Products in TF32 lose digits, which only the caller's PyTorch setting may allow."
    return None


def on_vector_units(precision: Precision, dtype: str, gpu: Gpu) -> bool:
    """Whether products take no matrix unit."""
    return dtype == "float32" and precision is Precision.IEEE and dtype not in gpu.flops


def product_rate(gpu: Gpu, precision: Precision, dtype: str) -> float:
    """Operations a microsecond that products with large tiles reach."""
    if on_vector_units(precision, dtype, gpu):
        return gpu.vector_flops * VECTOR_EFFICIENCY
    peak = gpu.flops.get("tf32" if dtype == "float32" and gpu.has_tf32 else dtype, gpu.vector_flops)
    if precision is Precision.TF32X3:
        return peak / 3 * TF32X3_EFFICIENCY
    return peak * MATRIX_EFFICIENCY


def argument(precision: Precision, dtype: str) -> str:
    """The end of the arguments of ``tl.dot``."""
    return f', input_precision="{precision}"' if dtype == "float32" else ""
