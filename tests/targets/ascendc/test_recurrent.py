"""Family recurrent: LSTM, GRU and plain RNN of any length against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import asdict, evolve

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import check, estimate_us, initial, legalised, moves, write
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_settings import RecurrentSchedule
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from tests.tables import few

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
SIZES = [(1, 1), (5, 3), (2, 37), (9, 16)]
"""Steps and sequences: single ones, whole tiles, tails, several tiles."""


def task_of(
    builder: Any, kind: str, *, width: int = 6, hidden: int = 20, layers: int = 1, both: bool = False,
    batch_first: bool = False, biases: bool = True, zeros: bool = False, outputs: tuple[int, ...] = (0, 1, 2),
    dtype: str = "float32",
) -> KernelTask:  # fmt: skip
    """A stack of layers over [t, b, width], or [b, t, width] where the batch is first."""
    graph = builder()
    lengths = ("b", "t") if batch_first else ("t", "b")
    x = graph.input("x", (*lengths, width), dtype)
    directions = 2 if both else 1
    shape = (layers * directions, "b", hidden)
    names = ("h", "c")[: 2 if kind == "lstm" else 1]
    if zeros:
        states = tuple(graph.call("zeros.default", shape, shape=shape, dtype=dtype) for _ in names)
    else:
        states = tuple(graph.input(name, shape, dtype) for name in names)
    parameters = []
    for place in range(layers * directions):
        given = width if place < directions else hidden * directions
        sums = GATES[kind] * hidden
        shapes = [(sums, given), (sums, hidden), *([(sums,)] * 2 if biases else [])]
        parameters += [
            graph.input(f"p{place}_{i}", item, dtype, parameter=True) for i, item in enumerate(shapes)
        ]
    results = [TensorSpec((*lengths, hidden * directions), dtype), *[TensorSpec(shape, dtype)] * len(names)]
    node = graph.calls(
        f"{kind}.input", x, states if kind == "lstm" else states[0], tuple(parameters), biases, layers, 0.0,
        False, both, batch_first, outputs=results,
    )  # fmt: skip
    wanted = [ValueRef(node.name, i) for i in outputs if i <= len(names)]
    task: KernelTask = graph.task(*wanted, symbols={"t": 64, "b": 10})
    return task


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def step(kind: str, x: Any, h: Any, c: Any, weight: Any, bias: Any) -> tuple[Any, Any]:
    """One step: ``x`` are the projected inputs with their bias."""
    z = h @ weight.T + bias
    if kind == "lstm":
        i, f, g, o = np.split(x + z, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "gru":
        (xr, xz, xn), (hr, hz, hn) = np.split(x, 3, -1), np.split(z, 3, -1)
        update = sigmoid(xz + hz)
        return (1 - update) * np.tanh(xn + sigmoid(xr + hr) * hn) + update * h, c
    return (np.tanh(x + z) if kind == "rnn_tanh" else np.maximum(x + z, 0)), c


def recurrent(task: KernelTask, inputs: dict[str, Any]) -> list[Any]:
    """All results of the one layer stack of a task, in float64."""
    (node,) = (node for node in task.graph.nodes if node.op.endswith(".input"))
    kind = node.op.split(".")[1]
    arguments: tuple[Any, ...] = node.args
    _, _, parameters, biases, layers, _, _, both, batch_first = arguments
    values = {name: value.astype("f8") for name, value in inputs.items()}
    x = values["x"].swapaxes(0, 1) if batch_first else values["x"]
    directions, each = 2 if both else 1, 4 if biases else 2
    given = [values[ref.name] for ref in parameters]
    hidden = given[1].shape[1]
    zero = np.zeros((layers * directions, x.shape[1], hidden))
    h, c = values.get("h", zero).copy(), values.get("c", zero).copy()
    for layer in range(layers):
        made = np.zeros((*x.shape[:2], directions * hidden))
        for direction in range(directions):
            place = layer * directions + direction
            own = [*given[place * each : place * each + each], np.zeros(1), np.zeros(1)]
            order = range(len(x))[:: -1 if direction else 1]
            for t in order:
                projected = x[t] @ own[0].T + own[2]
                h[place], c[place] = step(kind, projected, h[place], c[place], own[1], own[3])
                made[t, :, direction * hidden : (direction + 1) * hidden] = h[place]
        x = made
    return [x.swapaxes(0, 1) if batch_first else x, h, c]


def _draw(task: KernelTask, steps: int, batch: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sizes = {"t": steps, "b": batch}
    return {
        item.name: (rng.normal(size=item.spec.sizes(sizes)) * (0.4 if item.name[0] == "p" else 1)).astype(
            "f4"
        )
        for item in task.graph.inputs
    }


def _assert_right(task: KernelTask, sizes: Any, on_twin: Any, strategy: Any) -> None:
    for steps, batch in sizes:
        inputs = _draw(task, steps, batch, steps + batch)
        results = on_twin(task, inputs, strategy=strategy, sizes={"t": steps, "b": batch})
        expected = recurrent(task, inputs)
        for ref, result in zip(task.graph.outputs, results, strict=True):
            np.testing.assert_allclose(result, expected[ref.index], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", GATES)
def test_many_sizes(kind: str, builder: Any, on_twin: Any, chip: Any) -> None:
    task = task_of(builder, kind)
    _assert_right(task, SIZES, on_twin, initial(task, chip))


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh"])
def test_tiny_values_keep_their_digits(kind: str, builder: Any, on_twin: Any, chip: Any) -> None:
    task = task_of(builder, kind)
    inputs = {name: value * np.float32(2**-17) for name, value in _draw(task, 5, 3, 8).items()}
    results = on_twin(task, inputs, strategy=initial(task, chip), sizes={"t": 5, "b": 3})
    exact = recurrent(task, {name: value.astype("f8") for name, value in inputs.items()})
    for ref, result in zip(task.graph.outputs, results, strict=True):
        np.testing.assert_allclose(result, exact[ref.index], rtol=1e-5, atol=1e-10)


@few("kind", GATES, keep=(0, 1))
def test_kernels_pass_the_audit(kind: str, builder: Any, chip: Any) -> None:
    task = task_of(builder, kind)
    found = audit(task, write(task, initial(task, chip), chip))
    assert found.status is GateStatus.PASSED, found.feedback


STACKS: dict[str, dict[str, Any]] = {
    "both directions": {"kind": "lstm", "both": True},
    "both directions, sequences first": {"kind": "gru", "both": True, "batch_first": True},
    "layers on each other": {"kind": "gru", "layers": 3, "batch_first": True},
    "layers of both directions": {"kind": "lstm", "layers": 2, "both": True, "hidden": 7},
    "without biases": {"kind": "gru", "biases": False},
    "from zeros": {"kind": "lstm", "zeros": True, "layers": 2},
    "from zeros without biases": {"kind": "gru", "zeros": True, "biases": False, "both": True},
    "last cell states only": {"kind": "lstm", "outputs": (2,)},
    "last hidden states only": {"kind": "gru", "layers": 2, "outputs": (1,)},
    "outputs only": {"kind": "rnn_tanh", "both": True, "outputs": (0,)},
}


@few(
    "name",
    STACKS,
    keep=(
        1,
        3,
        4,
        6,
        7,
    ),
)
def test_stacks(name: str, builder: Any, on_twin: Any, chip: Any) -> None:
    task = task_of(builder, **STACKS[name])
    _assert_right(task, [(1, 2), (6, 19)], on_twin, initial(task, chip))


WIDE = [
    ("lstm", RecurrentSchedule(16, 16, 32, 32, 64, 3)),
    ("lstm", RecurrentSchedule(32, 32, 16, 32, 160, 6)),
    ("gru", RecurrentSchedule(16, 48, 32, 64, 64, 3)),
    ("gru", RecurrentSchedule(112, 32, 16, 16, 96, 3)),
    ("rnn_relu", RecurrentSchedule(64, 64, 64, 128, 256, 3)),
]
"""Weights that stay in L1 and that do not, several panels, several units a core."""


@few(
    ("kind", "schedule"),
    WIDE,
    keep=(
        1,
        3,
    ),
)
def test_wide_layers(kind: str, schedule: RecurrentSchedule, builder: Any, on_twin: Any, chip: Any) -> None:
    task = task_of(builder, kind, hidden=150, outputs=(0, 1, 2))
    _assert_right(task, [(3, 150)], on_twin, _with(initial(task, chip), schedule))


STACKED = [
    (64, RecurrentSchedule(16, 16, 16, 16, 64, 8)),
    (70, RecurrentSchedule(16, 32, 16, 16, 48, 9, 1)),
    (64, RecurrentSchedule(32, 16, 16, 32, 64, 3)),
    (20, RecurrentSchedule(16, 16, 16, 16, 32, 4)),
]
"""All weights in L1, one panel of them in L0, some streamed, tiles of several sequences and one core each."""


@few(
    ("hidden", "schedule"),
    STACKED,
    keep=(
        1,
        2,
    ),
)
def test_layers_side_by_side(
    hidden: int, schedule: RecurrentSchedule, builder: Any, on_twin: Any, chip: Any
) -> None:
    task = task_of(builder, "lstm", hidden=hidden, layers=2)
    _assert_right(task, [(1, 1), (3, 40)], on_twin, _with(initial(task, chip), schedule))


def test_more_units_than_a_flag_counts(builder: Any, on_twin: Any, chip: Any) -> None:
    task = task_of(builder, "rnn_tanh", hidden=20)
    strategy = _with(initial(task, chip), RecurrentSchedule(16, 16, 16, 32, 32, 3))
    _assert_right(task, [(3, 16 * 24 * 9)], on_twin, strategy)


def _with(strategy: Strategy, schedule: RecurrentSchedule) -> Strategy:
    """A program with another schedule for its recurrence."""
    kernels = [
        evolve(item, settings=asdict(schedule)) if item.family == "recurrent" else item
        for item in strategy.kernels
    ]
    return evolve(strategy, kernels=tuple(kernels))


def test_every_move_gives_another_kernel_that_is_right(builder: Any, on_twin: Any, chip: Any) -> None:
    task = task_of(builder, "gru", hidden=70)
    strategy = initial(task, chip)
    texts = {write(task, strategy, chip).files[TILING]}
    steps = [move for move in moves(task, strategy, chip) if move.family == "recurrent"]
    assert len(steps) > 2
    for move in steps[:3]:
        texts.add(
            write(task, move.strategy, chip).files[TILING] + write(task, move.strategy, chip).files[KERNEL]
        )
        _assert_right(task, [(3, 20)], on_twin, move.strategy)
        assert estimate_us(task, move.strategy, chip) > 0
    assert len(texts) == 4


HALF: list[tuple[str, str, dict[str, Any]]] = [
    ("lstm", "float16", {"layers": 3, "hidden": 40}),
    ("lstm", "bfloat16", {"both": True, "hidden": 33}),
    ("gru", "float16", {"both": True, "batch_first": True}),
    ("gru", "bfloat16", {"layers": 2, "zeros": True, "biases": False}),
    ("rnn_tanh", "float16", {"hidden": 7}),
]


def _as(dtype: str, values: Any) -> Any:
    """float32 numbers that the dtype holds."""
    if dtype == "float16":
        return values.astype("f2").astype("f4")
    return (values.view(np.uint32) & 0xFFFF0000).view(np.float32)


@few(
    ("kind", "dtype", "options"),
    HALF,
    keep=(
        1,
        2,
    ),
)
def test_half_types(
    kind: str, dtype: str, options: dict[str, Any], builder: Any, on_twin: Any, chip: Any
) -> None:
    task = task_of(builder, kind, dtype=dtype, **options)
    strategy = initial(task, chip)
    tolerance = 4e-3 if dtype == "float16" else 3e-2
    for steps, batch in [(1, 1), (4, 21)]:
        inputs = {name: _as(dtype, value) for name, value in _draw(task, steps, batch, 3).items()}
        results = on_twin(task, inputs, strategy=strategy, sizes={"t": steps, "b": batch})
        expected = recurrent(task, inputs)
        for ref, result in zip(task.graph.outputs, results, strict=True):
            np.testing.assert_allclose(
                result.astype("f8"), expected[ref.index], rtol=tolerance, atol=tolerance
            )


def test_layers_above_each_other_are_one_kernel_where_their_weights_fit(builder: Any) -> None:
    def kernels(**options: Any) -> int:
        graph = legalised(task_of(builder, "lstm", **options), load_chip()).graph
        return sum(node.op == "evokernel.recurrence.default" for node in graph.nodes)

    assert kernels(hidden=256, layers=6) == 1
    assert kernels(hidden=256, layers=6, dtype="float16") == 1
    assert 1 < kernels(hidden=1024, layers=6) <= 6  # each step would read all weights again
    assert kernels(hidden=256, layers=3, both=True) == 3  # directions meet between the layers


def test_what_is_refused(builder: Any, chip: Any) -> None:
    with pytest.raises(PlanError, match="A matrix product in float64 is not covered"):
        check(task_of(builder, "lstm", dtype="float64"), chip)


def loop_of(
    builder: Any, *, kind: str, state_first: bool, dim: int, biases: bool, read_out: bool
) -> KernelTask:
    """A cell written out over 6 steps: [6, b, 5], or [b, 6, 5] where ``dim`` is 1."""
    graph = builder()
    steps, width, hidden, made = 6, 5, 12, 7 if read_out else 12
    x = graph.input("x", (steps, "b", width) if dim == 0 else ("b", steps, width))
    state = graph.input("h", ("b", hidden))
    weight = graph.input("p", (hidden, width + hidden), parameter=True)
    bias = graph.input("p_b", (hidden,), parameter=True) if biases else state
    out = graph.input("p_o", (made, hidden), parameter=True) if read_out else state
    results = []
    for t in range(steps):
        picked = graph.call("select.int", x, dim, t, shape=("b", width))
        parts = (state, picked) if state_first else (picked, state)
        joined = graph.call("cat.default", parts, 1, shape=("b", width + hidden))
        turned = graph.call("t.default", weight, shape=(width + hidden, hidden))
        state = graph.call("mm.default", joined, turned, shape=("b", hidden))
        if biases:
            state = graph.call("add.Tensor", state, bias, shape=("b", hidden))
        state = graph.call(f"{kind}.default", state, shape=("b", hidden))
        result = state
        if read_out:
            turned = graph.call("t.default", out, shape=(hidden, made))
            result = graph.call("mm.default", state, turned, shape=("b", made))
        results.append(result)
    stacked = graph.call("stack.default", tuple(results), 0, shape=(steps, "b", made))
    task: KernelTask = graph.task(stacked, state, symbols={"b": 10})
    return task


@few("kind", ["tanh", "relu"], keep=(0,))
@pytest.mark.parametrize("read_out", [False, True])
def test_loops_over_steps_are_one_recurrence(kind: str, read_out: bool, builder: Any, on_twin: Any) -> None:
    state_first, dim = kind == "tanh", int(read_out)
    options = {"state_first": state_first, "dim": dim, "biases": read_out, "read_out": read_out}
    task = loop_of(builder, kind=kind, **options)
    ops = [node.op for node in legalised(task, load_chip()).graph.nodes]
    assert ops.count("evokernel.recurrence.default") == 1
    assert ops.count("aten.mm.default") == 1 + read_out
    rng = np.random.default_rng(1)
    inputs = {
        item.name: (rng.normal(size=item.spec.sizes({"b": 19})) * 0.4).astype("f4")
        for item in task.graph.inputs
    }
    h, expected = inputs["h"], []
    for t in range(6):
        x = inputs["x"].take(t, dim)
        z = np.concatenate([h, x] if state_first else [x, h], 1) @ inputs["p"].T
        z = z + inputs["p_b"] if read_out else z
        h = np.tanh(z) if kind == "tanh" else np.maximum(z, 0)
        expected.append(h @ inputs["p_o"].T if read_out else h)
    outputs, last = on_twin(task, inputs, sizes={"b": 19})
    np.testing.assert_allclose(outputs, np.stack(expected), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last, h, rtol=1e-4, atol=1e-5)
