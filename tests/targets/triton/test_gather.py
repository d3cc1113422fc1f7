"""Family gather in Triton: elements and rows that indices choose, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import legalised
from evokernel_core.targets.triton.kernels.gather.gather_family import FAMILY
from tests.targets.ascendc.test_take_gather import CASES, Case

MORE = (Case("float32", 300, "int64", False, True), Case("float16", 40, "int32", True, False))
ALL = [case for case in (*CASES, *MORE) if case.shared or case.run == 1]


def _task(case: Case, builder: Any) -> KernelTask:
    b = builder()
    behind = () if case.run == 1 else (case.run,)
    x = b.input("x", ("a", "b", *behind), case.dtype)
    index = b.input("index", ("k",) if case.shared else ("a", "k"), case.index)
    shape = ("a", "k", *behind)
    if case.shared:
        op = "index.Tensor" if case.wraps else "index_select.default"
        args = (x, (None, index)) if case.wraps else (x, 1, index)
        result = b.call(op, *args, shape=shape, dtype=case.dtype)
    else:
        result = b.call("gather.default", x, 1, index, shape=shape, dtype=case.dtype)
    task: KernelTask = b.task(result, symbols={"a": 64, "b": 100, "k": 90})
    return legalised(task, load_chip())


@pytest.mark.parametrize("case", ALL, ids=str)
def test_rows_of_all_lengths(case: Case, builder: Any, interpreted: Any) -> None:
    task = _task(case, builder)
    rng = np.random.default_rng(17)
    behind = () if case.run == 1 else (case.run,)
    cast = np.float32 if case.dtype == "bfloat16" else case.dtype
    for a, size, k in [(1, 1, 1), (33, 7, 5), (3, 900, 700)]:
        values = rng.integers(-100, 100, (a, size, *behind)).astype(cast)
        low = -size if case.wraps else 0
        places = rng.integers(low, size, (k,) if case.shared else (a, k)).astype(case.index)
        (result,) = interpreted(FAMILY, task, {"x": values, "index": places}, {"a": a, "b": size, "k": k})
        expected = values[:, places] if case.shared else np.take_along_axis(values, places, 1)
        np.testing.assert_array_equal(result, expected)


def test_an_embedding(builder: Any, interpreted: Any) -> None:
    b = builder()
    table, index = b.input("table", ("v", "e")), b.input("index", ("n", 3), "int64")
    task = legalised(
        b.task(
            b.call("embedding.default", table, index, shape=("n", 3, "e")),
            symbols={"v": 90, "e": 64, "n": 20},
        ),
        load_chip(),
    )
    rng = np.random.default_rng(5)
    rows, chosen = rng.normal(size=(13, 70)).astype("f4"), rng.integers(0, 13, (9, 3))
    (result,) = interpreted(FAMILY, task, {"table": rows, "index": chosen}, {"v": 13, "e": 70, "n": 9})
    np.testing.assert_array_equal(result, rows[chosen].astype("f8"))


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any) -> None:
    for case in ALL:
        compiles(FAMILY, _task(case, builder))
