"""Family matmul in Triton: products in every layout, type and size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.kernels.matmul.matmul_family import FAMILY
from tests.targets.ascendc.test_matmul import LAYOUTS, SIZES, matrices


def close(result: Any, expected: Any, dtype: str, depth: int) -> None:
    tolerance = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}[dtype]
    scale = np.sqrt(max(depth, 1))
    np.testing.assert_allclose(result / scale, expected / scale, rtol=tolerance, atol=tolerance)


FEW_SIZES = [(1, 1, 1), (17, 70, 33)]


@pytest.mark.parametrize(("dtype", "left", "right"), LAYOUTS)
def test_products_at_few_sizes(dtype: str, left: bool, right: bool, builder: Any, interpreted: Any) -> None:
    _compare(matrices(builder, dtype, left, right), dtype, left, right, FEW_SIZES, interpreted)


@pytest.mark.thorough
@pytest.mark.parametrize(("dtype", "left", "right"), LAYOUTS)
def test_products_at_many_sizes(dtype: str, left: bool, right: bool, builder: Any, interpreted: Any) -> None:
    _compare(matrices(builder, dtype, left, right), dtype, left, right, SIZES, interpreted)


def _compare(task: KernelTask, dtype: str, left: bool, right: bool, sizes: Any, interpreted: Any) -> None:
    for m, n, k in sizes:
        rng = np.random.default_rng(m)
        x, y = (rng.integers(-8, 9, size=shape).astype("f4") / 4 for shape in ((m, k), (k, n)))
        inputs = {"x": x.T if left else x, "y": y.T if right else y}
        (result,) = interpreted(FAMILY, task, inputs, {"m": m, "n": n, "k": k})
        close(result, x.astype("f8") @ y, dtype, k)


def test_moves_give_the_same_product(builder: Any, interpreted: Any, gpu: Any) -> None:
    task = matrices(builder, "float32", False, True)
    start = FAMILY.initial(task, gpu)
    moves = FAMILY.moves(task, start, gpu)
    assert len(moves) > 4
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 70)).astype("f4"), rng.normal(size=(60, 70)).astype("f4")
    for move in moves[::2]:
        assert FAMILY.estimate_us(task, move.strategy, gpu) > 0
        (result,) = interpreted(FAMILY, task, {"x": x, "y": y}, {"m": 50, "n": 60, "k": 70}, move.strategy)
        close(result, x.astype("f8") @ y.astype("f8").T, "float32", 70)


def test_a_batch_with_a_shared_matrix(builder: Any, interpreted: Any) -> None:
    graph = builder()
    x = graph.input("x", (2, 3, "m", 24))
    w = graph.input("w", (24, 20), parameter=True)
    batch = graph.call("view.default", x, (6, -1, 24), shape=(6, "m", 24))
    wide = graph.call("expand.default", w, (6, 24, 20), shape=(6, 24, 20))
    task = graph.task(graph.call("bmm.default", batch, wide, shape=(6, "m", 20)), symbols={"m": 30})
    rng = np.random.default_rng(1)
    for m in (1, 37):
        a, b = rng.normal(size=(2, 3, m, 24)).astype("f4"), rng.normal(size=(24, 20)).astype("f4")
        (result,) = interpreted(FAMILY, task, {"x": a, "w": b}, {"m": m})
        close(result, (a.astype("f8") @ b).reshape(6, m, 20), "float32", 24)


@pytest.mark.parametrize("op", ["triu", "tril"])
@pytest.mark.parametrize("diagonal", [-40, 0, 3])
def test_triangles(op: str, diagonal: int, builder: Any, interpreted: Any, gpu: Any) -> None:
    graph = builder()
    x, y = graph.input("x", ("m", 40)), graph.input("y", (40, "n"))
    product = graph.call("mm.default", x, y, shape=("m", "n"))
    task = graph.task(
        graph.call(f"{op}.default", product, diagonal, shape=("m", "n")), symbols={"m": 70, "n": 90}
    )
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(70, 40)).astype("f4"), rng.normal(size=(40, 90)).astype("f4")
    start = FAMILY.initial(task, gpu)
    splits = [move.strategy for move in FAMILY.moves(task, start, gpu) if "split" in move.name]
    expected = getattr(np, op)(a.astype("f8") @ b, diagonal)
    for strategy in (start, *splits):
        (result,) = interpreted(FAMILY, task, {"x": a, "y": b}, strategy=strategy)
        close(result, expected, "float32", 40)


def test_a_product_with_few_results_is_split(builder: Any, interpreted: Any, gpu: Any) -> None:
    graph = builder()
    x, y = graph.input("x", ("m", "k")), graph.input("y", ("k", 20))
    task = graph.task(graph.call("mm.default", x, y, shape=("m", 20)), symbols={"m": 20, "k": 1 << 17})
    strategy = FAMILY.initial(task, gpu)
    assert strategy.setting("split_k") != 1
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(9, 1000)).astype("f4"), rng.normal(size=(1000, 20)).astype("f4")
    (result,) = interpreted(FAMILY, task, {"x": a, "y": b}, {"m": 9, "k": 1000}, strategy)
    close(result, a.astype("f8") @ b, "float32", 1000)


def _table(builder: Any) -> list[KernelTask]:
    return [matrices(builder, *row) for row in LAYOUTS]


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any, gpu: Any) -> None:
    for task in _table(builder):
        start = FAMILY.initial(task, gpu)
        for strategy in (start, *(move.strategy for move in FAMILY.moves(task, start, gpu)[::4])):
            compiles(FAMILY, task, strategy)
