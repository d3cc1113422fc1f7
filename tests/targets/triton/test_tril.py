"""Family tril in Triton: triangles of matrices, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.targets.triton.kernels.tril.tril_family import FAMILY


def _task(builder: Any, op: str, diagonal: int, dtype: str) -> Any:
    graph = builder()
    x = graph.input("x", ("a", "m", "n"), dtype)
    result = graph.call(f"{op}.default", x, diagonal, shape=("a", "m", "n"), dtype=dtype)
    return graph.task(result, symbols={"a": 2, "m": 20, "n": 50})


@pytest.mark.parametrize(("op", "dtype"), [("triu", "float32"), ("tril", "bool"), ("tril", "int64")])
@pytest.mark.parametrize("diagonal", [-3, 0, 4])
def test_triangles(op: str, dtype: str, diagonal: int, builder: Any, interpreted: Any) -> None:
    task = _task(builder, op, diagonal, dtype)
    rng = np.random.default_rng(0)
    for a, m, n in [(1, 1, 1), (3, 17, 70)]:
        x = rng.integers(1, 9, (a, m, n)).astype(
            "?" if dtype == "bool" else "i8" if dtype == "int64" else "f4"
        )
        if dtype == "float32":
            x = np.where(getattr(np, op)(np.ones_like(x), diagonal) > 0, x, np.nan)  # is not multiplied by 0
        (result,) = interpreted(FAMILY, task, {"x": x}, {"a": a, "m": m, "n": n})
        np.testing.assert_array_equal(result, getattr(np, op)(np.nan_to_num(x), diagonal))


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any) -> None:
    for dtype in ("float32", "bool", "int64"):
        compiles(FAMILY, _task(builder, "tril", 1, dtype))
