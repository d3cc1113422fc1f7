"""The indices of largest and smallest elements against NumPy: ties, NaN, infinities, every layout."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.author import initial, moves
from tests.targets.ascendc.cores import on_all_cores_too

SCALE = 1
"""Rows for so many times the few cores."""
few_cores = on_all_cores_too(SCALE=12)


@frozen
class Search:
    """``max`` or ``min`` over ``dim`` of a tensor with symbolic sizes; ``values`` wants the elements too."""

    op: str
    shape: tuple[Any, ...]
    dim: int | None
    dtype: str = "float32"
    values: bool = True

    def task(self, builder: Any, **sizes: int) -> KernelTask:
        b = builder()
        x = b.input("x", self.shape, self.dtype)
        rank, dim = len(self.shape), self.dim
        kept = tuple(size for i, size in enumerate(self.shape) if dim is not None and i != dim % rank)
        if not self.values:
            index = b.call(f"arg{self.op}.default", x, dim, shape=kept, dtype="int64")
            return b.task(index, symbols=sizes)  # type: ignore[no-any-return]
        specs = [TensorSpec(kept, self.dtype), TensorSpec(kept, "int64")]
        found = b.calls(f"{self.op}.dim", x, dim, outputs=specs)
        return b.task(found, ValueRef(found.name, 1), symbols=sizes)  # type: ignore[no-any-return]


def expected(op: str, x: Any, dim: int | None) -> tuple[Any, Any]:
    """NumPy finds the first of equal elements and the first NaN, like PyTorch."""
    index = np.argmax(x, dim) if op == "max" else np.argmin(x, dim)
    if dim is None:
        return x.reshape(-1)[index], index
    return np.take_along_axis(x, np.expand_dims(index, dim), dim).squeeze(dim), index


def samples(shape: tuple[int, ...], seed: int) -> Any:
    """Few different values, so that most are not alone; some rows with infinities, some with NaN."""
    random = np.random.default_rng(seed)
    x = random.integers(-3, 4, shape).astype(np.float32)
    special = random.random(shape)
    x[special < 0.01] = np.inf
    x[special > 0.99] = -np.inf
    if seed % 2:
        x[(special > 0.5) & (special < 0.51)] = np.nan
    if seed % 3 == 0:
        x[..., :1] = -np.inf
    return x


CASES = [
    (Search("max", ("a", "b", "c"), 1), [(1, 1, 5), (3, 7, 65), (2, 40, 700), (1, 5, 20000)]),
    (Search("min", ("a", "b", "c"), 1, "float16", False), [(1, 1, 3), (2, 33, 130), (5, 9, 1000)]),
    (Search("max", ("a", "b"), 1), [(1, 1), (3, 10), (70, 64), (333, 129), (50, 1984)]),
    (Search("min", ("a", "b"), 1, "bfloat16"), [(2, 3), (65, 100), (9, 1500)]),
    (Search("max", ("a", "b"), 0, "float32", False), [(1, 2), (31, 5), (100, 300)]),
]


@pytest.mark.parametrize(("search", "sizes"), CASES)
def test_search_is_numpys(
    builder: Any, chip: Any, on_twin: Any, search: Search, sizes: list[tuple[int, ...]]
) -> None:
    task = search.task(builder, **dict.fromkeys(search.shape, 64))
    strategy = initial(task, chip)
    for seed, (bound, offset) in enumerate(product(sizes, (0, -9, 9))):
        x = samples(bound, seed) + np.float32(offset)  # of one sign too: nothing behind a row is chosen
        results = on_twin(task, {"x": x}, strategy, dict(zip(search.shape, bound, strict=True)))
        best, index = expected(search.op, x, search.dim)
        np.testing.assert_array_equal(results[-1], index)
        if search.values:
            np.testing.assert_array_equal(results[0].astype(np.float32), best)


def test_rows_longer_than_a_tile(builder: Any, chip: Any, on_twin: Any) -> None:
    task = Search("max", ("a", "b"), 1).task(builder, a=4, b=9000)
    strategy = initial(task, chip)
    bounds = [(4, 9000), (1, 1), (50, 4097), (3, 100001), (2, 4096), (2, 11)]
    for seed, (bound, offset) in enumerate(product(bounds, (0, -9))):
        x = samples(bound, seed) + np.float32(offset)
        values, indices = on_twin(task, {"x": x}, strategy, dict(zip("ab", bound, strict=True)))
        best, index = expected("max", x, 1)
        np.testing.assert_array_equal(indices, index)
        np.testing.assert_array_equal(values, best)


def test_search_of_everything(builder: Any, on_twin: Any) -> None:
    task = Search("min", (7, 11, 501), None, values=False).task(builder)
    for x in (samples((7, 11, 501), 2), np.float32(9) - np.abs(samples((7, 11, 501), 2))):
        (index,) = on_twin(task, {"x": x})
        assert index == expected("min", x, None)[1]


@pytest.mark.parametrize("search", [Search("max", (3, 50, 300), 1), Search("min", (9, 700), 1)])
def test_every_move_is_right(builder: Any, chip: Any, on_twin: Any, search: Search) -> None:
    task = search.task(builder)
    x = samples(search.shape, 1)
    best, index = expected(search.op, x, search.dim)
    for move in moves(task, initial(task, chip), chip)[::2]:
        values, indices = on_twin(task, {"x": x}, move.strategy)
        np.testing.assert_array_equal(indices, index, move.name)
        np.testing.assert_array_equal(values, best, move.name)


def test_searches_of_other_results_are_refused(builder: Any, chip: Any) -> None:
    b = builder()
    x = b.input("x", (4, 5), "float64")
    with pytest.raises(PlanError, match="float64"):
        initial(b.task(b.call("argmax.default", x, 1, shape=(4,), dtype="int64")), chip)


def test_positions_are_compared_with_integers(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, n = b.input("x", (40, 30)), b.input("n", (40,), "int64")
    index = b.call("argmax.default", x, 1, shape=(40,), dtype="int64")
    task = b.task(b.call("eq.Tensor", index, n, shape=(40,), dtype="bool"))
    values = samples((40, 30), 2)
    wanted = np.where(np.arange(40) % 3 == 0, values.argmax(1), 2**40)
    (found,) = on_twin(task, {"x": values, "n": wanted})
    np.testing.assert_array_equal(found, values.argmax(1) == wanted)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_pieces_of_many_rows_at_a_time(dtype: str, builder: Any, few_cores: Any, on_few_cores: Any) -> None:
    task = Search("max", ("a", "b"), 1, dtype).task(builder, a=340 * SCALE, b=4000)
    strategy = initial(task, few_cores)
    assert dict(strategy.settings)["chunked"]
    many = [(17, 130), (6, 4097), (500, 65), (260, 300)]
    for seed, bound in enumerate([(4, 9000), (1, 1), *((n * SCALE, m) for n, m in many)]):
        x = samples(bound, seed)
        values, indices = on_few_cores(task, {"x": x}, strategy, dict(zip("ab", bound, strict=True)))
        best, index = expected("max", x, 1)
        np.testing.assert_array_equal(indices, index)
        np.testing.assert_array_equal(values.astype(np.float32), best)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_steps_of_few_lanes_are_searched_together(dtype: str, builder: Any, chip: Any, on_twin: Any) -> None:
    task = Search("min", ("a", "b", "c"), 1, dtype).task(builder, a=100, b=4000, c=64)
    strategy = initial(task, chip)
    assert int(str(dict(strategy.settings)["steps"])) >= 16
    for seed, bound in enumerate([(1, 1, 1), (2, 31, 64), (3, 33, 65), (1, 1000, 64), (40, 129, 200)]):
        x = samples(bound, seed)
        values, indices = on_twin(task, {"x": x}, strategy, dict(zip("abc", bound, strict=True)))
        best, index = expected("min", x, 1)
        np.testing.assert_array_equal(indices, index)
        np.testing.assert_array_equal(values.astype(np.float32), best)
