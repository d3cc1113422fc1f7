"""Numbers in equal steps, and sums of truth values, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.targets.ascendc.author import initial, moves

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize(("start", "step", "dtype"), [(0, 1, "int64"), (5, -3, "int32"), (-2, 7, "float32")])
def test_arange(builder: Any, chip: Any, on_twin: Any, start: int, step: int, dtype: str) -> None:
    b = builder()
    x = b.input("x", ("n",))
    end = start + step  # the size says how many there are
    numbers = b.call("arange.start_step", start, end, step, shape=("n",), dtype=dtype)
    task = b.task(numbers, b.call("relu.default", x, shape=("n",)), symbols={"n": 5000})
    strategy = initial(task, chip)
    for n in (1, 7, 5000):
        found, _ = on_twin(task, {"x": np.zeros(n, np.float32)}, strategy, {"n": n})
        np.testing.assert_array_equal(found, start + step * np.arange(n))


def test_every_move_of_arange_is_right(builder: Any, chip: Any, on_twin: Any) -> None:
    b = builder()
    b.input("x", ("n",))
    task = b.task(b.call("arange.start_step", 0, 1, 1, shape=("n",), dtype="int64"), symbols={"n": 9000})
    for move in moves(task, initial(task, chip), chip):
        (found,) = on_twin(task, {"x": np.zeros(9000, np.float32)}, move.strategy)
        np.testing.assert_array_equal(found, np.arange(9000), move.name)


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("op", ["any", "all"])
def test_any_and_all(builder: Any, chip: Any, on_twin: Any, op: str, dim: int | None) -> None:
    b = builder()
    x = b.input("x", ("a", "b"))
    mask = b.call("gt.Scalar", x, 0.0, shape=("a", "b"), dtype="bool")
    shape = () if dim is None else ("b", "a")[dim : dim + 1]
    args = () if dim is None else (dim,)
    found = b.call(f"{op}.{'default' if dim is None else 'dim'}", mask, *args, shape=shape, dtype="bool")
    task = b.task(found, symbols={"a": 40, "b": 90})
    strategy = initial(task, chip)
    for (a, c), least in [((3, 5), -3.0), ((40, 90), 1.0), ((17, 1), 0.0)]:
        x = RANDOM.normal(size=(a, c)).astype(np.float32) + least
        (result,) = on_twin(task, {"x": x}, strategy, {"a": a, "b": c})
        np.testing.assert_array_equal(result, getattr(np, op)(x > 0, dim))


def test_truth_values_are_counted(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, n = b.input("x", (30, 70)), b.input("n", (30, 1), "int64")
    mask = b.call("gt.Tensor", x, n, shape=(30, 70), dtype="bool")
    counted = b.call("sum.dim_IntList", mask, (1,), shape=(30,), dtype="int64")
    everywhere = b.call("sum.default", mask, shape=(), dtype="int64")
    values, least = RANDOM.normal(size=(30, 70)).astype(np.float32) * 3, RANDOM.integers(-2, 3, (30, 1))
    rows, total = on_twin(b.task(counted, everywhere), {"x": values, "n": least})
    np.testing.assert_array_equal(rows, (values > least).sum(1))
    assert total == (values > least).sum()


def test_a_mask_is_given_as_integers(builder: Any, on_twin: Any) -> None:
    b = builder()
    x = b.input("x", (3, 50))
    mask = b.call("gt.Scalar", x, 0.0, shape=(3, 50), dtype="bool")
    task = b.task(b.call("_to_copy.default", mask, shape=(3, 50), dtype="int64"))
    values = RANDOM.normal(size=(3, 50)).astype(np.float32)
    (found,) = on_twin(task, {"x": values})
    np.testing.assert_array_equal(found, values > 0)


@pytest.mark.parametrize(("op", "filled"), [("ones_like", ()), ("zeros_like", ()), ("full_like", (True,))])
def test_truth_values_that_are_all_alike(
    builder: Any, on_twin: Any, op: str, filled: tuple[bool, ...]
) -> None:
    b = builder()
    x = b.input("x", ("a", "b"))
    same = b.call(f"{op}.default", x, *filled, shape=("a", "b"), dtype="bool")
    below = b.call("tril.default", same, -2, shape=("a", "b"), dtype="bool")
    chosen = b.call("where.ScalarSelf", below, -1e4, x, shape=("a", "b"))
    task = b.task(chosen, symbols={"a": 40, "b": 90})
    given = RANDOM.normal(size=(40, 90)).astype(np.float32)
    expected = np.where(np.tril(np.full((40, 90), op != "zeros_like"), -2), np.float32(-1e4), given)
    (found,) = on_twin(task, {"x": given})
    np.testing.assert_array_equal(found, expected)
