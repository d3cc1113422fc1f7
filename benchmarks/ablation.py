"""What memory and search are worth: the same problems, attempts and engine, with each way of searching.

    python -m benchmarks.ablation SUITE --kept FOLDER [--files GLOB ...] [--every N] [--seeds 5] [--budget 20]
        [--estimator good,poor] [--ways ...] [--in-order] [--jobs N] [--no-search]
        [--quick] [--json OUT] [--picture OUT.svg]

SUITE is a folder of KernelBench-format problems. For every seed each way works through the same problems in
an order drawn by the seed (with ``--in-order`` as they come: level 1 before level 2), with a memory that
begins empty. FOLDER keeps the tasks, every latency, which is asked for once, and the searches: what a run
that was ended has done is not done again, and ``--no-search`` only prints.

- ``random``, ``topk``, ``diverse``, ``evolution``: no memory (benchmarks/searching/baselines.py).
- ``q``, ``similarity``, ``none``: the product, by what it retrieves; ``none`` learns nothing either.
- ``tree``, ``archive``, ...: the product with the other policies, retrieving by value.

With the ``poor`` estimator the author knows a chip's memories and nothing of what its units cost, as on an
unknown chip. Printed per way: attempts until a kernel is within 5 % of the best that any way found (budget
+ 1 where it never is), and the latency at the end over that best, geometric mean, both with 95 % intervals
over seeds and problems (bootstrap).
Kernels are timed by the twin and not compared with PyTorch; nothing here ran on hardware.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from attrs import frozen

from benchmarks.searching.baselines import Baseline, Diverse, Evolution, Random, Top
from benchmarks.searching.picture import Curve, draw
from benchmarks.searching.world import (
    Latencies,
    Oracle,
    Problem,
    flat,
    keep_problems,
    kept_problems,
    problems,
    remember_schedules,
)
from evokernel_core.compiler.features import task_features
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.settings import PolicyName, RetrievalName, Settings
from evokernel_core.hardware.ascend.chip import Chip, chip_of
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.policies import open_policy
from evokernel_core.synthesis.proposers.base import Proposer
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.synthesis.session import Session
from evokernel_core.targets.ascendc.target import ASCENDC, ascendc

BASELINES: dict[str, Callable[..., Baseline]] = {
    "random": Random,
    "topk": Top,
    "diverse": Diverse,
    "evolution": Evolution,
}
MODES = {mode.value: mode for mode in (RetrievalName.Q, RetrievalName.SIMILARITY, RetrievalName.NONE)}
POLICIES = {one.value: one for one in (PolicyName.TREE, PolicyName.ARCHIVE, PolicyName.ISLANDS)}
WAYS = (*BASELINES, *MODES, *POLICIES)
ALONE = ("random", "topk", "diverse", "none")
"""Ways that carry nothing from one problem to the next, which need not be searched in one process."""
SEEDLESS = ("topk", "diverse")
"""Ways in which nothing is drawn."""
CLOSE = 1.05
RESAMPLES = 2000
TASKS, TRACES, LATENCIES = "tasks.jsonl", "searches.jsonl", "latencies.jsonl"


@frozen
class Trace:
    """The best latency after each attempt of one search, None before the first kernel."""

    way: str
    estimator: str
    seed: int
    problem: str
    history: tuple[float | None, ...]


@frozen
class Job:
    """One way through problems, in their order."""

    way: str
    estimator: str
    seed: int
    problems: tuple[str, ...]


@frozen
class World:
    oracle: Oracle
    problems: dict[str, Problem]
    chips: dict[str, Chip]
    budget: int
    traces: Path

    def search(self, job: Job) -> None:
        """Works through the problems with one memory that begins empty, and keeps each trace."""
        way, chip = job.way, self.chips[job.estimator]
        settings = Settings(budget=self.budget, seed=job.seed, retrieval=MODES.get(way, _retrieval(way)))
        policy = open_policy(POLICIES.get(way, PolicyName.QVALUE))
        proposer = _proposer(way, chip, job.seed, self.oracle)
        with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
            engine = Engine(
                memory, self.oracle, proposer, policy, settings, partial(task_features, target=ASCENDC)
            )
            for name in job.problems:
                result = engine.run(self.problems[name].task, self.budget)
                trace = Trace(way, job.estimator, job.seed, name, result.history)
                with self.traces.open("a", buffering=2**20) as kept:
                    kept.write(json.dumps(to_data(trace)) + "\n")


def _retrieval(way: str) -> RetrievalName:
    return RetrievalName.NONE if way in BASELINES else RetrievalName.Q


def _proposer(way: str, chip: Chip, seed: int, oracle: Oracle) -> Proposer:
    if way not in BASELINES:
        return ScheduleProposer(ascendc(chip))

    def timed(task_id: str, source_id: str) -> float | None:
        verdict = oracle.kept.of(task_id, source_id)
        return verdict.latency.us if verdict and verdict.feasible and verdict.latency else None

    return BASELINES[way](chip, random.Random(f"{way}:{seed}"), timed)


def attempts_to(history: Iterable[float | None], target_us: float, budget: int) -> int:
    """The first attempt at or under the target, ``budget + 1`` where there is none."""
    reached = (n for n, us in enumerate(history, 1) if us is not None and us <= target_us)
    return next(reached, budget + 1)


@frozen
class Interval:
    """A mean and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


