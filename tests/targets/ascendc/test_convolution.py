"""Family convolution: any geometry, type and size against a direct sum over taps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import asdict, evolve, frozen

from evokernel_core.compiler.ops import CONVOLUTION
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import estimate_us, initial, legalised, moves, write
from evokernel_core.targets.ascendc.kernels.convolution.convolution_rows_schedule import RowsSchedule
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import ConvolutionSchedule
from tests.tables import few


@frozen
class Case:
    """A convolution: channels and output channels are those of all groups."""

    batch: int
    channels: int
    outputs: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1
    bias: bool = False
    relu: bool = False
    dtype: str = "float32"

    def each(self, name: str) -> tuple[int, ...]:
        return getattr(self, name) or (0 if name == "padding" else 1,) * len(self.kernel)

    def made(self) -> tuple[int, ...]:
        zipped = zip(self.sizes, *map(self.each, ("kernel", "stride", "padding", "dilation")), strict=True)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zipped)


def task_of(builder: Any, case: Case) -> KernelTask:
    graph = builder()
    x = graph.input("x", (case.batch, case.channels, *case.sizes), case.dtype)
    shape = (case.outputs, case.channels // case.groups, *case.kernel)
    weight = graph.input("weight", shape, case.dtype, parameter=True)
    bias = graph.input("bias", (case.outputs,), case.dtype, parameter=True) if case.bias else None
    stride, padding, dilation = (case.each(name) for name in ("stride", "padding", "dilation"))
    zeros = (0,) * len(case.kernel)
    made = graph.call(
        "convolution.default", x, weight, bias, stride, padding, dilation, False, zeros, case.groups,
        shape=(case.batch, case.outputs, *case.made()), dtype=case.dtype,
    )  # fmt: skip
    task: KernelTask = graph.task(_clipped(graph, made) if case.relu else made)
    return task


def _clipped(graph: Any, made: Any) -> Any:
    """A ReLU of the result, seen through a view that keeps its order."""
    spec = graph.nodes[-1].outputs[0]
    shape = (math.prod(spec.sizes({})),)
    flat = graph.call("view.default", made, shape, shape=shape, dtype=spec.dtype)
    return graph.call("relu.default", flat, shape=shape, dtype=spec.dtype)


def inputs_of(case: Case) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {
        "x": (case.batch, case.channels, *case.sizes),
        "weight": (case.outputs, case.channels // case.groups, *case.kernel),
        "bias": (case.outputs,),
    }
    names = shapes if case.bias else ("x", "weight")
    return {name: rng.integers(-8, 9, size=shapes[name]).astype("f4") / 4 for name in names}


def expected(case: Case, inputs: dict[str, Any]) -> Any:
    """The sum over taps, each a product of channel matrices."""
    x, weight = inputs["x"].astype("f8"), inputs["weight"].astype("f8")
    padded = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in case.each("padding"))))
    made, groups = case.made(), case.groups
    padded = padded.reshape(case.batch, groups, -1, *padded.shape[2:])
    weight = weight.reshape(groups, case.outputs // groups, -1, *case.kernel)
    result = np.zeros((case.batch, groups, case.outputs // groups, *made))
    for tap in np.ndindex(*case.kernel):
        starts = [t * d for t, d in zip(tap, case.each("dilation"), strict=True)]
        area = tuple(
            slice(a, a + s * (n - 1) + 1, s)
            for a, s, n in zip(starts, case.each("stride"), made, strict=True)
        )
        shifted = padded[(slice(None),) * 3 + area]
        result += np.einsum("goc,ngc...->ngo...", weight[(slice(None),) * 3 + tap], shifted)
    result = result.reshape(case.batch, case.outputs, *made)
    if case.bias:
        result += inputs["bias"].reshape(-1, *[1] * len(made))
    return np.maximum(result, 0).reshape(-1) if case.relu else result


def verify(case: Case, builder: Any, on_twin: Any, strategy: Any = None) -> None:
    task, inputs = task_of(builder, case), inputs_of(case)
    (found,) = on_twin(task, inputs, strategy=strategy)
    scale = math.sqrt(case.channels // case.groups * math.prod(case.kernel))
    tolerance = 1e-4 if case.dtype == "float32" else 1e-2
    np.testing.assert_allclose(
        np.asarray(found, "f8") / scale, expected(case, inputs) / scale, rtol=tolerance, atol=tolerance
    )


PLAIN: Sequence[Case] = (
    Case(1, 1, 1, (1,), (1,)),
    Case(2, 3, 20, (9, 70), (3, 3)),
    Case(1, 17, 40, (20, 300), (5, 7)),
    Case(3, 16, 33, (7, 7), (3, 3)),
    Case(2, 5, 130, (600,), (3,)),
    Case(1, 3, 16, (6, 12, 20), (3, 5, 7)),
    Case(2, 40, 24, (13, 11), (1, 1)),
    Case(2, 3, 8, (12, 10, 6), (3, 3, 1)),
    Case(2, 24, 48, (11, 21), (3, 3), groups=3),
    Case(1, 4, 8, (30, 20), (3, 2), stride=(2, 1), dilation=(3, 4)),
    Case(1, 6, 8, (14, 9, 20), (2, 2, 3), stride=(3, 2, 1), dilation=(2, 1, 2)),
    Case(2, 8, 16, (15, 17), (3, 3), bias=True),
    Case(1, 8, 15, (15, 40), (3, 3), relu=True),
    Case(1, 3, 1, (4, 9), (2, 2), bias=True, relu=True),
    Case(3, 30, 150, (11, 21), (3, 3), groups=3, bias=True, relu=True),
    Case(1, 21, 40, (9, 33), (1, 3), bias=True, dtype="float16"),
    Case(2, 9, 200, (700,), (5,), bias=True, relu=True, dtype="bfloat16"),
)


@few(
    "case",
    PLAIN,
    keep=(
        1,
        5,
        9,
        14,
        15,
    ),
    ids=str,
)
def test_convolutions_without_padding(case: Case, builder: Any, on_twin: Any) -> None:
    verify(case, builder, on_twin)


FRAMED: Sequence[Case] = (
    Case(2, 3, 20, (9, 70), (3, 3), padding=(1, 1)),
    Case(1, 5, 12, (8, 13), (5, 7), padding=(0, 9), dilation=(1, 2)),
    Case(2, 3, 24, (33, 31), (11, 11), stride=(4, 4), padding=(2, 2)),
    Case(1, 4, 40, (3001,), (3,), stride=(3,), dilation=(4,)),
    Case(1, 4, 8, (25, 30), (3, 5), stride=(1, 2), padding=(2, 0)),
    Case(2, 3, 8, (6, 7, 20), (3, 3, 3), stride=(2, 2, 2), padding=(1, 2, 3)),
    Case(1, 2, 4, (9, 50), (1, 1), stride=(3, 5)),
    Case(1, 2, 4, (4, 3), (2, 3), padding=(6, 5)),
    Case(1, 16, 32, (12, 18), (3, 3), padding=(1, 1), groups=2, bias=True),
)


@few(
    "case",
    FRAMED,
    keep=(
        1,
        2,
        5,
        7,
    ),
    ids=str,
)
def test_convolutions_with_padding_and_steps(case: Case, builder: Any, on_twin: Any) -> None:
    verify(case, builder, on_twin)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_other_types(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    case = Case(2, 19, 36, (12, 40), (3, 5), dtype=dtype)
    task = task_of(builder, case)
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED
    verify(case, builder, on_twin)
    verify(Case(1, 6, 20, (12, 41), (3, 4), (2, 3), (1, 2), dtype=dtype), builder, on_twin)


@few("part", range(3), keep=(0,))
def test_every_move_gives_the_same_result(part: int, builder: Any, on_twin: Any, chip: Any) -> None:
    case = Case(1, 20, 40, (6, 150), (3, 3), bias=True, relu=True)
    task = task_of(builder, case)
    start = initial(task, chip)
    found = moves(task, start, chip)
    assert len(found) > 4
    for strategy in (start, *(move.strategy for move in found))[part::3]:
        assert estimate_us(task, strategy, chip) > 0
        verify(case, builder, on_twin, strategy)


ROWS: Sequence[Case] = (
    Case(2, 3, 20, (19, 32), (3, 3)),
    Case(1, 5, 40, (40, 75), (4, 5), dilation=(3, 2)),
    Case(2, 4, 8, (6, 21, 48), (2, 3, 3), stride=(2, 1, 1), dilation=(2, 1, 1)),
    Case(1, 6, 24, (23, 30), (3, 3), groups=2),
    Case(2, 8, 130, (9, 16), (2, 1)),
    Case(4, 3, 64, (17, 5, 7), (3, 3, 3)),
    Case(2, 6, 70, (19, 32), (3, 3), groups=2, bias=True),
)


def _rows_first(case: Case, builder: Any) -> KernelTask:
    """The convolution of the family itself, its weights turned before."""
    graph = builder()
    x = graph.input("x", (case.batch, case.channels, *case.sizes), case.dtype)
    shape = (case.outputs, case.kernel[-2], case.channels // case.groups, *case.kernel[:-2], case.kernel[-1])
    weight = graph.input("weight", shape, case.dtype, parameter=True)
    bias = graph.input("bias", (case.outputs,), case.dtype, parameter=True) if case.bias else None
    args = (x, weight, case.each("stride"), case.each("dilation"), case.groups, 1, True, bias)
    spec = TensorSpec((case.batch, case.outputs, *case.made()), case.dtype)
    graph.nodes.append(Node("convolution", CONVOLUTION.name, args, (), (spec,)))
    task: KernelTask = graph.task(ValueRef("convolution"))
    return task


@few(
    "case",
    [*ROWS, evolve(ROWS[1], dtype="float16")],
    keep=(
        2,
        6,
        7,
    ),
    ids=str,
)
def test_rows_that_stay_and_rows_that_come_anew(case: Case, builder: Any, on_twin: Any, chip: Any) -> None:
    task, inputs = _rows_first(case, builder), inputs_of(case)
    wanted = expected(case, inputs)
    inputs["weight"] = np.moveaxis(inputs["weight"], -2, 1)
    halo = (case.kernel[-2] - 1) * case.each("dilation")[-2]
    narrow = RowsSchedule(16, 32, 2, 16, 2 * (1 + halo) * 32)
    wide = RowsSchedule(128, 128, 2, 16, 2 * (3 + halo) * 48)
    long = RowsSchedule(64, 256, 2, 16, 2 * (11 + halo) * 32)
    for item in (narrow, wide, evolve(wide, parts=1, base_m=64), long, None):
        strategy = Strategy("convolution_rows", asdict(item)) if item else initial(task, chip)
        (found,) = on_twin(task, inputs, strategy=strategy)
        np.testing.assert_allclose(np.asarray(found, "f8"), wanted, rtol=1e-2, atol=1e-2)
        if item:
            assert "convolution_rows" in {move.strategy.family for move in moves(task, strategy, chip)}
            assert estimate_us(task, strategy, chip) > 0


@pytest.mark.parametrize("relu", [False, True])
def test_bias_and_relu_need_no_kernel_of_their_own(relu: bool, builder: Any, chip: Any) -> None:
    task = task_of(builder, Case(2, 8, 16, (15, 17), (3, 3), bias=True, relu=relu))
    assert initial(task, chip).family == "convolution"  # not a program of several


def test_large_convolutions_turn_their_weights(builder: Any, chip: Any) -> None:
    start = initial(task_of(builder, Case(16, 3, 64, (256, 256), (3, 3))), chip)
    assert "convolution_rows" in [kernel.family for kernel in start.kernels]


def framed(case: Case, builder: Any) -> KernelTask:
    """The convolution of the family itself, which frames its images."""
    graph = builder()
    x = graph.input("x", (case.batch, case.channels, *case.sizes), case.dtype)
    shape = (case.outputs, case.channels // case.groups, *case.kernel)
    weight = graph.input("weight", shape, case.dtype, parameter=True)
    bias = graph.input("bias", (case.outputs,), case.dtype, parameter=True) if case.bias else None
    stride = case.each("stride")
    args = (
        x, weight, (*stride[:-1], 1), case.each("dilation"), case.groups, stride[-1], False, bias,
        case.each("padding"),
    )  # fmt: skip
    spec = TensorSpec((case.batch, case.outputs, *case.made()), case.dtype)
    graph.nodes.append(Node("convolution", CONVOLUTION.name, args, (), (spec,)))
    task: KernelTask = graph.task(ValueRef("convolution"))
    return task


CASES = (
    Case(2, 3, 20, (9, 70), (3, 3), padding=(1, 1)),
    Case(3, 5, 12, (8, 13), (5, 7), padding=(0, 9), dilation=(1, 2)),
    Case(2, 3, 24, (33, 31), (11, 11), stride=(4, 4), padding=(2, 2), bias=True),
    Case(2, 4, 40, (3001,), (3,), stride=(3,), dilation=(4,)),
    Case(5, 6, 20, (90,), (4,), stride=(2,), padding=(3,), groups=2, dtype="float16"),
    Case(2, 3, 8, (6, 7, 20), (3, 3, 3), stride=(2, 2, 2), padding=(1, 2, 3)),
    Case(3, 16, 150, (12, 32), (3, 3), padding=(1, 0), groups=2, dtype="bfloat16"),
)
NARROW = ConvolutionSchedule(32, 32, 2, 16, 32, 2, stay=True, chunk_kib=1)
SCHEDULES = (
    NARROW,
    evolve(NARROW, stay=False, flat=True, chunk_kib=7, base_m=64),
    evolve(NARROW, part_n=128, parts=1, outputs_first=True, chunk_kib=40),
)


@few(
    "case",
    CASES,
    keep=(
        1,
        4,
        5,
    ),
    ids=str,
)
def test_images_in_chunks(case: Case, builder: Any, on_twin: Any, chip: Any) -> None:
    task, inputs = framed(case, builder), inputs_of(case)
    wanted = expected(case, inputs)
    is_flat = len(case.kernel) > 1 and set(case.each("stride")) == {1}
    for item in SCHEDULES[1:] if is_flat else (NARROW, SCHEDULES[2]):
        strategy = Strategy("convolution", asdict(item))
        (found,) = on_twin(task, inputs, strategy=strategy)
        np.testing.assert_allclose(np.asarray(found, "f8"), wanted, rtol=1e-2, atol=1e-2)
        assert estimate_us(task, strategy, chip) > 0
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED


def test_chunks_have_moves(builder: Any, chip: Any) -> None:
    task = framed(CASES[0], builder)
    found = {move.name for move in moves(task, initial(task, chip), chip)}
    assert {"larger chunks in L2", "smaller chunks in L2"} & found


LARGE = Case(8, 64, 64, (256, 256), (3, 3), padding=(1, 1))


@pytest.mark.parametrize(
    ("case", "beside"),
    [(LARGE, True), (evolve(LARGE, relu=True, bias=True), True), (evolve(LARGE, batch=1), False)],
    ids=str,
)
def test_many_bytes_are_framed_beside_the_products(case: Case, beside: bool, builder: Any) -> None:
    """A ReLU is the cube core's; few bytes are framed by a kernel before."""
    ops = [node.op for node in legalised(task_of(builder, case), load_chip()).graph.nodes]
    assert ("evokernel.phases.default" in ops) is not beside


def test_vector_cores_that_take_results_do_not_frame(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", (8, 64, 256, 256), "float32")
    weight = graph.input("weight", (64, 64, 3, 3), "float32", parameter=True)
    shape = (8, 64, 256, 256)
    made = graph.call(
        "convolution.default", x, weight, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1,
        shape=shape, dtype="float32",
    )  # fmt: skip
    behind = graph.call("tanh.default", made, shape=shape, dtype="float32")
    ops = {node.op for node in legalised(graph.task(behind), load_chip()).graph.nodes}
    assert "evokernel.phases.default" in ops
