"""Axes of a value seen through views, against NumPy's own views of an array of element numbers."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evokernel_core.compiler.problems.products import Product, Side
from evokernel_core.compiler.problems.strided import Group, behind_views
from evokernel_core.compiler.shapes.sizes import Extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.ascendc.kernels.matmul.matmul_schedule import best, refusal
from tests.targets.ascendc.conftest import GraphBuilder


def offsets(groups: tuple[Group, ...]) -> Any:
    """The element that each place of the value is, in row-major order."""
    axes = [axis for group in groups for axis in group]
    sizes = [axis.size.evaluate({}) for axis in axes]
    steps = [axis.stride.evaluate({}) for axis in axes]
    places = itertools.product(*(range(size) for size in sizes))
    return np.array([sum(i * step for i, step in zip(place, steps, strict=True)) for place in places])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=4), st.data())
def test_views_of_views(shape: list[int], data: st.DataObject) -> None:
    graph, elements = GraphBuilder(), np.arange(math.prod(shape)).reshape(shape)
    ref = graph.input("x", shape)
    for _ in range(data.draw(st.integers(0, 3))):
        way = data.draw(st.sampled_from(["permute", "expand", "view"]))
        if way == "permute":
            order = tuple(data.draw(st.permutations(range(elements.ndim))))
            elements = elements.transpose(order)
            ref = graph.call("permute.default", ref, order, shape=elements.shape)
        elif way == "expand":
            wide = tuple(3 if size == 1 else size for size in elements.shape)
            elements = np.broadcast_to(elements, wide)
            ref = graph.call("expand.default", ref, wide, shape=wide)
        else:
            first = data.draw(st.sampled_from([i for i in range(1, 5) if elements.size % i == 0]))
            elements = elements.reshape(first, -1)
            ref = graph.call("view.default", ref, elements.shape, shape=elements.shape)
    task = graph.task(graph.call("exp.default", ref, shape=elements.shape))
    try:
        name, groups = behind_views(task, ref)
    except PlanError:
        return  # elements at no constant distances
    assert name == "x"
    assert [math.prod(axis.size.evaluate({}) for axis in group) for group in groups] == list(elements.shape)
    np.testing.assert_array_equal(offsets(groups), elements.ravel())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_a_dense_value_takes_any_shape(shape: list[int], data: st.DataObject) -> None:
    size = math.prod(shape)
    first = data.draw(st.sampled_from([i for i in range(1, size + 1) if size % i == 0]))
    graph = GraphBuilder()
    ref = graph.call("view.default", graph.input("x", shape), (first, -1), shape=(first, size // first))
    _, groups = behind_views(graph.task(graph.call("exp.default", ref, shape=(first, size // first))), ref)
    np.testing.assert_array_equal(offsets(groups), np.arange(size))


@settings(max_examples=8, deadline=None)
@given(
    st.integers(1, 9000), st.integers(1, 9000), st.integers(1, 9000), st.sampled_from(["float32", "float16"])
)
def test_the_first_schedule_is_legal(chip: Any, m: int, n: int, k: int, dtype: str) -> None:
    depth = Extent(k)
    left, right = Side("x", False, depth, ()), Side("y", True, depth, ())
    found = Product(left, right, Extent(1), Extent(m), Extent(n), depth, dtype, dtype)
    assert refusal(found, best(found, {}, chip), chip) is None
