"""Family scan in Triton: running sums, products, maxima, minima and log-sum-exps, along any dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.targets.triton.kernels.scan.scan_family import FAMILY
from tests.tables import few
from tests.targets.ascendc.test_scan import CASES, drawn, expected, scan_task

TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
SLOW = {"prod", "max", "min", "logaddexp"}
"""What the interpreter goes through element by element."""


def _task(case: Any, across: bool, builder: Any) -> Any:
    op, flags, dtype, masked = case
    shape, sizes = (("a", "b"), {"a": 64, "b": 200})
    if across:
        shape, sizes = ("a", "b", "c"), {"a": 2, "b": 200, "c": 64}
    return scan_task(builder, shape, 1, op, flags, dtype, masked, sizes)


@pytest.mark.parametrize("across", [False, True])
@few("case", CASES, keep=(0, 3, 6, 8, 9, 10))
def test_scans_at_many_sizes(case: Any, across: bool, builder: Any, interpreted: Any) -> None:
    op, flags, dtype, masked = case
    task = _task(case, across, builder)
    bounds = [(1, 1), (3, 40), (2, 300 if op in SLOW else 2000)]
    if across:
        bounds = [(1, 1, 1), (2, 30, 3), (1, 90, 20)]
    for seed, bound in enumerate(bounds):
        x = drawn(bound, op, dtype, seed)
        inputs, seen = {"x": x}, x
        if masked:
            inputs["mask"] = np.random.default_rng(seed).random(bound) < 0.5
            seen = x * inputs["mask"]
        (result,) = interpreted(FAMILY, task, inputs, dict(zip("abc", bound, strict=False)))
        found = expected(seen, 1, op, *flags)
        scale = max(1.0, float(np.abs(found[np.isfinite(found)]).max(initial=0.0)))
        np.testing.assert_allclose(result, found, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("op", ["max", "min", "sum", "logaddexp"])
def test_what_is_not_finite(op: str, builder: Any, interpreted: Any) -> None:
    task = scan_task(builder, ("a", "b"), 1, op, (False, False), "float32", False, {"a": 4, "b": 40})
    x = np.random.default_rng(3).normal(size=(4, 40)).astype("f4")
    x[0, 7], x[1, 3], x[1, 9], x[2, 30], x[3, :5] = np.nan, np.inf, np.inf, -np.inf, -np.inf
    (result,) = interpreted(FAMILY, task, {"x": x})
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(result, expected(x, 1, op, False, False), rtol=1e-5, atol=1e-5)


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any) -> None:
    for case in CASES:
        for across in (False, True):
            compiles(FAMILY, _task(case, across, builder))
