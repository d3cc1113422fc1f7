"""How far modelled latencies are from measured ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

MODEL_ERROR = 0.130
"""Median absolute error over published measurements of the series that no constant was fitted to, from
kernels that were executed unchanged, by `benchmarks/latency_model.py` (docs/results/latency.md). Half of the
modelled kernels are within it."""

EAGER_SPREAD: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "activation": (0.70, 0.95),
        "convolution": (0.85, 1.31),
        "elementwise": (0.84, 1.14),
        "index": (0.34, 2.60),
        "layout": (0.68, 1.22),
        "matmul": (0.69, 1.29),
        "normalization": (0.84, 1.14),
        "pooling": (1.22, 1.80),
        "reduction": (0.91, 1.26),
        "scan": (0.77, 1.33),
        "softmax": (1.13, 1.47),
    }
)
"""By category of a task, between which factors of its modelled eager latency half of the measured ones are,
of operators and problems that were left out whole of a fit to published rows of a 910B2 (`benchmarks/eager.py
--fit`); a category of fewer than ten is not here."""
ANY_SPREAD = (0.78, 1.25)
"""The same over all rows."""


def eager_spread(category: str) -> tuple[float, float]:
    """The factors of a category, 1 among them: a figure lies in its own interval."""
    low, high = EAGER_SPREAD.get(category, ANY_SPREAD)
    return min(low, 1.0), max(high, 1.0)


def error_of_quotient(low: float) -> float:
    """How much smaller a quotient may be whose divisor is a kernel's modelled latency, and whose dividend has
    an interval that begins at ``low`` of it: both errors, which are independent, in one."""
    return 1.0 - math.exp(-math.hypot(math.log(low), math.log1p(MODEL_ERROR)))
