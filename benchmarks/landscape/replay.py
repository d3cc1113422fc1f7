"""Searches replayed on recorded tasks: how many evaluations each needs, with whole operations held out."""

from __future__ import annotations

import math
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from benchmarks.landscape import rows
from benchmarks.landscape.baselines import BASELINES, Search, Seen
from benchmarks.landscape.world import GridAuthor, Player, Point, Scene, grid_author, scenes_of
from benchmarks.searching.world import remember_schedules
from evokernel_core.compiler.features import schedule_features, task_features
from evokernel_core.domain.settings import PolicyName, RetrievalName, Settings
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.policies import open_policy
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.synthesis.residual import MOST, learned
from evokernel_core.targets.triton.target import TRITON

FOLDS = 4
"""Operations are held out a fourth at a time: what was learned never saw the operation of a task."""
TAUGHT = 16
"""Evaluations of each task that a memory is taught on."""
AT = 8
RESAMPLES = 2000
SHUFFLED, MODEL, DEFAULT = "shuffled", "model", "default"
OF_DEFAULT = "q"
"""The policy that the product has by default."""

Ours = tuple[PolicyName, RetrievalName]
OURS: Mapping[str, Ours] = {
    "q": (PolicyName.QVALUE, RetrievalName.Q),
    "similarity": (PolicyName.QVALUE, RetrievalName.SIMILARITY),
    "none": (PolicyName.QVALUE, RetrievalName.NONE),
    "tree": (PolicyName.TREE, RetrievalName.Q),
    "archive": (PolicyName.ARCHIVE, RetrievalName.Q),
    "islands": (PolicyName.ISLANDS, RetrievalName.Q),
    SHUFFLED: (PolicyName.QVALUE, RetrievalName.Q),
}
POLICIES = (*OURS, MODEL, *BASELINES)
TAUGHT_ONES = frozenset((*OURS, MODEL)) - {"none"}


@frozen
class Outcome:
    """One search: the evaluation that was the first close to the best known, the size of the grid where none
    was, and how far from the best the kernel is that was held for the best after ``AT``."""

    policy: str
    task: str
    seed: int
    evaluations: int
    at_8: float


@frozen
class Job:
    """All searches of one seed on the tasks of one fold."""

    fold: int
    seed: int


@frozen
class Stage:
    """What a process replays on."""

    scenes: tuple[Scene, ...]
    author: GridAuthor
    device: str
    budget: int
    policies: tuple[str, ...]

    def held_out(self, fold: int) -> tuple[list[Scene], list[Scene]]:
        """The tasks of a fold, and those of other operations."""
        operations = sorted({scene.grid.operation for scene in self.scenes})
        mine = {name for place, name in enumerate(operations) if place % FOLDS == fold}
        held = [scene for scene in self.scenes if scene.grid.operation in mine]
        return held, [scene for scene in self.scenes if scene not in held]

    def outcomes(self, job: Job) -> Iterator[Outcome]:
        """Every search of a job."""
        held, others = self.held_out(job.fold)
        with tempfile.TemporaryDirectory() as name:
            taught = Path(name) / "taught.db"
            if set(self.policies) & TAUGHT_ONES:
                self._teach(taught, others, job.seed)
            for policy in self.policies:
                for scene in held:
                    player = Player(scene, random.Random(f"{policy}:{scene.name}:{job.seed}"), self.device)
                    self._search(policy, player, taught, job.seed)
                    yield _outcome(policy, player, job.seed)

    def _teach(self, memory: Path, scenes: Sequence[Scene], seed: int) -> None:
        order = random.Random(seed).sample(list(scenes), len(scenes))
        for scene in order:
            player = Player(scene, random.Random(f"taught:{scene.name}:{seed}"), self.device)
            self._run(OURS["q"], player, memory, seed, TAUGHT)

    def _search(self, policy: str, player: Player, taught: Path, seed: int) -> None:
        if policy not in OURS:
            rng = random.Random(f"{policy}:{seed}")
            seen: Seen = {}
            search = (
                self._by_model(player.scene, seen, taught)
                if policy == MODEL
                else BASELINES[policy](player.scene, seen, rng)
            )
            _played(player, search, seen, self.budget)
            return
        memory = taught.with_name("copy.db")
        memory.unlink(missing_ok=True)
        if policy != "none":
            shutil.copy(taught, memory)
        if policy == SHUFFLED:
            shuffle_values(memory, seed)
        self._run(OURS[policy], player, memory, seed, self.budget)

    def _run(self, ours: Ours, player: Player, path: Path, seed: int, budget: int) -> None:
        policy, retrieval = ours
        settings = Settings(budget=budget, seed=seed, retrieval=retrieval, chip=self.device)
        with Memory(path) as memory:
            engine = Engine(
                memory,
                player,
                ScheduleProposer(self.author),
                open_policy(policy),
                settings,
                partial(task_features, target=TRITON),
            )
            engine.run(player.scene.grid.task, budget, satisfied=lambda _: _is_done(player))

    def _by_model(self, scene: Scene, seen: Seen, taught: Path) -> Search:
        """The point that is expected to be the fastest, by what verdicts say of estimates."""
        with Memory(taught) as memory:
            known = memory.tuning_records(self.device, "recorded", MOST)
        task, open_points = scene.grid.task, {point: self._features(scene, point) for point in scene.points}
        own: list[TuningRecord] = []
        while open_points:
            model = learned([*reversed(own), *known])
            expected = model.of([dict(row) for row in open_points.values()], task.task_id)
            costs = {
                point: scene.estimate_us(point) * one.factor
                for point, one in zip(open_points, expected, strict=True)
            }
            chosen = min(costs, key=costs.__getitem__)
            yield chosen
            row, us = open_points.pop(chosen), seen[chosen]
            if math.isfinite(us):
                own.append(self._record(scene, chosen, row, us, (known[0].seq if known else 0) + len(own)))

    def _features(self, scene: Scene, point: Point) -> tuple[tuple[str, float], ...]:
        strategy = scene.grid.strategy(point)
        us = self.author.estimate_us(scene.grid.task, strategy)
        return tuple(sorted(schedule_features(scene.grid.task, strategy, us).items()))

    def _record(self, scene: Scene, point: Point, row: Any, us: float, seq: int) -> TuningRecord:
        return TuningRecord(
            task_id=scene.grid.task.task_id,
            source_id=repr(point),
            chip=self.device,
            verifier="recorded",
            family=scene.grid.draft.family,
            estimate_us=scene.estimate_us(point),
            latency_us=us,
            features=row,
            source=LatencySource.MEASURED,
            seq=seq + 1,
        )