def _last(trace: Trace) -> float:
    """The best latency of a search, endless where it found no kernel."""
    return trace.history[-1] or math.inf if trace.history else math.inf


@frozen
class Row:
    """What a way of searching gave: attempts to within 5 % of the best known, how many more or fewer than
    ``random`` on the same problems, the latency at the end over the best known where each search found a
    kernel, and the share of searches that came so close."""

    estimator: str
    way: str
    attempts: Interval
    beyond_random: Interval
    end: Interval
    reached: float


def interval(rows: Sequence[Sequence[float]]) -> Interval:
    """Of numbers, a row a problem, one a seed: problems are drawn anew, then seeds of each."""
    rng = np.random.default_rng(0)
    drawn = np.array([rng.choice(row, size=(RESAMPLES, len(row))).mean(axis=1) for row in rows])
    at = rng.integers(len(rows), size=(len(rows), RESAMPLES))
    low, high = np.quantile(np.take_along_axis(drawn, at, axis=0).mean(axis=0), (0.025, 0.975))
    return Interval(float(np.mean([np.mean(row) for row in rows])), float(low), float(high))


Histories = dict[str, list[Trace]]
"""By problem."""


def summarise(traces: Sequence[Trace], best_us: Callable[[str], float], budget: int) -> list[Row]:
    """A row for each estimator and way."""
    groups: dict[tuple[str, str], Histories] = {}
    for trace in traces:
        if math.isfinite(best_us(trace.problem)):
            by_problem = groups.setdefault((trace.estimator, trace.way), {})
            by_problem.setdefault(trace.problem, []).append(trace)

    def attempts(found: Histories) -> dict[str, list[float]]:
        return {
            name: [float(attempts_to(t.history, CLOSE * best_us(name), budget)) for t in group]
            for name, group in found.items()
        }

    return [
        _row(key, found, attempts(found), attempts(groups.get((key[0], "random"), {})), best_us, budget)
        for key, found in groups.items()
    ]


def _row(
    key: tuple[str, str],
    found: Histories,
    attempts: dict[str, list[float]],
    by_chance: dict[str, list[float]],
    best_us: Callable[[str], float],
    budget: int,
) -> Row:
    ends = [
        [math.log(_last(t) / best_us(name)) for t in group]
        for name, group in found.items()
        if all(math.isfinite(_last(t)) for t in group)
    ]
    beyond = [
        [n - float(np.mean(by_chance[name])) for n in row]
        for name, row in attempts.items()
        if name in by_chance
    ]
    end = interval(ends) if ends else Interval(math.inf, math.inf, math.inf)
    return Row(
        *key,
        interval(list(attempts.values())),
        interval(beyond) if beyond else Interval(math.nan, math.nan, math.nan),
        Interval(*map(math.exp, (end.mean, end.low, end.high))),
        sum(n <= budget for row in attempts.values() for n in row) / sum(map(len, attempts.values())),
    )


def main() -> None:
    args = _arguments()
    args.kept.mkdir(parents=True, exist_ok=True)
    tasks = _tasks(args)
    traces = _kept_traces(args.kept / TRACES)
    if not args.no_search:
        jobs = [job for job in _jobs(args, [item.name for item in tasks]) if not _is_done(job, traces)]
        _search_all(args, jobs)
        traces = _kept_traces(args.kept / TRACES)
    latencies = Latencies(args.kept / LATENCIES)
    latencies.read()
    ids = {item.name: item.task.task_id for item in tasks}
    best = {name: latencies.best_us(id) for name, id in ids.items()}
    rows = summarise(traces, best.__getitem__, args.budget)
    _print(rows, len(tasks), args)
    if args.json:
        args.json.write_text(json.dumps({"summary": _summary(rows)}) + "\n")
    if args.picture:
        draw(_panels(traces, best, args.budget), args.picture)


