"""What follows a matrix product on vector cores, tile by tile: operands, types, shapes and overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from attrs import define, field
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import estimate_us, initial, moves, write
from evokernel_core.targets.ascendc.source import KERNEL
from tests.tables import few

SIZES = [(1, 1, 5), (16, 16, 16), (129, 257, 65), (1, 300, 20), (300, 9, 33), (70, 1030, 17)]
SHAPES: Mapping[str, tuple[Any, ...]] = {
    "columns": ("n",), "rows": ("m", 1), "full": ("m", "n"), "single": (1,), "row": (1, "n"),
}  # fmt: skip
BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "add.Tensor": np.add, "sub.Tensor": np.subtract, "mul.Tensor": np.multiply, "maximum.default": np.maximum,
}  # fmt: skip
UNARY: Mapping[str, Callable[[Any], Any]] = {
    "relu.default": lambda value: np.maximum(value, 0),
    "tanh.default": np.tanh,
    "sigmoid.default": lambda value: 1 / (1 + np.exp(-value)),
    "abs.default": np.abs,
}


@define
class Chain:
    """A graph of x @ y (m x k and k x n) and what follows, with the numbers that it gives."""

    graph: Any
    dtype: str
    value: ValueRef = field(init=False)
    steps: list[Callable[[Any, Mapping[str, Any]], Any]] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        x, y = (self.graph.input(*item, self.dtype) for item in (("x", ("m", "k")), ("y", ("k", "n"))))
        self.value = self.call("mm.default", x, y)

    def call(self, op: str, *args: Any) -> ValueRef:
        result: ValueRef = self.graph.call(op, *args, shape=("m", "n"), dtype=self.dtype)
        return result

    def unary(self, op: str) -> None:
        self.value = self.call(op, self.value)
        self.steps.append(lambda value, _: UNARY[op](value))

    def binary(self, op: str, shape: str) -> None:
        name = f"operand{len(self.steps)}"
        self.value = self.call(op, self.value, self.graph.input(name, SHAPES[shape], self.dtype))
        self.steps.append(lambda value, numbers: BINARY[op](value, numbers[name]))

    def task(self, *outputs: ValueRef) -> KernelTask:
        result: KernelTask = self.graph.task(*(outputs or (self.value,)), symbols={"m": 40, "n": 50, "k": 70})
        return result

    def expected(self, numbers: Mapping[str, Any]) -> list[Any]:
        """The product, and the value behind each step."""
        found = [numbers["x"] @ numbers["y"]]
        for step in self.steps:
            found.append(step(found[-1], numbers))
        return found


def drawn(task: KernelTask, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Inputs in quarters, which every type holds."""
    rng = np.random.default_rng(sizes.get("m", 0))
    shapes = {item.name: item.spec.sizes(sizes) for item in task.graph.inputs}
    return {name: rng.integers(-8, 9, size=shape).astype("f4") / 4 for name, shape in shapes.items()}


def check(
    task: KernelTask, expected: Callable[[Mapping[str, Any]], list[Any]], on_twin: Any, chip: Any
) -> None:
    """One kernel, clean on the twin, right at many sizes."""
    strategy = initial(task, chip)
    assert strategy.family == "matmul"
    assert audit(task, write(task, strategy, chip)).status is GateStatus.PASSED
    exact = task.graph.output_specs()[0].dtype == "float32"
    for m, n, k in SIZES:
        sizes = {"m": m, "n": n, "k": k}
        inputs = drawn(task, sizes)
        results = on_twin(task, inputs, strategy=strategy, sizes=sizes)
        numbers = expected({name: value.astype("f8") for name, value in inputs.items()})
        for result, wanted in zip(results, numbers, strict=True):
            loose = 1e-4 if exact else 0.02 * (1 + np.abs(wanted).max())
            np.testing.assert_allclose(np.asarray(result, "f8"), wanted, rtol=1e-4, atol=loose)


