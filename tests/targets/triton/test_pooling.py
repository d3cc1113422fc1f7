"""Family pooling in Triton: maxima, averages and depthwise convolutions of any geometry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from evokernel_core.targets.triton.kernels.pooling.pooling_family import FAMILY
from tests.tables import few
from tests.targets.ascendc.test_depthwise import TOLERANCE, depthwise, sums
from tests.targets.ascendc.test_pooling import average_pool, averages, max_pool, placed_task
from tests.targets.ascendc.windows import Axis, each, over, taken

GEOMETRIES = [
    (Axis(3, 2, 1),),
    (Axis(3, 2, 1), Axis(5, 1, 2)),
    (Axis(2, 1), Axis(4, 2, 1), Axis(3, 1, 1)),
    (Axis(1), Axis(8, 3, 2)),
    (Axis(3, 1), Axis(1)),
]
DILATED = [(Axis(3, 2, 1, 2), Axis(2, 1, 1, 3)), (Axis(2, 1), Axis(4, 2, 1), Axis(3, 1, 1, 2))]
DTYPES = ("float32", "float16", "bfloat16")


def _sizes(axes: Sequence[Axis]) -> list[dict[str, int]]:
    """The least sizes, and odd ones beyond a tile's."""
    names = ("d", "h", "w")[-len(axes) :]
    least = {"n": 1} | {name: axis.least for name, axis in zip(names, axes, strict=True)}
    more = {"n": 2} | {
        name: axis.least + place + 6 for place, (name, axis) in enumerate(zip(names, axes, strict=True))
    }
    return [least, {**more, "n": 1, "w": 37}]


def _places(axes: Sequence[Axis], dtype: str, number: int) -> bool:
    """A dtype for each geometry, all of them for the second."""
    return number == 1 or DTYPES[number % 3] == dtype


CASES = [
    (axes, dtype)
    for number, axes in enumerate(GEOMETRIES + DILATED)
    for dtype in DTYPES
    if _places(axes, dtype, number)
]


@few(("axes", "dtype"), CASES, keep=(0, 2, 4, 8))
def test_maxima(axes: Sequence[Axis], dtype: str, builder: Any, interpreted: Any) -> None:
    task = max_pool(builder, axes, dtype)
    rng = np.random.default_rng(0)
    for sizes in _sizes(axes):
        shape = tuple(sizes.values())
        x = rng.integers(-99, 100, size=(shape[0], 3, *shape[1:])).astype("f4")
        x[rng.random(x.shape) < 0.05] = -np.inf
        x[rng.random(x.shape) < 0.01] = np.nan
        (result,) = interpreted(FAMILY, task, {"x": x}, sizes)
        np.testing.assert_array_equal(result, taken(x, axes, -np.inf).max(over(axes)))


@few(("axes", "dtype"), [case for case in CASES if case[0] in GEOMETRIES], keep=(1, 4))
@pytest.mark.parametrize(("counts", "divisor"), [(True, None), (False, None), (True, 7)])
def test_averages(
    axes: Sequence[Axis], dtype: str, counts: bool, divisor: int | None, builder: Any, interpreted: Any
) -> None:
    divisor = divisor if len(axes) > 1 else None
    task = average_pool(builder, axes, dtype, counts, divisor)
    rng = np.random.default_rng(1)
    sizes = _sizes(axes)[1]
    shape = tuple(sizes.values())
    x = (rng.integers(-99, 100, size=(shape[0], 3, *shape[1:])) / 16).astype("f4")
    x = x if dtype != "bfloat16" else np.round(x)
    (result,) = interpreted(FAMILY, task, {"x": x}, sizes)
    tolerance = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}[dtype]
    expected = averages(x, axes, counts, divisor)
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@few(("axes", "dtype"), CASES, keep=(1, 3, 4, 6))
@pytest.mark.parametrize(("spread", "bias"), [(1, True), (2, False)])
def test_depthwise(
    axes: Sequence[Axis], dtype: str, spread: int, bias: bool, builder: Any, interpreted: Any, gpu: Any
) -> None:
    task = depthwise(builder, axes, dtype, spread, bias)
    rng = np.random.default_rng(2)
    weight = (rng.integers(-8, 9, size=(3 * spread, 1, *each(axes, "taps"))) / 8).astype("f4")
    offset = (rng.integers(-8, 9, size=3 * spread) / 8).astype("f4")
    sizes = _sizes(axes)[1]
    shape = tuple(sizes.values())
    x = (rng.integers(-16, 17, size=(shape[0], 3, *shape[1:])) / 16).astype("f4")
    inputs = {"x": x, "weight": weight, **({"bias": offset} if bias else {})}
    expected = sums(x, weight, axes, spread)
    if bias:
        expected += offset.reshape(1, -1, *(1,) * len(axes))
    (result,) = interpreted(FAMILY, task, inputs, sizes)
    np.testing.assert_allclose(result, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("axes", GEOMETRIES[1:3])
def test_places_of_maxima(axes: Sequence[Axis], builder: Any, interpreted: Any) -> None:
    task = placed_task(builder, axes, values=True)
    rng = np.random.default_rng(4)
    sizes = _sizes(axes)[1]
    shape = tuple(sizes.values())
    x = rng.integers(-3, 4, size=(shape[0], 3, *shape[1:])).astype("f4")
    x[:, 0] = -np.inf
    values, places = interpreted(FAMILY, task, {"x": x}, sizes)
    windows = taken(x, axes, -np.inf)
    numbers = np.broadcast_to(np.arange(np.prod(shape[1:])).reshape(shape[1:]), x.shape)
    outside = taken(np.ones_like(x), axes, 0.0) == 0
    flat = (*values.shape, -1)
    ranked = np.where(outside, -np.inf, windows).reshape(flat)
    first = np.where((ranked == ranked.max(-1, keepdims=True)) & ~outside.reshape(flat), 1, 0).argmax(-1)
    chosen = np.take_along_axis(taken(numbers, axes, -1).reshape(flat), first[..., None], -1)[..., 0]
    np.testing.assert_array_equal(values, windows.max(over(axes)))
    np.testing.assert_array_equal(places, chosen)


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any, gpu: Any) -> None:
    for axes, dtype in CASES[::2]:
        compiles(FAMILY, max_pool(builder, axes, dtype))
        compiles(FAMILY, depthwise(builder, axes, dtype))
        compiles(FAMILY, placed_task(builder, axes, values=True))
