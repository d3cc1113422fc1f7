"""The judge of cubins over a driver that is none: what it sees of kernels that break the rules."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evokernel_core.targets.triton.backends.child.arena import GUARD, SPREAD, needed, places
from evokernel_core.targets.triton.backends.child.driver import Driver
from evokernel_core.targets.triton.backends.child.judge import WARM_UPS, Judge
from evokernel_core.targets.triton.backends.child.timing import (
    Times,
    abba,
    between_marks,
    busy_us,
    is_first,
    span_us,
    times_of,
)
from tests.targets.triton.fake_driver import Arguments, FakeDriver, Kernel

torch = pytest.importorskip("torch")
COUNT = 1000


class Cpu:
    """This machine's memory in the place of a GPU's."""

    name = "cpu"

    def __init__(self) -> None:
        self.torch = torch

    def stream(self) -> int:
        return 0

    def wait(self) -> None:
        pass


class FakeClock:
    """Runs systems and tells times that nobody measured."""

    readings: list[dict[str, Any]] = []  # noqa: RUF012

    def run(self, systems: list[Any]) -> Times:
        for system in systems:
            system.stage()
            system.go()
            system.finish()
        return Times(*([1.0] * len(systems) for _ in range(3)))


Grid = tuple[int, int, int]


def double(grid: Grid, given: Arguments) -> None:
    given.floats(1, COUNT)[:] = 2 * given.floats(0, COUNT)


def half_of_it(grid: Grid, given: Arguments) -> None:
    given.floats(1, COUNT // 2)[:] = 2 * given.floats(0, COUNT // 2)


def beyond(grid: Grid, given: Arguments) -> None:
    given.floats(1, COUNT + 8)[:] = 1.0
    double(grid, given)


def before(grid: Grid, given: Arguments) -> None:
    given.floats(1, 4, offset=-8)[:] = 1.0
    double(grid, given)


def into_the_input(grid: Grid, given: Arguments) -> None:
    double(grid, given)
    given.floats(0, 1)[:] = 7.0


def by_chance(grid: Grid, given: Arguments) -> None:
    double(grid, given)
    given.floats(1, 1)[:] = np.random.default_rng().standard_normal(1)


def stale(grid: Grid, given: Arguments) -> None:
    out = given.floats(1, COUNT)
    out[:] = np.where(np.isnan(out), 2 * given.floats(0, COUNT), out)


def through_scratch(grid: Grid, given: Arguments) -> None:
    kept = given.floats(2, COUNT)
    given.floats(1, COUNT)[:] = np.where(np.abs(kept) < 100.0, kept, 2 * given.floats(0, COUNT))
    kept[:] = given.floats(1, COUNT)


def double_diagonal(grid: Grid, given: Arguments) -> None:
    given.floats(1, 25)[:] = 2 * given.floats(0, 625)[::26]


KERNELS: dict[str, Kernel] = {
    kernel.__name__: kernel
    for kernel in (
        double, half_of_it, beyond, before, into_the_input, by_chance, stale, through_scratch
    )
}  # fmt: skip
SEEN = {
    "double": [],
    "through_scratch": [],  # right, since scratch never holds what an earlier run left
    "half_of_it": [["output-not-written", "y"]],
    "beyond": [["out-of-bounds", "y"]],
    "before": [["out-of-bounds", "y"]],
    "into_the_input": [["input-modified", "x"]],
    "by_chance": [["nondeterministic", "y"]],
    "stale": [["output-not-written", "y"]],
}


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver({**KERNELS, "double_diagonal": double_diagonal})


@pytest.fixture
def judge(driver: FakeDriver) -> Judge:
    return Judge(Cpu(), Driver(driver), FakeClock)


def call(
    folder: Path, kernel: str, grid: Grid = (4, 1, 1), zeroed: tuple[str, ...] = (), cubin: str = "k"
) -> dict[str, Any]:
    (folder / f"{cubin}.cubin").write_text(kernel)
    launch = {
        "cubin": str(folder / f"{cubin}.cubin"), "function": kernel, "shared_bytes": 0, "warps": 4,
        "clusters": 1, "cooperative": False, "scratch_bytes": 0, "profile_bytes": 0, "grid": grid,
        "values": [["*fp32", "x"], ["*fp32", "y"], ["*fp32", "kept"], ["i32", COUNT]],
    }  # fmt: skip
    return {"launches": [launch], "zeroed": zeroed}


def request(folder: Path, kernel: str, **changed: Any) -> dict[str, Any]:
    x = np.random.default_rng(1).standard_normal(COUNT, dtype=np.float32)
    x.tofile(folder / "x.bin")
    tensors = {
        "inputs": [{"name": "x", "bytes": 4 * COUNT, "file": str(folder / "x.bin"), "dtype": "float32"}],
        "outputs": [{"name": "y", "bytes": 4 * COUNT, "file": str(folder / "y.bin")}],
        "scratch": {"kept": 4 * COUNT},
    }
    return {"op": "execute", "call": call(folder, kernel), **tensors, "repeat": 2, "seed": 5, **changed}


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_seen_of_a_kernel(judge: Judge, tmp_path: Path, kernel: str) -> None:
    asked = request(tmp_path, kernel)
    answer = judge.answer(asked)
    assert answer["hazards"][:1] == SEEN[kernel]
    if not SEEN[kernel]:
        x, y = (np.fromfile(tmp_path / name, np.float32) for name in ("x.bin", "y.bin"))
        assert np.array_equal(y, 2 * x)


def test_a_call_of_more_kernels_than_stay_loaded(judge: Judge, driver: FakeDriver, tmp_path: Path) -> None:
    launches = [call(tmp_path, "double", cubin=f"k{number}")["launches"][0] for number in range(130)]
    many = request(tmp_path, "double", call={"launches": launches, "zeroed": ()})
    for _ in range(2):
        assert judge.answer(many) == {"hazards": []}
    assert judge.answer(request(tmp_path, "double")) == {"hazards": []}
    assert len(driver.modules) <= 65  # what stays, and the one that was loaded


def product_call(folder: Path, **changed: Any) -> dict[str, Any]:
    """The 25 x 40 matrix x times itself turned around, by a library; its diagonal's double, by a launch."""
    view = {"tensor": "x", "dtype": "float32"}
    stage = {
        "op": "aten.mm.default", "result": "made", "shape": [25, 25],
        "arguments": [{**view, "shape": [25, 40], "strides": [40, 1]},
                      {**view, "shape": [40, 25], "strides": [1, 40]}],
        **changed,
    }  # fmt: skip
    launch = call(folder, "double_diagonal")["launches"][0]
    launch["values"] = [["*fp32", "made"], ["*fp32", "y"]]
    return {"launches": [stage, launch], "zeroed": []}


