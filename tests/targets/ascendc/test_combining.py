"""Values combined with those at indices, against NumPy: sums, products, means and extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.ops import SCATTER_PARTS
from evokernel_core.domain.errors import PlanError
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import initial, legalised, moves
from tests.tables import few

RANDOM = np.random.default_rng(29)
COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda kept, value: kept + value,
    "prod": lambda kept, value: kept * value,
    "mean": lambda kept, value: kept + value,
    "amax": np.maximum,
    "amin": np.minimum,
}
NEUTRAL = {"sum": 0, "prod": 1, "mean": 0, "amax": -np.inf, "amin": np.inf}


def reduced(x: Any, index: Any, values: Any, dim: int, reduce: str, includes: bool) -> Any:
    """Element by element, in float64."""
    out, counts = x.astype(np.float64), np.full(x.shape, float(includes))
    places = [(*place[:dim], index[place], *place[dim + 1 :]) for place in np.ndindex(index.shape)]
    if not includes:
        for target in places:
            out[target] = NEUTRAL[reduce]
    for place, target in zip(np.ndindex(index.shape), places, strict=True):
        out[target] = COMBINED[reduce](out[target], float(values[place]))
        counts[target] += 1
    return out / np.maximum(counts, 1) if reduce == "mean" else out


@few(
    ("reduce", "includes"),
    [("sum", True), ("prod", False), ("mean", True), ("amax", False), ("amin", True)],
    keep=(
        1,
        2,
    ),
)
def test_one_index_for_each_element(builder: Any, on_twin: Any, reduce: str, includes: bool) -> None:
    b = builder()
    dim = int(includes)
    size = ("a", "k") if dim == 1 else ("k", "b")
    x, index, v = b.input("x", ("a", "b")), b.input("index", size, "int64"), b.input("v", size)
    found = b.call("scatter_reduce.two", x, dim, index, v, reduce, include_self=includes, shape=("a", "b"))
    task = b.task(found, symbols={"a": 20, "b": 30, "k": 40})
    for a, c, k in [(1, 1, 1), (20, 7, 40)]:
        shape = (a, k) if dim == 1 else (k, c)
        source, given = (RANDOM.uniform(0.5, 1.5, size=size).astype(np.float32) for size in ((a, c), shape))
        places = RANDOM.integers(0, (a, c)[dim], shape)
        (found,) = on_twin(task, {"x": source, "index": places, "v": given}, sizes={"a": a, "b": c, "k": k})
        expected = reduced(source, places, given, dim, reduce, includes)
        np.testing.assert_allclose(found, expected, rtol=2e-5)


@few(
    ("reduce", "includes", "dtype"),
    [
        ("sum", True, "float32"),
        ("mean", False, "float16"),
        ("amax", False, "float32"),
        ("amin", True, "int32"),
        ("prod", True, "float32"),
        ("sum", True, "int64"),
    ],
    keep=(
        1,
        3,
        4,
    ),
)
def test_indices_of_whole_rows(
    builder: Any, on_twin: Any, chip: Any, reduce: str, includes: bool, dtype: str
) -> None:
    b = builder()
    x, v = b.input("x", ("u", "d"), dtype), b.input("v", ("n", "d"), dtype)
    column = b.input("index", ("n", 1), "int64")
    index = b.call("expand.default", column, ("n", "d"), shape=("n", "d"), dtype="int64")
    found = b.call(
        "scatter_reduce.two", x, 0, index, v, reduce, include_self=includes, shape=("u", "d"), dtype=dtype
    )
    task = b.task(found, symbols={"u": 30, "d": 64, "n": 900})
    strategy = initial(task, chip)
    for u, d, n in [(1, 1, 1), (13, 40, 70)]:
        low, high = (1, 3) if reduce == "prod" else (-9, 9)
        source, given = RANDOM.integers(low, high, (u, d)), RANDOM.integers(low, high, (n, d))
        given = np.where(RANDOM.random((n, d)) < 0.9, 1, given) if reduce == "prod" else given
        places = RANDOM.integers(0, u, (n, 1))
        inputs = {"x": source.astype(dtype), "index": places, "v": given.astype(dtype)}
        (got,) = on_twin(task, inputs, strategy, {"u": u, "d": d, "n": n})
        expected = reduced(source, np.broadcast_to(places, (n, d)), given, 0, reduce, includes)
        np.testing.assert_allclose(got, expected, rtol=1e-3 if dtype == "float16" else 2e-6)


@pytest.mark.parametrize("shape", [("u",), ("u", 64)])
@few("reduce", ["sum", "amax"], keep=(0,))
def test_many_entries_are_dealt_out(
    builder: Any, on_twin: Any, chip: Any, shape: tuple[Any, ...], reduce: str
) -> None:
    """One core for all entries of few places would be slow: each part has a result of its own."""
    b = builder()
    x, v = b.input("x", shape), b.input("v", ("n", *shape[1:]))
    index = column = b.input("index", ("n", *(1 for _ in shape[1:])), "int64")
    if len(shape) == 2:
        index = b.call("expand.default", column, ("n", 64), shape=("n", 64), dtype="int64")
    found = b.call("scatter_reduce.two", x, 0, index, v, reduce, include_self=True, shape=shape)
    task = b.task(found, symbols={"u": 500 if len(shape) == 1 else 4, "n": 20000})
    assert SCATTER_PARTS.name in [node.op for node in legalised(task, load_chip()).graph.nodes]
    first = initial(task, chip)
    for strategy, u, n in [(first, 500, 700), (moves(task, first, chip)[0].strategy, 9, 1), (first, 3, 47)]:
        source = RANDOM.normal(size=(u, *shape[1:])).astype(np.float32)
        given = RANDOM.normal(size=(n, *shape[1:])).astype(np.float32)
        places = RANDOM.integers(0, u, (n, *(1 for _ in shape[1:])))
        (got,) = on_twin(task, {"x": source, "index": places, "v": given}, strategy, {"u": u, "n": n})
        expected = reduced(source, np.broadcast_to(places, given.shape), given, 0, reduce, True)
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("start", [0, 5])
def test_integers_are_counted(builder: Any, on_twin: Any, start: int) -> None:
    b = builder()
    index = b.input("index", ("n",), "int64")
    zeros = b.call("full.default", (40,), start, shape=(40,), dtype="int64")
    ones = b.call("ones_like.default", index, shape=("n",), dtype="int64")
    task = b.task(
        b.call("scatter_add.default", zeros, 0, index, ones, shape=(40,), dtype="int64"),
        symbols={"n": 100000},
    )
    assert SCATTER_PARTS.name in [node.op for node in legalised(task, load_chip()).graph.nodes]
    for n in (1, 3000):
        places = RANDOM.integers(0, 40, n)
        (got,) = on_twin(task, {"index": places}, sizes={"n": n})
        np.testing.assert_array_equal(got, start + np.bincount(places, minlength=40))


def test_a_number_is_combined(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, index = b.input("x", (6, 20)), b.input("index", (6, 30), "int64")
    found = b.call("scatter.value_reduce", x, 1, index, 2.0, reduce="multiply", shape=(6, 20))
    source, places = RANDOM.normal(size=(6, 20)).astype(np.float32), RANDOM.integers(0, 20, (6, 30))
    (got,) = on_twin(b.task(found), {"x": source, "index": places})
    np.testing.assert_allclose(got, reduced(source, places, np.full((6, 30), 2.0), 1, "prod", True))


def test_small_integers_are_refused(builder: Any, chip: Any) -> None:
    b = builder()
    x, index, v = b.input("x", (6,), "int8"), b.input("index", (9,), "int64"), b.input("v", (9,), "int8")
    found = b.call("scatter_add.default", x, 0, index, v, shape=(6,), dtype="int8")
    with pytest.raises(PlanError, match="int8"):
        initial(b.task(found), chip)
