"""Reductions of integers against NumPy: sums, products, extremes and their places, whole and running."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.ops import REDUCE_INTEGERS
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import initial, legalised
from tests.tables import few
from tests.targets.ascendc.cores import on_all_cores_too
from tests.targets.ascendc.test_integer_words import draw

SIZES = ({"n": 1, "m": 1}, {"n": 3, "m": 77}, {"n": 70, "m": 5}, {"n": 2, "m": 9001})
SCALE = 1
"""Rows for so many times the few cores."""
few_cores = on_all_cores_too(SCALE=12)


def _check(on_twin: Any, chip: Any, b: Any, results: list[Any], dtype: str, expected: Any) -> None:
    task = b.task(*results, symbols={"n": 8, "m": 3000})
    strategy = initial(task, chip)
    for sizes in SIZES:
        x = draw(np.random.default_rng(sizes["m"]), tuple(sizes.values()), dtype)
        with np.errstate(over="ignore"):
            wanted = expected(x)
        for found, right in zip(on_twin(task, {"x": x}, strategy, sizes), wanted, strict=True):
            np.testing.assert_array_equal(found, right)


@few(
    "dtype",
    ("int64", "int32", "uint8"),
    keep=(
        0,
        2,
    ),
)
def test_sums_and_products(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    b, int64 = builder(), {"dtype": "int64"}
    x = b.input("x", ("n", "m"), dtype)
    results = [
        b.call("sum.dim_IntList", x, (1,), shape=("n",), **int64),
        b.call("sum.dim_IntList", x, (0,), True, shape=(1, "m"), **int64),
        b.call("sum.default", x, shape=(), **int64),
        b.call("prod.dim_int", x, 1, shape=("n",), **int64),
        b.call("cumsum.default", x, 1, shape=("n", "m"), **int64),
        b.call("cumsum.default", x, 0, shape=("n", "m"), **int64),
    ]

    def expected(x: Any) -> Any:
        x = x.astype("int64")
        return [x.sum(1), x.sum(0, keepdims=True), x.sum(), x.prod(1), x.cumsum(1), x.cumsum(0)]

    _check(on_twin, chip, b, results, dtype, expected)


@few(
    "dtype",
    ("int64", "int32", "int8"),
    keep=(
        0,
        2,
    ),
)
def test_extremes_and_their_places(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    b = builder()
    x = b.input("x", ("n", "m"), dtype)
    best = b.calls("max.dim", x, 1, outputs=[TensorSpec(("n",), dtype), TensorSpec(("n",), "int64")])
    results = [
        best,
        type(best)(best.name, 1),
        b.call("amin.default", x, (0,), shape=("m",), dtype=dtype),
        b.call("max.default", x, shape=(), dtype=dtype),
        b.call("argmin.default", x, shape=(), dtype="int64"),
    ]
    _check(on_twin, chip, b, results, dtype,
           lambda x: [x.max(1), x.argmax(1), x.min(0), x.max(), x.argmin()])  # fmt: skip


@few(
    ("kind", "dtype"),
    [(kind, dtype) for kind in ("amax", "prod") for dtype in ("int64", "int32")],
    keep=(0, 3),
)
def test_many_rows_a_core(kind: str, dtype: str, builder: Any, on_few_cores: Any, few_cores: Any) -> None:
    """Results in several batches, the last of which is short; rows of one tile and of several."""
    b, result = builder(), "int64" if kind == "prod" else dtype
    x = b.input("x", ("n", "m"), dtype)
    op = "prod.dim_int" if kind == "prod" else "amax.default"
    node = b.call(op, x, 1 if kind == "prod" else (1,), shape=("n",), dtype=result)
    task = b.task(node, symbols={"n": 170 * SCALE, "m": 900})
    strategy = initial(task, few_cores)
    assert not dict(strategy.settings).get("scalar")
    for n, m in ((260 * SCALE, 3), (170 * SCALE, 300), (140 * SCALE, 600)):
        values = draw(np.random.default_rng(n), (n, m), dtype)
        with np.errstate(over="ignore"):
            wanted = values.astype(result).prod(1) if kind == "prod" else values.max(1)
        (found,) = on_few_cores(task, {"x": values}, strategy, {"n": n, "m": m})
        np.testing.assert_array_equal(found, wanted)


def test_running_sums_of_truth_values(builder: Any, on_twin: Any, chip: Any) -> None:
    """Positions as models count them that hide padding."""
    b, int64 = builder(), {"shape": ("n", "m"), "dtype": "int64"}
    ids = b.input("x", ("n", "m"), "int64")
    real = b.call("ne.Scalar", ids, 1, shape=("n", "m"), dtype="bool")
    counted = b.call("cumsum.default", real, 1, **int64)
    placed = b.call("add.Tensor", b.call("mul.Tensor", counted, real, **int64), 1, **int64)
    _check(on_twin, chip, b, [placed], "int64", lambda x: [np.cumsum(x != 1, 1) * (x != 1) + 1])


def test_many_truth_values_are_not_counted_in_floats(builder: Any, chip: Any) -> None:
    for count in (1 << 16, (1 << 24) + 1):
        b = builder()
        x = b.input("x", (count,), "bool")
        task = b.task(b.call("sum.default", x, shape=(), dtype="int64"))
        ops = {node.op for node in legalised(task, load_chip()).graph.nodes}
        assert (REDUCE_INTEGERS.name in ops) == (count > 1 << 24) and initial(task, chip).family


@pytest.mark.parametrize(("rows", "columns", "setting"), [(9, 30, "scalar"), (5462, 16, "rows")])
@pytest.mark.parametrize("dtype", ("int64", "int32"))
def test_short_rows(
    rows: int, columns: int, setting: str, dtype: str, builder: Any, on_few_cores: Any, few_cores: Any
) -> None:
    """On the scalar unit where a core has few, else as lanes; rows that end inside of tiles, and tiles inside
    of rows."""
    b = builder()
    x = b.input("x", ("n", "m"), dtype)
    task = b.task(
        b.call("amax.default", x, (1,), shape=("n",), dtype=dtype), symbols={"n": rows * SCALE, "m": columns}
    )
    strategy = initial(task, few_cores)
    if setting == "rows" or dtype == "int64":
        assert dict(strategy.settings)[setting]
    for n, m in ((1, 1), (3, 700), (33 * SCALE, 9), (9 * SCALE, 60), (750 * SCALE, 7), (2, 9001)):
        values = draw(np.random.default_rng(m), (n, m), dtype)
        (found,) = on_few_cores(task, {"x": values}, strategy, {"n": n, "m": m})
        np.testing.assert_array_equal(found, values.max(1))
