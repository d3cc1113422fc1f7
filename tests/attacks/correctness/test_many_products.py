"""Few bytes and many products: sizes that no case has in whole, of which slices must be looked at in every
draw. A kernel that leaves products out there has the same bytes, stores and, to 60 %, the same work."""

from __future__ import annotations

import pytest

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates import cases
from evokernel_core.verifier.gates.slices.choice import FEW_PLACES, NEIGHBOURS, ChosenSlices, choose

SECRETS = [Draw(f"{number:032x}") for number in range(20)]


@pytest.fixture(scope="module")
def task() -> KernelTask:
    sides = ("s0", "s1", "s2")
    shapes = [sides[:2], sides[1:]]
    inputs = tuple(
        GraphInput(name, TensorSpec(shape, "float16")) for name, shape in zip("xy", shapes, strict=True)
    )
    output = TensorSpec((sides[0], sides[2]), "float16")
    node = Node("z", "aten.mm.default", (ValueRef("x"), ValueRef("y")), (), (output,))
    symbols = tuple(Symbol(side, 2048) for side in sides)
    return KernelTask(
        "mm", Graph(inputs, (node,), (ValueRef("z"),)), symbols, TOLERANCES["float16"], "matmul"
    )


def test_no_case_has_the_sizes_of_the_file(task: KernelTask) -> None:
    assert cases.total_bytes(task, task.sizes) <= cases.FULL_LIMIT
    for draw in SECRETS:
        plans = cases.plan_cases(task, draw, thorough=True)
        assert all(cases.total_products(task, dict(plan.sizes)) < 10**9 for plan in plans)


def test_few_slices_lie_anywhere(task: KernelTask) -> None:
    """Wants to know which tiles are looked at; each draw must have others, and few of them."""
    chosen = [choose(task, draw, few=True) for draw in SECRETS]
    firsts = set()
    for slices in chosen:
        assert isinstance(slices, ChosenSlices)
        runs = dict(slices.runs)
        assert all(sum(length for _, length in each) <= NEIGHBOURS for each in runs.values())
        assert max(map(len, runs.values())) <= FEW_PLACES
        firsts.add(tuple(first for each in runs.values() for first, _ in each))
    assert len(firsts) == len(SECRETS)
