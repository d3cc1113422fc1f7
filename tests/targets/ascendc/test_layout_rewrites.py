"""Operations that are rewritten into slices, joins, flips and expansions, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.rewrites.layout import REWRITES
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.author import check, legalised

SIZES = ({"a": 2, "b": 6, "c": 9}, {"a": 1, "b": 5, "c": 40})
"""Sizes of the input's dimensions."""


def _x(sizes: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=tuple(sizes.values())).astype("f4")


def _checked(on_twin: Any, graph: Any, refs: Any, expected: Any) -> None:
    """Runs a graph over x [a, b, c] at all sizes; ``expected`` takes x and gives the results."""
    task = graph.task(*refs, symbols=dict(SIZES[0]))
    for sizes in SIZES:
        found = on_twin(task, {"x": _x(sizes)}, sizes=sizes)
        for result, wanted in zip(found, expected(_x(sizes)), strict=True):
            np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("dim", [0, -1])
def test_a_stack(dim: int, builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "b", "c"))
    back = graph.call("flip.default", x, (2,), shape=("a", "b", "c"))
    shape = (2, "a", "b", "c") if dim == 0 else ("a", "b", "c", 2)
    stack = graph.call("stack.default", (x, back), dim, shape=shape)
    _checked(on_twin, graph, [stack], lambda v: [np.stack([v, v[..., ::-1]], dim)])


def test_a_split_and_an_unbind(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", 6, "c"))
    lengths = (1, 3, 2)
    split = graph.calls(
        "split_with_sizes.default",
        x,
        lengths,
        1,
        outputs=[TensorSpec(("a", n, "c"), "float32") for n in lengths],
    )
    rows = graph.calls("unbind.int", x, 1, outputs=[TensorSpec(("a", "c"), "float32")] * 6)
    parts = [type(split)(split.name, i) for i in range(3)]
    task = graph.task(
        graph.call("cat.default", (parts[2], parts[0], parts[1]), 1, shape=("a", 6, "c")),
        graph.call("add.Tensor", type(rows)(rows.name, 5), type(rows)(rows.name, 1), shape=("a", "c")),
        symbols={"a": 2, "c": 9},
    )
    for a, c in ((2, 9), (3, 1)):
        values = _x({"a": a, "b": 6, "c": c})
        joined, added = on_twin(task, {"x": values}, sizes={"a": a, "c": c})
        np.testing.assert_array_equal(joined, values[:, [4, 5, 0, 1, 2, 3]])
        np.testing.assert_array_equal(added, values[:, 5] + values[:, 1])


def test_more_tensors_than_a_kernel_joins(builder: Any, on_twin: Any) -> None:
    graph = builder()
    refs = tuple(graph.input(f"x{i}", ("n", 3), "int32") for i in range(60))
    task = graph.task(graph.call("cat.default", refs, 1, shape=("n", 180), dtype="int32"), symbols={"n": 5})
    parts = [np.full((5, 3), i, "i4") for i in range(60)]
    (found,) = on_twin(task, {f"x{i}": part for i, part in enumerate(parts)})
    np.testing.assert_array_equal(found, np.concatenate(parts, 1))


def test_a_roll(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "b", "c"))
    task = graph.call("roll.default", x, (2, -3), (1, 2), shape=("a", "b", "c"))
    _checked(on_twin, graph, [task], lambda v: [np.roll(v, (2, -3), (1, 2))])


def test_a_repetition(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "b", "c"))
    tiled = graph.call("repeat.default", x, (3, 1, 2, 1), shape=(3, "a", "b*2", "c"))
    _checked(on_twin, graph, [tiled], lambda v: [np.tile(v, (3, 1, 2, 1))])


def test_a_join_takes_an_earlier_one_of_its_first_tensors(builder: Any, on_twin: Any, chip: Any) -> None:
    """Layers that read all results before them join one more tensor each time."""
    graph = builder()
    first, second, third = (graph.input(name, ("n", width)) for name, width in (("x", 5), ("y", 3), ("z", 8)))
    two = graph.call("cat.default", (first, second), 1, shape=("n", 8))
    three = graph.call("cat.default", (first, second, third), -1, shape=("n", 16))
    four = graph.call("cat.default", (first, second, third, first), 1, shape=("n", 21))
    other = graph.call("cat.default", (second, first, third), 1, shape=("n", 16))
    below = graph.call("cat.default", (two, third, third), 0, shape=("3*n", 8))
    task = graph.task(two, three, four, other, below, symbols={"n": 4})
    joins = [len(list(node.operands())) for node in legalised(task, chip).graph.nodes]
    assert joins == [2, 2, 2, 3, 3]
    for n in (1, 4, 70):
        x, y, z = (_x({"n": n, "width": width}, width) for width in (5, 3, 8))
        found = on_twin(task, {"x": x, "y": y, "z": z}, sizes={"n": n})
        wanted = [(x, y), (x, y, z), (x, y, z, x), (y, x, z)]
        for result, parts in zip(found, wanted, strict=False):
            np.testing.assert_array_equal(result, np.hstack(parts))
        np.testing.assert_array_equal(found[4], np.vstack([found[0], z, z]))


def test_a_join_of_another_type_is_not_taken(builder: Any, chip: Any) -> None:
    graph = builder()
    x, y = graph.input("x", ("n", 5), "float16"), graph.input("y", ("n", 3), "float32")
    two = graph.call("cat.default", (x, x), 1, shape=("n", 10), dtype="float16")
    task = graph.task(two, graph.call("cat.default", (x, x, y), 1, shape=("n", 13)), symbols={"n": 4})
    writer = GraphWriter(task, REWRITES, chip)
    for node in task.graph.nodes:
        writer.write(node)
    assert [len(list(node.operands())) for node in writer.nodes] == [2, 3]


