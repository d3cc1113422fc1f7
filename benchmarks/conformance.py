"""Runs the public asc-devkit samples on the twin and says which pass, and why the others do not.

Each sample runs in a scratch copy just as its README says: its CMakeLists.txt gives sources, macros
and folders, its own scripts make the data and judge the result. Samples whose README does not list
Atlas A2, or whose build file refuses dav-2201, are outside of the denominator, as are those that
need something else (a package, a tool); both are decided by what their files say, never by name.

    python benchmarks/conformance.py --samples DIR [--filter GLOB] [--scenarios all] [--json OUT]

DIR is a checkout of the repository, its ``examples`` folder or ``examples/01_simd_cpp_api``.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from asc_samples.execute import Outcome, Run, run_recipe
from asc_samples.groups import Group, group_of
from asc_samples.readme import Readme, read_readme, recipe, steps
from attrs import frozen

_SIMD = "01_simd_cpp_api"


@frozen
class Sample:
    """A sample of the checkout: its folder and its name, the path below the samples' folder."""

    name: str
    folder: Path
    group: Group
    readme: Readme


@frozen
class Verdict:
    """A sample with what came of each of its scenarios that ran."""

    sample: Sample
    outcome: Outcome
    reason: str
    runs: tuple[tuple[str, Run], ...] = ()

    def row(self) -> dict[str, Any]:
        """As JSON: one object."""
        return {
            "sample": self.sample.name,
            "group": str(self.sample.group),
            "status": str(self.outcome),
            "reason": self.reason,
            "seconds": round(sum(run.seconds for _, run in self.runs), 2),
            "scenarios": {name: str(run.outcome) for name, run in self.runs},
        }


def samples_folder(path: Path) -> Path:
    """The folder of the SIMD samples of a checkout. Exits where there is none."""
    for candidate in (path / "examples" / _SIMD, path / _SIMD, path):
        if any(candidate.glob("*/*/CMakeLists.txt")) or any(candidate.glob("*/*/*/CMakeLists.txt")):
            return candidate
    sys.exit(f"{path} holds no samples; give a checkout of asc-devkit or its examples/{_SIMD}.")


def find_samples(root: Path, pattern: str) -> Iterator[Sample]:
    """Every outermost folder with a CMakeLists.txt, sorted; folders inside one are parts of it."""
    taken: list[Path] = []
    for file in sorted(root.rglob("CMakeLists.txt"), key=lambda path: (len(path.parts), path)):
        if not any(parent in taken for parent in file.parents):
            taken.append(file.parent)
    for folder in sorted(taken):
        name = str(folder.relative_to(root))
        if fnmatch.fnmatch(name, pattern):
            yield Sample(name, folder, group_of(folder), read_readme(folder))


def scenarios(sample: Sample, every: bool) -> list[Mapping[str, str]]:
    """The settings to run with: the README's own, and each other value of its scenario variable."""
    if not every:
        return [{}]
    text = " ".join(" ".join(step.words) for step in steps(recipe(sample.readme), {}))
    for name, values in sample.readme.options.items():
        if name.startswith(("SCENARIO", "CASE")) and len(values) > 1 and f"-D{name}=" in text:
            return [{name: value} for value in values]
    return [{}]


def judge(sample: Sample, every: bool, limit_s: float) -> Verdict:
    """Runs one sample; its first scenario that does not pass decides."""
    if sample.readme.names_a2() is False:
        return Verdict(sample, Outcome.NOT_A2, "its README does not list Atlas A2")
    runs: list[tuple[str, Run]] = []
    for overrides in scenarios(sample, every):
        with tempfile.TemporaryDirectory(prefix="evokernel-sample-") as scratch:
            folder = Path(scratch) / sample.folder.name
            shutil.copytree(sample.folder, folder, ignore=shutil.ignore_patterns("figures", "*.png", "build"))
            run = run_recipe(folder, sample.readme, overrides, limit_s)
        runs.append((" ".join(f"{name}={value}" for name, value in overrides.items()) or "default", run))
    counted = [run for _, run in runs if run.outcome is not Outcome.NOT_A2]
    worst = next((run for run in counted if run.outcome is not Outcome.PASS), None)
    first = worst or (counted[0] if counted else runs[0][1])
    return Verdict(sample, first.outcome, first.reason and f"{first.stage}: {first.reason}", tuple(runs))


def summary(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The rates of the groups over the samples that can run here, and how many came out how."""

    def rate(*groups: Group) -> float | None:
        mine = [verdict.outcome for verdict in verdicts if verdict.sample.group in groups]
        passed, failed = mine.count(Outcome.PASS), mine.count(Outcome.FAIL)
        return round(passed / (passed + failed), 4) if passed + failed else None

    counts = Counter((str(verdict.sample.group), str(verdict.outcome)) for verdict in verdicts)
    return {
        "vector_cube_rate": rate(Group.VECTOR, Group.CUBE),
        "matmul_rate": rate(Group.MATMUL),
        "high_level_rate": rate(Group.HIGH_LEVEL),
        "counts": {
            str(group): {str(outcome): counts[str(group), str(outcome)] for outcome in Outcome}
            for group in Group
        },
    }


def main() -> None:
    """Runs the samples, prints the table and the summary; exit status 1 where nothing matched."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=Path, required=True)
    parser.add_argument("--filter", default="*", help="run the samples whose path matches")
    parser.add_argument("--scenarios", choices=("default", "all"), default="default")
    parser.add_argument("--json", type=Path, dest="json_path")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--limit", type=float, default=300.0, help="seconds that one program or script may take"
    )
    options = parser.parse_args()
    found = list(find_samples(samples_folder(options.samples), options.filter))
    if not found:
        sys.exit(f"No sample matches {options.filter!r}.")
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for verdict in pool.map(
            lambda sample: judge(sample, options.scenarios == "all", options.limit), found
        ):
            verdicts.append(verdict)
            took = sum(run.seconds for _, run in verdict.runs)
            first_line = verdict.reason.strip().partition("\n")[0][:240]
            head = f"{verdict.outcome:7}{verdict.sample.group:14}{took:7.1f} s"
            print(f"{head}  {verdict.sample.name}  {first_line}", flush=True)
    report = {"samples": [verdict.row() for verdict in verdicts], "summary": summary(verdicts)}
    print(json.dumps(report["summary"]))
    if options.json_path:
        options.json_path.write_text(json.dumps(report, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
