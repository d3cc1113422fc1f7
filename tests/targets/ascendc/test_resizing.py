"""Interpolation against its definition in NumPy: every mode, aligned corners or not, any sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.rewrites.resizing import depth_is_first
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import initial, legalised
from tests.tables import few

RANDOM = np.random.default_rng(11)


def places(sources: int, results: int, aligned: bool, scale: float | None) -> Any:
    """Where results lie between the sources."""
    number = np.arange(results)
    if aligned:
        return number * ((sources - 1) / (results - 1) if results > 1 else 0.0)
    return (number + 0.5) * (1 / scale if scale else sources / results) - 0.5


def keys(distance: float, a: float) -> float:
    d = abs(distance)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0.0


def linear(sources: int, place: float) -> Any:
    row = np.zeros(sources)
    place = min(max(place, 0.0), sources - 1)
    first = min(int(place), sources - 1)
    row[first] += 1 - (place - first)
    row[min(first + 1, sources - 1)] += place - first
    return row


def cubic(sources: int, place: float) -> Any:
    row = np.zeros(sources)
    first = math.floor(place)
    for tap in range(first - 1, first + 3):
        row[min(max(tap, 0), sources - 1)] += keys(place - tap, -0.75)
    return row


def smooth(sources: int, place: float, step: float, kind: str) -> Any:
    """An antialiased row: the kernel is as wide as a result."""
    width, half = max(step, 1.0), 1 if kind == "linear" else 2
    centre = place + 0.5
    low = max(int(centre - half * width + 0.5), 0)
    high = min(int(centre + half * width + 0.5), sources)
    row = np.zeros(sources)
    for tap in range(low, high):
        x = (tap + 0.5 - centre) / width
        row[tap] = max(0.0, 1 - abs(x)) if kind == "linear" else keys(x, -0.5)
    return row / row.sum()


def matrix(kind: str, sources: int, results: int, aligned: bool, scale: float | None) -> Any:
    found = places(sources, results, aligned, scale)
    if not kind.startswith("_"):
        return np.stack([(cubic if kind == "cubic" else linear)(sources, place) for place in found])
    step = (sources - 1) / max(results - 1, 1) if aligned else (1 / scale if scale else sources / results)
    centres = step * (np.arange(results) + 0.5) - 0.5
    return np.stack([smooth(sources, place, step, kind[1:]) for place in centres])


def resized(x: Any, kind: str, shape: tuple[int, ...], aligned: bool, scales: tuple[Any, ...]) -> Any:
    first = x.ndim - len(shape)
    for i, (size, scale) in enumerate(zip(shape, scales, strict=True)):
        weights = matrix(kind, x.shape[first + i], size, aligned, scale)
        x = np.moveaxis(np.tensordot(weights, x, (1, first + i)), 0, first + i)
    return x


CASES = [
    ("upsample_linear1d.default", "linear", (2, 3, 11), (23,), False, (None,)),
    ("upsample_bilinear2d.default", "linear", (2, 3, 9, 12), (18, 30), False, (2.0, 2.5)),
    ("upsample_bilinear2d.default", "linear", (1, 3, 30, 21), (7, 1), True, (None, None)),
    ("upsample_trilinear3d.default", "linear", (2, 2, 4, 5, 6), (8, 5, 9), True, (None, None, None)),
    ("upsample_bicubic2d.default", "cubic", (2, 2, 10, 1), (25, 7), False, (None, None)),
    ("upsample_bicubic2d.default", "cubic", (2, 2, 17, 33), (8, 40), True, (None, None)),
    ("_upsample_bilinear2d_aa.default", "_linear", (1, 3, 40, 50), (13, 60), False, (None, None)),
    ("_upsample_bicubic2d_aa.default", "_cubic", (2, 1, 40, 23), (9, 23), False, (None, None)),
]


@few(
    ("op", "kind", "shape", "size", "aligned", "scales"),
    CASES,
    keep=(
        1,
        3,
        5,
        6,
    ),
)
def test_modes(  # noqa: PLR0917 - a table of cases
    builder: Any, on_twin: Any, op: str, kind: str, shape: Any, size: Any, aligned: bool, scales: Any
) -> None:
    b = builder()
    result = (*shape[:2], *size)
    task = b.task(b.call(op, b.input("x", shape), size, aligned, *scales, shape=result))
    x = RANDOM.normal(size=shape).astype(np.float32)
    (found,) = on_twin(task, {"x": x})
    np.testing.assert_allclose(found, resized(x, kind, size, aligned, scales), rtol=1e-4, atol=2e-5)


def test_sizes_of_each_call_and_half_types(builder: Any, chip: Any, on_twin: Any) -> None:
    b = builder()
    x = b.input("x", ("n", "c", "h", "w"), "float16")
    task = b.task(
        b.call("upsample_bilinear2d.default", x, (14, 9), False, shape=("n", "c", 14, 9), dtype="float16"),
        symbols={"n": 2, "c": 3, "h": 8, "w": 10},
    )
    strategy = initial(task, chip)
    for n, c, h, w in [(1, 1, 1, 1), (2, 3, 8, 10), (1, 5, 33, 3)]:
        values = RANDOM.normal(size=(n, c, h, w)).astype(np.float16)
        (found,) = on_twin(task, {"x": values}, strategy, {"n": n, "c": c, "h": h, "w": w})
        wanted = resized(values.astype(np.float64), "linear", (14, 9), False, (None, None))
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


def nearest(x: Any, shape: tuple[int, ...], centred: bool) -> Any:
    """The element that each result's lower end, or its middle, lies in."""
    first = x.ndim - len(shape)
    for i, size in enumerate(shape):
        step = np.float32(x.shape[first + i]) / np.float32(size)
        places = np.floor((np.arange(size, dtype=np.float32) + np.float32(centred / 2)) * step).astype(int)
        x = np.take(x, np.minimum(places, x.shape[first + i] - 1), first + i)
    return x


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(
    ("shape", "size"),
    [((2, 3, 5, 8), (20, 24)), ((1, 2, 12, 9), (4, 3)), ((2, 2, 7, 5), (11, 7)), ((2, 3, 6), (6,))],
)
def test_nearest_elements(
    builder: Any, on_twin: Any, shape: tuple[int, ...], size: tuple[int, ...], centred: bool
) -> None:
    b = builder()
    op = f"{'_upsample_nearest_exact' if centred else 'upsample_nearest'}{len(size)}d.default"
    scales = (None,) * len(size)
    double = b.call("mul.Scalar", b.input("x", shape), 2.0, shape=shape)
    task = b.task(b.call(op, double, size, *scales, shape=(*shape[:2], *size)))
    x = RANDOM.normal(size=shape).astype(np.float32)
    (found,) = on_twin(task, {"x": x})
    np.testing.assert_array_equal(found, 2 * nearest(x, size, centred))


@pytest.mark.parametrize(("sources", "results", "moves"), [(5, 20, True), (12, 4, True), (7, 11, False)])
def test_whole_ratios_take_no_index(builder: Any, sources: int, results: int, moves: bool) -> None:
    b = builder()
    x, shape = b.input("x", (2, 3, sources), "uint8"), (2, 3, results)
    task = b.task(b.call("upsample_nearest1d.default", x, (results,), None, shape=shape, dtype="uint8"))
    found = {node.op for node in legalised(task, load_chip()).graph.nodes}
    assert (found <= {"aten.view.default", "aten.expand.default", "aten.slice.Tensor"}) == moves


@pytest.mark.parametrize(
    ("before", "after", "across", "final", "is_first"),
    [
        (32, 64, 1024, 4096, False),
        (64, 32, 4096, 1024, True),
        (32, 64, 4096, 1024, False),
        (64, 32, 1024, 4096, True),
    ],
)
def test_depths_come_where_planes_are_fewest(
    before: int, after: int, across: int, final: int, is_first: bool
) -> None:
    """Planes take more for each result than depths do: there are as few of them as may be."""
    assert depth_is_first(before, after, across, final) is is_first
