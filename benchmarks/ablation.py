"""What memory and search are worth: the same problems, attempts and engine, with each way of searching.

    python benchmarks/ablation.py SUITE --kept FILE [--files GLOB ...] [--every N] [--seeds 5] [--budget 20]
        [--estimator good,flat] [--json OUT]

SUITE is a folder of KernelBench-format problems. For every seed each way works through the same problems in
an order drawn by the seed (with ``--in-order`` as they come: level 1 before level 2), with a memory that
begins empty. Every latency that was asked for is kept in FILE and asked for once.

- ``random``, ``top``, ``diverse``, ``evolution``: no memory (benchmarks/searching/baselines.py).
- ``q``, ``similarity``, ``none``: the product, by what it retrieves; ``none`` learns nothing either.
- ``tree``, ``archive``, ...: the product with the other policies, retrieving by value.

With the ``flat`` estimator the author knows a chip's memories and nothing of what its units cost, as on an
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
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from attrs import asdict, frozen

from benchmarks.searching.baselines import Diverse, Evolution, Random, Top
from benchmarks.searching.world import Oracle, Problem, flat, problems, remember_schedules
from evokernel_core.ascendc.features import task_features
from evokernel_core.domain.settings import PolicyName, RetrievalName, Settings
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.policies import open_policy
from evokernel_core.synthesis.proposers.base import Proposer
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.synthesis.session import Session
from evokernel_core.twin.chip import Chip

BASELINES = {"random": Random, "top": Top, "diverse": Diverse, "evolution": Evolution}
MODES = {mode.value: mode for mode in (RetrievalName.Q, RetrievalName.SIMILARITY, RetrievalName.NONE)}
POLICIES = {policy.value: policy for policy in PolicyName if policy is not PolicyName.QVALUE}
WAYS = (*BASELINES, *MODES, *POLICIES)
CLOSE = 1.05
RESAMPLES = 2000


@frozen
class Trace:
    """The best latency after each attempt of one search, None before the first kernel."""

    way: str
    estimator: str
    seed: int
    problem: str
    history: tuple[float | None, ...]


@frozen
class World:
    oracle: Oracle
    problems: Sequence[Problem]
    budget: int
    in_order: bool

    def search(self, way: str, estimator: str, chip: Chip, seed: int) -> list[Trace]:
        """Works through the problems with one memory that begins empty."""
        order = list(self.problems)
        if not self.in_order:
            random.Random(seed).shuffle(order)
        settings = Settings(budget=self.budget, seed=seed, retrieval=MODES.get(way, _retrieval(way)))
        policy = open_policy(POLICIES.get(way, PolicyName.QVALUE))
        proposer = _proposer(way, chip, seed, self.oracle)
        traces = []
        with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
            engine = Engine(memory, self.oracle, proposer, policy, settings, task_features)
            for item in order:
                result = engine.run(item.task, self.budget)
                traces.append(Trace(way, estimator, seed, item.name, result.history))
        return traces


def _retrieval(way: str) -> RetrievalName:
    return RetrievalName.NONE if way in BASELINES else RetrievalName.Q


def _proposer(way: str, chip: Chip, seed: int, oracle: Oracle) -> Proposer:
    if way not in BASELINES:
        return ScheduleProposer(chip)

    def timed(task_id: str, source_id: str) -> float | None:
        verdict = oracle.known.get((task_id, source_id))
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
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


def _last(trace: Trace) -> float:
    """The best latency of a search, endless where it found no kernel."""
    return trace.history[-1] or math.inf if trace.history else math.inf


@frozen
class Row:
    """What a way of searching gave: attempts to within 5 % of the best known, latency at the end over that
    where each search found one,
    and the share of searches that came so close."""

    estimator: str
    way: str
    attempts: Interval
    end: Interval
    reached: float


def interval(rows: Sequence[Sequence[float]]) -> Interval:
    """Of one number a problem and seed, a row a problem: problems are drawn anew, then seeds of each."""
    values = np.array(rows)
    rng = np.random.default_rng(0)
    at = rng.integers(len(values), size=(RESAMPLES, len(values)))
    within = rng.integers(values.shape[1], size=(RESAMPLES, len(values), values.shape[1]))
    means = np.take_along_axis(values[at], within, axis=2).mean(axis=(1, 2))
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(values.mean()), float(low), float(high))


def summarise(traces: Sequence[Trace], best_us: Callable[[str], float], budget: int) -> list[Row]:
    """A row for each estimator and way."""
    rows: list[Row] = []
    for estimator, way in dict.fromkeys((trace.estimator, trace.way) for trace in traces):
        by_problem: dict[str, list[Trace]] = {}
        for trace in traces:
            if (trace.estimator, trace.way) == (estimator, way):
                by_problem.setdefault(trace.problem, []).append(trace)
        found = {name: group for name, group in by_problem.items() if math.isfinite(best_us(name))}
        reached = [
            [float(attempts_to(t.history, CLOSE * best_us(name), budget)) for t in group]
            for name, group in found.items()
        ]
        ends = [
            [math.log(_last(t) / best_us(name)) for t in group]
            for name, group in found.items()
            if all(math.isfinite(_last(t)) for t in group)
        ]
        end = interval(ends)
        rows.append(
            Row(
                estimator,
                way,
                interval(reached),
                Interval(*map(math.exp, (end.mean, end.low, end.high))),
                sum(n <= budget for row in reached for n in row) / sum(map(len, reached)),
            )
        )
    return rows


def main() -> None:
    args = _arguments()
    files = sorted({file for glob in args.files for file in args.suite.glob(glob)})[:: args.every]
    settings = Settings(budget=args.budget, evaluation=False)  # as `evokernel bench` runs models
    traces: list[Trace] = []
    with Session(settings, args.suite) as session:
        tasks = list(problems(session, files))
        world = World(Oracle(session.verifier(), args.kept), tasks, args.budget, args.in_order)
        remember_schedules()
        chips = {"good": session.chip, "flat": flat(session.chip)}
        for estimator in args.estimator.split(","):
            for way in args.ways.split(","):
                for seed in range(args.seeds):
                    traces += world.search(way, estimator, chips[estimator], seed)
                print(f"{estimator} {way}: {world.oracle.asked} timed", file=sys.stderr)
    ids = {item.name: item.task.task_id for item in tasks}
    rows = summarise(traces, lambda name: world.oracle.best_us(ids[name]), args.budget)
    _print(rows, len(tasks), args)
    if args.json:
        data = {"budget": args.budget, "seeds": args.seeds, "traces": [asdict(t) for t in traces]}
        args.json.write_text(json.dumps(data) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", type=Path)
    parser.add_argument("--kept", type=Path, required=True, metavar="FILE")
    parser.add_argument("--files", nargs="+", default=["level[12]/*.py"], metavar="GLOB")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth of the files")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--estimator", default="good,flat")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--in-order", action="store_true")
    parser.add_argument("--json", type=Path, metavar="OUT")
    return parser.parse_args()


def _print(rows: Iterable[Row], count: int, args: argparse.Namespace) -> None:
    print(f"{count} problems, {args.seeds} seeds, {args.budget} attempts; modelled latencies, 95 % intervals")
    print("| estimator | search | attempts to 5 % | at the end / best known | reached |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row.estimator} | {row.way} | {row.attempts} | {row.end} | {row.reached:.2f} |")


if __name__ == "__main__":
    main()
