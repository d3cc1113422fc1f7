"""Scaling and shifting by channel, folded into the weights and the bias of a convolution."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.aten import CONVOLUTION
from evokernel_core.compiler.rewrites.folded_steps import folded_steps
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.domain.tensor import evaluate_dim
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.package.reference import statements
from tests.tables import few

torch = pytest.importorskip("torch")
LARGE = {"n": 256, "h": 256, "w": 256}
SMALL = {"n": 2, "h": 6, "w": 7}
INPUTS, RESULTS = 4, 6


class Case:
    """A convolution and steps behind it; ``made`` is the value so far."""

    def __init__(self, graph: Any, transposed: bool = False, bias: bool = True, groups: int = 1) -> None:
        self.graph = graph
        shape = (INPUTS, RESULTS // groups) if transposed else (RESULTS, INPUTS // groups)
        x = graph.input("x", ("n", INPUTS, "h", "w"))
        weight = graph.input("weight", (*shape, 3, 3), parameter=True)
        given = graph.input("bias", (RESULTS,), parameter=True) if bias else None
        more = " + 2" if transposed else " - 2"
        self.shape = ("n", RESULTS, f"h{more}", f"w{more}")
        settings = ((1, 1), (0, 0), (1, 1), transposed, (0, 0), groups)
        self.made = graph.call("convolution.default", x, weight, given, *settings, shape=self.shape)

    def step(self, name: str, other: Any, turned: bool = False) -> Case:
        args = (other, self.made) if turned else (self.made, other)
        self.made = self.graph.call(f"{name}.Tensor", *args, shape=self.shape)
        return self

    def channels(self, name: str, rank: int = 3) -> ValueRef:
        shape = (*(1,) * (rank - 3), RESULTS, 1, 1)
        found: ValueRef = self.graph.input(name, shape, parameter=True)
        return found

    def normalised(self) -> Case:
        """As a batch norm in eval mode is captured."""
        call = self.graph.call
        names = ("mean", "variance", "scale", "shift")
        given = [self.graph.input(name, (RESULTS,), parameter=True) for name in names]
        views = [call("view.default", ref, (-1, 1, 1), shape=(RESULTS, 1, 1)) for ref in given]
        deviation = call("add.Tensor", views[1], 0.5, shape=(RESULTS, 1, 1))
        inverse = call("rsqrt.default", deviation, shape=(RESULTS, 1, 1))
        self.step("sub", views[0]).step("mul", inverse)
        return self.step("mul", views[2]).step("add", views[3])

    def task(self, *more: ValueRef) -> KernelTask:
        last = self.graph.call("relu.default", self.made, shape=self.shape)
        found: KernelTask = self.graph.task(last, *more, symbols=LARGE)
        return found


def inputs_of(task: KernelTask) -> dict[str, Any]:
    draw = np.random.default_rng(3)
    shapes = {item.name: [evaluate_dim(dim, SMALL) for dim in item.spec.shape] for item in task.graph.inputs}
    return {name: draw.uniform(0.25, 1.5, shape).astype(np.float32) for name, shape in shapes.items()}


def computed(task: KernelTask, inputs: dict[str, Any], dtype: Any) -> Any:
    """The task's first result, by PyTorch's operations."""
    names = ", ".join(item.name for item in task.graph.inputs)
    lines = "\n    ".join(statements(task))
    scope: dict[str, Any] = {"torch": torch}
    exec(f"def reference({names}):\n    {lines}", scope)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # of tensors that are filled
    try:
        found = scope["reference"](*(torch.tensor(value, dtype=dtype) for value in inputs.values()))
    finally:
        torch.set_default_dtype(usual)
    return (found[0] if isinstance(found, tuple) else found).double().numpy()


def check(task: KernelTask) -> KernelTask:
    """The task with its steps folded: the result is the same in real arithmetic, and in float32 no further
    from it than a few times what PyTorch's is."""
    found = folded_steps(task, load_chip())
    assert found.graph.inputs == task.graph.inputs
    assert found.graph.output_specs() == task.graph.output_specs()
    inputs = inputs_of(task)
    right = computed(task, inputs, torch.float64)
    largest = np.abs(right).max()
    assert np.allclose(computed(found, inputs, torch.float64), right, rtol=1e-12, atol=1e-12 * largest)
    ours, theirs = (np.abs(computed(item, inputs, torch.float32) - right).max() for item in (found, task))
    assert ours <= 4 * theirs + 1e-6 * largest
    return found


