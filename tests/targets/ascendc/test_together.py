"""Kernels in one launch: cube and vector cores in turn, with barriers where one reads another's values."""

from __future__ import annotations

from typing import Any

import numpy as np

from evokernel_core.compiler.fusion.program import parted
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import estimate_us, initial, lines_of_kernels, moves, write
from evokernel_core.targets.ascendc.fusion.launches import MOST_TOGETHER
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.twin.build import build_kernel
from evokernel_core.twin.run import Mode, RunRequest, TensorFile, run_kernel
from tests.tables import few

ALL, VECTORS = "SyncAll<false>();", "SyncAll();"


def perceptron(graph: Any, layers: int, *, softmax: bool) -> KernelTask:
    """Linear layers with activations between them: cube and vector kernels that reuse slots."""
    value = graph.input("x", ("m", 24))
    for layer in range(layers):
        weight = graph.input(f"w{layer}", (24, 24), parameter=True)
        bias = graph.input(f"b{layer}", (24,), parameter=True)
        value = graph.call("mm.default", value, weight, shape=("m", 24))
        value = graph.call("add.Tensor", value, bias, shape=("m", 24))
        value = _softmax(graph, value) if softmax else graph.call("relu.default", value, shape=("m", 24))
    task: KernelTask = graph.task(value, symbols={"m": 70})
    return task


def _softmax(graph: Any, value: ValueRef) -> ValueRef:
    result: ValueRef = graph.call("_softmax.default", value, -1, False, shape=("m", 24))
    return result


