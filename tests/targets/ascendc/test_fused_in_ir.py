"""Fused kernels, which are built in the IR: they break none of its rules, and take no more memory than the
tile search reckons with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.lowering.plan import plan
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.ir.allocation import bytes_of
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import layout
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial, moves
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.fused.tile import build, made
from tests.targets.ascendc.test_piecewise import batch_norm, group_norm
from tests.targets.ascendc.test_rowwise import EXPECTED, layer_norm
from tests.targets.ascendc.test_steps import _normalised


def rows(builder: Any, make: Any, dtype: str, columns: int = 70_001) -> KernelTask:
    """A row reduction over rows that are longer than the unified buffer."""
    graph, shape = builder(), ("n", columns)
    task: KernelTask = graph.task(
        make(graph, graph.input("x", shape, dtype), shape, dtype), symbols={"n": 100}
    )
    return task


def short_rows(builder: Any, dtype: str) -> KernelTask:
    """A layer norm, whose weights may be repeated over the rows of a tile once and for all."""
    return rows(builder, layer_norm, dtype, 300)


def masked_rows(builder: Any) -> KernelTask:
    """Rows with a mask, a bias that a batch has, a row condition and a number of the call."""
    graph, shape = builder(), ("a", "b", 2001)
    x, mask = graph.input("x", shape, "float16"), graph.input("mask", ("a", 1, 2001), "bool")
    bias = graph.input("bias", ("b", 1))
    low = graph.call("full.default", (), -1e9, shape=[])
    masked = graph.call("where.self", mask, low, x, shape=shape)
    soft = graph.call("_softmax.default", masked, -1, False, shape=shape)
    sums = graph.call("sum.dim_IntList", x, (-1,), True, shape=("a", "b", 1))
    positive = graph.call("gt.Scalar", sums, 0.0, shape=("a", "b", 1), dtype="bool")
    chosen = graph.call("where.self", positive, soft, x, shape=shape)
    result = graph.call("add.Tensor", chosen, bias, shape=shape)
    task: KernelTask = graph.task(result, sums, symbols={"a": 5, "b": 30})
    return task


def lanes(builder: Any, dtype: str, width: int = 5000, steps: Any = "r") -> KernelTask:
    """A softmax over a middle dimension with a mask and numbers of steps, of lanes and of the outer loop, and
    the log of its sum."""
    graph, shape, row = builder(), ("b", steps, width), ("b", 1, width)
    x, of_step = graph.input("x", shape, dtype), graph.input("step", (steps, 1), dtype)
    mask = graph.input("mask", shape, "bool")
    of_lane, of_outer = graph.input("lane", (width,), dtype), graph.input("outer", ("b", 1, 1), dtype)

    def call(op: str, *args: Any, to: Any = shape) -> Any:
        return graph.call(op, *args, shape=to, dtype=dtype)

    moved = call("add.Tensor", call("mul.Tensor", x, of_step), of_lane)
    masked = call("where.self", mask, call("full.default", (), -1e9, to=[]), moved)
    soft = call("mul.Tensor", call("_softmax.default", masked, 1, False), of_outer)
    logs = call("logsumexp.default", moved, (1,), True, to=row)
    task: KernelTask = graph.task(soft, logs, symbols={"b": 3, **({"r": 40} if steps == "r" else {})})
    return task


def dense_steps(builder: Any, dtype: str) -> KernelTask:
    """A sum over the middle, whose steps end inside blocks."""
    graph = builder()
    x = graph.input("x", ("b", "r", "d"), dtype)
    total = graph.call("sum.dim_IntList", x, (1,), shape=("b", "d"), dtype=dtype)
    task: KernelTask = graph.task(total, symbols={"b": 64, "r": 500, "d": 301})
    return task


def few_lanes(builder: Any, dtype: str) -> KernelTask:
    """The same over 90 lanes, all of whose steps fit a tile."""
    return lanes(builder, dtype, 90, 16)


def elements(builder: Any, dtype: str, row: bool) -> KernelTask:
    """Arithmetic with a mask, a number of the call and a tensor of one number; with one of each row, or all
    of them in one row."""
    graph, shape = builder(), ("a", "b", 1000)
    x, mask = graph.input("x", shape, dtype), graph.input("mask", shape, "bool")
    other = graph.input("other", ("a", 1, 1) if row else (), dtype)
    counts = graph.input("counts", shape, "int32")

    def call(op: str, *args: Any) -> Any:
        return graph.call(op, *args, shape=shape, dtype=dtype)

    moved = call("mul.Tensor", call("add.Tensor", x, other), call("_to_copy.default", counts))
    chosen = call("where.self", mask, moved, call("exp.default", x))
    kept = graph.call("gt.Scalar", chosen, 0.0, shape=shape, dtype="bool")
    task: KernelTask = graph.task(call("sigmoid.default", chosen), kept, symbols={"a": 3, "b": 70})
    return task


FORMS: dict[Any, set[str]] = {
    rows: {"stream", "shared"},
    short_rows: {"packed", "resident", "stream"},
    masked_rows: {"packed", "resident", "stream", "shared"},
    batch_norm: {"pieces", "shared"},
    group_norm: {"pieces", "shared"},
    lanes: {"lanes"},
    few_lanes: {"lanes"},
    _normalised: {"lanes", "steps"},
}
TASKS = {
    **{
        f"{make.__name__} {dtype}": (rows, make, dtype)
        for make in EXPECTED
        for dtype in ("float32", "float16")
    },
    "short rows float32": (short_rows, "float32"),
    "short rows float16": (short_rows, "float16"),
    "masked rows": (masked_rows,),
    "batch norm float32": (batch_norm, "float32"),
    "batch norm float16": (batch_norm, "float16"),
    "group norm": (group_norm,),
    "flat": (elements, "float16", False),
    "segments": (elements, "float32", True),
    "steps float32": (_normalised, "float32"),
    "steps float16": (_normalised, "float16"),
    "few lanes": (few_lanes, "float32"),
    "dense steps float32": (dense_steps, "float32"),
    "dense steps bfloat16": (dense_steps, "bfloat16"),
    "lanes float32": (lanes, "float32"),
    "lanes float16": (lanes, "float16"),
}


def kernels(task: KernelTask, chip: Any) -> Iterator[tuple[str, Schedule, Kernel]]:
    """The kernels that are the draft, or one step away from it or from such a one."""
    planned = plan(task, chip)
    start = initial(task, chip)
    near = [start, *(move.strategy for move in moves(task, start, chip))]
    forms = {str(one.setting("form")): one for one in reversed(near)}
    every = [*near, *(move.strategy for one in forms.values() for move in moves(task, one, chip))]
    for schedule in dict.fromkeys(Schedule.of(strategy) for strategy in every):
        yield str(schedule.form), schedule, made(planned, schedule)


@pytest.mark.parametrize("name", TASKS)
def test_kernels_in_the_ir_break_no_rule(name: str, builder: Any, chip: Any) -> None:
    make, *rest = TASKS[name]
    task = make(builder, *rest)
    planned, found = plan(task, chip), set()
    for form, schedule, kernel in kernels(task, chip):
        found.add(form)
        assert list(broken_rules(kernel, chip, task.sizes))[:3] == [], schedule
        assert bytes_of(kernel) <= layout(build(planned, schedule)).total, schedule
    assert found >= FORMS.get(make, set())


def test_inputs_may_have_the_names_of_buffers(builder: Any, on_twin: Any) -> None:
    """Init has the addresses as parameters, which must hide no buffer of the class."""
    graph, shape = builder(), (300, 60)
    fold, blocks = graph.input("fold", shape), graph.input("blocks", shape)
    moved = graph.call("add.Tensor", fold, graph.input("row_values", (300, 1)), shape=shape)
    soft = graph.call("_softmax.default", moved, -1, False, shape=shape)
    task = graph.task(graph.call("mul.Tensor", soft, blocks, shape=shape))
    rng = np.random.default_rng(5)
    arrays = {item.name: rng.normal(size=item.spec.sizes({})).astype("f4") for item in task.graph.inputs}
    (result,) = on_twin(task, arrays)
    powers = np.exp((arrays["fold"] + arrays["row_values"]).astype("f8"))
    expected = powers / powers.sum(-1, keepdims=True) * arrays["blocks"]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
