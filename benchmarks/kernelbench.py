"""How many problems of KernelBench get a verified kernel without a model, and how fast those are.

    python benchmarks/kernelbench.py SUITE [--levels 1,2] [--budget 30] [--patience 3]
                                     [--jobs 2] [--filter GLOB] [--json OUT]
    python benchmarks/kernelbench.py SUITE --folders attention,index,resize
    python benchmarks/kernelbench.py --from RESULT.json [--from ...]

SUITE is the folder ``KernelBench`` of a checkout. Runs ``evokernel bench`` with an empty memory and an
empty kernel cache (``--warm`` keeps the user's), then prints for each level a table by category:
(with ``--folders`` by those folders of another suite, whose names are its categories):
problems verified, the geometric means of bound / best modelled latency (1 is the speed of light), of the
bound of the operations as they were written / best, of eager / best, and of first / best; then every problem
that was not solved, and why. With ``--from`` the tables are made from what a run has written with ``--json``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Problem = dict[str, Any]
EVERY = "all"
EVOKERNEL = Path(sys.executable).with_name("evokernel")


def main() -> int:
    args = _arguments()
    if args.results:
        problems = [item for path in args.results for item in json.loads(path.read_text())["problems"]]
        wall_s = 0.0
    else:
        started = time.monotonic()
        folders = args.folders.split(",") if args.folders else []
        problems = [item for name in folders for item in _run(args, name)] if folders else _run(args)
        wall_s = time.monotonic() - started
    levels = sorted({item["level"] for item in problems})
    for level in levels:
        _print_level(level, [item for item in problems if item["level"] == level])
    _print_failures(problems)
    summary = {level: counted([p for p in problems if p["level"] == level]) for level in levels}
    summary[EVERY] = {**counted(problems), "wall_s": round(wall_s, 1)}
    print(json.dumps(summary[EVERY]))
    if args.json:
        args.json.write_text(json.dumps({"problems": problems, "summary": summary}, indent=1) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", type=Path, nargs="?")
    parser.add_argument("--levels", default="1,2")
    parser.add_argument("--folders", default="", metavar="NAME,NAME", help="instead of levels")
    parser.add_argument("--budget", type=int, default=30)
    parser.add_argument("--patience", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--filter", default="*")
    parser.add_argument("--warm", action="store_true", help="keep memory and caches of the user")
    parser.add_argument("--from", dest="results", type=Path, action="append", metavar="RESULT.json")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if bool(args.suite) == bool(args.results):
        parser.error("give either the folder of the suite or results with --from")
    if args.json and not args.json.absolute().parent.is_dir():
        parser.error(f"{args.json.parent} is no folder to write results to; make it first")
    return args


def _run(args: argparse.Namespace, folder: str = "") -> list[Problem]:
    """The problems of one run of ``evokernel bench``, whose progress goes to standard error: of the
    levels, or of a folder, which is their category then."""
    with tempfile.TemporaryDirectory(prefix="evokernel-bench-") as scratch:
        out = Path(scratch) / "result.json"
        options = {"levels": "" if folder else args.levels, "filter": args.filter, "budget": args.budget,
                   "patience": args.patience, "jobs": args.jobs}  # fmt: skip
        given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        command = [EVOKERNEL, "bench", args.suite / folder, *given, "--json", out]
        environment = os.environ if args.warm else {**os.environ, "EVOKERNEL_HOME": scratch}
        done = subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(done.returncode)  # it has said why
        found: list[Problem] = json.loads(out.read_text())["problems"]
    return [{**item, "category": folder} for item in found] if folder else found


def counted(problems: Sequence[Problem]) -> dict[str, Any]:
    """The figures of a set of problems; the means are over the verified ones, None where there is none."""
    solved = [item for item in problems if item["feasible"]]
    return {
        "problems": len(problems),
        "verified": len(solved),
        "bound_over_best": _mean(solved, lambda p: p["roofline_us"] / p["best_latency_us"]),
        "written_over_best": _mean(
            [item for item in solved if item.get("written_bound_us")],  # older results have none
            lambda p: p["written_bound_us"] / p["best_latency_us"],
        ),
        "eager_over_best": _mean(solved, lambda p: p["baseline_us"] / p["best_latency_us"]),
        "first_over_best": _mean(solved, lambda p: p["first_latency_us"] / p["best_latency_us"]),
        "median_attempts": statistics.median(p["attempts"] for p in solved) if solved else None,
        "problem_seconds": round(sum(item["seconds"] for item in problems), 1),
    }


def _mean(problems: Iterable[Problem], ratio: Callable[[Problem], float]) -> float | None:
    """The geometric mean."""
    found = [ratio(item) for item in problems]
    return statistics.geometric_mean(found) if found else None


def _print_level(level: str, problems: list[Problem]) -> None:
    print(f"\n{level or 'problems'}: latencies are {_sources(problems)}\n")
    print("| category | verified | bound / best | as written / best | eager / best | first / best |")
    print("| --- | --- | --- | --- | --- | --- |")
    for category in [*sorted({item["category"] or "not captured" for item in problems}), EVERY]:
        chosen = [item for item in problems if category in (EVERY, item["category"] or "not captured")]
        row = counted(chosen)
        ratios = ("bound_over_best", "written_over_best", "eager_over_best", "first_over_best")
        figures = " | ".join("" if row[key] is None else f"{row[key]:.2f}" for key in ratios)
        print(f"| {category} | {row['verified']} of {row['problems']} | {figures} |")


def _sources(problems: Iterable[Problem]) -> str:
    """Whether their latencies are modelled or measured; results of before this was written do not say."""
    found = {item.get("latency_source") for item in problems if item["feasible"]} - {None}
    return " or ".join(sorted(found)) or "not known"


def _print_failures(problems: Iterable[Problem]) -> None:
    failed = [item for item in problems if not item["feasible"]]
    print(f"\nNot solved: {len(failed)}")
    for item in failed:
        print(f"- {item['level']} {item['name']}: {item['failed_gate']}: {item['reason'][:300]}")


if __name__ == "__main__":
    sys.exit(main())