def _inputs(task: KernelTask, rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(rows)
    shapes = {item.name: item.spec.sizes({"m": rows}) for item in task.graph.inputs}
    return {name: rng.integers(-4, 5, size=shape).astype("f4") / 4 for name, shape in shapes.items()}


def _expected(inputs: dict[str, Any], layers: int, *, softmax: bool) -> Any:
    value = inputs["x"]
    for layer in range(layers):
        value = value @ inputs[f"w{layer}"] + inputs[f"b{layer}"]
        if softmax:
            value = np.exp(value - value.max(-1, keepdims=True))
            value /= value.sum(-1, keepdims=True)
        else:
            value = np.maximum(value, 0)
    return value


@few(("softmax", "audited"), [(False, False), (True, True), (False, True)], keep=(0, 1))
def test_cube_and_vector_cores_take_turns(
    softmax: bool, audited: bool, builder: Any, on_twin: Any, chip: Any
) -> None:
    task = perceptron(builder(), 3, softmax=softmax)
    strategy = initial(task, chip)
    source = write(task, strategy, chip)
    assert not audited or audit(task, source).status is GateStatus.PASSED
    assert source.files[KERNEL].count("<<<") == 1
    assert source.files[KERNEL].count(ALL) == (5 if softmax else 2)  # a relu is part of the product's kernel
    for rows in (1, 70, 700):
        inputs = _inputs(task, rows)
        (result,) = on_twin(task, inputs, sizes={"m": rows})
        np.testing.assert_allclose(result, _expected(inputs, 3, softmax=softmax), rtol=1e-4, atol=1e-5)


def test_a_launch_for_each_kernel_is_a_move_and_costs_more(builder: Any, on_twin: Any, chip: Any) -> None:
    task = perceptron(builder(), 2, softmax=False)
    strategy = initial(task, chip)
    (apart,) = (move for move in moves(task, strategy, chip) if move.name == "a launch for each kernel")
    assert write(task, apart.strategy, chip).files[KERNEL].count("<<<") == 2
    assert estimate_us(task, apart.strategy, chip) > estimate_us(task, strategy, chip)
    inputs = _inputs(task, 70)
    (result,) = on_twin(task, inputs, strategy=apart.strategy)
    np.testing.assert_allclose(result, _expected(inputs, 2, softmax=False), rtol=1e-4, atol=1e-5)
    (back,) = (move for move in moves(task, apart.strategy, chip) if move.name == "kernels in one launch")
    assert back.strategy.settings == strategy.settings


def test_long_programs_take_several_launches(builder: Any, on_twin: Any, chip: Any) -> None:
    layers = MOST_TOGETHER + 1
    task = perceptron(builder(), layers, softmax=False)
    assert write(task, initial(task, chip), chip).files[KERNEL].count("<<<") == 2
    inputs = _inputs(task, 70)
    (result,) = on_twin(task, inputs)
    np.testing.assert_allclose(result, _expected(inputs, layers, softmax=False), rtol=1e-3, atol=1e-2)


def test_kernels_that_share_nothing_wait_for_nothing(builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x, w = graph.input("x", (40, 24)), graph.input("w", (24, 24))
    product = graph.call("mm.default", x, w, shape=(40, 24))
    scale = graph.call("exp.default", graph.input("s", (7, 90)), shape=(7, 90))
    sums = graph.call("sum.dim_IntList", scale, (0,), shape=(90,))
    task = graph.task(product, graph.call("sqrt.default", sums, shape=(90,)))
    text = write(task, initial(task, chip), chip).files[KERNEL]
    assert text.count("<<<") == 1
    assert ALL not in text
    rng = np.random.default_rng(3)
    inputs = {name: rng.normal(size=shape).astype("f4") for name, shape in
              (("x", (40, 24)), ("w", (24, 24)), ("s", (7, 90)))}  # fmt: skip
    first, second = on_twin(task, inputs)
    np.testing.assert_allclose(first, inputs["x"] @ inputs["w"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(second, np.sqrt(np.exp(inputs["s"]).sum(0)), rtol=1e-4)


def test_vector_kernels_wait_for_vector_cores_only(builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", (6, 90))
    sums = graph.call("sum.dim_IntList", x, (0,), shape=(90,))
    total = graph.call("sum.dim_IntList", graph.call("exp.default", sums, shape=(90,)), (0,), shape=())
    product = graph.call("mm.default", graph.input("y", (40, 24)), graph.input("w", (24, 24)), shape=(40, 24))
    task = graph.task(graph.call("mul.Tensor", product, total, shape=(40, 24)))
    text = write(task, initial(task, chip), chip).files[KERNEL]
    assert text.count(VECTORS) >= 1
    assert text.count(ALL) == 1
    rng = np.random.default_rng(4)
    inputs = {name: rng.normal(size=shape).astype("f4") / 4 for name, shape in
              (("x", (6, 90)), ("y", (40, 24)), ("w", (24, 24)))}  # fmt: skip
    (result,) = on_twin(task, inputs)
    expected = inputs["y"] @ inputs["w"] * np.exp(inputs["x"].sum(0)).sum()
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)


def test_the_busier_kind_of_core_is_told_about(builder: Any, chip: Any) -> None:
    """A mixed launch ends with its vector cores, which mostly wait for the cube cores."""
    graph = builder()
    x, w = graph.input("x", (512, 2048)), graph.input("w", (2048, 1024))
    product = graph.call("mm.default", x, w, shape=(512, 1024))
    task = graph.task(graph.call("relu.default", product, shape=(512, 1024)))
    inputs = tuple(TensorFile(None, item.spec.nbytes({})) for item in task.graph.inputs)
    outputs = tuple(TensorFile(None, spec.nbytes({})) for spec in task.graph.output_specs())
    built = build_kernel(write(task, initial(task, chip), chip))
    (launch,) = run_kernel(built, RunRequest(Mode.TIME, chip, inputs=inputs, outputs=outputs)).launches
    pipes = dict(launch.pipes)
    assert pipes["M"] > 0.5 * launch.latency_us
    assert launch.bottleneck.startswith(("M-bound", "MTE2-bound"))


def test_layers_around_an_attention_share_its_launch(builder: Any, on_twin: Any, chip: Any) -> None:
    """Cube cores hand results to vector cores in each of the three kernels."""
    graph = builder()
    x = graph.input("x", (2, "m", 32))
    flat = graph.call("view.default", x, (-1, 32), shape=("2*m", 32))

    def layer(value: ValueRef, name: str) -> ValueRef:
        weight = graph.input(name, (32, 32), parameter=True)
        product = graph.call("mm.default", value, weight, shape=("2*m", 32))
        return graph.call("relu.default", _half(graph, product), shape=("2*m", 32))

    heads = graph.call("view.default", layer(flat, "w0"), (2, 1, -1, 32), shape=(2, 1, "m", 32))
    mixed = graph.call("scaled_dot_product_attention.default", heads, heads, heads, shape=(2, 1, "m", 32))
    rows = graph.call("view.default", mixed, (-1, 32), shape=("2*m", 32))
    task = graph.task(layer(rows, "w1"), symbols={"m": 70})
    source = write(task, initial(task, chip), chip)
    assert audit(task, source).status is GateStatus.PASSED
    assert source.files[KERNEL].count("<<<") == 1
    for m in (1, 70, 300):
        rng = np.random.default_rng(m)
        given = {item.name: rng.normal(size=item.spec.sizes({"m": m})).astype("f4") / 4
                 for item in task.graph.inputs}  # fmt: skip
        (result,) = on_twin(task, given, sizes={"m": m})
        value = np.maximum(given["x"] @ given["w0"] - 0.5, 0)
        scores = np.exp(value @ value.transpose(0, 2, 1) / np.sqrt(32))
        value = scores / scores.sum(-1, keepdims=True) @ value
        wanted = np.maximum(value.reshape(-1, 32) @ given["w1"] - 0.5, 0)
        np.testing.assert_allclose(result, wanted, rtol=1e-3, atol=1e-4)


def _half(graph: Any, value: ValueRef) -> ValueRef:
    """A half less."""
    result: ValueRef = graph.call("sub.Tensor", value, 0.5, shape=("2*m", 32))
    return result


@few("layers", [2, 4], keep=(0,))
def test_a_step_and_a_line_say_which_kernel_they_are_of(layers: int, builder: Any, chip: Any) -> None:
    """Of every program within a step; of the text of another author nothing is known."""
    task = perceptron(builder(), layers, softmax=True)
    first = initial(task, chip)
    for move in moves(task, first, chip):
        source = write(task, move.strategy, chip)
        lines = source.files[KERNEL].splitlines()
        for span in lines_of_kernels(task, source, chip):
            of_kernel = [line for line in lines[span.start - 1 : span.stop - 1] if line]
            assert of_kernel[0].startswith("namespace stage")
            assert of_kernel[-1] == f"}} // {of_kernel[0].removesuffix(' {')}"
        if move.kernel is not None:
            pairs = zip(parted(first), parted(move.strategy), strict=True)
            assert [n for n, (old, new) in enumerate(pairs) if old.settings != new.settings] == [move.kernel]
    changed = source.with_files({KERNEL: f"// by hand\n{source.files[KERNEL]}"})
    assert lines_of_kernels(task, source, chip)
    assert lines_of_kernels(task, changed, chip) == ()
