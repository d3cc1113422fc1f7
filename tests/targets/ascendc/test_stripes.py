"""Slices that kernels read where they lie, against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.domain.tensor import TensorSpec


@frozen
class Case:
    """``parts`` of ``length`` along ``dim`` of a tensor of ``shape``, whose one is the length of all."""

    shape: tuple[Any, ...]
    dim: int
    parts: int
    dtype: str = "float32"
    reduces: bool = False


CASES = (
    Case(("a", 256), 1, 2),
    Case(("a", 390), -1, 3),
    Case(("a", 512), 1, 2, "float16"),
    Case(("a", 4, 100), 1, 2),
    Case((2, "a", 300), 0, 2),
    Case(("a", 258), 1, 2, reduces=True),
    Case(("a", 12288), 1, 3, reduces=True),
)


def _task(case: Case, builder: Any) -> Any:
    graph = builder()
    x = graph.input("x", case.shape, case.dtype)
    part = list(case.shape)
    part[case.dim] //= case.parts
    cut = graph.calls(
        "split.Tensor", x, part[case.dim], case.dim, outputs=[TensorSpec(part, case.dtype)] * case.parts
    )
    refs = [type(cut)(cut.name, i) for i in range(case.parts)]
    is_last = case.dim % len(part) == len(part) - 1
    bias = graph.input("bias", part[-1:] if is_last else part, case.dtype)
    value = graph.call("add.Tensor", refs[-1], bias, shape=part, dtype=case.dtype)
    for ref in refs[:-1]:
        value = graph.call("sub.Tensor", value, ref, shape=part, dtype=case.dtype)
    if case.reduces:
        top = graph.call("amax.default", value, (-1,), True, shape=(*part[:-1], 1), dtype=case.dtype)
        value = graph.call("sub.Tensor", value, top, shape=part, dtype=case.dtype)
    return graph.task(value, symbols={"a": 96})


def _expected(case: Case, x: Any, bias: Any) -> Any:
    *others, last = np.split(x, case.parts, case.dim)
    value = last + bias
    for other in others:
        value = value - other
    return value - value.max(-1, keepdims=True) if case.reduces else value


def _check(case: Case, on_twin: Any, task: Any, strategy: Any, sizes: Sequence[int]) -> None:
    for rows in sizes:
        random = np.random.default_rng(rows)
        shapes = [operand.spec.sizes({"a": rows}) for operand in task.graph.inputs]
        x, bias = (random.integers(-9, 9, shape).astype(case.dtype) for shape in shapes)
        (got,) = on_twin(task, {"x": x, "bias": bias}, strategy, {"a": rows})
        np.testing.assert_array_equal(got, _expected(case, x, bias))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_slices_are_read_where_they_lie(case: Case, builder: Any, on_twin: Any) -> None:
    task = _task(case, builder)
    strategy = on_twin.initial(task)
    assert not strategy.kernels  # one kernel, and no copies before it
    _check(case, on_twin, task, strategy, (96, 1, 7, 131))


def test_halves_of_any_length(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "2 * h"))
    first = graph.call("slice.Tensor", x, 1, 0, SymbolicInt("h"), shape=("a", "h"))
    second = graph.call("slice.Tensor", x, 1, SymbolicInt("h"), 2**63 - 1, shape=("a", "h"))
    task = graph.task(graph.call("sub.Tensor", first, second, shape=("a", "h")), symbols={"a": 64, "h": 192})
    strategy = on_twin.initial(task)
    assert not strategy.kernels
    for a, h in ((64, 192), (3, 5), (50, 190), (2, 33)):
        values = np.random.default_rng(a).normal(size=(a, 2 * h)).astype("f4")
        (got,) = on_twin(task, {"x": values}, strategy, {"a": a, "h": h})
        np.testing.assert_array_equal(got, values[:, :h] - values[:, h:])


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_form_reads_them(case: Case, builder: Any, on_twin: Any) -> None:
    task = _task(case, builder)
    for move in on_twin.moves(task, on_twin.initial(task)):
        _check(case, on_twin, task, move.strategy, (5, 97))


def test_short_and_uneven_slices_are_copied_first(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", 300))
    parts = [graph.call("slice.Tensor", x, 1, first, first + 100, shape=("a", 100)) for first in (0, 150)]
    task = graph.task(graph.call("mul.Tensor", *parts, shape=("a", 100)), symbols={"a": 96})
    strategy = on_twin.initial(task)
    assert strategy.kernels
    values = np.random.default_rng(3).normal(size=(5, 300)).astype("f4")
    (got,) = on_twin(task, {"x": values}, strategy, {"a": 5})
    np.testing.assert_array_equal(got, values[:, :100] * values[:, 150:250])
