"""What verdicts on other problems do to the error of estimates: the residual model on problems it never saw.

    python -m benchmarks.residual KEPT [--verdicts 0 10 50 120] [--draws 5] [--json OUT]

KEPT is a folder that `benchmarks.ablation` kept. Of each of its problems the first draft and every schedule
one move away are matched with the latencies that are kept. Then, for each problem whose family others share,
the model learns from N verdicts drawn from the other problems of the family, and is asked for this one's.
Printed for the good and the poor estimator (see benchmarks.ablation): how far a problem's verdicts are from
what is expected of them, as a factor (median of a problem, mean over problems), and how well schedules of a
problem are put in order (Spearman's rank correlation).
All latencies are modelled by the twin; nothing here ran on hardware.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median

from attrs import asdict, frozen
from scipy.stats import spearmanr

from benchmarks.ablation import LATENCIES, kept_tasks
from benchmarks.searching.baselines import Space, record
from benchmarks.searching.world import Latencies, Problem, flat
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.synthesis.residual import learned

FEWEST = 3
"""Schedules with a verdict that a problem needs to be asked about."""


@frozen
class Row:
    """``error`` is the mean over problems of their medians of |log(verdict / expected)|, ``order`` the mean
    rank correlation."""

    estimator: str
    verdicts: int
    problems: int
    error: float
    order: float

    @property
    def factor(self) -> float:
        return math.exp(self.error)


def records_of(problem: Problem, latencies: Latencies, chip: Chip) -> list[TuningRecord]:
    """Of the first draft and the schedules one move away, those with a verdict."""
    space, found = Space(problem.task, chip), {}
    draft = space.draft()
    for item in (draft, *space.near(draft)):
        verdict = latencies.of(problem.task.task_id, item.source.source_id)
        if verdict is not None and verdict.feasible and verdict.latency:
            found[item.source.source_id] = record(problem.task, item, verdict.latency.us, chip)
    return list(found.values())


def unseen(
    groups: Sequence[Sequence[TuningRecord]], verdicts: int, draws: int
) -> Iterator[tuple[float, float]]:
    """Error and order for each problem and draw, learned from others of its family."""
    for place, group in enumerate(groups):
        family = group[0].family
        others = [item for n, other in enumerate(groups) if n != place for item in other]
        same = [item for item in others if item.family == family]
        if len(same) < FEWEST:
            continue
        for seed in range(draws):
            drawn = random.Random(seed).sample(same, min(verdicts, len(same)))
            expected = learned(drawn).of([dict(item.features) for item in group])
            left = [abs(item.residual - e.mean) for item, e in zip(group, expected, strict=True)]
            said = [math.log(item.estimate_us) + e.mean for item, e in zip(group, expected, strict=True)]
            yield median(left), _order(said, [item.latency_us or 0.0 for item in group])


def _order(said: Sequence[float], came: Sequence[float]) -> float:
    """Rank correlation; 0 where all schedules are said to take as long."""
    if len(set(said)) == 1 or len(set(came)) == 1:
        return 0.0
    return float(spearmanr(said, came).statistic)


def rows(kept: Path, verdicts: Sequence[int], draws: int) -> Iterator[Row]:
    tasks, latencies = kept_tasks(kept), Latencies(kept / LATENCIES)
    latencies.read()
    chip = load_chip("ascend910b1")
    for name, view in (("good", chip), ("poor", flat(chip))):
        groups = [found for item in tasks if len(found := records_of(item, latencies, view)) >= FEWEST]
        for count in verdicts:
            results = list(unseen(groups, count, draws if count else 1))
            errors, orders = zip(*results, strict=True)
            yield Row(name, count, len(results) // (draws if count else 1), fmean(errors), fmean(orders))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kept", type=Path)
    parser.add_argument("--verdicts", type=int, nargs="+", default=[0, 10, 50, 120])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="OUT")
    args = parser.parse_args()
    found = []
    print("| estimator | verdicts | unseen problems | off by a factor of | rank correlation |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows(args.kept, args.verdicts, args.draws):
        found.append(row)
        print(f"| {row.estimator} | {row.verdicts} | {row.problems} | {row.factor:.3f} | {row.order:.2f} |")
    if args.json:
        args.json.write_text(json.dumps({"summary": [asdict(row) for row in found]}) + "\n")


if __name__ == "__main__":
    main()
