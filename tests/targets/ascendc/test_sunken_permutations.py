"""Permutations behind element-wise operations and reductions, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.targets.ascendc.author import legalised

SIZES = ({"a": 3, "b": 5, "c": 64}, {"a": 2, "b": 1, "c": 7})


def _permutations(task: Any, chip: Any) -> int:
    return sum(node.op in PERMUTATIONS for node in legalised(task, chip).graph.nodes)


def _values(shape: Any, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("dims", [(2,), (1, -1), (0,)])
def test_weighted_sums_of_permuted_values(
    dims: Any, keeps: bool, builder: Any, on_twin: Any, chip: Any
) -> None:
    """One permutation, of what the reduction leaves, in place of two of all elements."""
    graph = builder()
    x, y = graph.input("x", ("a", "b", "c")), graph.input("y", ("a", "b", "c"))
    weight = graph.input("weight", ("b", 1))
    turned = ("b", "c", "a") if dims == (0,) else ("a", "c", "b")
    order = (1, 2, 0) if dims == (0,) else (0, 2, 1)
    scale = graph.call("view.default", weight, ("b", 1, 1), shape=("b", 1, 1)) if dims == (0,) else None
    parts = [graph.call("permute.default", ref, order, shape=turned) for ref in (x, y)]
    if scale is not None:
        parts[0] = graph.call("mul.Tensor", parts[0], scale, shape=turned)
    added = graph.call("add.Tensor", *parts, shape=turned)
    gone = {dim % 3 for dim in dims}
    shape = [1 if axis in gone else size for axis, size in enumerate(turned) if keeps or axis not in gone]
    result = graph.call("sum.dim_IntList", added, dims, keeps, shape=shape)
    task = graph.task(result, symbols=SIZES[0])
    assert _permutations(task, chip) <= 1
    for sizes in SIZES:
        given = [_values(tuple(sizes.values()), seed) for seed in (1, 2)]
        weights = _values((sizes["b"], 1), 3)
        inputs = dict(zip(("x", "y"), given, strict=True)) | {"weight": weights}
        first, second = (value.transpose(order).astype("f8") for value in given)
        expected = (first * (weights[:, :, None] if scale is not None else 1) + second).sum(
            dims, keepdims=keeps
        )
        (got,) = on_twin(task, inputs, sizes=sizes)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


def test_a_permutation_stays_where_it_would_move_as_much(builder: Any, chip: Any) -> None:
    graph = builder()
    x, bias = graph.input("x", ("a", "b", "c")), graph.input("bias", ("a", "c", "b"))
    turned = graph.call("permute.default", x, (0, 2, 1), shape=("a", "c", "b"))
    task = graph.task(graph.call("add.Tensor", turned, bias, shape=("a", "c", "b")), symbols=SIZES[0])
    names = [node.op for node in legalised(task, chip).graph.nodes]
    assert names == ["aten.permute.default", "aten.add.Tensor"]