def product_request(folder: Path, **changed: Any) -> dict[str, Any]:
    asked = request(folder, "double", scratch={"made": 4 * 625})
    asked["call"] = product_call(folder, **changed)
    asked["outputs"][0]["bytes"] = 4 * 25
    return asked


def test_a_library_makes_what_a_launch_reads(judge: Judge, tmp_path: Path) -> None:
    answer = judge.answer(product_request(tmp_path))
    x, y = (np.fromfile(tmp_path / name, np.float32) for name in ("x.bin", "y.bin"))
    assert answer["hazards"] == []
    np.testing.assert_allclose(y, 2 * (x.reshape(25, 40) ** 2).sum(1), rtol=1e-5)


def test_a_library_makes_an_output(judge: Judge, tmp_path: Path) -> None:
    asked = product_request(tmp_path, result="y")
    asked["call"]["launches"] = asked["call"]["launches"][:1]
    systems = [{"call": asked["call"], "scratch": {}}]
    assert judge.answer(asked)["hazards"] == []
    x, y = (np.fromfile(tmp_path / name, np.float32) for name in ("x.bin", "y.bin"))
    np.testing.assert_allclose(y.reshape(25, 25), x.reshape(25, 40) @ x.reshape(25, 40).T, rtol=1e-4)
    assert judge.answer({**asked, "op": "measure", "systems": systems, "runs": 2})["changed"] == [0]


@pytest.mark.parametrize(
    "changed",
    [
        {"op": "aten.add_.Tensor"},
        {"op": "aten.mm.out"},
        {"shape": [25, 26]},
        {"arguments": 2 * [{"tensor": "made", "dtype": "float32", "shape": [25, 25], "strides": [25, 1]}]},
        {"arguments": 2 * [{"tensor": "x", "dtype": "float32", "shape": [32, 32], "strides": [32, 1]}]},
    ],
)
def test_what_a_library_is_not_asked(judge: Judge, tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"aten|made"):
        judge.answer(product_request(tmp_path, **changed))


def test_a_grid_of_nothing_is_not_launched(judge: Judge, driver: FakeDriver, tmp_path: Path) -> None:
    answer = judge.answer(request(tmp_path, "double", call=call(tmp_path, "double", (0, 1, 1))))
    assert not driver.launched and answer["hazards"] == [["output-not-written", "y"]]


def test_scratch_that_is_asked_for_zeroed_is_zero(judge: Judge, tmp_path: Path) -> None:
    judge.answer(
        request(tmp_path, "through_scratch", call=call(tmp_path, "through_scratch", zeroed=("kept",)))
    )
    assert not np.fromfile(tmp_path / "y.bin", np.float32).any()


