"""Family windowed: maxima and averages of windows, at any geometry, size and type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import adapt, estimate_us, initial, moves, write
from evokernel_core.targets.ascendc.ir.tile import known_values
from evokernel_core.targets.ascendc.kernels.pooling import pooling_family as windowed
from evokernel_core.targets.ascendc.kernels.pooling import pooling_planes_schedule as planes
from evokernel_core.targets.ascendc.kernels.pooling.planes import build
from tests.tables import few
from tests.targets.ascendc.windows import Axis, each, names_of, over, sizes_of, some_axes, taken

ON_TWIN = settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}


def max_pool(builder: Any, axes: Sequence[Axis], dtype: str = "float32", channels: int = 3) -> KernelTask:
    """The maximum of every window, for all sizes; a pool of one dimension arrives as one of two."""
    graph = builder()
    names, results = names_of(axes)
    x = graph.input("x", ("n", channels, *names), dtype)
    if len(axes) == 1:
        x = graph.call("unsqueeze.default", x, -2, shape=("n", channels, 1, *names), dtype=dtype)
        axes = (Axis(), *axes)
        results = (1, *results)
    op = f"max_pool{len(axes)}d_with_indices.default"
    numbers = (each(axes, field) for field in ("taps", "stride", "padding", "dilation"))
    result = graph.call(op, x, *numbers, shape=("n", channels, *results), dtype=dtype)
    if len(names) == 1:
        result = graph.call("squeeze.dim", result, -2, shape=("n", channels, results[-1]), dtype=dtype)
    task: KernelTask = graph.task(result, symbols={"n": 2} | dict.fromkeys(names, 40))
    return task


def average_pool(
    builder: Any,
    axes: Sequence[Axis],
    dtype: str = "float32",
    counts: bool = True,
    divisor: int | None = None,
) -> KernelTask:
    """The average of every window, for all sizes."""
    graph = builder()
    names, results = names_of(axes)
    x = graph.input("x", ("n", 3, *names), dtype)
    numbers = (each(axes, field) for field in ("taps", "stride", "padding"))
    more = (divisor,) if len(axes) > 1 else ()
    op = f"avg_pool{len(axes)}d.default"
    result = graph.call(op, x, *numbers, False, counts, *more, shape=("n", 3, *results), dtype=dtype)
    task: KernelTask = graph.task(result, symbols={"n": 2} | dict.fromkeys(names, 40))
    return task


def with_lanes(task: KernelTask, lanes: str, chip: Any) -> Strategy:
    """The best strategy whose lanes are ``rows`` or ``planes``, where there is one."""
    start = initial(task, chip)
    found = {move.name: move.strategy for move in moves(task, start, chip)}
    return found.get(f"{lanes} in lanes", start)


def averages(x: Any, axes: Sequence[Axis], counts: bool, divisor: int | None) -> Any:
    total = taken(x.astype("f8"), axes, 0.0).sum(over(axes))
    if divisor:
        return total / divisor
    if counts:
        return total / np.prod(each(axes, "taps"))
    return total / taken(np.ones_like(x), axes, 0.0).sum(over(axes))


@given(axes=some_axes(), dtype=st.sampled_from(list(TOLERANCE)), seed=st.integers(0, 99))
@ON_TWIN
def test_maxima_of_any_geometry(
    axes: Sequence[Axis], dtype: str, seed: int, builder: Any, on_twin: Any, chip: Any
) -> None:
    task = max_pool(builder, axes, dtype)
    strategy = with_lanes(task, "planes" if seed % 2 else "rows", chip)
    rng = np.random.default_rng(seed)
    for sizes in sizes_of(axes, rng):
        shape = tuple(sizes.values())
        x = rng.integers(-99, 100, size=(shape[0], 3, *shape[1:])).astype("f4")
        x[rng.random(x.shape) < 0.05] = -np.inf
        x[rng.random(x.shape) < 0.01] = np.nan
        (result,) = on_twin(task, {"x": x}, strategy, sizes)
        np.testing.assert_array_equal(np.asarray(result, "f8"), taken(x, axes, -np.inf).max(over(axes)))


@few(
    ("lanes", "axes"),
    [
        ("rows", (Axis(3, 2, 1),)),
        ("planes", (Axis(3, 2, 1), Axis(5, 1, 2))),
        ("rows", (Axis(2, 1), Axis(4, 2, 1), Axis(3, 1, 1, 2))),
        ("planes", (Axis(3, 3), Axis(1), Axis(4, 3, 2, 2))),
    ],
    keep=(1, 2),
)
def test_kernels_pass_the_audit(lanes: str, axes: Sequence[Axis], builder: Any, chip: Any) -> None:
    for task in (max_pool(builder, axes, "float16"), placed_task(builder, axes, values=True)):
        strategy = with_lanes(task, lanes, chip)
        assert audit(task, write(task, strategy, chip)).status is GateStatus.PASSED


@given(
    axes=some_axes(dilates=False),
    dtype=st.sampled_from(list(TOLERANCE)),
    divides=st.sampled_from([(True, None), (False, None), (True, 7)]),
    seed=st.integers(0, 99),
)
@ON_TWIN
def test_averages_of_any_geometry(
    axes: Sequence[Axis],
    dtype: str,
    divides: tuple[bool, int | None],
    seed: int,
    builder: Any,
    on_twin: Any,
    chip: Any,
) -> None:
    counts, divisor = divides[0], divides[1] if len(axes) > 1 else None
    task = average_pool(builder, axes, dtype, counts, divisor)
    strategy = with_lanes(task, "planes" if seed % 2 else "rows", chip)
    rng = np.random.default_rng(seed)
    for sizes in sizes_of(axes, rng):
        shape = tuple(sizes.values())
        x = (rng.integers(-64, 65, size=(shape[0], 3, *shape[1:])) / 16).astype("f4")
        (result,) = on_twin(task, {"x": x}, strategy, sizes)
        expected = averages(x, axes, counts, divisor)
        np.testing.assert_allclose(
            np.asarray(result, "f8"), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
        )


@pytest.mark.parametrize("counts", [False, True])
def test_windows_that_end_behind_the_padding_count_what_is_there(
    counts: bool, builder: Any, on_twin: Any
) -> None:
    axes = (Axis(3, 2, 1, ceils=True), Axis(4, 3, 1, ceils=True))
    graph = builder()
    x = graph.input("x", ("n", 8, 12))
    shape = ("n", axes[0].length(8), axes[1].length(12))
    result = graph.call("avg_pool2d.default", x, (3, 4), (2, 3), (1, 1), True, counts, None, shape=shape)
    values = np.random.default_rng(3).normal(size=(2, 8, 12)).astype("f4")
    (found,) = on_twin(graph.task(result, symbols={"n": 2}), {"x": values})
    inside = np.pad(np.ones((8, 12)), 1, constant_values=float(counts))
    counted = taken(inside, [Axis(3, 2, ceils=True), Axis(4, 3, ceils=True)], 0.0).sum((-1, -2))
    expected = taken(values.astype("f8"), axes, 0.0).sum((-1, -2)) / counted[: shape[1], : shape[2]]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@few("part", range(3), keep=(0,))
def test_every_move_gives_the_same_maxima(part: int, builder: Any, on_twin: Any, chip: Any) -> None:
    axes = (Axis(3, 2, 1), Axis(5, 1, 2))
    task = max_pool(builder, axes)
    start = initial(task, chip)
    found = moves(task, start, chip)
    found += moves(task, with_lanes(task, "planes", chip), chip)
    assert {move.name for move in found} >= {"wider tile", "one buffer", "planes in lanes", "larger tile"}
    x = np.random.default_rng(0).normal(size=(2, 3, 40, 150)).astype("f4")
    for strategy in (start, *(move.strategy for move in found))[part::3]:
        assert estimate_us(task, strategy, chip) > 0
        (result,) = on_twin(task, {"x": x}, strategy=strategy, sizes={"n": 2, "h": 40, "w": 150})
        np.testing.assert_array_equal(result, taken(x, axes, -np.inf).max((-1, -2)))


@pytest.mark.parametrize("positions", [32, 160, 1024])
@pytest.mark.parametrize("size", [7, 40, 200])
def test_schedules_are_ranked_by_the_tiles_that_kernels_have(
    positions: int, size: int, builder: Any, chip: Any
) -> None:
    task = evolve(
        max_pool(builder, (Axis(3, 2, 1), Axis(5, 1, 2))),
        symbols=(Symbol("n", 2), Symbol("h", size), Symbol("w", size)),
    )
    problem = planes.planes_of(windowed.FAMILY.read(task, chip), task.sizes)
    schedule = planes.PlaneSchedule(positions)
    known, unmet = known_values(build(problem, schedule), task.sizes, chip.aiv)
    assert unmet is None
    tile = known["tiling.tileRows"], known["tiling.tileColumns"]
    assert planes.tile_of(problem, schedule) == tile


def test_a_schedule_is_taken_over_where_it_is_as_good(builder: Any, chip: Any) -> None:
    def pool(size: int) -> KernelTask:
        graph = builder()
        x = graph.input("x", ("n", 64, size, size))
        result = graph.call(
            "max_pool2d_with_indices.default", x, (2, 2), shape=("n", 64, size // 2, size // 2)
        )
        task: KernelTask = graph.task(result, symbols={"n": 32})
        return task

    small, large = initial(pool(14), chip), initial(pool(512), chip)
    assert adapt(pool(512), large, chip) == large
    assert adapt(pool(512), small, chip) is None


def test_a_pool_of_integers_is_refused(builder: Any, chip: Any) -> None:
    with pytest.raises(PlanError, match="int32"):
        windowed.FAMILY.check(max_pool(builder, (Axis(2, 2), Axis(2, 2)), "int32"), chip)


def adaptive(x: Any, results: tuple[int, int], reduce: Any) -> Any:
    """Windows from the floor of their start to the ceiling of their end."""
    for dim, result in zip((2, 3), results, strict=True):
        size = x.shape[dim]
        parts = [
            reduce(np.take(x, range(i * size // result, -(-(i + 1) * size // result)), dim), dim)
            for i in range(result)
        ]
        x = np.stack(parts, dim)
    return x


@few(
    ("kind", "results"),
    [
        *(("average", results) for results in ((1, 1), (4, 7), (1, 7), (3, 5), (12, 80))),
        *(("maximum", results) for results in ((12, 1), (3, 5), (12, 21))),
    ],
    keep=(
        1,
        4,
        6,
    ),
)
def test_an_adaptive_pool(kind: str, results: tuple[int, int], builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", 5, 12, 21))
    shape = ("n", 5, *results)
    if kind == "average":
        result = graph.call("_adaptive_avg_pool2d.default", x, results, shape=shape)
    else:
        specs = [TensorSpec(shape, "float32"), TensorSpec(shape, "int64")]
        result = graph.calls("adaptive_max_pool2d.default", x, results, outputs=specs)
    task = graph.task(graph.call("relu.default", result, shape=shape), symbols={"n": 2})
    values = np.random.default_rng(5).normal(size=(2, 5, 12, 21)).astype("f4")
    (found,) = on_twin(task, {"x": values})
    expected = adaptive(values.astype("f8"), results, np.mean if kind == "average" else np.max)
    np.testing.assert_allclose(found, np.maximum(expected, 0), rtol=1e-5, atol=1e-5)


def test_a_window_over_the_image_is_a_reduction(builder: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", 5, 12, 21))
    result = graph.call("avg_pool2d.default", x, (12, 21), shape=("n", 5, 1, 1))
    result = graph.call("exp.default", result, shape=("n", 5, 1, 1))
    assert initial(graph.task(result, symbols={"n": 2}), chip).family == "rowwise"


def places_of_maxima(x: Any, axes: Sequence[Axis]) -> Any:
    """Where the first of the largest elements of each window lies in its image, or the last that is no
    number; PyTorch looks at a window's elements in the order of memory."""
    sizes = x.shape[2:]
    numbers = np.broadcast_to(np.arange(np.prod(sizes)).reshape(sizes), x.shape)
    flat = (*taken(x, axes, 0.0).shape[: x.ndim], -1)
    places = taken(numbers, axes, -1).reshape(flat)
    values = taken(x, axes, -np.inf).reshape(flat)
    values = np.where(places < 0, -np.inf, values)
    ranks = np.where(np.isnan(values), np.inf, values)
    real = places >= 0
    order = np.arange(values.shape[-1])
    best = np.where(real, ranks, -np.inf).max(-1, keepdims=True)
    first = np.where((ranks == best) & real, order, len(order)).min(-1)
    last = np.where(np.isnan(values), order, -1).max(-1)
    chosen = np.where(last >= 0, last, first)
    return np.take_along_axis(places, chosen[..., None], -1)[..., 0]


