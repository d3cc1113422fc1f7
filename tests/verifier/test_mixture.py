"""The classes of sizes and values that draws are mixtures of: floors hold, and the docs have the table."""

from __future__ import annotations

import sys
from math import log2, prod
from pathlib import Path
from random import Random

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates import mixture
from evokernel_core.verifier.gates.cases import plan_cases

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
from judge import (  # noqa: E402 - a script
    below_floor,
    below_special_floor,
    shares,
    special_sizes,
    tasks,
)


@pytest.mark.parametrize("task", tuple(tasks()), ids=lambda task: task.name)
def test_every_class_is_drawn_as_often_as_its_floor_says(task: KernelTask) -> None:
    plans = (plan_cases(task, Draw(f"{number:032x}")) for number in range(150))
    drawn = [[(dict(plan.sizes), plan.distribution) for plan in cases] for cases in plans]
    assert below_floor(task, shares(task, drawn)) == []


ASKED = {"a short row": (700,), "a long row": (4096,)}
"""Numbers that a kernel's text asks to be equal to: a long one must not take all that may be large."""


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("task", tuple(tasks()), ids=lambda task: task.name)
def test_special_sizes_are_drawn_as_often_as_their_floor_says(
    task: KernelTask, asked: tuple[int, ...]
) -> None:
    assert below_special_floor(special_sizes(task, 60, *asked)) == []


def test_the_docs_have_the_table() -> None:
    text = (ROOT / "docs" / "cases.md").read_text("utf-8")
    for special in mixture.SIZE_CLASSES:
        assert f"| {special.name} | {special.most or '-'} | {100 * special.floor:.0f} % |" in text
    for item in mixture.CLASSES:
        assert f"| {item.name} | {100 * item.floor:.0f} % |" in text
    for row in (mixture.TINY, mixture.LARGE, mixture.OFFSET):
        cells = [
            f"2^{low} to 2^{high}"
            for low, high in (row.exponents[dtype] for dtype in ("float32", "bfloat16", "float16"))
        ]
        assert f" | {' | '.join(cells)} |" in text


def test_tasks_of_fixed_sizes_have_every_class_of_values() -> None:
    task = next(tasks())
    fixed = evolve(task, graph=_at(task), symbols=())
    for number in range(20):
        drawn = {plan.distribution for plan in plan_cases(fixed, Draw(f"{number:032x}"))}
        assert sum("*2^-" in how for how in drawn) == sum("+2^" in how for how in drawn) == 1
        assert {"normal", mixture.MIXED} < drawn


def _at(task: KernelTask) -> Graph:

    spec = evolve(task.graph.inputs[0].spec, shape=(64, 100))
    inputs = (evolve(task.graph.inputs[0], spec=spec),)
    return evolve(task.graph, inputs=inputs, nodes=(evolve(task.graph.nodes[0], outputs=(spec,)),))


@given(st.integers(1, 5000), st.integers(1, 300), st.integers(0, 1000))
def test_even_sizes_are_even_where_they_can(size: int, minimum: int, seed: int) -> None:
    symbol = Symbol("s", max(size, minimum), minimum)
    found = mixture.even_size(symbol, symbol.size, Random(seed))
    assert minimum <= found <= symbol.size
    if symbol.size >= 80 and minimum <= 64:
        assert found > 64 and found % 2 == 0 and not mixture.is_power(found)


@pytest.mark.parametrize("name", mixture.LIMITS)
def test_operations_are_asked_where_digits_remain(name: str) -> None:
    """Large draws are no larger than what an operation keeps digits of; others are as large as the class."""
    task = next(task for task in tasks() if task.graph.nodes[0].op == "aten.relu.default")
    node = evolve(task.graph.nodes[0], op=f"aten.{name}.default")
    limited = evolve(task, graph=evolve(task.graph, nodes=(node,)))

    def scales(task: KernelTask) -> set[int]:
        limits = mixture.limits_of(task)
        return {mixture.LARGE.drawn("float32", limits, Random(seed)).scale for seed in range(20)}

    assert scales(limited) == {mixture.LIMITS[name][1]}
    assert min(scales(task)) >= mixture.LARGE.exponents["float32"][0]


def test_attention_that_is_written_out_is_asked_as_the_operation_is() -> None:
    spec = TensorSpec(("n", "n"), "float16")
    nodes = [
        Node("scores", "aten.mm.default", (ValueRef("x"), ValueRef("x")), (), (spec,)),
        Node("masked", "aten.add.Tensor", (ValueRef("scores"), 1.0), (), (spec,)),
        Node("shares", "aten._softmax.default", (ValueRef("masked"), -1, False), (), (spec,)),
    ]
    task = next(tasks())

    def limits(dtype: str, count: int) -> tuple[int, int]:
        inputs = (GraphInput("x", evolve(spec, dtype=dtype)),)
        graph = Graph(inputs, tuple(nodes[:count]), (ValueRef(nodes[count - 1].name),))
        return mixture.limits_of(evolve(task, graph=graph, symbols=(Symbol("n", 64),)))

    attention = mixture.LIMITS["scaled_dot_product_attention"]
    assert limits("float16", 3) == limits("bfloat16", 3) == attention
    assert attention not in (limits("float32", 3), limits("float16", 2))


@pytest.mark.parametrize(
    "task", [task for task in tasks() if len(task.symbols) > 1], ids=lambda task: task.name
)
def test_each_size_is_beyond_and_a_multiple_of_16_beside_the_files_others(task: KernelTask) -> None:
    """Where the file's own sizes are light: a condition on one shows where the others fill their tiles."""
    light = evolve(task, symbols=tuple(evolve(each, size=min(each.size, 16)) for each in task.symbols))
    for number in range(20):
        drawn = [dict(plan.sizes) for plan in plan_cases(light, Draw(f"{number:032x}"))]
        for symbol in light.symbols:
            apart = [
                sizes[symbol.name]
                for sizes in drawn
                if all(sizes[each.name] == each.size for each in light.symbols if each != symbol)
            ]
            assert any(size > symbol.size for size in apart)
            assert any(size % 16 == 0 and not mixture.is_power(size) for size in apart)


@pytest.mark.parametrize("task", tuple(tasks()), ids=lambda task: task.name)
def test_large_values_leave_room_for_sums_of_all_squares(task: KernelTask) -> None:
    """A variance about another point than the mean is several times as large on the way."""
    count = max(prod(operand.spec.sizes(task.sizes)) for operand in task.graph.inputs)
    scales = [
        float(how.split("*2^")[1])
        for seed in range(50)
        for how in mixture.magnitudes(task, Random(seed))
        if "*2^" in how and "*2^-" not in how
    ]
    assert max(scales) > 10
    assert 2 * max(scales) + log2(count) <= 127 - 10
