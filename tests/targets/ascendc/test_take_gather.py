"""Elements and short runs that the vector unit picks in the unified buffer, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import asdict, frozen

from evokernel_core.domain.kernel import Strategy
from evokernel_core.targets.ascendc.author import initial
from evokernel_core.targets.ascendc.kernels.gather.gather_settings import GatherSchedule

RANDOM = np.random.default_rng(17)


@frozen
class Case:
    """``run`` elements of ``dtype`` move with one index; ``wraps``: negative ones count from the end;
    ``shared``: all rows have the same."""

    dtype: str
    run: int
    index: str
    wraps: bool
    shared: bool


CASES = (
    Case("float32", 1, "int64", False, False),
    Case("float16", 1, "int32", True, True),
    Case("float32", 3, "int64", True, True),
    Case("int64", 1, "int64", True, True),
    Case("int64", 1, "int32", False, False),
    Case("bfloat16", 2, "int64", False, True),
)


def picking(runs: int, size: int) -> Strategy:
    return Strategy("take", asdict(GatherSchedule(runs, size, True)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_of_all_lengths(builder: Any, on_twin: Any, case: Case) -> None:
    b = builder()
    behind = () if case.run == 1 else (case.run,)
    x = b.input("x", ("a", "b", *behind), case.dtype)
    index = b.input("index", ("k",) if case.shared else ("a", "k"), case.index)
    shape = ("a", "k", *behind)
    if case.shared:
        op = "index.Tensor" if case.wraps else "index_select.default"
        args = (x, (None, index)) if case.wraps else (x, 1, index)
        found = b.call(op, *args, shape=shape, dtype=case.dtype)
    else:
        found = b.call("gather.default", x, 1, index, shape=shape, dtype=case.dtype)
    task = b.task(found, symbols={"a": 64, "b": 100, "k": 90})
    cast = np.float32 if case.dtype == "bfloat16" else case.dtype
    for strategy, a, size, k in [
        (picking(512, 4096), 1, 1, 1), (picking(512, 4096), 130, 7, 5), (picking(512, 4096), 3, 1500, 700),
        (picking(512, 4096), 2, 9000, 33),
    ]:  # fmt: skip
        values = RANDOM.integers(-100, 100, (a, size, *behind)).astype(cast)
        low = -size if case.wraps else 0
        places = RANDOM.integers(low, size, (k,) if case.shared else (a, k)).astype(case.index)
        (got,) = on_twin(task, {"x": values, "index": places}, strategy, {"a": a, "b": size, "k": k})
        expected = values[:, places] if case.shared else np.take_along_axis(values, places, 1)
        np.testing.assert_array_equal(got, expected)


def test_many_elements_are_picked(builder: Any, chip: Any) -> None:
    """A copy of each element would take longer than the operation one by one in PyTorch."""
    b = builder()
    x, index = b.input("x", ("a", "b")), b.input("index", ("a", "k"), "int64")
    task = b.task(
        b.call("gather.default", x, 1, index, shape=("a", "k")), symbols={"a": 4096, "b": 1000, "k": 100}
    )
    assert initial(task, chip).setting("picks")


def test_one_element_of_long_rows_is_copied(builder: Any, chip: Any) -> None:
    b = builder()
    x, index = b.input("x", ("a", "b")), b.input("index", ("a", 1), "int64")
    task = b.task(b.call("gather.default", x, 1, index, shape=("a", 1)), symbols={"a": 1024, "b": 50000})
    assert not initial(task, chip).setting("picks")


@pytest.mark.parametrize(
    ("dim", "dtype", "index_dtype"), [(0, "float32", "int64"), (1, "float16", "int32"), (1, "int64", "int64")]
)
def test_elements_along_another_dimension_are_picked_from_rows_too(
    dim: int, dtype: str, index_dtype: str, builder: Any, on_twin: Any
) -> None:
    b = builder()
    chosen = ["a", "b", "c"]
    chosen[dim] = "k"
    x, given = b.input("x", ("a", "b", "c"), dtype), b.input("index", chosen, index_dtype)
    wide = b.call("_to_copy.default", given, shape=chosen, dtype="int64") if dtype == "float16" else given
    task = b.task(
        b.call("gather.default", x, dim, wide, shape=chosen, dtype=dtype),
        symbols={"a": 96, "b": 70, "c": 64, "k": 50},
    )
    strategy = on_twin.initial(task)
    kernels = {kernel.family: dict(kernel.settings) for kernel in strategy.kernels}
    assert "integers" not in kernels  # indices of 32 bits are read as they are
    assert kernels.get("take", {"picks": True})["picks"]
    for a, size, c, k in ((96, 70, 64, 50), (1, 1, 1, 1), (7, 5, 33, 12)):
        values = RANDOM.integers(-100, 100, (a, size, c)).astype(dtype)
        shape = [a, size, c]
        shape[dim] = k
        places = RANDOM.integers(0, (a, size, c)[dim], shape).astype(index_dtype)
        sizes = {"a": a, "b": size, "c": c, "k": k}
        (got,) = on_twin(task, {"x": values, "index": places}, strategy, sizes)
        np.testing.assert_array_equal(got, np.take_along_axis(values, places, dim))
