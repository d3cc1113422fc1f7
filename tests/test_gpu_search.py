"""The recorded landscapes of benchmarks/gpu_search.py: grids, points on a GPU that is none, the file."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from benchmarks.landscape import functions, grids, rows
from benchmarks.landscape.recording import BATCH, Recording, chosen, described, summary
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import StrategyError
from evokernel_core.targets.triton.backends.child.driver import Driver
from evokernel_core.targets.triton.backends.gpu_process import JudgeLost
from tests.targets.triton.fake_driver import FakeDriver
from tests.targets.triton.test_judge import KERNELS, Cpu, FakeClock, call

torch = pytest.importorskip("torch")
COUNT = 1000
DEVICE = "nvidia_h200"


@pytest.fixture(scope="module")
def author() -> KernelAuthor:
    return grids.author_of(DEVICE)


@pytest.mark.parametrize("name", grids.GRIDS)
def test_a_grid_has_the_draft_and_every_combination(name: str, author: KernelAuthor) -> None:
    grid = grids.grid_of(name, author)
    points = grid.points()
    assert 150 <= len(points) == len(set(points)) <= 300
    assert len(points) == math.prod(map(len, grid.values.values()))
    assert grid.point_of(grid.draft) in points
    assert all(grid.point_of(grid.strategy(point)) == point for point in points[::7])
    legal = [point for point in points[::3] if _is_legal(author, grid, point)]
    assert len(legal) / len(points[::3]) >= 0.3


def _is_legal(author: KernelAuthor, grid: grids.Grid, point: tuple[Any, ...]) -> bool:
    try:
        author.require_legal(grid.task, grid.strategy(point))
    except StrategyError:
        return False
    return True


@pytest.mark.parametrize("name", ["softmax", "sum_over_middle", "product", "gather"])
def test_steps_within_a_grid_reach_every_legal_point(name: str, author: KernelAuthor) -> None:
    grid = grids.grid_of(name, author)
    reached = {grid.point_of(grid.draft)}
    waiting = list(reached)
    while waiting:
        here = waiting.pop()
        assert here is not None
        steps = {grid.point_of(move.strategy) for move in author.moves(grid.task, grid.strategy(here))}
        waiting += steps - reached - {None}
        reached |= steps - {None}
    assert reached == {point for point in grid.points() if _is_legal(author, grid, point)}


def test_what_lies_beside_a_grid_is_no_point_of_it(author: KernelAuthor) -> None:
    grid = grids.grid_of("argmax_over_middle", author)
    assert grid.point_of(grid.strategy((4096, 1, 1))) is None
    assert grid.point_of(grids.grid_of("product", author).draft) is None


def test_every_function_of_the_table_is_a_task_with_a_grid() -> None:
    defined = [
        name
        for name, value in vars(functions).items()
        if getattr(value, "__module__", "") == functions.__name__
    ]
    assert set(defined) == set(grids.GRIDS) == set(grids.tasks()) == set(grids.OPERATIONS)


# --- a GPU that is none


def _timer(monkeypatch: pytest.MonkeyPatch, failing: int = 0) -> Any:
    from benchmarks.landscape import timing_process

    monkeypatch.setattr(functions, "doubled", lambda x: 2 * x, raising=False)
    return timing_process.Timer(Cpu(), Driver(FakeDriver(KERNELS, failing)), FakeClock())


def _request(folder: Path, kernels: list[str], op: str = "points") -> dict[str, Any]:
    about = {"dtype": "float32", "shape": [COUNT]}
    systems = [
        {"call": call(folder, kernel, cubin=kernel), "scratch": {"kept": 4 * COUNT}} for kernel in kernels
    ]
    return {
        "op": op, "task": "doubled", "runs": 20, "seed": 3, "systems": systems,
        "inputs": [{"name": "x", "expression": "x", "below": 0, **about}],
        "outputs": [{"name": "y", "bytes": 4 * COUNT, **about}],
    }  # fmt: skip


def test_only_kernels_that_are_right_are_timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = ["double", "half_of_it", "beyond", "into_the_input", "by_chance", "through_scratch"]
    told = _timer(monkeypatch).answer(_request(tmp_path, names))["systems"]
    assert [one.get("why", "").split(" ")[0].rstrip(":") for one in told] == [
        "", "wrong", "wrote", "wrote", "wrong", "nondeterministic"
    ]  # fmt: skip
    assert [len(one.get("us", ())) for one in told] == [20, 0, 0, 0, 0, 20]


def test_a_launch_that_the_driver_refuses_costs_its_point(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = _timer(monkeypatch, failing=701).answer(_request(tmp_path, ["double"]))["systems"]
    assert told[0]["why"].startswith("launch: ") and "us" not in told[0]


def test_a_lost_context_names_the_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from evokernel_core.targets.triton.backends.child.driver import DriverError

    timer = _timer(monkeypatch, failing=700)
    with pytest.raises(DriverError):
        timer.answer(_request(tmp_path, ["double", "double"]))
    assert timer.at == 0


def test_pairs_have_as_many_times_of_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    request = _request(tmp_path, ["double", "through_scratch"], "pairs")
    assert [len(us) for us in _timer(monkeypatch).answer(request)["us"]] == [20, 20]


# --- a task's line, with a process that times in scripted ways


class Scripted:
    """The process that times: a point is slow by its place, or ends the process."""

    def __init__(self, ending: frozenset[int], *, tells: bool) -> None:
        self._ending, self._tells = ending, tells
        self.asked = 0

    def ask(self, request: Mapping[str, Any], wall_s: float) -> dict[str, Any]:
        self.asked += 1
        names = [one["call"] for one in request["systems"]]
        if request["op"] == "pairs":
            return {"us": [[10.0 + name + n % 2 for n in range(request["runs"])] for name in names]}
        ended = [place for place, name in enumerate(names) if name in self._ending]
        if ended and not self._tells:
            raise JudgeLost("gone", hung=False)
        if ended:
            return {"error": "illegal address", "broken": True, "at": ended[0]}
        return {"systems": [{"us": [10.0 + name] * 20} for name in names], "how": "cupti", "readings": [{}]}


def _line(author: KernelAuthor, timers: Any, failing: int = 0) -> dict[str, Any]:
    grid = grids.grid_of("gather", author)
    asked: dict[Future[dict[str, Any]], Any] = {}
    for place, point in enumerate(chosen(grid, 37)):
        future: Future[dict[str, Any]] = Future()
        future.set_result({"why": "rule: no"} if 0 < place <= failing else {"call": place, "scratch": {}})
        asked[future] = point
    return Recording(grid, timers).line(asked)


@pytest.mark.parametrize(("ending", "tells"), list(itertools.product([(), (5,), (5, 6, 30)], [False, True])))
def test_every_point_stays_whatever_ends_the_process(
    author: KernelAuthor, ending: tuple[int, ...], tells: bool
) -> None:
    line = _line(author, Scripted(frozenset(ending), tells=tells), failing=3)
    whys = [one["why"] for one in line["points"] if "why" in one]
    assert len(line["points"]) == 37 and len({tuple(one["point"]) for one in line["points"]}) == 37
    assert len(whys) == 3 + len(ending)
    assert all(len(one["us"]) == 20 for one in line["points"] if "why" not in one)
    assert len(line["reference"]) >= (37 - 3) // BATCH
    json.dumps(line)


def test_the_fastest_are_settled_in_pairs(author: KernelAuthor) -> None:
    line = _line(author, Scripted(frozenset(), tells=True))
    ranked = sorted((one for one in line["points"]), key=lambda one: one["us"][0])
    assert line["best"]["point"] == ranked[0]["point"]
    assert [one["point"] for one in line["best"]["others"]] == [one["point"] for one in ranked[1:10]]
    value, low, high = line["best"]["others"][0]["ratio"]
    assert 1.0 < low < value < high and high - low <= 0.005
    assert "37 points" in summary(line) and "none failed" in summary(line)


def test_tasks_are_described_with_names_of_their_functions(author: KernelAuthor) -> None:
    for name in grids.GRIDS:
        function = getattr(functions, name)
        inputs = described(grids.grid_of(name, author))["inputs"]
        assert {one["expression"] for one in inputs} == set(
            function.__code__.co_varnames[: function.__code__.co_argcount]
        )
        assert all(one["below"] > 0 for one in inputs if one["dtype"] == "int64")


def test_a_point_is_compiled_or_says_why_not(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    from benchmarks.landscape.compile_process import Points

    points = Points(DEVICE, tmp_path)
    done = points.answer({"task": "embedding", "point": [4, 256, 4]})
    assert Path(done["call"]["launches"][0]["cubin"]).parent == tmp_path
    assert done["estimate"] > 0 and done["launches"][0]["registers"] > 0
    assert points.answer({"task": "softmax", "point": [1, 512, 4, False]})["why"].startswith("rule: ")


# --- the file


def test_a_file_grows_by_whole_lines_and_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "landscape.xz"
    assert rows.read(path) == {}
    for line in ({"machine": {"device": "a"}}, {"task": "one", "n": 1}, {"machine": {"device": "b"}},
                 {"task": "two", "n": 2}, {"task": "one", "n": 3}):  # fmt: skip
        rows.append(path, line)
    found = rows.read(path)
    assert [(one.name, one.line["n"], one.machine["device"]) for one in found.values()] == [
        ("one", 3, "b"), ("two", 2, "b")
    ]  # fmt: skip
