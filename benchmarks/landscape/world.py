"""A recorded task as searches see it: points that the author's rules admit, their neighbours, and of each
that is tried a failure or one draw of its samples."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from attrs import define, field, frozen

from benchmarks.landscape.grids import Grid, author_of, tasks
from benchmarks.landscape.rows import Recorded
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.family import Move
from evokernel_core.domain.kernel import KernelSource, Setting, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, LatencySource, Verdict
from evokernel_core.verifier.base import never

Point = tuple[Setting, ...]
CLOSE = 1.02
"""How many times the best known time is close to it."""
_RULE = "rule"
"""What the reason of a point begins with that the author refuses before anything is compiled."""


@frozen(eq=False, slots=False)
class Scene:
    """A task's recorded points."""

    grid: Grid
    line: Mapping[str, Any]
    author: KernelAuthor

    @property
    def name(self) -> str:
        return self.grid.name

    @cached_property
    def points(self) -> dict[Point, Mapping[str, Any]]:
        """Those that the author's rules admit."""
        lines = {tuple(one["point"]): one for one in self.line["points"]}
        return {
            point: lines[point]
            for point in self.grid.points()
            if not lines[point].get("why", "").startswith(_RULE)
        }

    @cached_property
    def times(self) -> dict[Point, float]:
        """The median of each point that is right."""
        return {point: statistics.median(one["us"]) for point, one in self.points.items() if "why" not in one}

    @cached_property
    def best_us(self) -> float:
        """The best known: the fastest point, or the one that pairs found faster."""
        settled = self.line["best"]
        ratios = [1.0, *(one["ratio"][0] for one in settled["others"])]
        return self.times[tuple(settled["point"])] * min(ratios)

    @cached_property
    def draft(self) -> Point:
        """The author's first schedule, as it is today. Raises ValueError where that was not recorded."""
        point = self.grid.point_of(self.author.initial(self.grid.task))
        if point not in self.points:
            raise ValueError(f"{self.name}: the first draft was not recorded; widen its grid and record anew")
        return point

    def is_close(self, point: Point) -> bool:
        """Whether a point is within 2 % of the best known, in truth."""
        return self.times.get(point, math.inf) <= CLOSE * self.best_us

    @cached_property
    def close_share(self) -> float:
        """The share of the grid that is."""
        return sum(map(self.is_close, self.points)) / len(self.points)

    @cached_property
    def near(self) -> dict[Point, list[Point]]:
        """By point those that differ from it in one field, by one place of its values."""
        places = {point: self.places(point) for point in self.points}
        at = {place: point for point, place in places.items()}
        return {
            point: [at[other] for other in _beside(place) if other in at] for point, place in places.items()
        }

    def places(self, point: Point) -> tuple[int, ...]:
        """Of each of its settings among the values of its field."""
        return tuple(values.index(one) for one, values in zip(point, self.grid.values.values(), strict=True))

    @cached_property
    def estimates(self) -> dict[Point, float]:
        """The device record's, as it is today."""
        task, strategy = self.grid.task, self.grid.strategy
        return {point: self.author.estimate_us(task, strategy(point)) for point in self.points}

    def estimate_us(self, point: Point) -> float:
        return self.estimates[point]


def _beside(place: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [
        (*place[:axis], place[axis] + step, *place[axis + 1 :])
        for axis in range(len(place))
        for step in (-1, 1)
    ]


def scenes_of(found: Mapping[str, Recorded], device: str) -> list[Scene]:
    """The tasks of a file that have a time, in the order of the table."""
    author = author_of(device)
    return [
        Scene(Grid(name, tasks()[name], _draft(one.line), _values(one.line)), one.line, author)
        for name, one in found.items()
        if one.line["best"]
    ]


def _values(line: Mapping[str, Any]) -> dict[str, tuple[Setting, ...]]:
    return {name: tuple(values) for name, values in line["values"].items()}


def _draft(line: Mapping[str, Any]) -> Strategy:
    return Strategy(line["family"], line["settings"])


@frozen
class GridAuthor(KernelAuthor):
    """Triton's author, whose steps and schedules of others stay within what was recorded."""

    scenes: Mapping[str, Scene] = field(factory=dict, eq=False)
    """By the task's id."""

    def moves(self, task: KernelTask, strategy: Strategy) -> tuple[Move, ...]:
        return tuple(move for move in super().moves(task, strategy) if self._is_known(task, move.strategy))

    def adapt(self, task: KernelTask, strategy: Strategy) -> Strategy | None:
        fitting = super().adapt(task, strategy)
        return fitting if fitting is not None and self._is_known(task, fitting) else None

    def _is_known(self, task: KernelTask, strategy: Strategy) -> bool:
        """Whether a schedule was compiled when the grid was recorded: rules may admit more by now."""
        scene = self.scenes[task.task_id]
        return scene.grid.point_of(strategy) in scene.points


def grid_author(device: str, scenes: Sequence[Scene]) -> GridAuthor:
    """The author of these scenes."""
    plain = author_of(device)
    return GridAuthor(plain.target, plain.device, scenes={one.grid.task.task_id: one for one in scenes})


@define
class Player:
    """A verifier that answers from a scene, and keeps what was tried."""

    scene: Scene
    rng: random.Random
    device: str
    name: str = "recorded"
    workers: int = 1
    tried: list[tuple[Point, float]] = field(factory=list)
    """Each with what was seen of it, endless for a failure."""

    def observed(self, point: Point) -> float:
        """One draw of a point's samples, endless where it fails."""
        one = self.scene.points[point]
        us = math.inf if "why" in one else float(self.rng.choice(one["us"]))
        self.tried.append((point, us))
        return us

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Callable[[], bool] = never,
        below_us: float = math.inf,
    ) -> Verdict:
        point = self.scene.grid.point_of(source.strategy)
        assert point is not None
        us = self.observed(point)
        why = self.scene.points[point].get("why", "")
        told = partial(Verdict, task.task_id, source.source_id, self.name)
        passed = [GateResult(gate, GateStatus.PASSED) for gate in (GateName.AUDIT, GateName.COMPILE)]
        if why:
            code, _, words = why.partition(": ")
            failed = GateResult(GateName.COMPILE, GateStatus.FAILED, code, words)
            return told((passed[0], failed))
        passed += [GateResult(gate, GateStatus.PASSED) for gate in (GateName.CORRECTNESS, GateName.LATENCY)]
        latency = Latency(
            us=us,
            source=LatencySource.MEASURED,
            chip=self.device,
            block_dim=1,
            pipes=(),
            bottleneck="",
            roofline_us=0.0,
            baseline_us=us,
        )
        return told(tuple(passed), latency)
