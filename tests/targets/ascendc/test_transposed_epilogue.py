"""What follows a transposed convolution in the same kernel, against the same steps in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from attrs import asdict, frozen
from hypothesis import strategies as st

from evokernel_core.compiler.fusion.records import PROGRAM
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import estimate_us, initial, write
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import (
    ConvTransposeAxis as Axis,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import (
    read_transposed,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import ConvTransposeSchedule
from evokernel_core.targets.ascendc.source import KERNEL
from tests.tables import drawn, few
from tests.targets.ascendc.transposed import Layer, close, expected, task_of, values_of

STEPS = {
    "relu": lambda value, _: np.maximum(value, 0),
    "tanh": lambda value, _: np.tanh(value),
    "neg": lambda value, _: -value,
    "scale": lambda value, _: value * 0.5,
    "channels": lambda value, other: value + other,
    "pixels": lambda value, other: value + other,
    "other": lambda value, other: value + other,
}
"""``channels``, ``pixels`` and ``other`` add a number a channel, a number a pixel and another image."""


@frozen
class Case:
    layer: Layer
    chain: tuple[str, ...]


def _task(builder: Any, case: Case) -> KernelTask:
    """The layer, and behind it the steps of the chain; ``keep`` returns the value at that place too."""
    plain = task_of(builder, case.layer)
    graph = builder()
    graph.inputs, graph.nodes = list(plain.graph.inputs), list(plain.graph.nodes)
    made, dtype = plain.graph.outputs[0], case.layer.dtype
    shape, kept = plain.graph.spec(made).shape, []
    for step in case.chain:
        if step == "keep":
            kept.append(made)
        elif step == "scale":
            made = graph.call("mul.Tensor", made, 0.5, shape=shape, dtype=dtype)
        elif step in ("channels", "pixels", "other"):
            beside = {"channels": (shape[1], *[1] * (len(shape) - 2)), "pixels": shape[2:], "other": shape}
            other = graph.input(step, beside[step], dtype)
            made = graph.call("add.Tensor", made, other, shape=shape, dtype=dtype)
        else:
            made = graph.call(f"{step}.default", made, shape=shape, dtype=dtype)
    task: KernelTask = graph.task(*kept, made, symbols=plain.sizes)
    return task


def _verify(case: Case, task: KernelTask, strategy: Strategy, on_twin: Any) -> None:
    for sizes in case.layer.sizes:
        values = values_of(case.layer, sizes)
        wanted = [expected(case.layer, values)]
        shape = wanted[0].shape
        beside = {"channels": (shape[1], *[1] * (len(shape) - 2)), "pixels": shape[2:], "other": shape}
        rng = np.random.default_rng(1)
        made, results = wanted[0], []
        for step in case.chain:
            if step == "keep":
                results.append(made)
                continue
            if step in beside:
                values[step] = rng.integers(-8, 9, size=beside[step]).astype("f4") / 8
            made = STEPS[step](made, values.get(step))
        found = on_twin(task, values, strategy=strategy, sizes=dict(zip(task.sizes, sizes, strict=True)))
        for result, each in zip(found, [*results, made], strict=True):
            close(result, each, case.layer)


CASES = {
    "a row": Case(
        Layer((Axis(3, 2, 1, 2),), (4,), 9, 20, ((2, 41), (1, 1), (1, 300)), bias=True), ("channels", "tanh")
    ),
    "images": Case(
        Layer((Axis(2, 1, 1, 1), Axis(2, 1, 1, 1)), (3, 3), 12, 33, ((2, 9, 31), (1, 1, 1)), bias=True),
        ("scale", "channels", "relu"),
    ),
    "images and others": Case(
        Layer((Axis(), Axis()), (3, 3), 12, 20, ((2, 9, 31), (1, 1, 130))), ("other", "tanh", "pixels")
    ),
    "groups": Case(Layer((Axis(2, 1), Axis(3, 1)), (3, 4), 4, 6, ((2, 7, 9),), 3, True), ("channels", "neg")),
    "volumes": Case(
        Layer((Axis(2, 1, 1, 1), Axis(2), Axis(2, 1)), (3, 2, 3), 5, 12, ((1, 3, 4, 9), (2, 1, 1, 3))),
        ("keep", "scale", "relu"),
    ),
    "halves": Case(
        Layer((Axis(2, 1), Axis(2, 1)), (4, 4), 20, 40, ((2, 6, 21),), bias=True, dtype="float16"),
        ("other", "channels", "relu"),
    ),
    "short floats": Case(
        Layer((Axis(), Axis(2, 0, 1, 1)), (2, 2), 20, 16, ((2, 6, 9),), 2, True, "bfloat16"),
        ("pixels", "tanh"),
    ),
}


@few(
    "case",
    CASES.values(),
    keep=(4, 5),
    ids=CASES.keys(),
)
def test_steps_behind_a_transposed_convolution(case: Case, builder: Any, on_twin: Any, chip: Any) -> None:
    task = _task(builder, case)
    start = initial(task, chip)
    assert start.family == "transposed"  # one kernel for all of it
    assert write(task, start, chip).files[KERNEL].count("<<<") == 1
    assert estimate_us(task, start, chip) > 0
    _verify(case, task, start, on_twin)


_AXES = st.builds(Axis, st.integers(1, 4), st.integers(0, 2), st.integers(1, 2))


def any_steps(
    dims: list[tuple[Axis, int]],
    widths: tuple[int, int, int],
    chain: list[str],
    dtype: str,
    data: st.DataObject,
    builder: Any,
    on_twin: Any,
) -> None:
    lengths = [st.integers(3, 40 // 3 ** (len(dims) - 1) + 3) for _ in dims]
    sizes = data.draw(st.lists(st.tuples(st.integers(1, 2), *lengths), min_size=2, max_size=2))
    axes, kernel = zip(*dims, strict=True)
    layer = Layer(axes, kernel, widths[0], widths[1], tuple(sizes), widths[2], dtype=dtype)
    case = Case(layer, tuple(chain))
    most_m, most_n = data.draw(st.sampled_from([16, 64])), data.draw(st.sampled_from([32, 256]))
    schedule = ConvTransposeSchedule(most_m, most_n, 2, 64, 64, 3, turned=True)
    _verify(case, _task(builder, case), Strategy("transposed", asdict(schedule)), on_twin)


_ANY_STEPS: dict[str, Any] = {
    "dims": st.lists(st.tuples(_AXES, st.integers(3, 5)), min_size=1, max_size=3),
    "widths": st.tuples(st.integers(1, 30), st.integers(1, 40), st.integers(1, 2)),
    "chain": st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=3, unique=True),
    "dtype": st.sampled_from(["float32", "float16", "bfloat16"]),
    "data": st.data(),
}
test_any_steps_behind_any_layer = drawn(any_steps, 3, 3, derandomize=True, **_ANY_STEPS)[0]
test_many_steps_behind_any_layer = drawn(any_steps, 3, 8, **_ANY_STEPS)[1]


def test_steps_that_reduce_are_kernels_of_their_own(builder: Any, chip: Any) -> None:
    """Pixels lie in tiles of several cores; channels do too where there are groups of them."""
    task = _task(builder, CASES["images"])
    graph = builder()
    graph.inputs, graph.nodes = list(task.graph.inputs), list(task.graph.nodes)
    made = task.graph.outputs[0]
    shape = task.graph.spec(made).shape
    total = graph.call("sum.dim_IntList", made, (2,), False, shape=(*shape[:2], shape[3]))
    assert initial(graph.task(total, symbols=task.sizes), chip).family == PROGRAM
    assert initial(task, chip).family != PROGRAM
    grouped = ChannelCase(CASES["groups"].layer, ("softmax",))
    assert initial(_channel_task(builder, grouped), chip).family == PROGRAM


# -- steps that reduce the channels of a pixel ------------------------------------------------------


@frozen
class ChannelCase:
    layer: Layer
    chain: tuple[str, ...]


def _softmax(value: np.ndarray) -> np.ndarray:
    raised = np.exp(value - value.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


REDUCING = {
    "softmax": _softmax,
    "logsumexp": lambda value: np.log(np.exp(value).sum(1, keepdims=True)),
    "amin": lambda value: value.min(1, keepdims=True),
    "mean": lambda value: value.mean(1, keepdims=True),
    "centred": lambda value: value - value.mean(1, keepdims=True),
}


def _reduced(graph: Any, made: Any, step: str, shape: tuple[Any, ...], dtype: str) -> tuple[Any, Any]:
    """The value behind a step that reduces channels, and its shape."""
    one = (shape[0], 1, *shape[2:])
    if step == "softmax":
        return graph.call("_softmax.default", made, 1, False, shape=shape, dtype=dtype), shape
    if step == "centred":
        mean = graph.call("mean.dim", made, (1,), True, shape=one, dtype=dtype)
        return graph.call("sub.Tensor", made, mean, shape=shape, dtype=dtype), shape
    op = {"logsumexp": "logsumexp.default", "amin": "amin.default", "mean": "mean.dim"}[step]
    return graph.call(op, made, (1,), True, shape=one, dtype=dtype), one


def _channel_task(builder: Any, case: ChannelCase) -> KernelTask:
    plain = task_of(builder, case.layer)
    graph = builder()
    graph.inputs, graph.nodes = list(plain.graph.inputs), list(plain.graph.nodes)
    made, dtype, kept = plain.graph.outputs[0], case.layer.dtype, []
    shape = plain.graph.spec(made).shape
    for step in case.chain:
        if step == "keep":
            kept.append(made)
        elif step in REDUCING:
            made, shape = _reduced(graph, made, step, shape, dtype)
        elif step in ("channels", "pixels", "other"):
            beside = {"channels": (shape[1], *[1] * (len(shape) - 2)), "pixels": shape[2:], "other": shape}
            other = graph.input(step, beside[step], dtype)
            made = graph.call("add.Tensor", made, other, shape=shape, dtype=dtype)
        elif step == "scale":
            made = graph.call("mul.Tensor", made, 0.5, shape=shape, dtype=dtype)
        else:
            made = graph.call(f"{step}.default", made, shape=shape, dtype=dtype)
    task: KernelTask = graph.task(*kept, made, symbols=plain.sizes)
    return task


def _verify_channels(case: ChannelCase, task: KernelTask, strategy: Strategy, on_twin: Any) -> None:
    rng = np.random.default_rng(2)
    for sizes in case.layer.sizes:
        values = values_of(case.layer, sizes)
        made, results = expected(case.layer, values), []
        for step in case.chain:
            if step == "keep":
                results.append(made)
            elif step in REDUCING:
                made = REDUCING[step](made)
            else:
                shape = made.shape
                beside = {
                    "channels": (shape[1], *[1] * (len(shape) - 2)),
                    "pixels": shape[2:],
                    "other": shape,
                }
                if step in beside:
                    values[step] = rng.integers(-8, 9, size=beside[step]).astype("f4") / 8
                made = STEPS[step](made, values.get(step))
        found = on_twin(task, values, strategy=strategy, sizes=dict(zip(task.sizes, sizes, strict=True)))
        for result, each in zip(found, [*results, made], strict=True):
            close(result, each, case.layer)


CHANNEL_CASES = {
    "one number a pixel": ChannelCase(
        Layer(
            (Axis(2, 1), Axis(2, 1), Axis(2, 1)), (3, 3, 3), 3, 16, ((2, 3, 5, 9), (1, 1, 2, 3)), bias=True
        ),
        ("logsumexp", "tanh", "pixels"),
    ),
    "all channels again": ChannelCase(
        Layer((Axis(2, 1, 1, 1), Axis(2, 1)), (3, 4), 12, 24, ((2, 9, 31), (1, 1, 1), (1, 3, 70)), bias=True),
        ("scale", "softmax", "channels", "other", "relu"),
    ),
    "many channels": ChannelCase(Layer((Axis(), Axis()), (3, 3), 9, 100, ((2, 9, 31),)), ("softmax", "amin")),
    "both": ChannelCase(
        Layer((Axis(3, 1),), (4,), 9, 40, ((2, 41), (1, 200)), bias=True), ("keep", "relu", "mean", "neg")
    ),
    "one channel left over": ChannelCase(
        Layer((Axis(2, 1), Axis(2, 1)), (3, 3), 8, 17, ((1, 6, 21),)), ("channels", "centred", "logsumexp")
    ),
    "halves": ChannelCase(
        Layer((Axis(2, 1), Axis(2, 1)), (4, 4), 20, 40, ((2, 6, 21),), bias=True, dtype="float16"),
        ("other", "softmax", "relu"),
    ),
}


@few("case", CHANNEL_CASES.values(), keep=(0, 1, 2), ids=CHANNEL_CASES.keys())
def test_channels_are_reduced_in_the_same_kernel(
    case: ChannelCase, builder: Any, on_twin: Any, chip: Any
) -> None:
    task = _channel_task(builder, case)
    start = initial(task, chip)
    assert start.family == "transposed"
    assert write(task, start, chip).files[KERNEL].count("<<<") == 1
    assert estimate_us(task, start, chip) > 0
    _verify_channels(case, task, start, on_twin)


def any_channels(
    dims: list[tuple[Axis, int]],
    widths: tuple[int, int],
    before: list[str],
    reducing: str,
    data: st.DataObject,
    builder: Any,
    on_twin: Any,
) -> None:
    lengths = [st.integers(3, 40 // 3 ** (len(dims) - 1) + 3) for _ in dims]
    sizes = data.draw(st.lists(st.tuples(st.integers(1, 2), *lengths), min_size=2, max_size=2))
    axes, kernel = zip(*dims, strict=True)
    case = ChannelCase(Layer(axes, kernel, *widths, tuple(sizes)), (*before, reducing, "neg"))
    task = _channel_task(builder, case)
    most_n = data.draw(st.sampled_from([32, 256]))
    schedule = ConvTransposeSchedule(128, most_n, 1, 80, 80, 3, turned=True)
    _verify_channels(case, task, Strategy("transposed", asdict(schedule)), on_twin)


_ANY_CHANNELS: dict[str, Any] = {
    "dims": st.lists(st.tuples(_AXES, st.integers(3, 5)), min_size=1, max_size=3),
    "widths": st.tuples(st.integers(1, 30), st.integers(2, 70)),
    "before": st.lists(st.sampled_from(sorted(STEPS)), max_size=2, unique=True),
    "reducing": st.sampled_from(sorted(REDUCING)),
    "data": st.data(),
}
test_channels_of_any_layer_are_reduced = drawn(any_channels, 3, 3, derandomize=True, **_ANY_CHANNELS)[0]
test_channels_of_many_layers_are_reduced = drawn(any_channels, 3, 8, **_ANY_CHANNELS)[1]


# -- windows that are the phases of the convolution -------------------------------------------------


@frozen
class PooledCase:
    layer: Layer
    chain: tuple[str, ...] = ()


def _pooled_task(builder: Any, case: PooledCase, *more: Any) -> KernelTask:
    """The layer, a maximum over windows as long as its strides, and the steps of the chain. ``more``: further
    arguments of the pooling."""
    plain = task_of(builder, case.layer)
    graph = builder()
    graph.inputs, graph.nodes = list(plain.graph.inputs), list(plain.graph.nodes)
    made, dtype, strides = plain.graph.outputs[0], case.layer.dtype, [axis.stride for axis in case.layer.axes]
    shape = plain.graph.spec(made).shape
    outputs = [f"({size})//{stride}" for size, stride in zip(shape[2:], strides, strict=True)]
    shape = (*shape[:2], *outputs)
    op = f"max_pool{len(strides)}d_with_indices.default"
    made = graph.call(op, made, tuple(strides), *(more or (tuple(strides),)), shape=shape, dtype=dtype)
    for step in case.chain:
        if step in REDUCING:
            made, shape = _reduced(graph, made, step, shape, dtype)
        elif step in ("channels", "other"):
            beside = {"channels": (shape[1], *[1] * (len(shape) - 2)), "other": shape}
            other = graph.input(step, beside[step], dtype)
            made = graph.call("add.Tensor", made, other, shape=shape, dtype=dtype)
        else:
            made = graph.call(f"{step}.default", made, shape=shape, dtype=dtype)
    task: KernelTask = graph.task(made, symbols=plain.sizes)
    return task


def _pooled(value: np.ndarray, strides: list[int]) -> np.ndarray:
    for axis, stride in enumerate(strides, 2):
        length = value.shape[axis] // stride
        value = np.moveaxis(value, axis, -1)[..., : length * stride]
        value = np.moveaxis(value.reshape(*value.shape[:-1], length, stride).max(-1), -1, axis)
    return value


def _verify_pooled(case: PooledCase, task: KernelTask, strategy: Strategy, on_twin: Any) -> None:
    rng = np.random.default_rng(3)
    for sizes in case.layer.sizes:
        values = values_of(case.layer, sizes)
        made = _pooled(expected(case.layer, values), [axis.stride for axis in case.layer.axes])
        for step in case.chain:
            if step in REDUCING:
                made = REDUCING[step](made)
                continue
            beside = {"channels": (made.shape[1], *[1] * (made.ndim - 2)), "other": made.shape}
            if step in beside:
                values[step] = rng.integers(-8, 9, size=beside[step]).astype("f4") / 8
            made = STEPS[step](made, values.get(step))
        (found,) = on_twin(task, values, strategy=strategy, sizes=dict(zip(task.sizes, sizes, strict=True)))
        close(found, made, case.layer)


POOLED_CASES = {
    "volumes": PooledCase(
        Layer(
            (Axis(2, 1), Axis(2, 1), Axis(2, 1)), (3, 3, 3), 3, 16, ((2, 3, 5, 9), (1, 2, 2, 20)), bias=True
        )
    ),
    "with steps": PooledCase(
        Layer((Axis(2, 1, 1, 1), Axis(3, 1)), (3, 4), 12, 40, ((2, 9, 31), (1, 2, 70)), bias=True),
        ("channels", "tanh", "other"),
    ),
    "channels reduced": PooledCase(
        Layer((Axis(2, 1, 1, 1), Axis(2, 1, 1, 1)), (3, 3), 5, 24, ((2, 9, 31), (1, 1, 1))),
        ("softmax", "channels", "amin"),
    ),
    "one stride": PooledCase(Layer((Axis(), Axis(4, 1)), (3, 6), 9, 20, ((2, 7, 31), (1, 3, 4)), 2)),
    "halves": PooledCase(
        Layer((Axis(2, 1), Axis(2, 1)), (4, 4), 20, 40, ((2, 6, 21),), bias=True, dtype="float16"), ("relu",)
    ),
}


@few("case", POOLED_CASES.values(), keep=(0, 1, 2, 3), ids=POOLED_CASES.keys())
def test_windows_of_all_phases_are_pooled_in_the_same_kernel(
    case: PooledCase, builder: Any, on_twin: Any, chip: Any
) -> None:
    task = _pooled_task(builder, case)
    start = initial(task, chip)
    assert start.family == "transposed"
    assert write(task, start, chip).files[KERNEL].count("<<<") == 1
    assert estimate_us(task, start, chip) > 0
    _verify_pooled(case, task, start, on_twin)


def any_windows(
    dims: list[tuple[Axis, int]],
    widths: tuple[int, int],
    chain: list[str],
    data: st.DataObject,
    builder: Any,
    on_twin: Any,
    chip: Any,
) -> None:
    lengths = [st.integers(3, 40 // 3 ** (len(dims) - 1) + 3) for _ in dims]
    sizes = data.draw(st.lists(st.tuples(st.integers(1, 2), *lengths), min_size=2, max_size=2))
    axes, kernel = zip(*dims, strict=True)
    case = PooledCase(Layer(axes, kernel, *widths, tuple(sizes)), tuple(chain))
    task = _pooled_task(builder, case)
    start = initial(task, chip)
    phases = math.prod(axis.stride for axis in axes)
    assert start.family == "transposed" or axes[-1].stride == 1 or phases > 8  # many do not fit a core
    if start.family == "transposed":
        most_n = data.draw(st.sampled_from([32, 256]))
        start = Strategy("transposed", asdict(ConvTransposeSchedule(64, most_n, 2, 80, 80, 3, turned=True)))
    _verify_pooled(case, task, start, on_twin)


_ANY_WINDOWS: dict[str, Any] = {
    "dims": st.lists(st.tuples(_AXES, st.integers(3, 5)), min_size=2, max_size=3),
    "widths": st.tuples(st.integers(1, 20), st.integers(2, 40)),
    "chain": st.lists(
        st.sampled_from(["relu", "channels", "other", "softmax", "tanh"]), max_size=2, unique=True
    ),
    "data": st.data(),
}
test_windows_of_the_phases_of_any_layer = drawn(any_windows, 4, 4, derandomize=True, **_ANY_WINDOWS)[0]
test_windows_of_the_phases_of_many_layers = drawn(any_windows, 4, 10, **_ANY_WINDOWS)[1]


TASKS: dict[str, tuple[Any, Any]] = {
    **{f"steps: {name}": (_task, case) for name, case in CASES.items()},
    **{f"channels: {name}": (_channel_task, case) for name, case in CHANNEL_CASES.items()},
    **{f"windows: {name}": (_pooled_task, case) for name, case in POOLED_CASES.items()},
}


@few("name", TASKS, keep=(5, 8, 15))
def test_kernels_pass_the_audit(name: str, builder: Any, chip: Any) -> None:
    make, case = TASKS[name]
    task = make(builder, case)
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED


@few(
    "more",
    [((1, 1),), ((2, 2), (1, 1)), ((2, 2), (0, 0), (2, 2)), ((2, 2), (0, 0), (1, 1), True)],
    keep=(0, 1),
    ids=["other steps", "padded", "dilated", "rounded up"],
)
def test_other_windows_are_kernels_of_their_own(more: tuple[Any, ...], builder: Any, chip: Any) -> None:
    layer = Layer((Axis(2, 1), Axis(2, 1)), (3, 3), 5, 24, ((2, 9, 31),))
    assert read_transposed(_pooled_task(builder, PooledCase(layer)), chip).is_pooled
    with pytest.raises(PlanError):
        read_transposed(_pooled_task(builder, PooledCase(layer), *more), chip)
