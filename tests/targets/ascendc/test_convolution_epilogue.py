"""What follows a convolution in the same kernel, against the same steps in NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import asdict, evolve, frozen

from evokernel_core.compiler.fusion.records import PROGRAM
from evokernel_core.compiler.ops import CONVOLUTION
from evokernel_core.domain.graph import Node
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import estimate_us, initial, moves, write
from evokernel_core.targets.ascendc.kernels.convolution.convolution_rows_schedule import RowsSchedule
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import ConvolutionSchedule
from tests.tables import few


@frozen
class Case:
    """A convolution without padding, and a chain of steps behind it."""

    batch: int
    channels: int
    outputs: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    chain: tuple[str, ...]
    groups: int = 1
    bias: bool = False
    dtype: str = "float32"
    rows_first: bool = False

    def made(self) -> tuple[int, ...]:
        return tuple(n - k + 1 for n, k in zip(self.sizes, self.kernel, strict=True))

    def shape(self) -> tuple[int, ...]:
        return (self.batch, self.outputs, *self.made())


def task_of(builder: Any, case: Case) -> KernelTask:
    """``case.chain`` names steps: a function, ``scale`` by a constant, ``channels``, ``pixels`` and
    ``other`` for sums with a number a channel, a number a pixel and another image."""
    graph, shape = builder(), case.shape()
    given = graph.input("x", (case.batch, case.channels, *case.sizes), case.dtype)
    weight = graph.input("weight", _weight_shape(case), case.dtype, parameter=True)
    bias = graph.input("bias", (case.outputs,), case.dtype, parameter=True) if case.bias else None
    rank = len(case.kernel)
    args = (given, weight, (1,) * rank, (1,) * rank, case.groups, 1, case.rows_first, bias)
    graph.nodes.append(Node("convolution", CONVOLUTION.name, args, (), (TensorSpec(shape, case.dtype),)))
    made = kept = type(given)("convolution")
    for step in case.chain:
        if step == "scale":
            made = graph.call("mul.Tensor", made, 0.5, shape=shape, dtype=case.dtype)
        elif step in ("channels", "pixels", "other"):
            other = graph.input(step, _beside(case, step), case.dtype)
            made = graph.call("add.Tensor", made, other, shape=shape, dtype=case.dtype)
        elif step != "keep":
            made = graph.call(f"{step}.default", made, shape=shape, dtype=case.dtype)
    task: KernelTask = graph.task(*([kept, made] if "keep" in case.chain else [made]))
    return task


def _weight_shape(case: Case) -> tuple[int, ...]:
    channels = case.channels // case.groups
    if case.rows_first:
        return (case.outputs, case.kernel[-2], channels, *case.kernel[:-2], case.kernel[-1])
    return (case.outputs, channels, *case.kernel)


def _beside(case: Case, step: str) -> tuple[int, ...]:
    if step == "channels":
        return (case.outputs, *[1] * len(case.kernel))
    return case.made() if step == "pixels" else case.shape()


def inputs_of(case: Case) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {"x": (case.batch, case.channels, *case.sizes), "weight": _weight_shape(case)}
    shapes |= {"bias": (case.outputs,)} if case.bias else {}
    shapes |= {s: _beside(case, s) for s in case.chain if s in ("channels", "pixels", "other")}
    return {name: rng.integers(-4, 5, size=shape).astype("f4") / 4 for name, shape in shapes.items()}


def expected(case: Case, inputs: dict[str, Any]) -> list[Any]:
    x, weight = inputs["x"].astype("f8"), inputs["weight"].astype("f8")
    weight = np.moveaxis(weight, 1, -2) if case.rows_first else weight
    x = x.reshape(case.batch, case.groups, -1, *case.sizes)
    weight = weight.reshape(case.groups, case.outputs // case.groups, -1, *case.kernel)
    made = np.zeros((case.batch, case.groups, case.outputs // case.groups, *case.made()))
    for tap in np.ndindex(*case.kernel):
        area = tuple(slice(t, t + n) for t, n in zip(tap, case.made(), strict=True))
        shifted = x[(slice(None),) * 3 + area]
        made += np.einsum("goc,ngc...->ngo...", weight[(slice(None),) * 3 + tap], shifted)
    made = made.reshape(case.shape())
    if case.bias:
        made = made + inputs["bias"].reshape(-1, *[1] * len(case.kernel))
    kept = made
    for step in case.chain:
        if step == "scale":
            made = made * 0.5
        elif step in inputs:
            made = made + inputs[step]
        elif step != "keep":
            made = {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh, "neg": np.negative}[step](made)
    return [kept, made] if "keep" in case.chain else [made]


def verify(
    case: Case,
    builder: Any,
    on_twin: Any,
    chip: Any,
    strategy: Strategy | None = None,
    *,
    audited: bool = True,
) -> None:
    task, inputs = task_of(builder, case), inputs_of(case)
    start = strategy or initial(task, chip)
    assert start.family != PROGRAM  # one kernel for all of it
    if audited:
        assert audit(task, write(task, start, chip)).status is GateStatus.PASSED
    assert estimate_us(task, start, chip) > 0
    tolerance = 1e-4 if case.dtype == "float32" else 1e-2
    scale = math.sqrt(case.channels // case.groups * math.prod(case.kernel))
    for found, wanted in zip(on_twin(task, inputs, strategy=start), expected(case, inputs), strict=True):
        np.testing.assert_allclose(
            np.asarray(found, "f8") / scale, wanted / scale, rtol=tolerance, atol=tolerance
        )


CASES: Sequence[Case] = (
    Case(2, 3, 20, (9, 70), (3, 3), ("tanh",)),
    Case(1, 17, 40, (20, 300), (5, 7), ("scale", "channels", "tanh"), bias=True),
    Case(3, 16, 33, (7, 7), (3, 3), ("relu", "other", "relu"), bias=True),
    Case(2, 5, 130, (600,), (3,), ("pixels", "neg")),
    Case(1, 3, 1, (6, 12, 20), (3, 5, 7), ("scale", "channels"), bias=True),
    Case(2, 24, 48, (11, 21), (3, 3), ("channels", "other"), groups=3, bias=True),
    Case(2, 4, 24, (9, 30), (3, 3), ("keep", "scale", "relu")),
    Case(2, 9, 40, (12, 40), (3, 5), ("other", "tanh"), bias=True, dtype="float16"),
    Case(1, 9, 40, (700,), (5,), ("channels", "relu"), bias=True, dtype="bfloat16"),
)


@few(
    "case",
    CASES,
    keep=(
        1,
        5,
        6,
        8,
    ),
    ids=str,
)
def test_steps_behind_a_convolution(case: Case, builder: Any, on_twin: Any, chip: Any) -> None:
    verify(case, builder, on_twin, chip)


MOVED = Case(1, 20, 40, (6, 150), (3, 3), ("channels", "tanh", "other"), bias=True)


def test_every_move_gives_the_same_result(builder: Any, on_twin: Any, chip: Any) -> None:
    task = task_of(builder, MOVED)
    found = moves(task, initial(task, chip), chip)
    assert len(found) > 4
    for place, move in enumerate(found[::3]):
        verify(MOVED, builder, on_twin, chip, move.strategy, audited=place == 0)


@pytest.mark.thorough
def test_every_move_passes_the_audit(builder: Any, chip: Any) -> None:
    task = task_of(builder, MOVED)
    for move in moves(task, initial(task, chip), chip)[::3]:
        assert audit(task, write(task, move.strategy, chip)).status is GateStatus.PASSED


@pytest.mark.parametrize("chain", [("tanh",), ("scale", "channels", "tanh")])
def test_results_of_one_pixel_an_image(chain: tuple[str, ...], builder: Any, on_twin: Any, chip: Any) -> None:
    for outputs, kernel in ((40, (1, 1)), (1, (1, 1)), (70, (3, 5))):
        case = Case(3, 20, outputs, kernel, kernel, chain)
        task, inputs = task_of(builder, case), inputs_of(case)
        (found,), (wanted,) = on_twin(task, inputs), expected(case, inputs)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


SCHEDULES = [
    ConvolutionSchedule(16, 32, 2, 16, 32, 3),
    ConvolutionSchedule(64, 128, 1, 16, 16, 2, stay=True, flat=True),
    ConvolutionSchedule(128, 64, 2, 32, 64, 4, stay=True, outputs_first=True),
    RowsSchedule(16, 32, 2, 16, 2 * 3 * 32),
    RowsSchedule(128, 128, 2, 16, 2 * 5 * 48),
]


def of_size(item: Any, sizes: tuple[int, int]) -> tuple[Case, Strategy]:
    rows = isinstance(item, RowsSchedule)
    case = Case(2, 6, 140, sizes, (3, 3), ("channels", "relu", "other"), 2, True, rows_first=rows)
    return case, Strategy("convolution_rows" if rows else "convolution", asdict(item))


@few("item", SCHEDULES, keep=(1, 4), ids=str)
def test_results_of_any_size_are_handed_over(item: Any, builder: Any, on_twin: Any, chip: Any) -> None:
    for sizes in ((19, 32), (40, 75), (5, 7)):
        case, strategy = of_size(item, sizes)
        verify(case, builder, on_twin, chip, strategy, audited=sizes == (5, 7))


@pytest.mark.thorough
@pytest.mark.parametrize("item", SCHEDULES, ids=str)
def test_kernels_of_any_size_pass_the_audit(item: Any, builder: Any, chip: Any) -> None:
    for sizes in ((19, 32), (40, 75)):
        case, strategy = of_size(item, sizes)
        task = task_of(builder, case)
        assert audit(task, write(task, strategy, chip)).status is GateStatus.PASSED


@pytest.mark.parametrize(
    "item",
    [
        ConvolutionSchedule(64, 128, 1, 16, 16, 2, stay=True, flat=True),
        RowsSchedule(128, 128, 2, 16, 2 * 5 * 64),
    ],
    ids=str,
)
def test_rows_that_lie_as_far_apart_as_in_memory(item: Any, builder: Any, on_twin: Any, chip: Any) -> None:
    """Rows of 46 pixels, 64 columns apart: in whole fractals they would be 48."""
    rows = isinstance(item, RowsSchedule)
    kind = "convolution_rows" if rows else "convolution"
    case = Case(2, 6, 140, (19, 64), (3, 19), ("channels", "relu", "other"), 2, True, rows_first=rows)
    verify(case, builder, on_twin, chip, Strategy(kind, asdict(item)))


def test_reductions_behind_a_convolution_are_kernels_of_their_own(builder: Any, chip: Any) -> None:
    case = Case(2, 3, 20, (9, 70), (3, 3), ("scale",))
    task = task_of(builder, case)
    graph = builder()
    graph.inputs, graph.nodes = list(task.graph.inputs), list(task.graph.nodes)
    total = graph.call("sum.dim_IntList", task.graph.outputs[0], (1,), False, shape=(2, 7, 68))
    assert initial(graph.task(total), chip).family == PROGRAM
    assert initial(evolve(task, name="alone"), chip).family != PROGRAM
