"""What learned values are worth: the same regions, budget and engine, with each way of retrieving.

For every retrieval mode a fresh memory works through the regions of the example models in the same
order. Printed per mode: the mean number of attempts until a kernel is within 5 % of the best latency
that any mode found for the region (budget + 1 where it never is), and the share of regions with a
verified kernel. Latencies are modelled by the twin; nothing here ran on hardware.

    python benchmarks/ablation.py [--quick] [--json OUT]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from attrs import evolve, frozen

from evokernel_core.domain.region import Region
from evokernel_core.domain.settings import RetrievalName, Settings
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.session import Session

EXAMPLES = Path(__file__).parent.parent / "examples"
MODELS = ("transformer_block.py", "cnn_head.py", "training_loss.py")


@frozen
class Trace:
    """The best latency after each attempt on one region, None before the first verified kernel."""

    region: str
    history: tuple[float | None, ...]

    @property
    def best_us(self) -> float | None:
        return self.history[-1] if self.history else None


def regions_of(session: Session, files: Iterable[Path]) -> list[Region]:
    """One region per task: two regions with the same task would measure the cache."""
    found: dict[str, Region] = {}
    for file in files:
        for region in session.regions(file):
            if region.task is not None:
                found.setdefault(region.task.task_id, region)
    return list(found.values())


def run_mode(mode: RetrievalName, settings: Settings, files: Iterable[Path]) -> list[Trace]:
    """Works through all regions with one memory that begins empty."""
    traces = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(Path(folder) / "memory.db") as memory,
        Session(evolve(settings, retrieval=mode), EXAMPLES, memory) as session,
    ):
        for region in regions_of(session, files):
            result = session.synthesise(region, settings.budget)
            traces.append(Trace(region.id, result.history))
            print(f"{mode.value}: {region.symbol} {result.attempts} attempts", file=sys.stderr)
    return traces


def attempts_to(history: Iterable[float | None], target_us: float, budget: int) -> int:
    """The first attempt at or under the target, ``budget + 1`` where there is none."""
    reached = (n for n, us in enumerate(history, 1) if us is not None and us <= target_us)
    return next(reached, budget + 1)


def summarise(traces: dict[str, list[Trace]], budget: int) -> dict[str, dict[str, float | None]]:
    """Per mode ``attempts_to_5pct`` and ``feasible_rate``."""
    best: dict[str, float] = {}
    for trace in (trace for found in traces.values() for trace in found):
        if trace.best_us is not None:
            best[trace.region] = min(best.get(trace.region, trace.best_us), trace.best_us)
    summary: dict[str, dict[str, float | None]] = {}
    for mode, found in traces.items():
        reached = [
            attempts_to(trace.history, 1.05 * best[trace.region], budget)
            for trace in found
            if trace.region in best
        ]
        summary[mode] = {
            "attempts_to_5pct": statistics.mean(reached) if reached else None,
            "feasible_rate": sum(trace.best_us is not None for trace in found) / max(len(found), 1),
        }
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one example and a budget of 8, not 20")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the result to this file")
    arguments = parser.parse_args()
    budget = 8 if arguments.quick else 20
    files = [EXAMPLES / name for name in (MODELS[:1] if arguments.quick else MODELS)]
    settings = Settings(budget=budget)
    traces = {mode.value: run_mode(mode, settings, files) for mode in RetrievalName}
    summary = summarise(traces, budget)
    for mode, row in summary.items():
        print(
            f"{mode:12s} attempts_to_5pct {row['attempts_to_5pct']}  feasible_rate {row['feasible_rate']:.2f}"
        )
    if arguments.json:
        histories = {mode: {t.region: t.history for t in found} for mode, found in traces.items()}
        data = {"budget": budget, "histories": histories, "summary": summary}
        arguments.json.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