def test_parts_of_tensors(judge: Judge, tmp_path: Path) -> None:
    part = {"item_size": 4, "sizes": [10, 100], "runs": [[[2, 2], [9, 1]], [[0, 3], [50, 50]]]}
    asked = request(tmp_path, "double")
    data = np.arange(3 * 53, dtype=np.float32)
    data.tofile(tmp_path / "x.bin")
    asked["inputs"][0]["part"] = asked["outputs"][0]["part"] = part
    assert judge.answer(asked)["hazards"] == []
    assert np.array_equal(np.fromfile(tmp_path / "y.bin", np.float32), 2 * data)


@pytest.mark.parametrize(("kernel", "changed"), [("double", 0), ("by_chance", 20)])
def test_results_of_timed_runs_are_compared(judge: Judge, tmp_path: Path, kernel: str, changed: int) -> None:
    systems = [{"call": call(tmp_path, kernel), "scratch": {"kept": 4 * COUNT}}]
    answer = judge.answer(request(tmp_path, kernel, op="measure", systems=systems, runs=20))
    assert answer["changed"] == [changed + (4 if changed else 0)]  # those that warm up, too
    assert len(answer["times"]) == 1 and len(answer["times"][0]["busy_us"]) == 20


def test_pairs_are_told_apart(judge: Judge, tmp_path: Path) -> None:
    systems = 2 * [{"call": call(tmp_path, "double"), "scratch": {"kept": 4 * COUNT}}]
    answer = judge.answer(request(tmp_path, "double", op="measure", systems=systems, runs=20))
    assert [len(one["span_us"]) for one in answer["times"]] == [20, 20]
    assert answer["strays"] == [None, None]


def test_pairs_have_the_same_memory_in_turn(judge: Judge, driver: FakeDriver, tmp_path: Path) -> None:
    where: list[tuple[int, int]] = []

    def seen(grid: Grid, given: Arguments) -> None:
        double(grid, given)
        where.append((given.floats(0, 1).ctypes.data, given.floats(1, 1).ctypes.data))

    driver.add("seen", seen)
    systems = 2 * [{"call": call(tmp_path, "seen"), "scratch": {"kept": 4 * COUNT}}]
    judge.answer(request(tmp_path, "seen", op="measure", systems=systems, runs=20))
    pairs = list(zip(where[::2], where[1::2], strict=True))
    assert len(pairs) == WARM_UPS + 20 + 1
    assert all(first == second for first, second in pairs)
    assert len(set(pairs)) > 20


def test_a_stray_is_seen_though_the_other_kernel_ran_last(judge: Judge, tmp_path: Path) -> None:
    calls = [call(tmp_path, "beyond", cubin="a"), call(tmp_path, "double", cubin="b")]
    systems = [{"call": one, "scratch": {"kept": 4 * COUNT}} for one in calls]
    answer = judge.answer(request(tmp_path, "double", op="measure", systems=systems, runs=20))
    assert answer["strays"] == ["around y", None] and answer["changed"] == [0, 0]


@pytest.fixture(params=range(20))
def numbers(request: pytest.FixtureRequest) -> Iterator[random.Random]:
    yield random.Random(request.param)


def test_places_lie_apart_and_inside(numbers: random.Random) -> None:
    sizes = {f"t{i}": numbers.choice([0, 1, 511, 512, 4097, 100_000]) for i in range(numbers.randint(1, 9))}
    placed = places(sizes, numbers)
    ordered = sorted(sizes, key=lambda name: placed[name])
    ends = [placed[name] + sizes[name] for name in ordered]
    begins = [*(placed[name] for name in ordered[1:]), needed(sizes)]
    assert placed[ordered[0]] >= GUARD
    assert all(begin - end >= GUARD for begin, end in zip(begins, ends, strict=True))
    assert all(place % 512 == 0 for place in placed.values())
    assert needed(sizes) <= sum(sizes.values()) + len(sizes) * (GUARD + 512) + GUARD + SPREAD


def test_times_of_marked_kernels() -> None:
    def kernel(begin: int, end: int, name: str = "k") -> tuple[int, int, str]:
        return begin, end, name

    events = [
        kernel(0, 5), kernel(10, 20, "spin_kernel"), kernel(25, 35), kernel(30, 45), kernel(60, 70),
        kernel(80, 81, "spin_kernel"), kernel(90, 99), kernel(100, 110, "spin_kernel"),
        kernel(120, 121, "spin_kernel"),
    ]  # fmt: skip
    windows = between_marks(events, 2)
    assert windows is not None
    assert [busy_us(window) for window in windows] == [0.030, 0.0]
    assert [span_us(window) for window in windows] == [0.045, 0.0]
    assert between_marks(events, 3) is None
    assert times_of(events, [1.0, 2.0]).kernels == {"k": 3}
    assert (times_of(events, [1.0]).how, times_of(events, [1.0]).busy) == ("events", [1.0])


def test_pairs_turn_around() -> None:
    order = list(abba("a", "b", 4))  # type: ignore[arg-type]  # any two objects
    assert "".join(order) == "abbaabba"  # type: ignore[arg-type]
    assert all((one == "a") is is_first(place) for place, one in enumerate(order))
