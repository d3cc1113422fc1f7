"""Sampling by grids, distances, products and places between boundaries against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.errors import PlanError
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import initial, legalised
from tests.tables import few

RANDOM = np.random.default_rng(23)


def sampled(x: Any, grid: Any, mode: int, padding: int, aligned: bool) -> Any:
    """Each image at each place of its grid: the weighted sum of the neighbours."""
    sizes = x.shape[2:]
    where = []
    for i, size in enumerate(sizes):
        g = grid[..., len(sizes) - 1 - i].astype(np.float64)
        place = (g + 1) / 2 * (size - 1) if aligned else ((g + 1) * size - 1) / 2
        where.append(np.clip(place, 0, size - 1) if padding == 1 else place)
    result = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]))
    for corner in itertools.product((0, 1) if mode == 0 else (0,), repeat=len(sizes)):
        weight, index = np.ones(grid.shape[:-1]), []
        for place, step, size in zip(where, corner, sizes, strict=True):
            first = np.floor(place) if mode == 0 else np.round(place)
            weight = weight * (np.abs(1 - step - (place - first)) if mode == 0 else 1.0)
            at = first + step
            inside = (at >= 0) & (at <= size - 1)
            weight = weight * inside
            index.append(np.clip(at, 0, size - 1).astype(int))
        for image in range(x.shape[0]):
            result[image] += weight[image] * x[image][(slice(None), *(item[image] for item in index))]
    return result


@pytest.mark.parametrize(
    ("mode", "padding", "aligned", "dtype"),
    [(0, 0, False, "float32"), (0, 1, True, "float32"), (1, 0, False, "float16")],
)
def test_sampling_of_images(
    builder: Any, on_twin: Any, mode: int, padding: int, aligned: bool, dtype: str
) -> None:
    b = builder()
    x, grid = b.input("x", (2, 5, 7, 9), dtype), b.input("grid", (2, 4, 6, 2), dtype)
    result = b.call(
        "grid_sampler_2d.default", x, grid, mode, padding, aligned, shape=(2, 5, 4, 6), dtype=dtype
    )
    values = RANDOM.normal(size=(2, 5, 7, 9)).astype(dtype)
    places = RANDOM.uniform(-1.3, 1.3, (2, 4, 6, 2)).astype(dtype)
    (found,) = on_twin(b.task(result), {"x": values, "grid": places})
    close = 1e-5 if dtype == "float32" else 2e-3
    np.testing.assert_allclose(found, sampled(values, places, mode, padding, aligned), rtol=close, atol=close)


def test_sampling_of_volumes(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, grid = b.input("x", (1, 3, 4, 5, 6)), b.input("grid", (1, 2, 3, 4, 3))
    task = b.task(b.call("grid_sampler_3d.default", x, grid, 0, 0, True, shape=(1, 3, 2, 3, 4)))
    values = RANDOM.normal(size=(1, 3, 4, 5, 6)).astype(np.float32)
    places = RANDOM.uniform(-1.2, 1.2, (1, 2, 3, 4, 3)).astype(np.float32)
    (found,) = on_twin(task, {"x": values, "grid": places})
    np.testing.assert_allclose(found, sampled(values, places, 0, 0, True), rtol=1e-5, atol=1e-5)


def test_other_modes_say_what_to_use(builder: Any, chip: Any) -> None:
    b = builder()
    x, grid = b.input("x", (1, 3, 2000, 500)), b.input("grid", (1, 2, 3, 2))
    task = b.task(b.call("grid_sampler_2d.default", x, grid, 2, 0, True, shape=(1, 3, 2, 3)))
    with pytest.raises(PlanError, match=r"planes of more than .* bilinear or nearest"):
        initial(task, chip)


@few("aligned", [True, False], keep=(0,))
def test_grids_of_matrices(builder: Any, on_twin: Any, aligned: bool) -> None:
    b = builder()
    theta = b.input("theta", (3, 2, 3))
    task = b.task(b.call("affine_grid_generator.default", theta, (3, 8, 5, 7), aligned, shape=(3, 5, 7, 2)))
    matrices = RANDOM.normal(size=(3, 2, 3)).astype(np.float32)
    high, wide = (np.linspace(-1, 1, n) if aligned else (2 * np.arange(n) + 1) / n - 1 for n in (5, 7))
    base = np.stack([*np.meshgrid(wide, high), np.ones((5, 7))], -1)
    (found,) = on_twin(task, {"theta": matrices})
    np.testing.assert_allclose(found, np.einsum("hwk,nck->nhwc", base, matrices), rtol=1e-5, atol=1e-6)


def test_distances(builder: Any, on_twin: Any) -> None:
    for order, points in ((2.0, 40), (2.0, 6), (1.0, 30)):
        b = builder()
        x, y = b.input("x", (3, points, 16)), b.input("y", (3, 33, 16))
        task = b.task(b.call("_cdist_forward.default", x, y, order, None, shape=(3, points, 33)))
        one = RANDOM.normal(size=(3, points, 16)).astype(np.float32)
        other = RANDOM.normal(size=(3, 33, 16)).astype(np.float32)
        (found,) = on_twin(task, {"x": one, "y": other})
        apart = (one[:, :, None] - other[:, None]).astype(np.float64)
        np.testing.assert_allclose(found, np.linalg.norm(apart, order, -1), rtol=2e-5, atol=2e-5)


def test_places_counts_and_products(builder: Any, on_twin: Any) -> None:
    x = (RANDOM.integers(-12, 13, (6, 40)) / 4).astype(np.float32)
    bounds = np.linspace(-2, 2, 9).astype(np.float32)
    b = builder()
    values, limits = b.input("x", (6, 40)), b.input("limits", (9,))
    results = [
        b.call("bucketize.Tensor", values, limits, shape=(6, 40), dtype="int64"),
        b.call("searchsorted.Tensor", limits, values, right=True, shape=(6, 40), dtype="int64"),
        b.call("histc.default", values, 8, -2.0, 2.0, shape=(8,)),
        b.call("prod.dim_int", values, 1, shape=(6,)),
    ]
    left, right, counts, products = on_twin(b.task(*results), {"x": x, "limits": bounds})
    np.testing.assert_array_equal(left, np.searchsorted(bounds, x))
    np.testing.assert_array_equal(right, np.searchsorted(bounds, x, side="right"))
    np.testing.assert_array_equal(counts, np.histogram(x, 8, (-2, 2))[0])
    np.testing.assert_allclose(products, np.prod(x.astype(np.float64), 1), rtol=1e-5)


@few("bins", [65, 256], keep=(1,))
def test_histograms_of_many_elements_count_by_products(bins: int, builder: Any, on_twin: Any) -> None:
    b = builder()
    x = b.input("x", ("n",))
    task = b.task(b.call("histc.default", x, bins, -2.0, 2.0, shape=(bins,)), symbols={"n": 2**23})
    assert "aten.permute.default" in {node.op for node in legalised(task, load_chip()).graph.nodes}
    for count in (1, 37, 5000):
        values = RANDOM.normal(size=count).astype(np.float32)
        values[: count // 9] = 2.0  # the end belongs to the last bin
        values[-3:] = [np.nan, np.inf, -np.inf][:count]
        places = np.floor((values + np.float32(2)) * np.float32(bins / 4))
        places[values == 2] = bins - 1
        wanted = [int((places == place).sum()) for place in range(bins)]
        (found,) = on_twin(task, {"x": values}, sizes={"n": count})
        np.testing.assert_array_equal(found, wanted)


def test_cross_products(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, y = b.input("x", (5, 3, 4)), b.input("y", (5, 3, 4))
    task = b.task(b.call("linalg_cross.default", x, y, dim=1, shape=(5, 3, 4)))
    one, other = (RANDOM.normal(size=(5, 3, 4)).astype(np.float32) for _ in range(2))
    (found,) = on_twin(task, {"x": one, "y": other})
    np.testing.assert_allclose(found, np.cross(one, other, axis=1), rtol=1e-5, atol=1e-6)
