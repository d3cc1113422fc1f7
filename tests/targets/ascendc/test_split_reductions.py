"""Reductions of few long rows in two steps: chosen by the sizes in the file, right at all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import legalised
from tests.tables import few

LARGE = {"a": 4096, "b": 65536}
SIZES = ((1, 1), (3, 70), (130, 1000), (5, 9001))
Numpy = Callable[[Any], Any]


def reduction(builder: Any, op: str, dtype: str = "float32", **kwargs: Any) -> KernelTask:
    """One number from all elements."""
    graph = builder()
    x = graph.input("x", ("a", "b"), dtype)
    args = (x, 2) if "norm" in op else (x,) if op.endswith(".default") and op[0] != "a" else (x, (0, 1))
    task: KernelTask = graph.task(graph.call(op, *args, shape=(), dtype=dtype, **kwargs), symbols=LARGE)
    return task


def reductions(task: KernelTask) -> int:
    words = ("sum", "mean", "amax", "amin", "var")
    return sum(node.op.split(".")[1].startswith(words) for node in legalised(task, load_chip()).graph.nodes)


WHOLE: list[tuple[str, Numpy, dict[str, Any]]] = [
    ("sum.default", np.sum, {}),
    ("mean.dim", np.mean, {}),
    ("amax.default", np.max, {}),
    ("min.default", np.min, {}),
    ("linalg_vector_norm.default", np.linalg.norm, {}),
    ("var.correction", lambda x: np.var(x, ddof=1), {"correction": 1}),
    ("std.correction", np.std, {"correction": 0}),
]


@few(
    ("op", "right", "kwargs"),
    WHOLE,
    keep=(
        1,
        3,
        5,
    ),
    ids=[item[0] for item in WHOLE],
)
def test_one_number_from_many(op: str, right: Numpy, kwargs: Any, builder: Any, on_twin: Any) -> None:
    task = reduction(builder, op, **kwargs)
    assert reductions(task) >= 2
    for a, b in SIZES:
        if kwargs.get("correction") == 1 and a * b == 1:
            continue  # the variance of one element is not a number
        x = np.random.default_rng(b).normal(3, 2, size=(a, b)).astype("f4")
        (result,) = on_twin(task, {"x": x}, sizes={"a": a, "b": b})
        np.testing.assert_allclose(result, right(x.astype("f8").ravel()), rtol=1e-4, atol=1e-5)


def test_a_row_of_computed_sizes_knows_its_length(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "(-2 + b)"))
    graph.input("edge", ("b",))
    spread = graph.call("var.correction", x, (0, 1), shape=(), correction=1)
    task = graph.task(spread, symbols=LARGE)
    assert reductions(task) >= 2
    data = np.random.default_rng(0).normal(size=(3, 5)).astype("f4")
    (result,) = on_twin(task, {"x": data, "edge": np.zeros(7, "f4")}, sizes={"a": 3, "b": 7})
    np.testing.assert_allclose(result, np.var(data, ddof=1), rtol=1e-5)


def test_half_types_are_summed_in_float32(builder: Any, on_twin: Any) -> None:
    task = reduction(builder, "sum.default", "float16")
    x = np.full((64, 512), 1.5, "f2")
    (result,) = on_twin(task, {"x": x}, sizes={"a": 64, "b": 512})
    assert float(result) == 64 * 512 * 1.5


def test_small_and_many_rows_stay_in_one_kernel(builder: Any) -> None:
    graph = builder()
    small = graph.call("sum.default", graph.input("x", (64, 64)), shape=())
    assert reductions(graph.task(small)) == 1
    graph = builder()
    rows = graph.call("sum.dim_IntList", graph.input("x", (4096, 4096, 64)), (1, 2), shape=(4096,))
    assert reductions(graph.task(rows)) == 1


def test_a_single_long_dimension_of_known_length_is_cut(builder: Any, on_twin: Any) -> None:
    graph = builder()
    total = graph.call("mean.dim", graph.input("x", ("r", 2**23)), (1,), True, shape=("r", 1))
    task = graph.task(total, symbols={"r": 2})
    assert reductions(task) == 2
    x = np.random.default_rng(0).normal(size=(1, 2**23)).astype("f4")
    (result,) = on_twin(task, {"x": x}, sizes={"r": 1})
    np.testing.assert_allclose(result, x.mean(1, dtype="f8", keepdims=True), rtol=1e-3, atol=1e-5)


def layer_norm(builder: Any, dtype: str) -> KernelTask:
    graph = builder()
    shape, normalised = ("n", 8, "p"), (8, "p")
    x = graph.input("x", shape, dtype)
    weight = graph.input("weight", normalised, dtype, parameter=True)
    bias = graph.input("bias", normalised, dtype, parameter=True)
    specs = [TensorSpec(shape, dtype), *(TensorSpec(("n", 1, 1), "float32") for _ in range(2))]
    args = (x, normalised, weight, bias, 1e-5)
    graph.nodes.append(Node("norm", "aten.native_layer_norm.default", args, (), tuple(specs)))
    outputs = [ValueRef("norm"), ValueRef("norm", 1)] if dtype == "float32" else [ValueRef("norm")]
    # rows of which L2 does not keep one until it is normalised
    task: KernelTask = graph.task(*outputs, symbols={"n": 16, "p": 2**22 if dtype == "float32" else 2**23})
    return task


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_layer_norm_of_few_long_rows(dtype: str, builder: Any, on_twin: Any) -> None:
    task = layer_norm(builder, dtype)
    assert reductions(task) >= 3
    for n, p in ((1, 3), (2, 1000), (5, 77)):
        rng = np.random.default_rng(p)
        x = rng.normal(5, 2, size=(n, 8, p)).astype("f2" if dtype == "float16" else "f4")
        weight, bias = (rng.normal(size=(8, p)).astype(x.dtype) for _ in range(2))
        found = on_twin(task, {"x": x, "weight": weight, "bias": bias}, sizes={"n": n, "p": p})
        wide = x.astype("f8")
        mean, spread = (f(wide, axis=(1, 2), keepdims=True) for f in (np.mean, np.var))
        right = (wide - mean) / np.sqrt(spread + 1e-5) * weight + bias
        tolerance = 1e-4 if dtype == "float32" else 1e-2
        np.testing.assert_allclose(found[0], right, rtol=tolerance, atol=tolerance)
        if dtype == "float32":
            np.testing.assert_allclose(found[1], mean, rtol=1e-5)


def test_batch_norm_reads_its_rows_once_for_both_variances(builder: Any, on_twin: Any) -> None:
    graph = builder()
    shape, one = ("n", 6, "p"), (1, 6, 1)
    x = graph.input("x", shape)
    specs = [TensorSpec(one, "float32")] * 2
    graph.nodes.append(
        Node(
            "both",
            "aten.var_mean.correction",
            (x, (0, 2)),
            (("correction", 0), ("keepdim", True)),
            tuple(specs),
        )
    )
    unbiased = graph.call("var.correction", x, (0, 2), shape=one, correction=1, keepdim=True)
    task = graph.task(ValueRef("both"), ValueRef("both", 1), unbiased, symbols={"n": 256, "p": 2**18})
    assert (
        sum(node.op == "aten.var_mean.correction" for node in legalised(task, load_chip()).graph.nodes) == 1
    )
    for n, p in ((2, 3), (7, 1000)):
        data = np.random.default_rng(n).normal(-4, 3, size=(n, 6, p)).astype("f4")
        results = on_twin(task, {"x": data}, sizes={"n": n, "p": p})
        wide, axes = data.astype("f8"), (0, 2)
        right = (np.var(wide, axes), np.mean(wide, axes), np.var(wide, axes, ddof=1))
        for result, expected in zip(results, right, strict=True):
            np.testing.assert_allclose(result.ravel(), expected, rtol=1e-4)


def test_what_is_reduced_again_behind_its_norm_is_split(builder: Any) -> None:
    """The second reduction then shares a kernel with the normalisation, which saves more than shared rows."""
    shape, one = ("n", 8, 2**18), (1, 8, 1)

    def normalised(again: bool) -> KernelTask:
        graph = builder()
        x = graph.input("x", shape)
        mean = graph.call("mean.dim", x, (0, 2), True, shape=one)
        centred = graph.call("sub.Tensor", x, mean, shape=shape)
        last = graph.call("amax.default", centred, (2,), True, shape=("n", 8, 1)) if again else centred
        task: KernelTask = graph.task(last, symbols={"n": 16})
        return task

    ops = [
        [node.op for node in legalised(normalised(again), load_chip()).graph.nodes] for again in (False, True)
    ]
    assert [found.count("aten.mean.dim") for found in ops] == [1, 2]
