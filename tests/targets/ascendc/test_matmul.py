"""Family matmul: products on the cube cores, in every layout, type and size."""

from __future__ import annotations

from typing import Any

import numpy as np

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import estimate_us, initial, moves, write
from tests.tables import few

SIZES = [(1, 1, 1), (16, 16, 16), (40, 50, 70), (129, 257, 65), (1, 300, 200), (300, 1, 33), (17, 130, 513)]


def matrices(builder: Any, dtype: str, left: bool, right: bool) -> KernelTask:
    """x @ y, where x or y is given transposed."""
    graph = builder()
    x = graph.input("x", ("k", "m") if left else ("m", "k"), dtype)
    y = graph.input("y", ("n", "k") if right else ("k", "n"), dtype)
    a = graph.call("permute.default", x, (1, 0), shape=("m", "k"), dtype=dtype) if left else x
    b = graph.call("t.default", y, shape=("k", "n"), dtype=dtype) if right else y
    product = graph.call("mm.default", a, b, shape=("m", "n"), dtype=dtype)
    task: KernelTask = graph.task(product, symbols={"m": 40, "n": 50, "k": 70})
    return task


def _close(found: Any, expected: Any, dtype: str, depth: int) -> None:
    tolerance = 1e-4 if dtype == "float32" else 1e-2
    scale = np.sqrt(depth)
    np.testing.assert_allclose(
        np.asarray(found, "f8") / scale, expected / scale, rtol=tolerance, atol=tolerance
    )


LAYOUTS = [
    ("float32", False, False), ("float32", True, False), ("float32", False, True), ("float32", True, True),
    ("float16", False, False), ("float16", True, True), ("bfloat16", True, False),
]  # fmt: skip
"""The type, and which of the two matrices is given transposed."""


@few(("dtype", "left", "right"), LAYOUTS, keep=(3,))
def test_kernels_pass_the_audit(dtype: str, left: bool, right: bool, builder: Any, chip: Any) -> None:
    task = matrices(builder, dtype, left, right)
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED


@few(("dtype", "left", "right"), LAYOUTS, keep=(0, 3, 6))
def test_products_at_many_sizes(dtype: str, left: bool, right: bool, builder: Any, on_twin: Any) -> None:
    task = matrices(builder, dtype, left, right)
    for m, n, k in SIZES:
        rng = np.random.default_rng(m)
        x, y = (rng.integers(-8, 9, size=shape).astype("f4") / 4 for shape in ((m, k), (k, n)))
        inputs = {"x": x.T if left else x, "y": y.T if right else y}
        (result,) = on_twin(task, inputs, sizes={"m": m, "n": n, "k": k})
        _close(result, x.astype("f8") @ y, dtype, k)


def test_moves_give_the_same_product(builder: Any, on_twin: Any, chip: Any) -> None:
    task = matrices(builder, "float16", False, True)
    start = initial(task, chip)
    found = moves(task, start, chip)
    assert len(found) > 4
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(150, 300)).astype("f2"), rng.normal(size=(280, 300)).astype("f2")
    for strategy in (start, *(move.strategy for move in found[::2])):
        assert estimate_us(task, strategy, chip) > 0
        (result,) = on_twin(task, {"x": x, "y": y}, strategy=strategy, sizes={"m": 150, "n": 280, "k": 300})
        _close(result, x.astype("f8") @ y.astype("f8").T, "float16", 300)


