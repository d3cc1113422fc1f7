"""Bags of embeddings against NumPy: sums, means and extremes of rows that indices choose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.ops import BAG_MODES, EMBEDDING_BAG
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import initial, legalised, moves
from tests.tables import few

RANDOM = np.random.default_rng(31)
OWN = "_embedding_bag_forward_only.default"


def bags(
    table: Any, index: Any, ends: Sequence[int], mode: str, padding: int = -1, weights: Any = None
) -> Any:
    """Bag by bag, in float64; ``ends`` begins with zero."""
    found = []
    for begin, end in pairwise(ends):
        kept = [place for place in range(begin, end) if index[place] != padding]
        rows = table[index[kept]].astype(np.float64) * (1 if weights is None else weights[kept, None])
        empty = np.zeros(table.shape[1])
        found.append(getattr(rows, mode)(axis=0) if len(rows) else empty)
    return np.stack(found)


def results(bags: Any, run: Any, dtype: str = "float32") -> list[TensorSpec]:
    return [TensorSpec((bags, run), dtype), *(TensorSpec((bags,), "int64") for _ in range(3))]


@few(
    ("mode", "options", "dtype"),
    [
        ("sum", (-1, False, True), "float32"),
        ("mean", (2, True, False), "float32"),
        ("max", (2, False, False), "float32"),
        ("sum", (2, True, True), "float16"),
        ("max", (-1, True, False), "bfloat16"),
        ("mean", (-1, False, False), "float16"),
    ],
    keep=(
        1,
        3,
        4,
    ),
)
def test_bags_that_begin_at_offsets(
    builder: Any, on_twin: Any, chip: Any, mode: str, options: tuple[int, bool, bool], dtype: str
) -> None:
    """``options``: the padding's index, whether the last offset ends a bag, whether rows are weighted."""
    padding, whole, weighted = options
    b = builder()
    table, index = b.input("table", ("r", "d"), dtype), b.input("i", ("n",), "int64")
    starts = b.input("o", ("b",), "int32" if whole else "int64")
    weights = b.input("w", ("n",), dtype) if weighted else None
    size = "b - 1" if whole else "b"
    args = (table, index, starts, False, BAG_MODES.index(mode), False, weights, whole, padding)
    task = b.task(
        b.calls(OWN, *args, outputs=results(size, "d", dtype)), symbols={"r": 50, "d": 70, "n": 900, "b": 40}
    )
    first = initial(task, chip)
    cast = np.float32 if dtype == "bfloat16" else dtype
    for strategy, r, d, n, count in [
        (first, 1, 1, 1, 2), (first, 9, 33, 70, 30), (first, 4, 2050, 20, 3),
        (moves(task, first, chip)[0].strategy, 50, 70, 900, 120),
    ]:  # fmt: skip
        given, chosen = RANDOM.integers(-9, 9, (r, d)), RANDOM.integers(0, r, n)
        begin = np.sort(RANDOM.integers(0, n + 1, count))
        begin[0] = 0
        factors = RANDOM.integers(1, 4, n)
        inputs = {"table": given.astype(cast), "i": chosen, "o": begin, "w": factors.astype(cast)}
        (found,) = on_twin(task, inputs, strategy, {"r": r, "d": d, "n": n, "b": count})
        ends = [*begin] if whole else [*begin, n]
        expected = bags(given, chosen, ends, mode, padding, factors if weighted else None)
        np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 4e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("mode", "weighted"), [("sum", True), ("sum", False), ("mean", False), ("max", False)]
)
def test_rows_that_are_read_and_reduced(builder: Any, on_twin: Any, mode: str, weighted: bool) -> None:
    b = builder()
    table, index = b.input("table", ("r", 48)), b.input("i", ("a", 2, "l"), "int32")
    weights = b.input("w", ("a", 2, "l"))
    rows = b.call("embedding.default", table, index, shape=("a", 2, "l", 48))
    if weighted:
        column = b.call("unsqueeze.default", weights, -1, shape=("a", 2, "l", 1))
        rows = b.call("mul.Tensor", rows, column, shape=("a", 2, "l", 48))
    op = {"sum": "sum.dim_IntList", "mean": "mean.dim", "max": "amax.default"}[mode]
    task = b.task(b.call(op, rows, (2,), shape=("a", 2, 48)), symbols={"r": 500, "a": 100, "l": 20})
    assert [node.op for node in legalised(task, load_chip()).graph.nodes].count(EMBEDDING_BAG.name) == 1
    for r, a, length in [(1, 1, 1), (30, 7, 300)]:
        given = RANDOM.normal(size=(r, 48)).astype(np.float32)
        chosen = RANDOM.integers(0, r, (a, 2, length)).astype(np.int32)
        factors = RANDOM.normal(size=chosen.shape).astype(np.float32)
        inputs = {"table": given, "i": chosen, "w": factors}
        (found,) = on_twin(task, inputs, sizes={"r": r, "a": a, "l": length})
        expected = given[chosen].astype(np.float64) * (factors[..., None] if weighted else 1)
        np.testing.assert_allclose(found, getattr(expected, mode)(axis=2), rtol=1e-4, atol=1e-4)