def placed_task(builder: Any, axes: Sequence[Axis], *, values: bool) -> KernelTask:
    """The places of all windows' maxima, behind their ``values`` where those are wanted too."""
    axes = (Axis(), *axes) if len(axes) == 1 else axes
    graph = builder()
    names, results = names_of(axes)
    x = graph.input("x", ("n", 3, *names))
    shape = ("n", 3, *results)
    numbers = (each(axes, field) for field in ("taps", "stride", "padding", "dilation"))
    specs = [TensorSpec(shape, "float32"), TensorSpec(shape, "int64")]
    found = graph.calls(f"max_pool{len(axes)}d_with_indices.default", x, *numbers, outputs=specs)
    outputs = (found, ValueRef(found.name, 1)) if values else (ValueRef(found.name, 1),)
    task: KernelTask = graph.task(*outputs, symbols={"n": 2} | dict.fromkeys(names, 40))
    return task


@given(axes=some_axes(strides=(1, 2, 3)), seed=st.integers(0, 99))
@settings(ON_TWIN, max_examples=3)
def test_places_of_maxima(axes: Sequence[Axis], seed: int, builder: Any, on_twin: Any) -> None:
    axes = (Axis(), *axes) if len(axes) == 1 else axes
    task = placed_task(builder, axes, values=bool(seed % 2))
    rng = np.random.default_rng(seed)
    for sizes in sizes_of(axes, rng):
        lengths = tuple(sizes.values())
        values = rng.integers(-3, 4, size=(lengths[0], 3, *lengths[1:])).astype("f4")
        values[rng.random(values.shape) < 0.05] = -np.inf
        values[rng.random(values.shape) < 0.01] = np.nan
        answers = on_twin(task, {"x": values}, sizes=sizes)
        np.testing.assert_array_equal(answers[-1], places_of_maxima(values, axes))
        if seed % 2:
            np.testing.assert_array_equal(answers[0], taken(values, axes, -np.inf).max(over(axes)))
