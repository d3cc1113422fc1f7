"""Reading by index against NumPy: every dimension, shared and own indices, symbolic sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from evokernel_core.compiler.ops import GATHER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.author import initial, legalised, moves, write
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.twin.build import build_kernel
from evokernel_core.twin.run import Mode, RunRequest, TensorFile, run_kernel

RANDOM = np.random.default_rng(7)


def test_gather_of_every_dimension(builder: Any, chip: Any, on_twin: Any) -> None:
    for dim in (0, 1, 2):
        b = builder()
        x = b.input("x", ("a", "b", "c"))
        size = tuple("k" if axis == dim else name for axis, name in enumerate("abc"))
        index = b.input("index", size, "int64")
        task = b.task(
            b.call("gather.default", x, dim, index, shape=size), symbols={"a": 9, "b": 8, "c": 7, "k": 5}
        )
        strategy = initial(task, chip)
        for a, bb, c, k in [(3, 4, 5, 6), (1, 1, 1, 1), (7, 30, 11, 100)]:
            values = RANDOM.normal(size=(a, bb, c)).astype(np.float32)
            shape = [a, bb, c]
            shape[dim] = k
            places = RANDOM.integers(0, (a, bb, c)[dim], shape)
            sizes = {"a": a, "b": bb, "c": c, "k": k}
            (found,) = on_twin(task, {"x": values, "index": places}, strategy, sizes)
            np.testing.assert_array_equal(found, np.take_along_axis(values, places, dim))


def test_gather_from_a_larger_source(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, index = b.input("x", (6, 9, 5)), b.input("index", (4, 3, 2), "int64")
    task = b.task(b.call("gather.default", x, 1, index, shape=(4, 3, 2)))
    values = RANDOM.normal(size=(6, 9, 5)).astype(np.float32)
    places = RANDOM.integers(0, 9, (4, 3, 2))
    (found,) = on_twin(task, {"x": values, "index": places})
    np.testing.assert_array_equal(found, np.take_along_axis(values[:4, :, :2], places, 1))


def test_gather_of_expanded_indices_moves_runs(builder: Any, chip: Any, on_twin: Any) -> None:
    b = builder()
    x, index = b.input("x", (4, 9, 33)), b.input("index", (4, 6, 1), "int64")
    wide = b.call("expand.default", index, (4, 6, 33), shape=(4, 6, 33), dtype="int64")
    task = b.task(b.call("gather.default", x, 1, wide, shape=(4, 6, 33)))
    assert "expand" not in write(task, initial(task, chip), chip).files[KERNEL]
    values = RANDOM.normal(size=(4, 9, 33)).astype(np.float32)
    places = RANDOM.integers(0, 9, (4, 6, 1))
    (found,) = on_twin(task, {"x": values, "index": places})
    np.testing.assert_array_equal(found, np.take_along_axis(values, np.broadcast_to(places, (4, 6, 33)), 1))


@frozen
class Rows:
    """Rows of ``u`` x ``d`` along ``dim`` that an operation takes; ``wraps``: -1 is the last one."""

    op: str
    dim: int
    dtype: str
    index: str = "int64"
    wraps: bool = True

    def task(self, builder: Any, **sizes: int) -> KernelTask:
        b = builder()
        x, index = b.input("x", ("u", "d"), self.dtype), b.input("index", ("n", "v"), self.index)
        chosen: Any = index if self.op == "embedding.default" else (None,) * self.dim + (index,)
        shape = ("n", "v", "d") if self.dim == 0 else ("u", "n", "v")
        return b.task(b.call(self.op, x, chosen, shape=shape, dtype=self.dtype), symbols=sizes)  # type: ignore[no-any-return]


ROWS = [
    Rows("embedding.default", 0, "float16", wraps=False),
    Rows("index.Tensor", 0, "float32", "int32"),
    Rows("index.Tensor", 1, "int64"),
]


@pytest.mark.parametrize("rows", ROWS)
def test_rows_that_indices_choose(builder: Any, chip: Any, on_twin: Any, rows: Rows) -> None:
    task = rows.task(builder, u=50, d=64, n=8, v=3)
    strategy = initial(task, chip)
    for u, d, n, v in [(1, 1, 1, 1), (50, 64, 8, 3), (13, 17, 5, 9), (300, 5000, 2, 40)]:
        values = RANDOM.integers(-99, 99, (u, d)).astype(rows.dtype)
        size = (u, d)[rows.dim]
        places = RANDOM.integers(-size if rows.wraps else 0, size, (n, v)).astype(rows.index)
        (found,) = on_twin(task, {"x": values, "index": places}, strategy, {"u": u, "d": d, "n": n, "v": v})
        np.testing.assert_array_equal(found, np.take(values, places % size, rows.dim))


def test_several_indices_are_broadcast(builder: Any, on_twin: Any) -> None:
    b = builder()
    x = b.input("x", (3, 7, 5, 4))
    i, j = b.input("i", (6, 1), "int64"), b.input("j", (2,), "int64")
    task = b.task(b.call("index.Tensor", x, (None, i, j), shape=(3, 6, 2, 4)))
    values = RANDOM.normal(size=(3, 7, 5, 4)).astype(np.float32)
    first, second = RANDOM.integers(-7, 7, (6, 1)), RANDOM.integers(-5, 5, 2)
    (found,) = on_twin(task, {"x": values, "i": first, "j": second})
    np.testing.assert_array_equal(found, values[:, first, second])


def test_indices_outside_read_the_nearest_element(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, index = b.input("x", (5, 8)), b.input("index", (4,), "int64")
    task = b.task(b.call("index_select.default", x, 0, index, shape=(4, 8)))
    values = RANDOM.normal(size=(5, 8)).astype(np.float32)
    (found,) = on_twin(task, {"x": values, "index": np.array([-1, 2, 5, 2**40])})
    np.testing.assert_array_equal(found, values[[0, 2, 4, 4]])


def test_every_move_is_right(builder: Any, chip: Any, on_twin: Any) -> None:
    b = builder()
    x, index = b.input("x", (40, 700)), b.input("index", (300,), "int64")
    task = b.task(b.call("index_select.default", x, 0, index, shape=(300, 700)))
    values, places = RANDOM.normal(size=(40, 700)).astype(np.float32), RANDOM.integers(0, 40, 300)
    for move in moves(task, initial(task, chip), chip):
        (found,) = on_twin(task, {"x": values, "index": places}, move.strategy)
        np.testing.assert_array_equal(found, values[places], move.name)


def test_masks_as_indices_are_refused(builder: Any, chip: Any) -> None:
    b = builder()
    x, mask = b.input("x", (5, 8)), b.input("mask", (5,), "bool")
    with pytest.raises(PlanError, match="mask chooses"):
        initial(b.task(b.call("index.Tensor", x, (mask,), shape=(3, 8))), chip)


def test_known_indices_are_timed_like_data(builder: Any, chip: Any, tmp_path: Path) -> None:
    b = builder()
    x, index = b.input("x", (4096, 256)), b.input("index", (3000,), "int64")
    task = b.task(b.call("index_select.default", x, 0, index, shape=(3000, 256)))
    built = build_kernel(write(task, initial(task, chip), chip))
    (tmp_path / "x").write_bytes(np.zeros((4096, 256), np.float32).tobytes())
    (tmp_path / "index").write_bytes(RANDOM.integers(0, 4096, 3000).tobytes())
    out = TensorFile(tmp_path / "out", 3000 * 1024)

    def us(mode: Mode, **paths: Path | None) -> float:
        inputs = (TensorFile(paths.get("x"), 4096 * 1024), TensorFile(paths.get("index"), 3000 * 8))
        return run_kernel(built, RunRequest(mode, chip, inputs=inputs, outputs=(out,))).latency_us

    with_data = us(Mode.CHECK, x=tmp_path / "x", index=tmp_path / "index")
    assert us(Mode.TIME, index=tmp_path / "index") == pytest.approx(with_data, rel=0.01)
    assert us(Mode.TIME) < 0.95 * with_data  # all rows the same one, which the cache holds


def test_remainders_of_indices_count_from_the_end(builder: Any, chip: Any, on_twin: Any) -> None:
    b = builder()
    x, index = b.input("x", (4, "n")), b.input("index", (4, 6), "int64")
    inside = b.call("remainder.Scalar", index, SymbolicInt("n"), shape=(4, 6), dtype="int64")
    task = b.task(b.call("gather.default", x, 1, inside, shape=(4, 6)), symbols={"n": 9})
    values, places = RANDOM.normal(size=(4, 9)).astype(np.float32), RANDOM.integers(-9, 9, (4, 6))
    (found,) = on_twin(task, {"x": values, "index": places})
    np.testing.assert_array_equal(found, np.take_along_axis(values, places, 1))


def test_indices_of_dimensions_that_are_not_neighbours(builder: Any, on_twin: Any) -> None:
    """What they choose comes first then."""
    b = builder()
    x, i, j = b.input("x", (6, 5, 7)), b.input("i", (4,), "int64"), b.input("j", (4,), "int64")
    task = b.task(b.call("index.Tensor", x, (i, None, j), shape=(4, 5)))
    values = RANDOM.normal(size=(6, 5, 7)).astype(np.float32)
    rows, columns = RANDOM.integers(-6, 6, 4), RANDOM.integers(-7, 7, 4)
    (found,) = on_twin(task, {"x": values, "i": rows, "j": columns})
    np.testing.assert_array_equal(found, values[rows, :, columns])


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ((None, [-1], None), np.s_[:, [-1], :]),
        ((None, [2]), np.s_[:, [2]]),
        (([1], None, [0]), np.s_[[1], :, [0]]),
        ((None, "t", [3]), np.s_[:, None, [3]]),
        (([1], "t"), np.s_[[1], None]),
        (([1], None, "t"), np.s_[[1], :, None]),
        ((None, -2), np.s_[:, [-2]]),
    ],
)
def test_places_that_are_numbers(builder: Any, on_twin: Any, given: Any, taken: Any) -> None:
    values = RANDOM.normal(size=(4, 6, 5)).astype(np.float32)
    places = RANDOM.integers(0, 4, 7)
    expected = values[tuple(places if item is None else item for item in taken)]
    b = builder()
    x, t = b.input("x", values.shape), b.input("t", places.shape, "int64")
    made = [
        b.call("full.default", (1,), item[0], shape=(1,), dtype="int64") if isinstance(item, list) else item
        for item in given
    ]
    indices = tuple(t if item == "t" else item for item in made)
    (found,) = on_twin(
        b.task(b.call("index.Tensor", x, indices, shape=expected.shape)), {"x": values, "t": places}
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("rows", "past"), [(65536, True), (2048, False)])
def test_rows_of_large_tables_pass_l2_by(builder: Any, chip: Any, rows: int, past: bool) -> None:
    """Where rows and results do not fit L2 together, rows would push the results back to memory."""
    b = builder()
    x, index = b.input("x", (100_000, 768)), b.input("index", (rows,), "int64")
    task = b.task(b.call("embedding.default", x, index, shape=(rows, 768)))
    assert bool(initial(task, chip).setting("bypass_l2", False)) is past


def test_rows_that_pass_l2_by_are_the_same(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, index = b.input("x", (50, 40)), b.input("index", (30,), "int64")
    task = b.task(b.call("embedding.default", x, index, shape=(30, 40)))
    values, places = RANDOM.normal(size=(50, 40)).astype(np.float32), RANDOM.integers(0, 50, 30)
    strategy = Strategy("take", {"runs": 128, "bytes": 4096, "picks": False, "bypass_l2": True})
    (found,) = on_twin(task, {"x": values, "index": places}, strategy)
    np.testing.assert_array_equal(found, values[places])


@pytest.mark.parametrize("place", (0, 1, 2))
def test_a_dimension_that_is_taken_whole_is_read_in_rows(
    place: int, builder: Any, on_twin: Any, chip: Any
) -> None:
    """As regions of images are: ``x[image, arange(channels), row]``, the channels anywhere in the result."""
    b, sizes = builder(), (3, 20, 50)
    x = b.input("x", sizes)
    shapes = [[7, 1], [1, 5]]
    for shape in shapes:
        shape.insert(place, 1)
    image, row = (b.input(name, tuple(shape), "int64") for name, shape in zip("ir", shapes, strict=True))
    along = tuple(20 if dim == place else 1 for dim in range(3))
    numbers = b.call("arange.start_step", 0, 20, 1, shape=(20,), dtype="int64")
    channels = b.call("view.default", numbers, along, shape=along, dtype="int64")
    shape = [7, 5]
    shape.insert(place, 20)
    made = b.call("index.Tensor", x, (image, channels, row), shape=tuple(shape))
    task = b.task(made)
    (node,) = (node for node in legalised(task, chip).graph.nodes if node.op == GATHER.name)
    assert node.outputs[0].shape[-1] == 20
    rng = np.random.default_rng(place)
    given = {"x": rng.normal(size=sizes).astype("f4"), "i": rng.integers(0, 3, shapes[0]),
             "r": rng.integers(-50, 50, shapes[1])}  # fmt: skip
    (found,) = on_twin(task, given)
    np.testing.assert_array_equal(found, given["x"][given["i"], np.arange(20).reshape(along), given["r"]])