@few(
    "dtype",
    ["float32", "float16", "bfloat16"],
    keep=(
        0,
        2,
    ),
)
def test_operands_of_every_shape(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    chain = Chain(builder(), dtype)
    chain.binary("add.Tensor", "columns")
    chain.binary("mul.Tensor", "rows")
    chain.binary("sub.Tensor", "full")
    chain.binary("maximum.default", "single")
    check(chain.task(), lambda numbers: chain.expected(numbers)[-1:], on_twin, chip)


STEPS = st.one_of(
    st.tuples(st.sampled_from(sorted(UNARY))),
    st.tuples(st.sampled_from(sorted(BINARY)), st.sampled_from(sorted(SHAPES))),
)


@settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(dtype=st.sampled_from(["float32", "float16"]), steps=st.lists(STEPS, min_size=1, max_size=5))
def test_any_chain(dtype: str, steps: Any, builder: Any, on_twin: Any, chip: Any) -> None:
    chain = Chain(builder(), dtype)
    for step in steps:
        chain.binary(*step) if len(step) == 2 else chain.unary(*step)
    check(chain.task(), lambda numbers: chain.expected(numbers)[-1:], on_twin, chip)


def test_several_results_of_which_one_is_the_product(builder: Any, on_twin: Any, chip: Any) -> None:
    chain = Chain(builder(), "float32")
    product = chain.value
    chain.binary("add.Tensor", "columns")
    moved = chain.value
    chain.unary("tanh.default")
    check(chain.task(product, moved, chain.value), chain.expected, on_twin, chip)


def test_a_batch_whose_operands_lack_some_of_its_dimensions(builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x, y = graph.input("x", (3, "m", 20)), graph.input("y", (3, 20, "n"))
    scale, shift = graph.input("scale", (3, 1, 1)), graph.input("shift", ("m", 1))
    bias = graph.input("bias", (3, 1, "n"))
    value = graph.call("bmm.default", x, y, shape=(3, "m", "n"))
    value = graph.call("mul.Tensor", value, scale, shape=(3, "m", "n"))
    value = graph.call("add.Tensor", value, shift, shape=(3, "m", "n"))
    value = graph.call("add.Tensor", value, bias, shape=(3, "m", "n"))
    task = graph.task(value, symbols={"m": 40, "n": 50})
    assert initial(task, chip).family == "matmul"
    for m, n in ((1, 1), (40, 50), (150, 270)):
        inputs = drawn(task, {"m": m, "n": n})
        (result,) = on_twin(task, inputs, sizes={"m": m, "n": n})
        wanted = inputs["x"] @ inputs["y"] * inputs["scale"] + inputs["shift"] + inputs["bias"]
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


@few(
    ("m", "n"),
    [(1, "n"), ("m", 1), (1, 1), (1, 300), (300, 1)],
    keep=(
        0,
        1,
        4,
    ),
)
def test_products_of_one_row_or_column(m: Any, n: Any, builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x, y = graph.input("x", (m, 70)), graph.input("y", (70, n))
    other = graph.input("other", (m, n))
    value = graph.call("mm.default", x, y, shape=(m, n))
    value = graph.call("sigmoid.default", value, shape=(m, n))
    value = graph.call("add.Tensor", value, other, shape=(m, n))
    task = graph.task(value, symbols={"m": 40, "n": 50})
    for size in (1, 9, 300):
        sizes = {"m": size, "n": size}
        inputs = drawn(task, sizes)
        (result,) = on_twin(task, inputs, sizes=sizes)
        wanted = UNARY["sigmoid.default"](inputs["x"] @ inputs["y"]) + inputs["other"]
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def test_rows_of_a_layer_are_cut_where_an_operand_repeats(builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x, y = graph.input("x", (4, "m", 20)), graph.input("y", (20, "n"))
    places = graph.input("places", ("m", "n"))
    flat = graph.call("view.default", x, (-1, 20), shape=("4*m", 20))
    product = graph.call("mm.default", flat, y, shape=("4*m", "n"))
    value = graph.call("view.default", product, (4, -1, 0), shape=(4, "m", "n"))
    task = graph.task(
        graph.call("add.Tensor", value, places, shape=(4, "m", "n")), symbols={"m": 40, "n": 50}
    )
    assert initial(task, chip).family == "matmul"
    for m, n in ((1, 3), (7, 50), (61, 130)):
        inputs = drawn(task, {"m": m, "n": n})
        (result,) = on_twin(task, inputs, sizes={"m": m, "n": n})
        np.testing.assert_allclose(result, inputs["x"] @ inputs["y"] + inputs["places"], rtol=1e-4, atol=1e-4)


def test_moves_give_the_same_results(builder: Any, on_twin: Any, chip: Any) -> None:
    chain = Chain(builder(), "float16")
    chain.binary("add.Tensor", "columns")
    chain.unary("relu.default")
    task = chain.task()
    found = moves(task, initial(task, chip), chip)
    assert len(found) > 4
    sizes = {"m": 150, "n": 280, "k": 70}
    inputs = drawn(task, sizes)
    wanted = chain.expected({name: value.astype("f8") for name, value in inputs.items()})[-1]
    for move in found[::5]:
        assert estimate_us(task, move.strategy, chip) > 0
        (result,) = on_twin(task, inputs, strategy=move.strategy, sizes=sizes)
        np.testing.assert_allclose(result, wanted, rtol=1e-2, atol=0.1)


def test_what_reduces_rows_is_a_kernel_of_its_own(builder: Any, on_twin: Any, chip: Any) -> None:
    chain = Chain(builder(), "float32")
    chain.binary("add.Tensor", "columns")
    sums = chain.graph.call("sum.dim_IntList", chain.value, (1,), shape=("m",))
    task = chain.graph.task(sums, symbols={"m": 40, "n": 50, "k": 70})
    assert initial(task, chip).notes[0].startswith("2 runs of 2 kernels")
    inputs = drawn(task, {"m": 40, "n": 50, "k": 70})
    (result,) = on_twin(task, inputs)
    np.testing.assert_allclose(result, chain.expected(inputs)[-1].sum(1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("triangle", [False, True])
def test_a_relu_alone_takes_no_vector_cores(triangle: bool, builder: Any, on_twin: Any, chip: Any) -> None:
    chain = Chain(builder(), "float16")
    if triangle:
        chain.value = chain.call("tril.default", chain.value)
    chain.unary("relu.default")
    task = chain.task()
    assert "__vector__" not in write(task, initial(task, chip), chip).files[KERNEL]
    assert "__mix__" not in write(task, initial(task, chip), chip).files[KERNEL]

    def expected(numbers: Mapping[str, Any]) -> list[Any]:
        kept = chain.expected(numbers)[-1]
        return [np.tril(kept) if triangle else kept]

    check(task, expected, on_twin, chip)


def test_results_of_whole_rows_are_chosen_where_parts_of_rows_cost_more(builder: Any, chip: Any) -> None:
    graph = builder()
    x, y = graph.input("x", (100_000, 64)), graph.input("y", (64, 64))
    product = graph.call("mm.default", x, y, shape=(100_000, 64))
    moved = graph.call("add.Tensor", product, graph.input("b", (64,)), shape=(100_000, 64))
    task = graph.task(moved)
    settings = dict(initial(task, chip).settings)
    assert settings["base_n"] >= 64  # a result has whole rows
