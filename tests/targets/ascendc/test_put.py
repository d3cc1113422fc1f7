"""Writing by index against NumPy: the last of several values stays, sums take all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import asdict

from evokernel_core.compiler.ops import LAST, SCATTER
from evokernel_core.compiler.problems.scatter import Put
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.graph import Node, SymbolicInt, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.ascend.eager import eager_us
from evokernel_core.targets.ascendc.author import estimate_us, initial, moves, write
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.kernels.scatter import sorted as scatter_sorted
from evokernel_core.targets.ascendc.kernels.scatter.scatter_settings import ScatterSchedule
from evokernel_core.twin.build import build_kernel
from evokernel_core.twin.run import Mode, RunRequest, TensorFile, run_kernel
from tests.tables import few

RANDOM = np.random.default_rng(13)


def scattered(x: Any, index: Any, values: Any, dim: int, adds: bool) -> Any:
    """Element by element, in order."""
    out = x.copy()
    for place in np.ndindex(index.shape):
        target = (*place[:dim], index[place], *place[dim + 1 :])
        out[target] = out[target] + values[place] if adds else values[place]
    return out


@few(("dim", "adds"), [(0, False), (0, True), (1, False), (1, True)], keep=(0, 3))
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


@pytest.mark.parametrize("op", ["index_add", "index_copy"])
def test_slices_of_a_dimension_that_are_put(builder: Any, on_twin: Any, op: str) -> None:
    b = builder()
    x, index, values = b.input("x", (4, 9, 7)), b.input("i", (6,), "int64"), b.input("v", (4, 6, 7))
    more = {"alpha": 2.0} if op == "index_add" else {}
    source, given = (RANDOM.integers(-9, 9, (4, size, 7)).astype(np.float32) for size in (9, 6))
    places = RANDOM.permutation(9)[:6] if op == "index_copy" else RANDOM.integers(0, 9, 6)
    task = b.task(b.call(f"{op}.default", x, 1, index, values, shape=(4, 9, 7), **more))
    (found,) = on_twin(task, {"x": source, "i": places, "v": given})
    expected = source.copy()
    for number, place in enumerate(places):
        before = expected[:, place] if op == "index_add" else 0
        expected[:, place] = before + given[:, number] * more.get("alpha", 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("dtype", "adds", "sums"),
    [("float32", False, 0), ("int16", False, 0), ("int32", True, 0), ("float32", True, 4096)],
)
def test_cores_that_own_places(builder: Any, on_twin: Any, dtype: str, adds: bool, sums: int) -> None:
    """Several values for one place come in order, places that no index names keep what they have, and runs
    may be longer than a tile."""
    b = builder()
    x, index = b.input("x", ("u", "d"), dtype), b.input("i", ("n",), "int64")
    task = b.task(
        b.call("index_put.default", x, (index,), b.input("v", ("n", "d"), dtype), adds,
               shape=("u", "d"), dtype=dtype),
        symbols={"u": 50, "d": 300, "n": 80},
    )  # fmt: skip
    strategy = Strategy("put", asdict(ScatterSchedule(64, 4096, owned=True, sums=sums)))
    for u, d, n in [(1, 1, 1), (130, 40, 270), (7, 1100, 5), (3, 33, 40)]:
        source, given = (RANDOM.integers(-9, 9, (rows, d)).astype(dtype) for rows in (u, n))
        places = RANDOM.integers(-u, u, n)
        (found,) = on_twin(task, {"x": source, "i": places, "v": given}, strategy, {"u": u, "d": d, "n": n})
        expected = source.copy()
        for place, row in zip(places, given, strict=True):
            expected[place] = expected[place] + row if adds else row
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("sums", [0, 4096])
def test_zeros_to_which_rows_are_added_are_not_read(builder: Any, on_twin: Any, sums: int) -> None:
    """Every place is zero at first, though nobody wrote zeros before."""
    b = builder()
    zeros = b.call("full.default", (SymbolicInt("u"), SymbolicInt("d")), 0.0, shape=("u", "d"))
    index, values = b.input("i", ("n",), "int64"), b.input("v", ("n", "d"))
    task = b.task(
        b.call("index_put.default", zeros, (index,), values, True, shape=("u", "d")),
        symbols={"u": 50, "d": 300, "n": 80},
    )
    assert initial(task, on_twin.chip).family == "put"
    strategy = Strategy("put", asdict(ScatterSchedule(64, 4096, owned=True, sums=sums)))
    for u, d, n in [(1, 1, 1), (130, 40, 270), (7, 1100, 5), (300, 33, 40)]:
        given = RANDOM.integers(-9, 9, (n, d)).astype(np.float32)
        places = RANDOM.integers(-u, u, n)
        (found,) = on_twin(task, {"i": places, "v": given}, strategy, {"u": u, "d": d, "n": n})
        expected = np.zeros((u, d), np.float32)
        np.add.at(expected, places, given)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_gradients_of_embeddings_are_one_kernel(builder: Any, on_twin: Any, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    b = builder()
    grad, index = b.input("g", (3, 17, 40), dtype), b.input("i", (3, 17), "int64")
    call = b.call("embedding_dense_backward.default", grad, index, 90, -1, False, shape=(90, 40), dtype=dtype)
    given = RANDOM.integers(-9, 9, (3, 17, 40)).astype(np.float32)
    places = RANDOM.integers(0, 90, (3, 17))
    inputs = {"g": given if dtype == "bfloat16" else given.astype(dtype), "i": places}
    (found,) = on_twin(b.task(call), inputs)
    expected = torch.ops.aten.embedding_dense_backward(*map(torch.from_numpy, (given, places)), 90, -1, False)
    np.testing.assert_array_equal(np.asarray(found, np.float32), expected.numpy())
    if dtype == "float32":
        assert initial(b.task(call), on_twin.chip).family == "put"


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


@few(("run", "adds"), [(1, True), (1, False), (40, True), (40, False)], keep=(0, 3))
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
            Strategy("put", asdict(ScatterSchedule(256, 4096, picks))),
        )
        (found,) = on_twin(task, inputs, strategy, {"a": a, "b": c, "k": k})
        np.testing.assert_allclose(found, scattered(source, places, given, 1, adds), rtol=1e-5, atol=1e-5)


KINDS = [("float32", True), ("int32", True), ("float32", False), ("int16", False)]


@few(
    ("dtype", "adds", "index"),
    [(*kind, index) for kind in KINDS for index in ("int32", "int64")],
    keep=(0, 3, 5, 6),
)
def test_elements_are_sorted_by_their_places(
    builder: Any, on_twin: Any, dtype: str, adds: bool, index: str
) -> None:
    """Several short rows in a tile, one, long rows in ranges, more entries than are sorted at a time, all of
    them for one place, and none for most."""
    b = builder()
    x, places, values = (
        b.input("x", ("a", "b"), dtype),
        b.input("index", ("a", "k"), index),
        b.input("v", ("a", "k"), dtype),
    )
    op = "scatter_add.default" if adds else "scatter.src"
    put = b.call(op, x, 1, places, values, shape=("a", "b"), dtype=dtype)
    task = b.task(put, symbols={"a": 60, "b": 70, "k": 50})
    strategy = Strategy("put", asdict(ScatterSchedule(128, 1024 * 4, held=256)))
    for a, c, k, spread in [
        (100, 7, 9, 7),
        (1, 1, 1, 1),
        (2, 1500, 900, 1500),
        (3, 1024, 700, 1),
        (1, 130, 65, 3),
    ]:
        source, given = (RANDOM.integers(-99, 99, size).astype(dtype) for size in ((a, c), (a, k)))
        chosen = RANDOM.integers(0, spread, (a, k)).astype(index)
        inputs, sizes = {"x": source, "index": chosen, "v": given}, {"a": a, "b": c, "k": k}
        (found,) = on_twin(task, inputs, strategy, sizes)
        np.testing.assert_array_equal(found, scattered(source, chosen, given, 1, adds))


@pytest.mark.parametrize("adds", [False, True])
def test_sorted_elements_count_from_the_end_and_leave_the_others(
    builder: Any, on_twin: Any, adds: bool
) -> None:
    """Infinities and what is no number stay at the places that they belong to."""
    b = builder()
    x, places, values = b.input("x", (1, 500, 1)), b.input("i", (1, 300), "int64"), b.input("v", (1, 300, 1))
    node = Node(
        "put",
        SCATTER.name,
        (x, (places,), values, "add" if adds else LAST, True),
        (),
        (TensorSpec((1, 500, 1), "float32"),),
    )
    b.nodes.append(node)
    task = b.task(ValueRef("put"))
    source, given = (RANDOM.normal(size=size).astype(np.float32) for size in (500, 300))
    source[::7], given[::5], given[::6] = np.inf, np.nan, -np.inf
    chosen = RANDOM.integers(-500, 500, 300)
    expected = source.copy()
    for place, value in zip(chosen, given, strict=True):
        expected[place] = expected[place] + value if adds else value
    strategy = Strategy("put", asdict(ScatterSchedule(64, 256 * 4, held=128)))
    (found,) = on_twin(task, {"x": source, "i": chosen, "v": given}, strategy)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-5, atol=1e-6)


@few(("count", "adds"), [(385, False), (385, True), (410, False), (410, True)], keep=(1, 2))
def test_three_whole_runs_and_a_part_are_merged(builder: Any, on_twin: Any, count: int, adds: bool) -> None:
    """What groups of four sorted runs leave behind them may be four runs, too, of which the last is short."""
    b, shape = builder(), (48, count)
    x, index, values = b.input("x", (48, 900)), b.input("index", shape, "int64"), b.input("v", shape)
    op = "scatter_add.default" if adds else "scatter.src"
    task = b.task(b.call(op, x, 1, index, values, shape=(48, 900)))
    strategy = Strategy("put", asdict(ScatterSchedule(1024, 5632, held=1536)))
    source, given = (RANDOM.integers(-9, 9, (48, n)).astype(np.float32) for n in (900, count))
    places = RANDOM.integers(0, 900, shape)
    (found,) = on_twin(task, {"x": source, "index": places, "v": given}, strategy)
    np.testing.assert_array_equal(found, scattered(source, places, given, 1, adds))


@pytest.mark.parametrize(("kind", "parts"), [(LAST, 0), ("add", 0), ("add", 7)])
def test_what_sorting_takes_is_known_without_its_kernel(kind: str, parts: int) -> None:
    source, places = None if parts else "x", (("i", "int64", extent(5000)),)
    sizes = extent(3), extent(900), extent(1)
    found = Put(source, places, "v", "float32", kind, *sizes, False, False, parts)
    item = ScatterSchedule(512, 2048 * 4, held=1024)
    assert scatter_sorted.ub_bytes(found, item) == allocation.bytes_of(scatter_sorted.build(found, item))


def test_rows_of_entries_are_sorted_by_default(builder: Any, chip: Any) -> None:
    b = builder()
    x, index, values = b.input("x", (64, 8192)), b.input("i", (64, 4096), "int64"), b.input("v", (64, 4096))
    task = b.task(b.call("scatter.src", x, 1, index, values, shape=(64, 8192)))
    assert initial(task, chip).setting("held", 0)


def test_owned_places_of_several_indices(builder: Any, on_twin: Any) -> None:
    """Two indices, of which one is beside all runs; what several outer rows share is looked at for each."""
    b = builder()
    x, v = b.input("x", (3, 20, 7, 40)), b.input("v", (3, 90, 40))
    i, j = b.input("i", (90,), "int64"), b.input("j", (1,), "int32")
    task = b.task(b.call("index_put.default", x, (None, i, j), v, False, shape=(3, 20, 7, 40)))
    source, given = (RANDOM.normal(size=size).astype(np.float32) for size in ((3, 20, 7, 40), (3, 90, 40)))
    rows, column = RANDOM.integers(-20, 20, 90), np.array([-3], np.int32)
    strategy = Strategy("put", asdict(ScatterSchedule(64, 4096, owned=True)))
    whole = initial(task, load_chip())
    for chosen in (whole, strategy) if whole.family == "put" else (whole,):
        (found,) = on_twin(task, {"x": source, "v": given, "i": rows, "j": column}, chosen)
        expected = source.copy()
        for place, row in enumerate(rows):
            expected[:, row, -3] = given[:, place]
        np.testing.assert_array_equal(found, expected)


def test_gradients_of_embeddings_are_not_put_in_parts(builder: Any, chip: Any) -> None:
    """Few entries of a large table: copies of parts of it would move it again and again."""
    b = builder()
    x, index, values = b.input("x", (100_000, 64)), b.input("i", (8192,), "int64"), b.input("v", (8192, 64))
    task = b.task(b.call("index_put.default", x, (index,), values, True, shape=(100_000, 64)))
    strategy = initial(task, chip)
    assert strategy.family == "put" and strategy.setting("owned", False)
    assert estimate_us(task, strategy, chip) < 2 * eager_us(task, chip)


@pytest.mark.parametrize("adds", [False, True])
def test_sorting_takes_the_time_that_it_takes_on_data(
    builder: Any, chip: Any, tmp_path: Path, adds: bool
) -> None:
    """How often places repeat decides how many sums there are: timing mode knows that of the indices."""
    b = builder()
    x, index, values = b.input("x", (2, 300)), b.input("i", (2, 170), "int64"), b.input("v", (2, 170))
    op = "scatter_add.default" if adds else "scatter.src"
    task = b.task(b.call(op, x, 1, index, values, shape=(2, 300)))
    built = build_kernel(write(task, Strategy("put", asdict(ScatterSchedule(64, 1024, held=256))), chip))
    arrays = [np.ones((2, 300), np.float32), RANDOM.integers(0, 300, (2, 170)), np.ones((2, 170), np.float32)]
    files = []
    for place, array in enumerate(arrays):
        files.append(TensorFile(tmp_path / f"{place}.bin", array.nbytes))
        (tmp_path / f"{place}.bin").write_bytes(array.tobytes())
    unknown = [TensorFile(None, file.nbytes) for file in files]
    out = TensorFile(tmp_path / "out.bin", 2400)
    checked = run_kernel(built, RunRequest(Mode.CHECK, chip, inputs=tuple(files), outputs=(out,)))
    inputs = (unknown[0], files[1], unknown[2])
    timed = run_kernel(built, RunRequest(Mode.TIME, chip, inputs=inputs, outputs=(TensorFile(None, 2400),)))
    assert timed.instructions == checked.instructions
    assert timed.latency_us == pytest.approx(checked.latency_us, rel=1e-6)
