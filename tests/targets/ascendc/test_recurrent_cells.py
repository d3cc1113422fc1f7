"""Loops over steps that call an LSTM cell are one recurrence, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import legalised

STEPS, WIDTH, HIDDEN = 5, 6, 20


def lstm_loop(
    builder: Any,
    *,
    dim: int = 0,
    biases: bool = True,
    state_first: bool = False,
    zeros: bool = False,
    swapped: bool = False,
    peeks: bool = False,
) -> KernelTask:
    """Cells over [5, b, 6], or [b, 5, 6] where ``dim`` is 1; ``swapped``: not the gates of an LSTM;
    ``peeks``: the cell state of a step in the middle is returned as well."""
    graph = builder()
    x = graph.input("x", (STEPS, "b", WIDTH) if dim == 0 else ("b", STEPS, WIDTH))
    shape, sums = ("b", HIDDEN), ("b", 4 * HIDDEN)
    if zeros:
        h, c = (graph.call("full.default", shape, 0, shape=shape) for _ in range(2))
    else:
        h, c = graph.input("h", shape), graph.input("c", shape)
    weights = [
        graph.input(f"p{i}", (4 * HIDDEN, depth), parameter=True) for i, depth in enumerate((WIDTH, HIDDEN))
    ]
    added = [graph.input(f"p_b{i}", (4 * HIDDEN,), parameter=True) for i in range(2)] if biases else []
    results, peeked = [], []
    for t in range(STEPS):
        picked = graph.call("select.int", x, dim, t, shape=("b", WIDTH))
        products = []
        for place, (ref, weight) in enumerate(zip((picked, h), weights, strict=True)):
            turned = graph.call("t.default", weight, shape=((WIDTH, HIDDEN)[place], 4 * HIDDEN))
            made = graph.call("mm.default", ref, turned, shape=sums)
            products.append(graph.call("add.Tensor", made, added[place], shape=sums) if biases else made)
        total = graph.call("add.Tensor", *products[:: -1 if state_first else 1], shape=sums)
        split = graph.calls("split.Tensor", total, HIDDEN, 1, outputs=[TensorSpec(shape, "float32")] * 4)
        place = (1, 0, 2, 3) if swapped else (0, 1, 2, 3)
        i, f, o = (
            graph.call("sigmoid.default", ValueRef(split.name, place[k]), shape=shape) for k in (0, 1, 3)
        )
        g = graph.call("tanh.default", ValueRef(split.name, 2), shape=shape)
        kept = graph.call("mul.Tensor", f, c, shape=shape)
        new = graph.call("mul.Tensor", i, g, shape=shape)
        c = graph.call("add.Tensor", kept, new, shape=shape)
        h = graph.call("mul.Tensor", o, graph.call("tanh.default", c, shape=shape), shape=shape)
        results.append(h)
        peeked.append(c)
    whole = (*graph.inputs[0].spec.shape[:2], HIDDEN)
    stacked = graph.call("stack.default", tuple(results), dim, shape=whole)
    outputs = (stacked, h, c, *([peeked[2]] if peeks else []))
    task: KernelTask = graph.task(*outputs, symbols={"b": 10})
    return task


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _expected(inputs: dict[str, Any], dim: int) -> list[Any]:
    batch = inputs["x"].shape[1 - dim]
    h, c = (inputs.get(name, np.zeros((batch, HIDDEN))) for name in "hc")
    made = []
    for t in range(STEPS):
        z = inputs["x"].take(t, dim) @ inputs["p0"].T + h @ inputs["p1"].T
        z = z + inputs.get("p_b0", 0) + inputs.get("p_b1", 0)
        i, f, g, o = np.split(z, 4, 1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        made.append(h)
    return [np.stack(made, dim), h, c]


LOOPS: dict[str, dict[str, Any]] = {
    "steps first": {},
    "sequences first, from zeros": {"dim": 1, "zeros": True, "state_first": True},
    "without biases": {"biases": False},
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_over_lstm_cells_are_one_recurrence(name: str, builder: Any, on_twin: Any) -> None:
    task = lstm_loop(builder, **LOOPS[name])
    ops = [node.op for node in legalised(task, load_chip()).graph.nodes]
    assert ops.count("evokernel.recurrence.default") == ops.count("aten.mm.default") == 1
    assert "aten.sigmoid.default" not in ops
    rng = np.random.default_rng(1)
    for batch in (1, 19):
        inputs = {
            item.name: (rng.normal(size=item.spec.sizes({"b": batch})) * 0.4).astype("f4")
            for item in task.graph.inputs
        }
        results = on_twin(task, inputs, sizes={"b": batch})
        for result, expected in zip(results, _expected(inputs, LOOPS[name].get("dim", 0)), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{"swapped": True}, {"peeks": True}])
def test_other_loops_stay_as_they_are(options: dict[str, Any], builder: Any) -> None:
    ops = [node.op for node in legalised(lstm_loop(builder, **options), load_chip()).graph.nodes]
    assert "evokernel.recurrence.default" not in ops