@pytest.mark.parametrize(("op", "mode"), [("reflection_pad2d", "reflect"), ("replication_pad2d", "edge")])
def test_pads_that_take_what_is_there(op: str, mode: Any, builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "b", "c"))
    result = graph.call(f"{op}.default", x, (3, 1, 2, 4), shape=("a", "b + 6", "c + 4"))
    _checked(on_twin, graph, [result], lambda v: [np.pad(v, ((0, 0), (2, 4), (3, 1)), mode=mode)])


def test_a_part_that_is_replaced(builder: Any, on_twin: Any) -> None:
    def expected(v: Any) -> list[Any]:
        changed = v.copy()
        changed[:, 1:3] = v[:, 0:2]
        changed[..., -1] = v[..., 0]
        return [changed]

    graph = builder()
    x = graph.input("x", ("a", "b", "c"))
    first = graph.call("slice.Tensor", x, 1, 0, 2, shape=("a", 2, "c"))
    column = graph.call("select.int", x, 2, 0, shape=("a", "b"))
    wide = graph.call("slice_scatter.default", x, first, 1, 1, 3, shape=("a", "b", "c"))
    result = graph.call("select_scatter.default", wide, column, 2, -1, shape=("a", "b", "c"))
    _checked(on_twin, graph, [result], expected)


@pytest.mark.parametrize(
    ("dim", "start", "step"),
    [(1, None, 2), (1, 1, 2), (1, -3, 2), (1, 4, 5), (2, 1, 3), (2, 0, 7), (2, 6, 7)],
)
def test_every_other_element_is_replaced(
    builder: Any, on_twin: Any, dim: int, start: int | None, step: int
) -> None:
    """As positions are encoded: sines at even places, cosines at odd ones."""
    shape, first = (3, 6, 7), start or 0
    values, count = _x({"a": 3, "b": 6, "c": 7}), len(range(shape[dim])[first::step])
    graph = builder()
    x = graph.input("x", ("a", *shape[1:]))
    narrow = tuple(count if axis == dim else size for axis, size in enumerate(("a", *shape[1:])))
    part = graph.input("part", narrow)
    result = graph.call("slice_scatter.default", x, part, dim, start, 1 << 62, step, shape=("a", *shape[1:]))
    given = _x(dict(enumerate((3, *narrow[1:]))), 1)
    wanted = values.copy()
    wanted[(slice(None),) * dim + (slice(first, None, step),)] = given
    (found,) = on_twin(graph.task(result, symbols={"a": 3}), {"x": values, "part": given})
    np.testing.assert_array_equal(found, wanted)


def test_steps_along_a_dimension_of_any_size_are_refused(builder: Any, chip: Any) -> None:
    graph = builder()
    x, part = graph.input("x", (3, "a")), graph.input("part", (3, "(a + 1)//2"))
    result = graph.call("slice_scatter.default", x, part, 1, 0, 1 << 62, 2, shape=(3, "a"))
    with pytest.raises(PlanError, match="dynamic size"):
        check(graph.task(result, symbols={"a": 8}), chip)


@pytest.mark.parametrize("sizes", [{"a": 1, "b": 1}, {"a": 3, "b": 1}, {"a": 5, "b": 9}])
def test_a_column_that_becomes_a_number(builder: Any, on_twin: Any, sizes: dict[str, int]) -> None:
    """Where nothing but the column is left of a row, it is written nevertheless."""
    graph = builder()
    x = graph.input("x", ("a", "b"))
    zeros = graph.call("full.default", ("a",), 0.0, shape=("a",))
    result = graph.call("select_scatter.default", x, zeros, 1, 0, shape=("a", "b"))
    values = np.ones(tuple(sizes.values()), "f4")
    (found,) = on_twin(graph.task(result, symbols=sizes), {"x": values})
    values[:, 0] = 0
    np.testing.assert_array_equal(found, values)


def test_windows_and_a_diagonal(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", 20))
    windows = graph.call("unfold.default", x, 1, 6, 4, shape=("n", 4, 6))
    diagonal = graph.call("diagonal.default", windows, -1, 1, 2, shape=("n", 3))
    task = graph.task(graph.call("clone.default", windows, shape=("n", 4, 6)), diagonal, symbols={"n": 5})
    values = np.random.default_rng(1).normal(size=(5, 20)).astype("f4")
    expected = np.lib.stride_tricks.sliding_window_view(values, 6, 1)[:, ::4]
    found, below = on_twin(task, {"x": values})
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(below, expected.diagonal(-1, 1, 2))


def test_strides_that_a_mean_has_anyway(builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "b", 4, 4))
    mean = graph.call("mean.dim", x, (-1, -2), True, shape=("a", "b", 1, 1))
    strides = (SymbolicInt("b"), 1, SymbolicInt("b"), SymbolicInt("b"))
    result = graph.call("as_strided.default", mean, ("a", "b", 1, 1), strides, shape=("a", "b", 1, 1))
    values = np.random.default_rng(1).normal(size=(2, 6, 4, 4)).astype("f4")
    (found,) = on_twin(graph.task(result, symbols={"a": 2, "b": 6}), {"x": values})
    np.testing.assert_allclose(found, values.mean((2, 3), keepdims=True), rtol=1e-5, atol=1e-6)
    turned = graph.call("as_strided.default", mean, ("a", "b", 1, 1), (1, 1, 1, 1), shape=("a", "b", 1, 1))
    with pytest.raises(PlanError, match="strides"):
        check(graph.task(turned, symbols={"a": 2, "b": 6}), chip)