def ops_behind(task: KernelTask) -> list[str]:
    """What is done to the convolution's result."""
    shape = task.graph.output_specs()[0].shape
    return [node.op for node in task.graph.nodes if node.outputs[0].shape == shape and node.op != CONVOLUTION]


FORMS = [(False, 1), (False, 2), (True, 1)]


@pytest.mark.parametrize(("transposed", "groups"), FORMS)
@pytest.mark.parametrize("bias", [False, True])
def test_a_batch_norm(transposed: bool, groups: int, bias: bool, builder: Any) -> None:
    case = Case(builder(), transposed, bias, groups).normalised().step("mul", 2.0)
    assert ops_behind(check(case.task())) == ["aten.relu.default"]


@few("seeds", [range(8), range(8, 24)], keep=(0,), ids=str)
@pytest.mark.parametrize(("transposed", "groups"), FORMS)
def test_steps_in_any_order(transposed: bool, groups: int, seeds: range, builder: Any) -> None:
    for seed in seeds:
        draw = random.Random(seed)
        case = Case(builder(), transposed, draw.random() < 0.5, groups)
        for place in range(draw.randrange(1, 6)):
            name = draw.choice(("add", "sub", "mul", "div"))
            other = draw.choice((2.0, 0.5, -3, case.channels(f"by_{place}", draw.choice((3, 4)))))
            case.step(name, other, turned=name != "div" and draw.random() < 0.4)
        assert ops_behind(check(case.task())) == ["aten.relu.default"], seed


def test_numbers_of_the_call(builder: Any) -> None:
    graph = builder()
    case = Case(graph).step("div", graph.scalar("divisor")).step("add", graph.scalar("more"))
    assert ops_behind(check(case.task())) == ["aten.relu.default"]


def test_a_transposed_convolution_in_groups_takes_numbers_only(builder: Any) -> None:
    case = Case(builder(), True, groups=2).step("mul", 2.0)
    case.step("add", case.channels("shift")).step("mul", case.channels("scale")).step("add", 1.0)
    left = ["aten.mul.Tensor", "aten.add.Tensor", "aten.relu.default"]
    assert ops_behind(check(case.task())) == left


def test_what_is_left_as_it_is(builder: Any) -> None:
    def of_rows(case: Case) -> Case:
        return case.step("mul", case.graph.input("by_row", (case.shape[2], 1)))

    def divided(case: Case) -> Case:
        return case.step("div", case.channels("by"), turned=True)

    def weighted(case: Case) -> Case:
        case.made = case.graph.call("add.Tensor", case.made, case.channels("by"), shape=case.shape, alpha=2)
        return case

    for change in (of_rows, divided, weighted):
        task = change(Case(builder())).task()
        assert check(task) is task, change


def test_a_result_that_others_read_stays(builder: Any) -> None:
    case = Case(builder())
    first = case.made
    task = case.step("mul", 2.0).task(first)
    assert folded_steps(task, load_chip()) is task
    assert check(case.task()) is not task  # without the other reader it is folded


def test_weights_of_few_results_stay(builder: Any) -> None:
    task = evolve(
        Case(builder()).normalised().task(), symbols=(Symbol("n", 2), Symbol("h", 8), Symbol("w", 8))
    )
    assert folded_steps(task, load_chip()) is task


def test_a_second_bias_becomes_the_first_without_a_kernel(builder: Any) -> None:
    case = Case(builder(), bias=False)
    task = evolve(
        case.step("add", case.channels("shift")).task(),
        symbols=(Symbol("n", 1), Symbol("h", 8), Symbol("w", 8)),
    )
    found = check(task)
    assert [node.op for node in found.graph.nodes] == ["aten.view.default", CONVOLUTION, "aten.relu.default"]


def test_on_the_twin(builder: Any, on_twin: Any) -> None:
    task = Case(builder(), bias=True).normalised().task()
    inputs = inputs_of(task)
    right = computed(task, inputs, torch.float64)
    (found,) = on_twin(task, inputs, sizes=SMALL)
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)