def _panels(traces: Iterable[Trace], best: dict[str, float], budget: int) -> dict[str, list[Curve]]:
    """Of searches that found a kernel; before a first one counts as that one."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for trace in traces:
        times = [us for us in trace.history if us is not None]
        if times and math.isfinite(best[trace.problem]):
            padded = [*[times[0]] * (len(trace.history) - len(times)), *times]
            padded += [padded[-1]] * (budget - len(padded))
            row = [math.log(us / best[trace.problem]) for us in padded[:budget]]
            found.setdefault(trace.estimator, {}).setdefault(trace.way, []).append(row)
    return {
        estimator: [Curve(way, np.exp(np.mean(rows, axis=0)).tolist()) for way, rows in ways.items()]
        for estimator, ways in sorted(found.items())
    }


def _summary(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, object]]]:
    found: dict[str, dict[str, dict[str, object]]] = {}
    for row in rows:
        found.setdefault(row.estimator, {})[row.way] = {
            "attempts_to_5pct": row.attempts.mean,
            "interval": [row.attempts.low, row.attempts.high],
            "beyond_random": [row.beyond_random.mean, row.beyond_random.low, row.beyond_random.high],
            "best_geomean": row.end.mean,
            "best_interval": [row.end.low, row.end.high],
            "reached": row.reached,
        }
    return found


def _tasks(args: argparse.Namespace) -> list[Problem]:
    if not (args.kept / TASKS).exists():
        files = sorted({file for glob in args.files for file in args.suite.glob(glob)})[:: args.every]
        with Session(_settings(args), args.suite) as session:
            keep_problems(args.kept / TASKS, problems(session, files))
    return kept_tasks(args.kept)


def kept_tasks(folder: Path) -> list[Problem]:
    """The problems of a folder of this benchmark's."""
    return kept_problems(folder / TASKS)


def _settings(args: argparse.Namespace) -> Settings:
    return Settings(budget=args.budget, evaluation=False)  # as `evokernel bench` runs models


def _jobs(args: argparse.Namespace, names: Sequence[str]) -> Iterator[Job]:
    """The long ones first."""
    ways = sorted(args.ways.split(","), key=lambda way: way in ALONE)
    for way in ways:
        for estimator in args.estimator.split(","):
            for seed in range(1 if way in SEEDLESS else args.seeds):
                order = list(names)
                if not args.in_order:
                    random.Random(seed).shuffle(order)
                for part in [(name,) for name in order] if way in ALONE else [tuple(order)]:
                    yield Job(way, estimator, seed, part)


def _is_done(job: Job, traces: Iterable[Trace]) -> bool:
    found = {(trace.way, trace.estimator, trace.seed, trace.problem) for trace in traces}
    return {(job.way, job.estimator, job.seed, name) for name in job.problems} <= found


def _kept_traces(path: Path) -> list[Trace]:
    """The last of each search: one that was ended in the middle of a job is made again with it."""
    lines = path.read_text().splitlines() if path.exists() else []
    traces = [from_data(json.loads(line), Trace) for line in lines]
    return list({(t.way, t.estimator, t.seed, t.problem): t for t in traces}.values())


def _search_all(args: argparse.Namespace, jobs: Sequence[Job]) -> None:
    context = get_context("spawn")
    with ProcessPoolExecutor(args.jobs, context, initializer=_open, initargs=(args,)) as pool:
        for done in as_completed([pool.submit(_search, job) for job in jobs]):
            done.result()


_worlds: list[World] = []
"""Of this process."""


def _open(args: argparse.Namespace) -> None:
    session = Session(_settings(args), args.suite)  # until the process ends
    tasks = {item.name: item for item in _tasks(args)}
    remember_schedules()
    chip = chip_of(session.author.device)
    chips = {"good": chip, "poor": flat(chip)}
    oracle = Oracle(session.verifier(), Latencies(args.kept / LATENCIES))
    _worlds.append(World(oracle, tasks, chips, args.budget, args.kept / TRACES))


def _search(job: Job) -> None:
    _worlds[0].search(job)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", type=Path)
    parser.add_argument("--kept", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--files", nargs="+", default=["level[12]/*.py"], metavar="GLOB")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth of the files")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--estimator", default="good,poor")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--in-order", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--no-search", action="store_true")
    parser.add_argument("--quick", action="store_true", help="every 20th file, 2 seeds, 6 attempts")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--picture", type=Path, metavar="OUT.svg")
    args = parser.parse_args()
    if args.quick:
        args.every, args.seeds, args.budget = 20, 2, 6
    return args


def _print(rows: Iterable[Row], count: int, args: argparse.Namespace) -> None:
    print(f"{count} problems, {args.seeds} seeds, {args.budget} attempts; modelled latencies, 95 % intervals")
    print("| estimator | search | attempts to 5 % | more than random | at the end / best known | reached |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in sorted(rows, key=lambda row: (row.estimator, WAYS.index(row.way))):
        figures = f"{row.attempts} | {row.beyond_random} | {row.end} | {row.reached:.2f}"
        print(f"| {row.estimator} | {row.way} | {figures} |")


if __name__ == "__main__":
    main()
