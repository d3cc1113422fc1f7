"""Records landscapes: processes compile points of grids, one alone on the GPU checks and times them."""

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from attrs import frozen

from benchmarks.landscape import rows
from benchmarks.landscape.grids import INDICES, Grid, author_of, grid_of
from evokernel_core.domain.kernel import Setting
from evokernel_core.targets.triton.backends.gpu_process import JudgeLost, JudgePool, JudgeProcess
from evokernel_core.targets.triton.backends.intervals import Ratio, ratio_of
from evokernel_core.targets.triton.launch import tensor_names

HERE = Path(__file__).parent
RUNS = 20
"""Samples of a point."""
BATCH = 10
"""Points that take turns; the reference schedule is timed with each batch."""
COMPILE_SECONDS, TIME_SECONDS = 25.0, 45.0
"""For a point, and for a batch; what takes longer hangs."""
BEST = 10
"""Points that are timed in pairs to settle which is the best."""
PAIRS, MOST_PAIRS, WIDTH = 60, 300, 0.005
SETTLING_SECONDS = 5.0
"""For a task: pairs are added until an interval is narrower than ``WIDTH``, or so long."""

Point = tuple[Setting, ...]
Told = dict[str, Any]


@frozen
class Plan:
    """What is recorded, and how. ``most``: points of a task at the most, 0 for all."""

    out: Path
    tasks: tuple[str, ...]
    device: str
    python: str
    jobs: int
    seconds: float
    begun: float
    about: Mapping[str, str]
    most: int = 0


def record(plan: Plan) -> None:
    """Times the tasks that the file has not. Raises VerifierUnavailable."""
    known = rows.read(plan.out)
    wanted = [name for name in plan.tasks if name not in known]
    timers = JudgePool(lambda: JudgeProcess([plan.python, str(HERE / "timing_process.py")]))
    with tempfile.TemporaryDirectory(prefix="evokernel-land-", ignore_cleanup_errors=True) as folder:
        compilers = Compilers(plan, Path(folder))
        try:
            grids = [grid_of(name, author_of(plan.device)) for name in wanted]
            asked = {grid.name: compilers.all_of(grid, chosen(grid, plan.most)) for grid in grids}
            rows.append(plan.out, {"machine": {**timers.conditions(), **plan.about}})
            for grid in grids:
                if time.monotonic() - plan.begun > plan.seconds:
                    break
                line = Recording(grid, timers).line(asked[grid.name])
                rows.append(plan.out, line)
                print(summary(line), flush=True)
        finally:
            compilers.close()
            timers.close()


def chosen(grid: Grid, most: int) -> list[Point]:
    """The points of a grid in an order by chance, so that no drift follows a field; the draft first."""
    points = grid.points()
    random.Random(grid.name).shuffle(points)
    draft = grid.point_of(grid.draft)
    points.sort(key=lambda point: point != draft)
    return points[:most] if most else points


