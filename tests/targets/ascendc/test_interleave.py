"""Thin tensors whose elements alternate in the result, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from evokernel_core.compiler.limits import words_of
from evokernel_core.compiler.ops import COMPLEX_MULTIPLY, INTERLEAVE
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, legalised, write
from evokernel_core.targets.ascendc.kernels.interleave.interleave_family import FAMILY
from tests.tables import few

CASES = {
    "two": (2, (), "float32", 16),
    "three": (3, (), "float32", 1),
    "four of pairs": (4, (2,), "float32", 3),
    "sixteen": (16, (), "float32", 2),
    "five of two bytes": (5, (), "float16", 4),
    "two of eight items of two bytes": (2, (2, 4), "bfloat16", 2),
    "two of eight bytes": (2, (), "int64", 5),
    "three of two words of eight bytes": (3, (2,), "int64", 2),
}
"""Tensors, sizes of an item, dtype, repeats of a tile."""
LENGTHS = (1000, 1, 7, 129, 4111)


def _values(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    """Whole numbers, which every dtype holds."""
    kind = "float32" if dtype == "bfloat16" else dtype
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(kind)


@few(
    "name",
    CASES,
    keep=(
        2,
        5,
        7,
    ),
)
def test_joins_of_thin_tensors(name: str, builder: Any, on_twin: Any, chip: Any) -> None:
    count, item, dtype, repeats = CASES[name]
    graph = builder()
    refs = tuple(graph.input(f"x{i}", ("n", 5, *item), dtype) for i in range(count))
    dim = 2 if item else -1
    op = "cat.default" if item else "stack.default"
    shape = ("n", 5, count * item[0], *item[1:]) if item else ("n", 5, count)
    task = graph.task(graph.call(op, refs, dim, shape=shape, dtype=dtype), symbols={"n": 1000})
    strategy = initial(task, chip)
    assert strategy.family == "interleave"
    strategy = FAMILY.adapt(
        legalised(task, load_chip()), evolve(strategy, settings=(("buffers", 2), ("repeats", repeats))), chip
    )
    assert strategy is not None
    assert audit(task, write(task, strategy, chip)).status is GateStatus.PASSED
    for n in LENGTHS:
        parts = {f"x{i}": _values(n + i, (n, 5, *item), dtype) for i in range(count)}
        (found,) = on_twin(task, parts, strategy, sizes={"n": n})
        join = np.concatenate if item else np.stack
        np.testing.assert_array_equal(found, join(list(parts.values()), dim))


def test_a_tensor_may_be_joined_with_itself(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x, y = graph.input("x", (70, 61)), graph.input("y", (70, 61))
    task = graph.task(graph.call("stack.default", (x, y, x), -1, shape=(70, 61, 3)))
    left, right = _values(0, (70, 61), "float32"), _values(1, (70, 61), "float32")
    (found,) = on_twin(task, {"x": left, "y": right})
    np.testing.assert_array_equal(found, np.stack([left, right, left], -1))


def test_halves_that_change_places(builder: Any, on_twin: Any) -> None:
    """Both parts of every pair are sliced out, one is negated, and they come back the other way round."""
    graph = builder()
    x = graph.input("x", ("n", 5, 16), "float16")
    even, odd = (
        graph.call("slice.Tensor", x, 2, start, 9223372036854775807, 2, shape=("n", 5, 8), dtype="float16")
        for start in (0, 1)
    )
    negative = graph.call("neg.default", odd, shape=("n", 5, 8), dtype="float16")
    stack = graph.call("stack.default", (negative, even), -1, shape=("n", 5, 8, 2), dtype="float16")
    flat = graph.call("view.default", stack, (-1, 5, 16), shape=("n", 5, 16), dtype="float16")
    task = graph.task(flat, symbols={"n": 200})
    assert any(node.op == INTERLEAVE.name for node in legalised(task, load_chip()).graph.nodes)
    for n in (200, 1, 33):
        values = _values(n, (n, 5, 16), "float16")
        (found,) = on_twin(task, {"x": values}, sizes={"n": n})
        expected = np.stack([-values[..., 1::2], values[..., ::2]], -1).reshape(n, 5, 16)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("sliced", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
def test_a_product_of_pairs_in_slices(sliced: bool, swapped: bool, builder: Any, on_twin: Any) -> None:
    """Rotary embeddings are products of pairs where the right parts meet, and stay as written elsewhere."""
    graph = builder()
    shape = (2, "s", 3, 6)
    x, c, s = graph.input("x", (2, "s", 3, 12)), graph.input("c", ("s", 1, 6)), graph.input("w", ("s", 1, 6))
    if sliced:
        a, b = (graph.call("slice.Tensor", x, 3, i, 9223372036854775807, 2, shape=shape) for i in (0, 1))
    else:
        pairs = graph.call("view.default", x, (2, -1, 3, 6, 2), shape=(*shape, 2))
        a, b = (graph.call("select.int", pairs, -1, i, shape=shape) for i in (0, 1))
    ac, bs, as_, bc = (
        graph.call("mul.Tensor", left, right, shape=shape) for left, right in ((a, c), (s, b), (a, s), (c, b))
    )
    re = graph.call("sub.Tensor", *((bs, ac) if swapped else (ac, bs)), shape=shape)
    im = graph.call("add.Tensor", bc, as_, shape=shape)
    stack = graph.call("stack.default", (re, im), -1, shape=(*shape, 2))
    flat = graph.call("view.default", stack, (2, -1, 3, 12), shape=(2, "s", 3, 12))
    task = graph.task(flat, symbols={"s": 50})
    assert (
        any(node.op == COMPLEX_MULTIPLY.name for node in legalised(task, load_chip()).graph.nodes)
        is not swapped
    )
    for n in (50, 1, 7):
        v, cos, sin = (
            np.random.default_rng(n + i).normal(size=size).astype("f4")
            for i, size in enumerate(((2, n, 3, 12), (n, 1, 6), (n, 1, 6)))
        )
        (found,) = on_twin(task, {"x": v, "c": cos, "w": sin}, sizes={"s": n})
        even, odd = v[..., ::2], v[..., 1::2]
        real = (even * cos - odd * sin) * (-1 if swapped else 1)
        expected = np.stack([real, even * sin + odd * cos], -1).reshape(v.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_elements_repeated_in_a_row(builder: Any, on_twin: Any) -> None:
    """Factors of rotary embeddings, as repeat_interleave makes them of a table."""
    graph = builder()
    x, w = graph.input("x", (3, "s", 2, 24)), graph.input("w", ("s", 8))
    column = graph.call("unsqueeze.default", w, 2, shape=("s", 8, 1))
    wide = graph.call("expand.default", column, (-1, -1, 3), shape=("s", 8, 3))
    wide = graph.call("clone.default", wide, shape=("s", 8, 3))
    rows = graph.call("reshape.default", wide, (-1, 1, 24), shape=("s", 1, 24))
    task = graph.task(graph.call("mul.Tensor", x, rows, shape=(3, "s", 2, 24)), symbols={"s": 600})
    assert any(node.op == INTERLEAVE.name for node in legalised(task, load_chip()).graph.nodes)
    for s in (600, 1, 9):
        left, table = _values(s, (3, s, 2, 24), "float32"), _values(s + 1, (s, 8), "float32")
        (found,) = on_twin(task, {"x": left, "w": table}, sizes={"s": s})
        np.testing.assert_array_equal(found, left * np.repeat(table, 3, 1)[:, None])


@pytest.mark.parametrize(
    ("count", "shape", "dim", "dtype"),
    [
        (2, (100, 3), 1, "float32"),
        (2, (5000, 9), 1, "float32"),
        (2, (5000, 3), 1, "float32"),
        (2, (5000, 1), 1, "uint8"),
        (17, (5000, 1), 1, "float32"),
    ],
)
def test_other_joins_are_copies(
    count: int, shape: tuple[int, ...], dim: int, dtype: str, builder: Any, chip: Any
) -> None:
    """Few or long items, items that no square holds whole, bytes, and many tensors."""
    graph = builder()
    refs = tuple(graph.input(f"x{i}", shape, dtype) for i in range(count))
    whole = (*shape[:dim], shape[dim] * count, *shape[dim + 1 :])
    task = graph.task(graph.call("cat.default", refs, dim, shape=whole, dtype=dtype))
    assert initial(task, chip).family.startswith("layout")


@given(
    st.sampled_from(["float32", "float16", "bfloat16", "int64", "int32", "uint8"]),
    st.lists(st.integers(1, 9), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_items_fill_squares(dtype: str, inner: list[int]) -> None:
    size = {"int64": 8, "float32": 4, "int32": 4, "uint8": 1}.get(dtype, 2)
    found = words_of(TensorSpec((77, *inner), dtype), 1)
    length = math.prod(inner) * size
    if found is None:
        assert size == 1 or length >= 32 or 32 % length
    else:
        width, item = found
        assert width * item == length < 32
        assert 32 % length == 0
