"""How far modelled latencies are from measured ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

MODEL_ERROR = 0.160
"""Median absolute error over published measurements of the series that no constant was fitted to, from
kernels that were executed unchanged; `benchmarks/latency_model.py` prints it and docs/twin.md lists it. Half
of the modelled kernels are within it."""

EAGER_SPREAD: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "activation": (0.94, 1.02),
        "convolution": (0.83, 1.21),
        "elementwise": (0.97, 1.20),
        "index": (0.87, 1.57),
        "layout": (0.81, 1.23),
        "matmul": (0.85, 1.24),
        "normalization": (0.81, 1.27),
        "pooling": (0.84, 1.39),
        "reduction": (0.91, 1.51),
        "scan": (0.78, 1.35),
        "softmax": (1.03, 1.55),
    }
)
"""By category of a task, between which factors of its modelled eager latency half of the measured ones are.
`benchmarks/eager.py` prints it of published rows of a 910B2; a category of fewer than ten is not here."""
ANY_SPREAD = (0.89, 1.23)
"""The same over all rows."""


def eager_spread(category: str) -> tuple[float, float]:
    """The factors of a category, 1 among them: a figure lies in its own interval."""
    low, high = EAGER_SPREAD.get(category, ANY_SPREAD)
    return min(low, 1.0), max(high, 1.0)


def error_of_quotient(low: float) -> float:
    """How much smaller a quotient may be whose divisor is a kernel's modelled latency, and whose dividend has
    an interval that begins at ``low`` of it: both errors, which are independent, in one."""
    return 1.0 - math.exp(-math.hypot(math.log(low), math.log1p(MODEL_ERROR)))
