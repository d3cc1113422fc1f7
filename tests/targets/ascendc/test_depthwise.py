"""Family windowed: convolutions that keep channels apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.compiler.ops import DEPTHWISE
from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import evaluate_dim
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import legalised, write
from tests.tables import few
from tests.targets.ascendc.test_pooling import ON_TWIN, with_lanes
from tests.targets.ascendc.windows import Axis, each, names_of, over, sizes_of, some_axes, taken

TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 2e-2}


def depthwise(
    builder: Any, axes: Sequence[Axis], dtype: str = "float32", spread: int = 1, bias: bool = True
) -> KernelTask:
    """Three channels, each by its own ``spread`` windows of weights, for all sizes."""
    graph = builder()
    names, results = names_of(axes)
    x = graph.input("x", ("n", 3, *names), dtype)
    weight = graph.input("weight", (3 * spread, 1, *each(axes, "taps")), dtype, parameter=True)
    offset = graph.input("bias", (3 * spread,), dtype, parameter=True) if bias else None
    numbers = (each(axes, field) for field in ("stride", "padding", "dilation"))
    shape = ("n", 3 * spread, *results)
    none = (0,) * len(axes)
    result = graph.call(
        "convolution.default", x, weight, offset, *numbers, False, none, 3, shape=shape, dtype=dtype
    )
    task: KernelTask = graph.task(result, symbols={"n": 2} | dict.fromkeys(names, 40))
    return task


def sums(x: Any, weight: Any, axes: Sequence[Axis], spread: int) -> Any:
    windows = np.repeat(taken(x.astype("f8"), axes, 0.0), spread, axis=1)
    ones = (1,) * len(axes)
    return (windows * weight.reshape(1, 3 * spread, *ones, *each(axes, "taps"))).sum(over(axes))


@given(
    axes=some_axes(pads_more=True),
    dtype=st.sampled_from(list(TOLERANCE)),
    kind=st.sampled_from([(1, True), (1, False), (2, True)]),
    seed=st.integers(0, 99),
)
@ON_TWIN
def test_convolutions_of_any_geometry(
    axes: Sequence[Axis],
    dtype: str,
    kind: tuple[int, bool],
    seed: int,
    builder: Any,
    on_twin: Any,
    chip: Any,
) -> None:
    spread, bias = kind
    task = depthwise(builder, axes, dtype, spread, bias)
    strategy = with_lanes(task, "planes" if seed % 2 else "rows", chip)
    assert audit(task, write(task, strategy, chip)).status is GateStatus.PASSED
    rng = np.random.default_rng(seed)
    weight = (rng.integers(-8, 9, size=(3 * spread, 1, *each(axes, "taps"))) / 8).astype("f4")
    offset = (rng.integers(-8, 9, size=3 * spread) / 8).astype("f4")
    for sizes in sizes_of(axes, rng):
        shape = tuple(sizes.values())
        x = (rng.integers(-16, 17, size=(shape[0], 3, *shape[1:])) / 16).astype("f4")
        expected = sums(x, weight, axes, spread)
        inputs = {"x": x, "weight": weight}
        if bias:
            inputs["bias"] = offset
            expected = expected + offset.reshape(1, -1, *(1,) * len(axes))
        (result,) = on_twin(task, inputs, strategy, sizes)
        np.testing.assert_allclose(
            np.asarray(result, "f8"), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
        )


def test_each_row_of_a_signal_has_the_weights_of_its_channel(builder: Any, on_twin: Any) -> None:
    axes = (Axis(4, 1, 2, 2),)
    task = depthwise(builder, axes)
    rng = np.random.default_rng(1)
    x, weight = rng.normal(size=(7, 3, 300)).astype("f4"), rng.normal(size=(3, 1, 4)).astype("f4")
    offset = rng.normal(size=3).astype("f4")
    (result,) = on_twin(task, {"x": x, "weight": weight, "bias": offset}, sizes={"n": 7, "w": 300})
    np.testing.assert_allclose(result, sums(x, weight, axes, 1) + offset[:, None], rtol=1e-4, atol=1e-4)


def causal(builder: Any, numbers: Sequence[int], before: int, kept: str, dtype: str) -> KernelTask:
    """Zeros in front, a convolution with zeros on both sides, and a slice of what comes out."""
    taps, stride, padding, dilation, first = numbers
    graph = builder()
    x = graph.input("x", ("n", 3, "w"), dtype)
    weight = graph.input("weight", (3, 1, taps), dtype, parameter=True)
    longer = f"(w + {before + 1})"
    value = x
    if before:
        value = graph.call(
            "constant_pad_nd.default", x, (before, 1), 0.0, shape=("n", 3, longer), dtype=dtype
        )
    size = longer if before else "w"
    result = f"(({size} + {2 * padding - (taps - 1) * dilation - 1}) // {stride} + 1)"
    args = ((stride,), (padding,), (dilation,), False, (0,), 3)
    value = graph.call("convolution.default", value, weight, None, *args, shape=("n", 3, result), dtype=dtype)
    if kept:
        end = SymbolicInt(f"({first}) + ({kept})")
        value = graph.call("slice.Tensor", value, 2, first, end, shape=("n", 3, kept), dtype=dtype)
    task: KernelTask = graph.task(value, symbols={"n": 2, "w": 90})
    return task


CAUSAL = [
    ((4, 1, 3, 1, 0), 0, "w", "float32"),
    ((4, 1, 0, 1, 0), 3, "", "bfloat16"),
    ((4, 1, 6, 2, 0), 0, "w", "float16"),
    ((7, 2, 4, 1, 2), 5, "(w // 2 - 2)", "float32"),
    ((3, 1, 2, 1, 1), 0, "(w // 3)", "bfloat16"),
    ((5, 3, 0, 1, 0), 4, "", "float16"),
]


@few(
    ("numbers", "before", "kept", "dtype"),
    CAUSAL,
    keep=(
        0,
        3,
        5,
    ),
)
def test_zeros_in_front_and_kept_windows_are_part_of_the_kernel(
    numbers: Sequence[int], before: int, kept: str, dtype: str, builder: Any, on_twin: Any, chip: Any
) -> None:
    taps, stride, padding, dilation, first = numbers
    task = causal(builder, numbers, before, kept, dtype)
    assert {node.op for node in legalised(task, load_chip()).graph.nodes} == {DEPTHWISE.name}
    rng = np.random.default_rng(taps)
    weight = (rng.integers(-8, 9, size=(3, 1, taps)) / 8).astype("f4")
    for lanes in ("rows", "planes"):
        strategy = with_lanes(task, lanes, chip)
        for batch, length in ((1, 8), (7, 90), (3, 1500)):
            x = (rng.integers(-16, 17, size=(batch, 3, length)) / 16).astype("f4")
            padded = np.pad(x, [(0, 0), (0, 0), (before, 1)]) if before else x
            expected = sums(padded, weight, (Axis(taps, stride, padding, dilation),), 1)
            if kept:
                size = evaluate_dim(kept, {"w": length})
                expected = expected[..., first : first + size]
            (result,) = on_twin(task, {"x": x, "weight": weight}, strategy, {"n": batch, "w": length})
            np.testing.assert_allclose(
                np.asarray(result, "f8"), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
            )


def test_a_convolution_that_others_read_keeps_all_of_its_windows(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", (2, 3, 40))
    weight = graph.input("weight", (3, 1, 4), parameter=True)
    args = ((1,), (3,), (1,), False, (0,), 3)
    whole = graph.call("convolution.default", x, weight, None, *args, shape=(2, 3, 43))
    part = graph.call("slice.Tensor", whole, 2, 0, 40, shape=(2, 3, 40))
    assert DEPTHWISE.name not in {
        node.op for node in legalised(graph.task(whole, part), load_chip()).graph.nodes
    }


@pytest.mark.parametrize(("pads", "value"), [((3, 0), 1.0), ((-1, 4), 0.0), ((1, 1, 0, 0, 1, 0), 0.0)])
def test_paddings_of_another_kind_stay(pads: Sequence[int], value: float, builder: Any) -> None:
    graph = builder()
    x = graph.input("x", (2, 3, 40))
    weight = graph.input("weight", (3, 1, 4), parameter=True)
    shape = (2 + sum(pads[4:]), 3, 40 + sum(pads[:2]))
    wider = graph.call("constant_pad_nd.default", x, tuple(pads), value, shape=shape)
    args = ((1,), (0,), (1,), False, (0,), 3)
    result = graph.call("convolution.default", wider, weight, None, *args, shape=(*shape[:2], shape[2] - 3))
    assert DEPTHWISE.name not in {node.op for node in legalised(graph.task(result), load_chip()).graph.nodes}
