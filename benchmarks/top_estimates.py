"""What a search gains over the estimator alone: the best of N attempts beside the best of the schedules that
estimates rank first.

    python benchmarks/top_estimates.py SUITE --from RESULT [--levels 2] [--filter GLOB] [--top 12]

SUITE is a folder of KernelBench-format problems, a folder a level, RESULT what `evokernel bench --json` wrote
of a search over them. Of each problem the first draft and every kernel one move away from it are ranked by
their estimates, and the first ``--top`` are compiled and timed, none of them compared with PyTorch. All times
are modelled.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import asdict, frozen

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import chip_of
from evokernel_core.synthesis.problems import whole_forward
from evokernel_core.synthesis.session import Session, Settings
from evokernel_core.targets.ascendc import author
from evokernel_core.verifier.base import Verifier


@frozen
class Row:
    """A problem: the best of the search, the best of ``timed`` schedules of the lowest estimates, in
    microseconds."""

    problem: str
    searched_us: float
    ranked_us: float
    timed: int

    @property
    def gain(self) -> float:
        return self.ranked_us / self.searched_us


def ranked(task: KernelTask, session: Session) -> list[KernelSource]:
    """The first draft and the kernels one move away, by their estimates; each text once."""
    chip = chip_of(session.author.device)
    draft = author.initial(task, chip)
    strategies = [draft, *(move.strategy for move in author.moves(task, draft, chip))]
    estimates = [(author.estimate_us(task, item, chip), place) for place, item in enumerate(strategies)]
    sources: dict[str, KernelSource] = {}
    for _, place in sorted(estimates):
        source = _written(task, strategies[place], session)
        if source is not None:
            sources.setdefault(source.source_id, source)
    return list(sources.values())


def _written(task: KernelTask, strategy: Strategy, session: Session) -> KernelSource | None:
    try:
        return author.write(task, strategy, chip_of(session.author.device))
    except EvoKernelError:
        return None


def fastest_us(task: KernelTask, sources: Iterable[KernelSource], verifier: Verifier) -> float:
    """The least modelled time: nothing takes less than no time, so that each is timed and not compared."""
    verdicts = [verifier.verify(task, source, below_us=0.0) for source in sources]
    return min((v.latency.us for v in verdicts if v.latency is not None), default=float("inf"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", type=Path)
    parser.add_argument("--from", dest="result", type=Path, required=True)
    parser.add_argument("--levels", default="2")
    parser.add_argument("--filter", default="*")
    parser.add_argument("--top", type=int, default=12)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    searched = _searched(args.result)
    folders = [f"level{level}" for level in args.levels.split(",")]
    files = [file for folder in folders for file in sorted((args.suite / folder).glob(f"{args.filter}.py"))]
    known = [file for file in files if f"{file.parent.name}/{file.stem}" in searched]
    with Session(Settings(evaluation=False), args.suite) as session:  # as `evokernel bench` runs models
        rows = [row for file in known for row in _rows(session, file, searched, args.top)]
    _print(rows)
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def _searched(result: Path) -> dict[str, float]:
    """By problem what a search found."""
    problems = json.loads(result.read_text())["problems"]
    return {f"{p['level']}/{p['name']}": p["best_latency_us"] for p in problems if p["feasible"]}


def _rows(session: Session, file: Path, searched: Mapping[str, float], top: int) -> Iterator[Row]:
    """A problem of one region; what cannot be planned or timed is named and left out."""
    name = f"{file.parent.name}/{file.stem}"
    try:
        region, reason = whole_forward(session, file, session.agent.calls(file).symbol, 0)
        if region is None or region.task is None:
            print(f"{name}: {reason}")
        else:
            sources = ranked(region.task, session)[:top]
            yield Row(
                name, searched[name], fastest_us(region.task, sources, session.verifier()), len(sources)
            )
    except EvoKernelError as error:
        print(f"{name}: {error}")


def _print(rows: Sequence[Row]) -> None:
    print("| problem | searched, us | of the first by estimates, us | timed | gain |")
    print("| --- | --- | --- | --- | --- |")
    for row in sorted(rows, key=lambda item: -item.gain):
        figures = f"{row.searched_us:,.1f} | {row.ranked_us:,.1f} | {row.timed} | {row.gain:.3f}"
        print(f"| {row.problem} | {figures} |")
    if rows:
        mean = math.exp(math.fsum(math.log(row.gain) for row in rows) / len(rows))
        print(f"\nGeometric mean of the gain over {len(rows)} problems: {mean:.4f}.")


if __name__ == "__main__":
    main()