def test_rows_that_something_else_reads_are_kept(builder: Any) -> None:
    b = builder()
    table, index = b.input("table", (9, 8)), b.input("i", (5, 4), "int64")
    rows = b.call("embedding.default", table, index, shape=(5, 4, 8))
    task = b.task(b.call("sum.dim_IntList", rows, (1,), shape=(5, 8)), rows)
    assert EMBEDDING_BAG.name not in [node.op for node in legalised(task, load_chip()).graph.nodes]


def test_offsets_that_are_computed_are_refused(builder: Any, chip: Any) -> None:
    b = builder()
    table, index = b.input("table", (9, 8)), b.input("i", (12,), "int64")
    starts = b.call("mul.Scalar", b.input("o", (3,), "int64"), 2, shape=(3,), dtype="int64")
    with pytest.raises(PlanError, match="embedding_bag with offsets that the model computes"):
        initial(b.task(b.calls(OWN, table, index, starts, outputs=results(3, 8))), chip)


@pytest.mark.parametrize("padding", [-1, 2])
def test_gradients_of_a_table(builder: Any, on_twin: Any, padding: int) -> None:
    b = builder()
    given, index = b.input("g", ("a", "k", 40)), b.input("i", ("a", "k"), "int64")
    found = b.call("embedding_dense_backward.default", given, index, 9, padding, False, shape=(9, 40))
    task = b.task(found, symbols={"a": 2000, "k": 3})
    for a in (1, 70):
        values = RANDOM.normal(size=(a, 3, 40)).astype(np.float32)
        places = RANDOM.integers(0, 9, (a, 3))
        expected = np.zeros((9, 40))
        np.add.at(expected, places, values)
        if padding >= 0:
            expected[padding] = 0
        (got,) = on_twin(task, {"g": values, "i": places}, sizes={"a": a, "k": 3})
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_bag_whose_own_figures_are_empty_is_authored(builder: Any, on_twin: Any) -> None:
    """PyTorch leaves the figures of a gradient empty where none is asked for; nobody reads them."""
    b = builder()
    table, index = b.input("table", ("r", "d"), "float32"), b.input("i", ("n",), "int64")
    starts = b.input("o", ("b",), "int64")
    figures = [TensorSpec((0,), "int64"), TensorSpec(("b",), "int64"), TensorSpec((0,), "int64")]
    outputs = [TensorSpec(("b", "d"), "float32"), *figures]
    found = b.calls(OWN, table, index, starts, False, 0, False, None, False, -1, outputs=outputs)
    task = b.task(found, symbols={"r": 20, "d": 40, "n": 60, "b": 9})
    values, chosen = RANDOM.normal(size=(20, 40)).astype(np.float32), RANDOM.integers(0, 20, 60)
    offsets = np.sort(RANDOM.integers(0, 60, 9))
    offsets[0] = 0
    (got,) = on_twin(task, {"table": values, "i": chosen, "o": offsets})
    np.testing.assert_allclose(got, bags(values, chosen, [*offsets, 60], "sum"), rtol=1e-5, atol=1e-5)