def _played(player: Player, search: Search, seen: Seen, budget: int) -> None:
    for point in search:
        seen[point] = player.observed(point)
        if len(player.tried) >= budget or _is_done(player):
            return


def _is_done(player: Player) -> bool:
    """Whether nothing more is asked of a search."""
    return len(player.tried) >= AT and any(player.scene.is_close(point) for point, _ in player.tried)


def _outcome(policy: str, player: Player, seed: int) -> Outcome:
    scene, tried = player.scene, player.tried
    close = (n for n, (point, _) in enumerate(tried, 1) if scene.is_close(point))
    held, us = min(tried[:AT], key=lambda one: one[1], default=(scene.draft, math.inf))
    held_us = scene.times[held] if math.isfinite(us) else max(scene.times.values())
    return Outcome(policy, scene.name, seed, next(close, len(scene.points)), held_us / scene.best_us)


def shuffle_values(memory: Path, seed: int) -> None:
    """Deals the values of a stage and category out anew among their entries."""
    numbers = random.Random(seed)
    with sqlite3.connect(memory) as database:
        values = database.execute("SELECT stage, op_category, item, q, n FROM q_values").fetchall()
        groups: dict[tuple[str, str], list[Any]] = {}
        for row in values:
            groups.setdefault(row[:2], []).append(row)
        for group in groups.values():
            dealt = numbers.sample(group, len(group))
            database.executemany(
                "UPDATE q_values SET q = ?, n = ? WHERE (stage, op_category, item) = (?, ?, ?)",
                [(*other[3:], *row[:3]) for row, other in zip(group, dealt, strict=True)],
            )
    database.close()


# --- many searches


@cache
def _stage(path: Path, device: str, budget: int, policies: tuple[str, ...]) -> Stage:
    remember_schedules()
    scenes = tuple(scenes_of(rows.read(path), device))
    return Stage(scenes, grid_author(device, scenes), device, budget, policies)


def _of_job(path: Path, device: str, budget: int, policies: tuple[str, ...], job: Job) -> list[Outcome]:
    return list(_stage(path, device, budget, policies).outcomes(job))


def replayed(
    path: Path, device: str, budget: int, policies: Sequence[str], seeds: int, jobs: int
) -> Iterator[Outcome]:
    """All searches on a file's tasks."""
    work = partial(_of_job, path, device, budget, tuple(policies))
    wanted = [Job(fold, seed) for seed in range(seeds) for fold in range(FOLDS)]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for found in pool.map(work, wanted):
            yield from found


# --- what came of them


def summary(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """Of each policy the geometric mean of evaluations over tasks, with its interval over tasks, and how far
    the median task is from its best after ``AT``."""
    found: dict[str, dict[str, Any]] = {}
    for policy, table in _tables(outcomes).items():
        logs = np.log([[one.evaluations for one in of_task] for of_task in table.values()]).mean(axis=1)
        at = np.median([np.exp(np.mean([math.log(one.at_8) for one in group])) for group in table.values()])
        mean, low, high = (round(math.exp(one), 2) for one in _interval(logs))
        found[policy] = {"evaluations_to_2pct": mean, "interval": [low, high], "at_8": round(float(at), 4)}
    if "q" in found:
        found = {DEFAULT: found["q"], **found}
    return found


def ratios(outcomes: Sequence[Outcome], policy: str) -> dict[str, tuple[float, float, float]]:
    """How many of each other policy's evaluations one needs, with an interval over tasks."""
    tables = _tables(outcomes)
    mine = tables[policy]
    return {
        name: tuple(math.exp(one) for one in _interval(np.array(_log_ratios(mine, table))))  # type: ignore[misc]
        for name, table in tables.items()
        if name != policy
    }


Table = dict[str, list[Outcome]]
"""By task."""


def _tables(outcomes: Sequence[Outcome]) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for one in outcomes:
        tables.setdefault(one.policy, {}).setdefault(one.task, []).append(one)
    return tables


def _log_ratios(mine: Table, other: Table) -> list[float]:
    def mean(group: Sequence[Outcome]) -> float:
        return float(np.mean([math.log(one.evaluations) for one in group]))

    return [mean(mine[task]) - mean(other[task]) for task in mine if task in other]


def _interval(values: Any) -> tuple[float, float, float]:
    """The mean over tasks and its 95 % interval, tasks drawn anew."""
    rng = np.random.default_rng(0)
    means = rng.choice(values, size=(RESAMPLES, len(values))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(np.mean(values)), float(low), float(high)
