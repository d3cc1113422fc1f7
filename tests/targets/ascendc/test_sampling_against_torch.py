"""Sampling by grids against PyTorch: every mode and padding, places far outside, many bands, half types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.targets.ascendc.author import initial
from tests.tables import few

torch = pytest.importorskip("torch")
RANDOM = np.random.default_rng(31)
_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")

# mode, padding, corners aligned, images, places, how far places lie, dtype
CASES = [
    ("bilinear", "zeros", False, (2, 5, 19, 33), (7, 11), 1.3, "float32"),
    ("bicubic", "reflection", True, (1, 3, 10, 12), (9, 30), 2.5, "float32"),
    ("nearest", "border", False, (3, 2, 6, 40), (5, 64), 1.2, "float16"),
    ("bilinear", "zeros", True, (1, 2, 300, 200), (40, 33), 50.0, "float32"),
    ("bilinear", "border", True, (2, 5, 19, 33), (7, 11), 1.3, "float32"),
    ("bilinear", "reflection", False, (2, 5, 19, 33), (7, 11), 4.0, "float32"),
    ("bilinear", "reflection", True, (1, 1, 1, 1), (3, 5), 2.0, "float32"),
    ("bilinear", "zeros", False, (1, 9, 24, 16), (1, 600), 1.1, "bfloat16"),
    ("nearest", "zeros", True, (1, 4, 13, 17), (30, 20), 1.4, "float32"),
    ("nearest", "reflection", False, (1, 4, 13, 17), (30, 20), 3.0, "float32"),
    ("bicubic", "zeros", False, (2, 3, 21, 14), (8, 8), 1.3, "float32"),
    ("bicubic", "zeros", True, (2, 3, 21, 14), (8, 8), 1.3, "float16"),
    ("bicubic", "border", False, (1, 2, 21, 14), (8, 8), 1.3, "float32"),
    ("bicubic", "reflection", False, (1, 2, 21, 14), (8, 8), 2.3, "float32"),
    ("bilinear", "zeros", False, (1, 2, 3, 70000), (5, 90), 1.2, "float32"),  # rows longer than a band
    (
        "bilinear",
        "border",
        False,
        (2, 3, 7, 2100),
        (4, 33),
        1.2,
        "float16",
    ),  # rows longer than steps of repeats
    ("bilinear", "zeros", True, (1, 2, 40, 16), (70, 90), 1.5, "float32"),
]


def sampling(builder: Any, case: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """The task of a row of the table, with an image and a grid."""
    mode, padding, aligned, shape, places, far, dtype = case
    b, numbers = builder(), (_MODES.index(mode), _PADDINGS.index(padding))
    where, made = (shape[0], *places, 2), (*shape[:2], *places)
    x, grid = b.input("x", shape, dtype), b.input("grid", where)
    task = b.task(b.call("grid_sampler_2d.default", x, grid, *numbers, aligned, shape=made, dtype=dtype))
    values = torch.from_numpy(RANDOM.normal(size=shape).astype(np.float32)).to(getattr(torch, dtype))
    return task, values.float(), torch.from_numpy(RANDOM.uniform(-far, far, where).astype(np.float32))


@few(("case",), [(case,) for case in CASES], keep=(0, 1, 2, 3, 14, 15))
def test_modes_against_torch(builder: Any, on_twin: Any, case: tuple[Any, ...]) -> None:
    mode, padding, aligned, *_, dtype = case
    task, x, grid = sampling(builder, case)
    strategy = initial(task, on_twin.chip)
    assert strategy.family == "grid_sample"
    given = x.numpy() if dtype == "bfloat16" else x.numpy().astype(dtype)
    (found,) = on_twin(task, {"x": given, "grid": grid.numpy()}, strategy)
    wanted = torch.nn.functional.grid_sample(x, grid, mode, padding, aligned).numpy()
    close = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}[dtype]
    np.testing.assert_allclose(np.asarray(found, np.float32), wanted, rtol=close, atol=close)


def test_sizes_of_each_call(builder: Any, on_twin: Any) -> None:
    b = builder()
    x, grid = b.input("x", ("n", "c", "h", "w")), b.input("grid", ("n", "p", "q", 2))
    call = b.call("grid_sampler_2d.default", x, grid, 0, 2, False, shape=("n", "c", "p", "q"))
    task = b.task(call, symbols={"n": 2, "c": 3, "h": 40, "w": 30, "p": 8, "q": 9})
    strategy = initial(task, on_twin.chip)
    for sizes in ((1, 1, 1, 1, 1, 1), (2, 3, 17, 60, 5, 40), (1, 2, 9, 7, 3, 500)):
        n, c, h, w, p, q = sizes
        x = torch.from_numpy(RANDOM.normal(size=(n, c, h, w)).astype(np.float32))
        grid = torch.from_numpy(RANDOM.uniform(-2, 2, (n, p, q, 2)).astype(np.float32))
        given = {"x": x.numpy(), "grid": grid.numpy()}
        (found,) = on_twin(task, given, strategy, dict(zip("nchwpq", sizes, strict=True)))
        wanted = torch.nn.functional.grid_sample(x, grid, "bilinear", "reflection", False).numpy()
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("buffers", [1, 2])
@pytest.mark.parametrize(("run", "elements"), [(0, 48), (64, 56), (128, 200), (64, 864)])
def test_bands_add_up(builder: Any, on_twin: Any, run: int, elements: int, buffers: int, dtype: str) -> None:
    """Planes of several bands, of which the last is short and rows begin in the middle of others; one address
    for each place: bands of one row, of some, and of nearly all."""
    task, x, grid = sampling(builder, ("bilinear", "zeros", False, (1, 3, 31, 10), (9, 20), 1.2, dtype))
    width = 1 if dtype == "float32" or not run else 2
    settings = {"elements": elements * width, "whole": False, "places": 128, "piece": 64, "buffers": buffers}
    settings["run"] = run
    strategy = initial(task, on_twin.chip)
    low = evolve(strategy, settings={**dict(strategy.settings), **settings})
    (found,) = on_twin(task, {"x": x.numpy().astype(dtype), "grid": grid.numpy()}, low)
    wanted = torch.nn.functional.grid_sample(x, grid, align_corners=False).numpy()
    close = {"float32": 2e-5, "float16": 2e-3}[dtype]
    np.testing.assert_allclose(np.asarray(found, np.float32), wanted, rtol=close, atol=close)


@pytest.mark.parametrize(
    ("whole", "elements", "run"), [(True, 25, 0), (False, 8, 0), (True, 120, 64), (False, 56, 64)]
)
def test_elements_outside_do_not_count(
    builder: Any, on_twin: Any, whole: bool, elements: int, run: int
) -> None:
    """What is no number lies beside a place, and has no share in it."""
    task, x, grid = sampling(builder, ("bilinear", "zeros", True, (1, 1, 5, 5), (4, 4), 0.1, "float32"))
    x[..., 4], x[..., 0, :] = float("inf"), float("nan")
    grid[..., 0], grid[..., 1] = -1.2, 0.3
    grid[0, 0, 0] = float("nan")
    grid[0, 0, 1] = 1e30
    strategy = initial(task, on_twin.chip)
    settings = {"whole": whole, "elements": elements, "run": run, "places": 64, "piece": 64}
    banded = evolve(strategy, settings={**dict(strategy.settings), **settings})
    (found,) = on_twin(task, {"x": x.numpy(), "grid": grid.numpy()}, banded)
    wanted = torch.nn.functional.grid_sample(x, grid, align_corners=True).numpy()
    np.testing.assert_allclose(found[..., 1:, :], wanted[..., 1:, :], rtol=2e-5, atol=2e-5)


@few("aligned", [False, True], keep=(0,))
def test_grids_of_large_matrices_have_every_bit(builder: Any, on_twin: Any, aligned: bool) -> None:
    """What is left of large numbers is magnified by the image that is sampled. Products are added before they
    are rounded, as PyTorch does on processors where it fuses them."""
    b, size = builder(), (4, 1, 24, 40)
    shape = (4, 24, 40, 2)
    call = b.call("affine_grid_generator.default", b.input("theta", (4, 2, 3)), size, aligned, shape=shape)
    theta = RANDOM.normal(size=(4, 2, 3)).astype(np.float32) * np.float32(300)
    (found,) = on_twin(b.task(call), {"theta": theta})
    plain = torch.nn.functional.affine_grid(torch.eye(2, 3)[None], (1, 1, 24, 40), align_corners=aligned)
    x, y = (plain.numpy()[..., place, None] for place in (0, 1))
    by_x, by_y, moved = (theta[:, None, None, :, place].astype(np.float64) for place in range(3))
    wanted = (x * by_x).astype(np.float32)
    wanted = (wanted + y * by_y).astype(np.float32)
    wanted = (wanted + moved).astype(np.float32)
    assert (found == wanted).mean() > 0.999
    close = torch.nn.functional.affine_grid(torch.from_numpy(theta), size, align_corners=aligned).numpy()
    np.testing.assert_allclose(found, close, rtol=1e-5, atol=1e-3)
