"""Writing by index against NumPy: the last of several values stays, sums take all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import asdict

from evokernel_core.ascendc.author import initial, moves
from evokernel_core.ascendc.kernels.scatter.family import PutSchedule
from evokernel_core.domain.kernel import Strategy

RANDOM = np.random.default_rng(13)


def scattered(x: Any, index: Any, values: Any, dim: int, adds: bool) -> Any:
    """Element by element, in order."""
    out = x.copy()
    for place in np.ndindex(index.shape):
        target = (*place[:dim], index[place], *place[dim + 1 :])
        out[target] = out[target] + values[place] if adds else values[place]
    return out


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter(builder: Any, chip: Any, on_twin: Any, dim: int, adds: bool) -> None:
    b = builder()
    size = ("a", "k") if dim == 1 else ("k", "b")
    x, index, values = b.input("x", ("a", "b")), b.input("index", size, "int64"), b.input("v", size)
    op = "scatter_add.default" if adds else "scatter.src"
    task = b.task(b.call(op, x, dim, index, values, shape=("a", "b")), symbols={"a": 60, "b": 70, "k": 50})
    strategy = initial(task, chip)
    for a, c, k in [(1, 1, 1), (3, 50, 40), (60, 7, 9)]:
        source = RANDOM.normal(size=(a, c)).astype(np.float32)
        shape = (a, k) if dim == 1 else (k, c)
        places, given = RANDOM.integers(0, (a, c)[dim], shape), RANDOM.normal(size=shape).astype(np.float32)
        inputs = {"x": source, "index": places, "v": given}
        (found,) = on_twin(task, inputs, strategy, {"a": a, "b": c, "k": k})
        np.testing.assert_allclose(found, scattered(source, places, given, dim, adds), rtol=1e-5, atol=1e-6)


def test_scatter_of_one_value_and_of_expanded_indices(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, index = b.input("x", (4, 9, 33)), b.input("index", (4, 6, 1), "int64")
    wide = b.call("expand.default", index, (4, 6, 33), shape=(4, 6, 33), dtype="int64")
    runs = b.call("scatter.value", x, 1, wide, 7.0, shape=(4, 9, 33))
    source, places = RANDOM.normal(size=(4, 9, 33)).astype(np.float32), RANDOM.integers(0, 9, (4, 6, 1))
    (found,) = on_twin(b.task(runs), {"x": source, "index": places})
    spread = np.broadcast_to(places, (4, 6, 33))
    np.testing.assert_array_equal(found, scattered(source, spread, np.full((4, 6, 33), 7.0), 1, False))


@pytest.mark.parametrize(("dtype", "adds"), [("float32", True), ("float16", False), ("bfloat16", True)])
def test_rows_that_are_put(builder: Any, chip: Any, on_twin: Any, dtype: str, adds: bool) -> None:
    b = builder()
    x, index, values = (
        b.input("x", ("u", "d"), dtype),
        b.input("i", ("n",), "int32"),
        b.input("v", ("n", "d"), dtype),
    )
    task = b.task(
        b.call("index_put.default", x, (index,), values, adds, shape=("u", "d"), dtype=dtype),
        symbols={"u": 50, "d": 3000, "n": 80},
    )
    strategy = initial(task, chip)
    for u, d, n in [(1, 1, 1), (50, 3000, 80), (7, 33, 5)]:
        source, given = RANDOM.integers(-9, 9, (u, d)), RANDOM.integers(-9, 9, (n, d))
        places = RANDOM.integers(-u, u, n).astype(np.int32)
        cast = np.float32 if dtype == "bfloat16" else dtype
        inputs = {"x": source.astype(cast), "i": places, "v": given.astype(cast)}
        (found,) = on_twin(task, inputs, strategy, {"u": u, "d": d, "n": n})
        expected = source.astype(np.float64)
        for place, row in zip(places, given, strict=True):
            expected[place] = expected[place] + row if adds else row
        np.testing.assert_array_equal(found.astype(np.float64), expected)


@pytest.mark.parametrize(("dtype", "adds"), [("float32", False), ("int32", True)])
def test_cores_that_own_places(builder: Any, on_twin: Any, dtype: str, adds: bool) -> None:
    """Several values for one place come in order, places that no index names keep what they have, and runs
    may be longer than a tile."""
    b = builder()
    x, index = b.input("x", ("u", "d"), dtype), b.input("i", ("n",), "int64")
    task = b.task(
        b.call("index_put.default", x, (index,), b.input("v", ("n", "d"), dtype), adds,
               shape=("u", "d"), dtype=dtype),
        symbols={"u": 50, "d": 300, "n": 80},
    )  # fmt: skip
    strategy = Strategy("put", asdict(PutSchedule(16, 4096, owned=True)))
    for u, d, n in [(1, 1, 1), (130, 40, 70), (7, 1100, 5), (3, 33, 40)]:
        source, given = (RANDOM.integers(-9, 9, (rows, d)).astype(dtype) for rows in (u, n))
        places = RANDOM.integers(-u, u, n)
        (found,) = on_twin(task, {"x": source, "i": places, "v": given}, strategy, {"u": u, "d": d, "n": n})
        expected = source.copy()
        for place, row in zip(places, given, strict=True):
            expected[place] = expected[place] + row if adds else row
        np.testing.assert_array_equal(found, expected)


def test_rows_of_large_tensors_are_owned(builder: Any, chip: Any) -> None:
    b = builder()
    x, index, values = b.input("x", (8192, 1024)), b.input("i", (2048,), "int64"), b.input("v", (2048, 1024))
    task = b.task(b.call("index_put.default", x, (index,), values, False, shape=(8192, 1024)))
    assert initial(task, chip).setting("owned", False)


def test_elements_of_long_rows_are_put_in_tiles(builder: Any, chip: Any) -> None:
    """Copies would move every element of the rows by itself."""
    b = builder()
    x, index, v = b.input("x", (186, 17903)), b.input("index", (186, 32), "int32"), b.input("v", (186, 32))
    task = b.task(b.call("scatter_add.default", x, 1, index, v, shape=(186, 17903)))
    assert initial(task, chip).setting("picks", False)


def test_long_rows_are_put_in_parts(builder: Any, chip: Any, on_twin: Any) -> None:
    b = builder()
    x, index, values = b.input("x", (2, 40000)), b.input("i", (2, 3000), "int64"), b.input("v", (2, 3000))
    task = b.task(b.call("scatter.src", x, 1, index, values, shape=(2, 40000)))
    source, given = RANDOM.normal(size=(2, 40000)), RANDOM.normal(size=(2, 3000)).astype(np.float32)
    source = source.astype(np.float32)
    places = RANDOM.integers(0, 40000, (2, 3000))
    for strategy in (initial(task, chip), moves(task, initial(task, chip), chip)[-1].strategy):
        (found,) = on_twin(task, {"x": source, "i": places, "v": given}, strategy)
        np.testing.assert_array_equal(found, scattered(source, places, given, 1, False))


@pytest.mark.parametrize("adds", [False, True])
def test_fewer_indices_reach_the_first_part(builder: Any, on_twin: Any, adds: bool) -> None:
    b = builder()
    x, index, values = b.input("x", (4, 9, 5)), b.input("index", (3, 7, 2), "int64"), b.input("v", (4, 8, 3))
    op = "scatter_add.default" if adds else "scatter.src"
    task = b.task(b.call(op, x, 1, index, values, shape=(4, 9, 5)))
    source, given = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((4, 9, 5), (4, 8, 3)))
    places = RANDOM.integers(0, 9, (3, 7, 2))
    (found,) = on_twin(task, {"x": source, "index": places, "v": given})
    expected = scattered(source, places, given[:3, :7, :2], 1, adds)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("run", "adds"), [(1, True), (1, False), (40, True), (40, False)])
def test_indices_of_several_dimensions(builder: Any, on_twin: Any, run: int, adds: bool) -> None:
    b = builder()
    shape = (3, 11, 7) if run == 1 else (3, 11, 7, run)
    values = ("n",) if run == 1 else ("n", run)
    x, v = b.input("x", shape), b.input("v", (3, *values))
    i, j = b.input("i", ("n",), "int64"), b.input("j", (1,), "int32")
    put = b.call("index_put.default", x, (None, i, j), v, adds, shape=shape)
    task = b.task(put, symbols={"n": 50})
    for n in (1, 50):
        source = RANDOM.integers(-9, 9, shape).astype(np.float32)
        given = RANDOM.integers(-9, 9, (3, n, *values[1:])).astype(np.float32)
        rows, column = RANDOM.integers(-11, 11, n), RANDOM.integers(-7, 7, 1).astype(np.int32)
        (found,) = on_twin(task, {"x": source, "v": given, "i": rows, "j": column}, sizes={"n": n})
        expected = source.copy()
        for place, row in enumerate(rows):
            new = given[:, place]
            expected[:, row, column[0]] = expected[:, row, column[0]] + new if adds else new
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("adds", [False, True])
def test_elements_are_copied_or_put_in_a_tile(builder: Any, on_twin: Any, adds: bool) -> None:
    b = builder()
    x, index, values = (
        b.input("x", ("a", "b")),
        b.input("index", ("a", "k"), "int64"),
        b.input("v", ("a", "k")),
    )
    op = "scatter_add.default" if adds else "scatter.src"
    task = b.task(b.call(op, x, 1, index, values, shape=("a", "b")), symbols={"a": 60, "b": 70, "k": 50})
    for picks, a, c, k in [(False, 3, 500, 300), (True, 3, 500, 300), (False, 70, 5, 9), (True, 70, 5, 9)]:
        source, given = (RANDOM.normal(size=size).astype(np.float32) for size in ((a, c), (a, k)))
        places = RANDOM.integers(0, c, (a, k))
        inputs, strategy = (
            {"x": source, "index": places, "v": given},
            Strategy("put", asdict(PutSchedule(256, 4096, picks))),
        )
        (found,) = on_twin(task, inputs, strategy, {"a": a, "b": c, "k": k})
        np.testing.assert_allclose(found, scattered(source, places, given, 1, adds), rtol=1e-5, atol=1e-5)