class Compilers:
    """Processes that compile, each with Triton begun once."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._command = [plan.python, str(HERE / "compile_process.py"), plan.device, str(folder)]
        self._threads = ThreadPoolExecutor(plan.jobs)
        self._pools: list[JudgePool] = []
        self._own = threading.local()
        self._ended = threading.Event()

    def all_of(self, grid: Grid, points: Sequence[Point]) -> dict[Future[Told], Point]:
        """What will have come of points."""
        return {self._threads.submit(self._compiled, grid.name, point): point for point in points}

    def _compiled(self, name: str, point: Point) -> Told:
        if self._ended.is_set():
            return {"why": "not reached"}
        if not hasattr(self._own, "pool"):
            self._own.pool = JudgePool(lambda: JudgeProcess(self._command), spares=0)
            self._pools.append(self._own.pool)
        try:
            answer: Told = self._own.pool.ask({"task": name, "point": point}, COMPILE_SECONDS)
        except JudgeLost as error:
            said = "it did not end in time" if error.hung else f"the compiler ended: {error.said}"
            return {"why": f"compile: {said}"}
        return answer

    def close(self) -> None:
        """Ends all processes."""
        self._ended.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for pool in self._pools:
            pool.close()


class Recording:
    """One task."""

    def __init__(self, grid: Grid, timers: JudgePool) -> None:
        self._grid, self._timers = grid, timers
        self._draft: Told | None = None
        self._reference: list[Told] = []
        self._how = Counter[str]()
        self._readings: list[Any] = []

    def line(self, asked: Mapping[Future[Told], Point]) -> dict[str, Any]:
        """The task's line."""
        begun = time.monotonic()
        points = list(self._points(asked))
        compiled = time.monotonic()
        grid = self._grid
        best = self._settled(points)
        for one in points:
            one.pop("call", None), one.pop("scratch", None)
        return {
            "task": grid.name,
            "operation": grid.operation,
            "category": grid.task.op_category,
            "family": grid.draft.family,
            "values": {name: list(values) for name, values in grid.values.items()},
            "draft": grid.point_of(grid.draft),
            "settings": dict(grid.draft.settings),
            "points": points,
            "reference": self._reference,
            "best": best,
            "how": dict(self._how),
            "readings": self._readings,
            "seconds": [round(compiled - begun, 1), round(time.monotonic() - compiled, 1)],
        }

    def _points(self, asked: Mapping[Future[Told], Point]) -> Iterator[Told]:
        """Every point, as it was timed, or with why it was not."""
        self._draft = next(iter(asked)).result()
        batch: list[Told] = []
        for future in as_completed(asked):
            told = {"point": asked[future], **future.result()}
            if "why" in told:
                yield told
                continue
            batch.append(told)
            if len(batch) == BATCH:
                yield from self._timed(batch)
                batch = []
        if batch:
            yield from self._timed(batch)

    def _timed(self, batch: Sequence[Told]) -> list[Told]:
        reference = [] if self._draft is None or "why" in self._draft else [self._draft]
        answers = self._asked([*batch, *reference])
        if reference:
            self._reference.append({"behind": batch[-1]["point"], **answers[len(batch)]})
        return [{**one, **answer} for one, answer in zip(batch, answers, strict=False)]

    def _asked(self, systems: Sequence[Told]) -> list[Told]:
        """What came of systems; one that ends the process costs itself alone."""
        answer = self._ask("points", systems, RUNS)
        if "systems" in answer:
            self._how[answer["how"]] += 1
            self._readings += answer["readings"][:1]
            told: list[Told] = answer["systems"]
            return told
        if len(systems) == 1:
            return [{"why": f"device: {answer['error']}"}]
        if (at := answer.get("at")) is not None:
            others = self._asked([*systems[:at], *systems[at + 1 :]])
            return [*others[:at], {"why": f"device: {answer['error']}"}, *others[at:]]
        return [self._asked([one])[0] for one in systems]

    def _ask(self, op: str, systems: Sequence[Told], runs: int) -> Told:
        request = {
            **described(self._grid),
            "op": op,
            "systems": [{"call": one["call"], "scratch": one["scratch"]} for one in systems],
            "runs": runs,
            "seed": 41,
        }
        try:
            return self._timers.ask(request, TIME_SECONDS)
        except JudgeLost as error:
            return {"error": "it did not end in time" if error.hung else f"the process ended: {error.said}"}

    def _settled(self, points: Sequence[Told]) -> dict[str, Any]:
        """The fastest points beside the first of them, in pairs."""
        timed = sorted((one for one in points if "us" in one and "why" not in one), key=_median)[:BEST]
        if not timed:
            return {}
        first, *others = timed
        end = time.monotonic() + SETTLING_SECONDS
        found = [self._compared(first, other, end) for other in others]
        return {"point": first["point"], "others": [one for one in found if one]}

    def _compared(self, first: Told, other: Told, end: float) -> dict[str, Any] | None:
        sides: tuple[list[float], list[float]] = ([], [])
        ratio: Ratio | None = None
        while ratio is None or (
            ratio.high - ratio.low > WIDTH and len(sides[0]) < MOST_PAIRS and time.monotonic() < end
        ):
            answer = self._ask("pairs", [first, other], PAIRS)
            if "us" not in answer:
                return None
            for place, us in enumerate(answer["us"]):
                sides[place].extend(us)
            ratio = ratio_of(*sides)
        bounds = [round(one, 5) for one in (ratio.value, ratio.low, ratio.high)]
        return {"point": other["point"], "ratio": bounds, "pairs": len(sides[0])}


def _median(told: Told) -> float:
    return statistics.median(told["us"])


def described(grid: Grid) -> dict[str, Any]:
    """A task as the process that times takes it."""
    task = grid.task
    inputs, _, outputs = tensor_names(task)
    return {
        "task": grid.name,
        "inputs": [
            {
                "name": name,
                "expression": one.expression,
                "dtype": one.spec.dtype,
                "shape": one.spec.sizes(task.sizes),
                "below": INDICES.get(grid.name, 0),
            }
            for name, one in zip(inputs, task.graph.inputs, strict=True)
        ],
        "outputs": [
            {
                "name": name,
                "bytes": spec.nbytes(task.sizes),
                "dtype": spec.dtype,
                "shape": spec.sizes(task.sizes),
            }
            for name, spec in zip(outputs, task.graph.output_specs(), strict=True)
        ],
    }


def summary(line: Mapping[str, Any]) -> str:
    """A task in a line: its points, why some have no time, and its fastest."""
    whys = Counter(str(one["why"]).partition(":")[0] for one in line["points"] if "why" in one)
    timed = sorted(_median(one) for one in line["points"] if "us" in one and "why" not in one)
    spread = f"{timed[0]:.1f} to {timed[-1]:.1f} us" if timed else "none timed"
    drafts = [statistics.median(one["us"]) for one in line["reference"] if "us" in one]
    draft = f"draft {statistics.median(drafts):.1f} us" if drafts else "draft untimed"
    grid = " x ".join(f"{name} {len(values)}" for name, values in line["values"].items())
    failed = ", ".join(f"{count} {why}" for why, count in sorted(whys.items()))
    return (
        f"{line['task']:20} {len(line['points'])} points ({grid}), {failed or 'none failed'}; {spread}, "
        f"{draft}; {line['how']}, {line['seconds']} s"
    )
