"""Family embedding_bag in Triton against NumPy: sums, means and maxima of rows that indices choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.legalise import legalised
from evokernel_core.compiler.ops import BAG_MODES
from evokernel_core.targets.triton.kernels.embedding_bag.embedding_bag_family import FAMILY
from evokernel_core.targets.triton.target import TRITON
from tests.targets.ascendc.test_bag import OWN, bags, results

CASES = [
    ("sum", (-1, False, True), "float32"), ("mean", (2, True, False), "float32"),
    ("max", (2, False, False), "float32"), ("sum", (2, True, False), "float16"),
    ("max", (-1, True, False), "bfloat16"), ("mean", (-1, False, False), "float16"),
]  # fmt: skip


def _task(builder: Any, gpu: Any, mode: str, options: Any, dtype: str) -> Any:
    padding, whole, weighted = options
    b = builder()
    table, index = b.input("table", ("r", "d"), dtype), b.input("i", ("n",), "int64")
    starts = b.input("o", ("b",), "int32" if whole else "int64")
    weights = b.input("w", ("n",), dtype) if weighted else None
    size = "b - 1" if whole else "b"
    args = (table, index, starts, False, BAG_MODES.index(mode), False, weights, whole, padding)
    sizes = {"r": 50, "d": 70, "n": 900, "b": 40}
    return b.task(b.calls(OWN, *args, outputs=results(size, "d", dtype)), symbols=sizes)


@pytest.mark.parametrize(("mode", "options", "dtype"), CASES)
def test_bags_that_begin_at_offsets(
    mode: str, options: Any, dtype: str, builder: Any, interpreted: Any, gpu: Any
) -> None:
    padding, whole, weighted = options
    task = legalised(_task(builder, gpu, mode, options, dtype), gpu, TRITON)
    rng = np.random.default_rng(31)
    cast = np.float32 if dtype == "bfloat16" else dtype
    for r, d, n, count in [(1, 1, 1, 2), (9, 33, 70, 12)]:
        given, chosen = rng.integers(-9, 9, (r, d)), rng.integers(0, r, n)
        begin = np.sort(rng.integers(0, n + 1, count))
        begin[0] = 0
        factors = rng.integers(1, 4, n)
        inputs = {"table": given.astype(cast), "i": chosen, "o": begin}
        inputs |= {"w": factors.astype(np.float32)} if weighted else {}
        (result,) = interpreted(FAMILY, task, inputs, {"r": r, "d": d, "n": n, "b": count})
        ends = [*begin] if whole else [*begin, n]
        expected = bags(given, chosen, ends, mode, padding, factors if weighted else None)
        np.testing.assert_allclose(result, expected, rtol=1e-6 if dtype == "float32" else 4e-3, atol=1e-6)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_one_length(mode: str, builder: Any, interpreted: Any, gpu: Any) -> None:
    b = builder()
    table, index = b.input("table", ("r", 48)), b.input("i", ("a", 2, "l"), "int32")
    rows = b.call("embedding.default", table, index, shape=("a", 2, "l", 48))
    op = {"sum": "sum.dim_IntList", "mean": "mean.dim", "max": "amax.default"}[mode]
    task = b.task(b.call(op, rows, (2,), shape=("a", 2, 48)), symbols={"r": 500, "a": 100, "l": 20})
    task = legalised(task, gpu, TRITON)
    rng = np.random.default_rng(5)
    for r, a, length in [(1, 1, 1), (30, 7, 21)]:
        given = rng.normal(size=(r, 48)).astype(np.float32)
        chosen = rng.integers(0, r, (a, 2, length)).astype(np.int32)
        (result,) = interpreted(FAMILY, task, {"table": given, "i": chosen}, {"r": r, "a": a, "l": length})
        np.testing.assert_allclose(
            result, getattr(given[chosen].astype("f8"), mode)(axis=2), rtol=1e-4, atol=1e-4
        )


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any, gpu: Any) -> None:
    for case in CASES:
        compiles(FAMILY, legalised(_task(builder, gpu, *case), gpu, TRITON))
