"""Functions that texts of kernels share; each stands in a kernel that calls it, and in no other.

They use nothing that Triton's interpreter lacks: no libdevice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from evokernel_core.hardware.gpu.gpu import Gpu

HELPERS: Mapping[str, str] = {
    "multiplied": """
@triton.jit
def multiplied(a, b):
    return a * b
""",
    "divided": """
@triton.jit
def divided(a, b):
    return tl.div_rn(a, b)
""",
    "sum_of_two": """
@triton.jit
def sum_of_two(a, b):
    return a + b
""",
    "larger_of_two": """
@triton.jit
def larger_of_two(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "smaller_of_two": """
@triton.jit
def smaller_of_two(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "log_of_sum": """
@triton.jit
def log_of_sum(a, b):
    most = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    less = tl.minimum(a, b)
    # equal infinities have no difference
    return tl.where(a == b, a + 0.6931471805599453, most + tl.log(1.0 + tl.exp(less - most)))
""",
    "largest": """
@triton.jit
def largest(x, axis: tl.constexpr, keep_dims: tl.constexpr):
    # tl.max passes over NaN, and PyTorch does not
    missing = tl.max((x != x).to(tl.int32), axis, keep_dims=keep_dims)
    return tl.where(missing > 0, float("nan"), tl.max(x, axis, keep_dims=keep_dims))
""",
    "smallest": """
@triton.jit
def smallest(x, axis: tl.constexpr, keep_dims: tl.constexpr):
    # tl.min passes over NaN, and PyTorch does not
    missing = tl.max((x != x).to(tl.int32), axis, keep_dims=keep_dims)
    return tl.where(missing > 0, float("nan"), tl.min(x, axis, keep_dims=keep_dims))
""",
    "rounded_to_even": """
@triton.jit
def rounded_to_even(x):
    # adding 1.5 * 2**23 leaves no bits behind the point, and rounds ties to even
    return tl.where(tl.abs(x) < 4194304.0, (x + 12582912.0) - 12582912.0, x)
""",
    "tanh": """
@triton.jit
def tanh(x):
    # what is near zero keeps its digits by the series, and the power never overflows
    power = tl.exp(-2.0 * tl.abs(x))
    far = (1.0 - power) / (1.0 + power)
    square = x * x
    near = x * (1.0 + square * (-1.0 / 3.0 + square * (2.0 / 15.0 - square * (17.0 / 315.0))))
    return tl.where(square < 0.0225, near, tl.where(x < 0, -far, far))
""",
    "truncated": """
@triton.jit
def truncated(x):
    return tl.where(x < 0, tl.ceil(x), tl.floor(x))
""",
}
_OF_NPU: Mapping[str, str] = {
    "divided": """
@triton.jit
def divided(a, b):
    return a / b  # rounded to nearest by triton-ascend
""",
}


def helpers_of(gpu: Gpu) -> Mapping[str, str]:
    """The text of each helper for a device."""
    return {**HELPERS, **_OF_NPU} if gpu.backend == "npu" else HELPERS


def closed(names: Iterable[str]) -> tuple[str, ...]:
    """These helpers and those that they call, each behind what it calls."""
    found: dict[str, None] = {}

    def add(name: str) -> None:
        for other in HELPERS:
            if other != name and re.search(rf"\b{other}\(", HELPERS[name]):
                add(other)
        found[name] = None

    for name in sorted(names):
        add(name)
    return tuple(found)