def test_a_batch_with_a_shared_matrix(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", (2, 3, "m", 24))
    w = graph.input("w", (24, 20), parameter=True)
    batch = graph.call("view.default", x, (6, -1, 24), shape=(6, "m", 24))
    wide = graph.call("expand.default", w, (6, 24, 20), shape=(6, 24, 20))
    product = graph.call("bmm.default", batch, wide, shape=(6, "m", 20))
    task = graph.task(
        graph.call("view.default", product, (2, 3, -1, 20), shape=(2, 3, "m", 20)), symbols={"m": 9}
    )
    rng = np.random.default_rng(1)
    values, weight = rng.normal(size=(2, 3, 9, 24)).astype("f4"), rng.normal(size=(24, 20)).astype("f4")
    (result,) = on_twin(task, {"x": values, "w": weight})
    np.testing.assert_allclose(result, values @ weight, rtol=1e-4, atol=1e-4)


def test_a_linear_layer_and_its_activation_are_one_kernel(builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", ("m", 48))
    weight = graph.input("weight", (30, 48), parameter=True)
    bias = graph.input("bias", (30,), parameter=True)
    turned = graph.call("t.default", weight, shape=(48, 30))
    product = graph.call("mm.default", x, turned, shape=("m", 30))
    moved = graph.call("add.Tensor", product, bias, shape=("m", 30))
    task = graph.task(graph.call("relu.default", moved, shape=("m", 30)), symbols={"m": 20})
    assert initial(task, chip).family == "matmul"
    rng = np.random.default_rng(2)
    values, w, b = (rng.normal(size=shape).astype("f4") for shape in ((20, 48), (30, 48), (30,)))
    (result,) = on_twin(task, {"x": values, "weight": w, "bias": b})
    np.testing.assert_allclose(result, np.maximum(values @ w.T + b, 0), rtol=1e-4, atol=1e-4)


@few(("dtype", "left", "right"), LAYOUTS, keep=(2, 5, 6))
def test_a_bias_ends_the_sums(
    dtype: str, left: bool, right: bool, builder: Any, on_twin: Any, chip: Any
) -> None:
    """Cube cores alone: no element of the bias reaches a column that is not its own, infinite or not."""
    graph = builder()
    x = graph.input("x", ("k", "m") if left else ("m", "k"), dtype)
    y = graph.input("y", ("n", "k") if right else ("k", "n"), dtype)
    bias = graph.input("bias", ("n",), dtype)
    a = graph.call("permute.default", x, (1, 0), shape=("m", "k"), dtype=dtype) if left else x
    b = graph.call("t.default", y, shape=("k", "n"), dtype=dtype) if right else y
    product = graph.call("mm.default", a, b, shape=("m", "n"), dtype=dtype)
    moved = graph.call("add.Tensor", bias, product, shape=("m", "n"), dtype=dtype)
    result = graph.call("relu.default", moved, shape=("m", "n"), dtype=dtype)
    task = graph.task(result, symbols={"m": 40, "n": 50, "k": 70})
    source = write(task, initial(task, chip), chip)
    assert audit(task, source).status is GateStatus.PASSED
    assert ("__cube__" in source.files["op_kernel.cpp"]) is not (left and dtype == "float32")
    for m, n, k in (*SIZES, (700, 900, 1000)):
        rng = np.random.default_rng(m)
        values, others = (rng.integers(-8, 9, size=shape).astype("f4") / 4 for shape in ((m, k), (k, n)))
        added = (rng.integers(-64, 65, size=n) / 4).astype("f4")
        added[rng.integers(n)] = np.inf
        inputs = {"x": values.T if left else values, "y": others.T if right else others, "bias": added}
        (found,) = on_twin(task, inputs, sizes={"m": m, "n": n, "k": k})
        _close(found, np.maximum(values.astype("f8") @ others + added, 0), dtype, k)


def test_small_terms_are_not_lost_beside_a_bias(builder: Any, on_twin: Any) -> None:
    """Each is less than half of the bias's last bit; their sum is a thousand of it."""
    graph = builder()
    x, y = graph.input("x", ("m", "k")), graph.input("y", ("n", "k"))
    turned = graph.call("t.default", y, shape=("k", "n"))
    product = graph.call("mm.default", x, turned, shape=("m", "n"))
    moved = graph.call("add.Tensor", product, graph.input("bias", ("n",)), shape=("m", "n"))
    task = graph.task(moved, symbols={"m": 40, "n": 50, "k": 4096})
    inputs = {name: np.full((rows, 4096), 2.0**-13, "f4") for name, rows in (("x", 40), ("y", 50))}
    (found,) = on_twin(task, {**inputs, "bias": np.ones(50, "f4")})
    np.testing.assert_allclose(found, 1 + 2.0**-14, rtol=2.0**-23)


def test_a_transposition_that_is_reshaped_is_a_kernel_of_its_own(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x, y = graph.input("x", (4, 6, 8)), graph.input("y", (6, 5))
    turned = graph.call("transpose.int", x, 1, 2, shape=(4, 8, 6))
    flat = graph.call("view.default", turned, (32, 6), shape=(32, 6))
    task = graph.task(graph.call("mm.default", flat, y, shape=(32, 5)))
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(4, 6, 8)).astype("f4"), rng.normal(size=(6, 5)).astype("f4")
    (result,) = on_twin(task, {"x": a, "y": b})
    np.testing.assert_allclose(result, a.transpose(0, 2, 1).reshape(32, 6) @ b, rtol=1e-4, atol=1e-4)
