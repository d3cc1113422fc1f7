"""Element-wise work on halves that is computed in half: right at any size, and only where it is asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.strategies import in_half
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.synthesis.session import Session
from evokernel_core.targets import author_for
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial, moves, refusal
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.lowering.queues import plan
from evokernel_core.targets.ascendc.source import KERNEL

_IN_HALF = "arithmetic in float16"
_OVERFLOW = frozenset({"overflow-inf"})
"""What the exponential of gelu does far to the left, where the result is 0."""


def gelu(builder: Any, shape: tuple[int, int], dtype: str = "float16") -> KernelTask:
    """gelu(x + bias) * scale, whose bias and scale are the same in every row."""
    graph = builder()
    x, bias, scale = (graph.input(n, s, dtype) for n, s in (("x", shape), ("b", shape[1:]), ("s", shape[1:])))
    value = graph.call("add.Tensor", x, bias, shape=shape, dtype=dtype)
    value = graph.call("gelu.default", value, shape=shape, dtype=dtype)
    task: KernelTask = graph.task(graph.call("mul.Tensor", value, scale, shape=shape, dtype=dtype))
    return task


def runs(builder: Any, shape: tuple[int, ...], dtype: str = "float16") -> KernelTask:
    """relu(x * y + n), all of one shape but for a number of the call."""
    graph = builder()
    x, y, n = graph.input("x", shape, dtype), graph.input("y", shape, dtype), graph.scalar("n")
    value = graph.call("mul.Tensor", x, y, shape=shape, dtype=dtype)
    value = graph.call("add.Tensor", value, n, shape=shape, dtype=dtype)
    task: KernelTask = graph.task(graph.call("relu.default", value, shape=shape, dtype=dtype))
    return task


def halved(task: KernelTask, chip: Any, form: Form | None = None) -> Strategy:
    """The schedule in half that follows the first one, in its form or in another."""
    found = next(m.strategy for m in moves(task, initial(task, chip), chip) if m.name == _IN_HALF)
    if form is not None and found.setting("form") != form:
        found = next(m.strategy for m in moves(task, found, chip) if m.name == f"{form} tiles")
    assert in_half(found)
    return found


def _gelu(x: Any, bias: Any, scale: Any) -> Any:
    wide = np.float64(x) + np.float64(bias)
    return wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2))) / 2 * np.float64(scale)


@pytest.mark.parametrize("form", [Form.PACKED, Form.SEGMENTS])
@pytest.mark.parametrize("columns", [70, 1500])
def test_columns_are_read_in_half(
    form: Form, columns: int, builder: Any, few_cores: Any, on_few_cores: Any
) -> None:
    task, rng = gelu(builder, (33, columns)), np.random.default_rng(0)
    x, bias, scale = (rng.normal(0, 2, shape).astype("f2") for shape in ((33, columns), columns, columns))
    inputs = {"x": x, "b": bias, "s": scale}
    (found,) = on_few_cores(task, inputs, halved(task, few_cores, form), passing=_OVERFLOW)
    np.testing.assert_allclose(found.astype("f8"), _gelu(x, bias, scale), rtol=1e-2, atol=4e-3)


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_rows_are_repeated_either_way(side: str, builder: Any, few_cores: Any, on_few_cores: Any) -> None:
    task, rng = gelu(builder, (50, 300)), np.random.default_rng(1)
    schedule = evolve(Schedule.of(halved(task, few_cores, Form.PACKED)), spread=side)
    strategy = evolve(initial(task, few_cores), settings=schedule.settings())
    x, bias, scale = (rng.normal(0, 2, shape).astype("f2") for shape in ((50, 300), 300, 300))
    (found,) = on_few_cores(task, {"x": x, "b": bias, "s": scale}, strategy, passing=_OVERFLOW)
    np.testing.assert_allclose(found.astype("f8"), _gelu(x, bias, scale), rtol=1e-2, atol=4e-3)


def test_the_tail_of_a_gelu_that_is_scaled_keeps_its_digits(
    builder: Any, few_cores: Any, on_few_cores: Any
) -> None:
    """Float16 rounds what lies there to 0 unless something scales it: its formula must not."""
    task, rng = gelu(builder, (33, 300)), np.random.default_rng(3)
    x, bias, scale = rng.uniform(-5, -1, (33, 300)).astype("f2"), np.zeros(300, "f2"), np.full(300, 1e3, "f2")
    (found,) = on_few_cores(task, {"x": x, "b": bias, "s": scale}, initial(task, few_cores))
    np.testing.assert_allclose(found.astype("f8"), _gelu(x, bias, scale), rtol=5e-2, atol=0)


def test_sums_and_products_are_pytorchs_bit_by_bit(builder: Any, few_cores: Any, on_few_cores: Any) -> None:
    """PyTorch rounds to half behind each of them."""
    task, rng = runs(builder, (9001,)), np.random.default_rng(2)
    x, y = (rng.normal(0, 1, 9001).astype("f2") for _ in range(2))
    (found,) = on_few_cores(task, {"x": x, "y": y, "n": 0.75}, halved(task, few_cores))
    np.testing.assert_array_equal(found, np.maximum(x * y + np.float16(0.75), np.float16(0)))


def test_no_number_is_converted(builder: Any, chip: Any) -> None:
    author = author_for(chip.name)
    for task in (gelu(builder, (4096, 1500)), runs(builder, (1 << 20,))):
        text = author.write(task, halved(task, chip)).files[KERNEL]
        assert "Cast(" not in text and "LocalTensor<float>" not in text


def test_many_steps_take_less_time(builder: Any, chip: Any) -> None:
    author, task = author_for(chip.name), gelu(builder, (4096, 1500))
    first = author.estimate_us(task, initial(task, chip))
    assert author.estimate_us(task, halved(task, chip)) < 0.7 * first


def _reduced(builder: Any) -> KernelTask:
    graph = builder()
    x = graph.input("x", (64, 300), "float16")
    task: KernelTask = graph.task(
        graph.call("_softmax.default", x, -1, False, shape=(64, 300), dtype="float16")
    )
    return task


def _compared(builder: Any) -> KernelTask:
    graph, shape = builder(), (64, 300)
    x, y = graph.input("x", shape, "float16"), graph.input("y", shape, "float16")
    mask = graph.call("gt.Tensor", x, y, shape=shape, dtype="bool")
    task: KernelTask = graph.task(graph.call("where.self", mask, x, y, shape=shape, dtype="float16"))
    return task


@pytest.mark.parametrize(
    "make",
    [_reduced, _compared, lambda b: gelu(b, (64, 300), "bfloat16"), lambda b: gelu(b, (64, 300), "float32")],
)
def test_other_work_stays_in_float32(make: Any, builder: Any, chip: Any) -> None:
    task = make(builder)
    first = initial(task, chip)
    assert _IN_HALF not in [move.name for move in moves(task, first, chip)]
    assert refusal(plan(task, chip), evolve(Schedule.of(first), half=True), task, chip)


def test_only_settings_that_ask_for_it_have_it(builder: Any, chip: Any, tmp_path: Any) -> None:
    task = gelu(builder, (4096, 1500))
    halves = halved(task, chip)
    with Memory(tmp_path / "memory.db") as memory:
        for half in (False, True):
            with Session(Settings(half=half), tmp_path, memory) as session:
                author = session.author
                proposer = session.proposer()
                assert isinstance(proposer, ScheduleProposer) and proposer.author == author
            names = [move.name for move in author.moves(task, author.initial(task))]
            assert (_IN_HALF in names) is half
            assert (author.adapt(gelu(builder, (2048, 1500)), halves) is not None) is half
            assert not in_half(author.initial(task))
