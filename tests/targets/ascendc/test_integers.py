"""Arithmetic on positions and other small whole numbers against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.source import TILING

INT = {"dtype": "int64"}


def _distances(b: Any, n: int | str, m: int | str) -> Any:
    """[n, m]: how far each of m positions lies behind each of n."""
    rows = b.call("arange.start_step", 0, 1, 1, shape=(n,), **INT)
    columns = b.call("arange.start_step", 0, 1, 1, shape=(m,), **INT)
    rows = b.call("unsqueeze.default", rows, 1, shape=(n, 1), **INT)
    columns = b.call("unsqueeze.default", columns, 0, shape=(1, m), **INT)
    return b.call("sub.Tensor", columns, rows, shape=(n, m), **INT)


def test_distances_of_positions(builder: Any, on_twin: Any, chip: Any) -> None:
    b = builder()
    x = b.input("x", ("n", "m"))
    apart = b.call("abs.default", _distances(b, "n", "m"), shape=("n", "m"), **INT)
    near = b.call("clamp.default", apart, None, 9, shape=("n", "m"), **INT)
    far = b.call("gt.Scalar", apart, 4, shape=("n", "m"), dtype="bool")
    hidden = b.call("where.self", far, x, 0.0, shape=("n", "m"))
    task = b.task(near, hidden, symbols={"n": 60, "m": 70})
    strategy = initial(task, chip)
    for n, m in [(1, 1), (3, 50), (64, 7)]:
        values = np.random.default_rng(n).normal(size=(n, m)).astype("f4")
        found, kept = on_twin(task, {"x": values}, strategy, {"n": n, "m": m})
        expected = np.abs(np.arange(m) - np.arange(n)[:, None])
        np.testing.assert_array_equal(found, np.minimum(expected, 9))
        np.testing.assert_array_equal(kept, np.where(expected > 4, values, 0))


def test_buckets_of_relative_positions(builder: Any, on_twin: Any, chip: Any) -> None:
    """As T5 sorts distances: near ones one by one, far ones by their logarithm."""
    b = builder()
    shape = ("n", "n")
    apart = _distances(b, "n", "n")
    behind = b.call("gt.Scalar", apart, 0, shape=shape, dtype="bool")
    side = b.call("mul.Tensor", b.call("_to_copy.default", behind, shape=shape, **INT), 8, shape=shape, **INT)
    apart = b.call("abs.default", apart, shape=shape, **INT)
    small = b.call("lt.Scalar", apart, 4, shape=shape, dtype="bool")
    scaled = b.call("div.Tensor", b.call("_to_copy.default", apart, shape=shape), 4.0, shape=shape)
    grown = b.call("mul.Tensor", b.call("log.default", scaled, shape=shape), 1.3, shape=shape)
    large = b.call("add.Tensor", b.call("_to_copy.default", grown, shape=shape, **INT), 4, shape=shape, **INT)
    large = b.call("minimum.default", large, b.call("full.default", shape, 7, shape=shape, **INT),
                   shape=shape, **INT)  # fmt: skip
    chosen = b.call("where.self", small, apart, large, shape=shape, **INT)
    task = b.task(b.call("add.Tensor", side, chosen, shape=shape, **INT), symbols={"n": 40})
    for n in (1, 40):
        (found,) = on_twin(task, {}, initial(task, chip), {"n": n})
        distance = np.arange(n) - np.arange(n)[:, None]
        apart_, logs = np.abs(distance), np.log(np.maximum(np.abs(distance), 1) / 4) * 1.3
        large_ = np.minimum(4 + np.trunc(logs), 7)
        np.testing.assert_array_equal(found, (distance > 0) * 8 + np.where(apart_ < 4, apart_, large_))


STEPS = {
    "add.Tensor": np.add,
    "sub.Tensor": np.subtract,
    "mul.Tensor": np.multiply,
    "minimum.default": np.minimum,
    "maximum.default": np.maximum,
}


@pytest.mark.parametrize("seed", range(4))
def test_chains_of_operations(seed: int, builder: Any, on_twin: Any, chip: Any) -> None:
    rng, b = np.random.default_rng(seed), builder()
    size = 37
    x = b.input("x", (size,))
    mask = b.call("gt.Scalar", x, 0.0, shape=(size,), dtype="bool")
    given = rng.normal(size=size).astype("f4")
    start, step = int(rng.integers(-9, 9)), int(rng.integers(1, 4))
    nodes = [
        b.call("arange.start_step", start, start + step * size, step, shape=(size,), **INT),
        b.call("_to_copy.default", mask, shape=(size,), **INT),
    ]
    values = [start + step * np.arange(size), (given > 0).astype(np.int64)]
    for _ in range(6):
        name = str(rng.choice(list(STEPS)))
        left, right = int(rng.integers(0, len(nodes))), int(rng.integers(0, len(nodes)))
        if np.abs(STEPS[name](values[left], values[right])).max() > 1 << 20:
            continue
        nodes.append(b.call(name, nodes[left], nodes[right], shape=(size,), **INT))
        values.append(STEPS[name](values[left], values[right]))
    nodes.append(b.call("neg.default", nodes[-1], shape=(size,), **INT))
    (found,) = on_twin(b.task(nodes[-1]), {"x": given})
    np.testing.assert_array_equal(found, -values[-1])


def test_positions_whose_squares_have_no_bounds(builder: Any, on_twin: Any) -> None:
    """They are beyond what float32 has, and computed as words."""
    b = builder()
    b.input("x", ("n",))
    positions = b.call("arange.start_step", 0, 1, 1, shape=("n",), **INT)
    square = b.call("mul.Tensor", positions, positions, shape=("n",), **INT)
    (found,) = on_twin(b.task(square, symbols={"n": 70_000}), {"x": np.zeros(70_000, "f4")})
    np.testing.assert_array_equal(found, np.arange(70_000) ** 2)


def test_a_kernel_refuses_more_positions_than_are_exact(builder: Any, chip: Any) -> None:
    b = builder()
    b.input("x", ("n",))
    positions = b.call("arange.start_step", 0, 1, 1, shape=("n",), **INT)
    task = b.task(b.call("add.Tensor", positions, 1, shape=("n",), **INT), symbols={"n": 10})
    tiling = write(task, initial(task, chip), chip).files[TILING]
    assert "> 1048576" in tiling
    assert "beyond it numbers are not exact" in tiling


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_expressions_of_sizes_may_be_below_zero(dtype: str, builder: Any, on_twin: Any) -> None:
    """A causal mask of more queries than keys hides all keys of the first queries."""
    graph = builder()
    x, size = graph.input("x", ("r", "c"), dtype), SymbolicInt("(c + -1 * r)")
    names, kinds = ("add.Tensor", "mul.Tensor", "gt.Scalar"), (dtype, dtype, "bool")
    calls = [
        graph.call(name, x, size, shape=("r", "c"), dtype=kind)
        for name, kind in zip(names, kinds, strict=True)
    ]
    task = graph.task(*calls, symbols={"r": 8, "c": 8})
    for rows, columns in ((2, 1), (33, 5), (5, 33)):
        values = np.random.default_rng(rows).integers(-40, 40, (rows, columns)).astype(dtype)
        number = columns - rows
        found = on_twin(task, {"x": values}, sizes={"r": rows, "c": columns})
        wanted = (values + number, values * number, values > number)
        for name, got, want in zip(names, found, wanted, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=name)
