"""Which operators of a public suite get a verified kernel without a model: one row an operator and case.

    python -m benchmarks.suite_tasks --suite DIR [--filter GLOB] [--cases 2] [--budget 2]
                                     [--timeout-s 180] [--files DIR] [--json OUT]
                                     [--rows FILE] [--page OUT.md]

DIR is a checkout of the operators' suite, of which ``tasks/LEVEL/OP/{golden.py,cases.yaml}`` are read. Of
each operator the first cases are taken whose tensors have fewer than 40 million elements together; each is
written as a model file (``--files`` keeps them, and caches) and given to ``evokernel synth`` as a person
would. Cases that OUT has already are not run again, so a run that was ended goes on where it was, and with
``--cases 0`` only what it has is told. ``--rows``: published times of the vendor's calls, beside which
``--page`` puts our modelled figures (suite_reasons.json says why some are slower). Exits with 1 where a case
whose sizes do not depend on data has no verified kernel.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from attrs import frozen

from benchmarks.silicon.cases import NoCase, model_file
from benchmarks.silicon.rows import Row, read_rows
from evokernel_core.hardware.ascend.chip import load_chip

CHIP = "ascend910b2"
MOST_ELEMENTS = 40_000_000
ROOT = Path(__file__).parents[1]
DATA_DEPENDENT = "values of a tensor"
"""What the product says where sizes of results, or the loops that make them, depend on values."""
HOME = "home"
"""The folder beside the model files for memory and caches, empty at first."""
SOLVED = ("verified", "applied")
REASONS = Path(__file__).with_name("suite_reasons.json")
"""By operator, why the vendor's call is faster than our modelled kernel."""
SLOWER = 0.8
"""The vendor's time over ours below which a reason is told."""


@frozen
class Case:
    """One case of an operator; ``data`` is what a row of published times has, without the time."""

    level: str
    op: str
    number: int
    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.op}_{self.number}"


def main() -> int:
    args = _arguments()
    results: dict[str, dict[str, Any]] = {}
    if args.json and args.json.exists():
        results = {row["id"]: row for row in json.loads(args.json.read_text())["rows"]}
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.files or Path(scratch)
        (folder / HOME).mkdir(parents=True, exist_ok=True)
        for case in cases(args.suite, args.filter, args.cases):
            if case.id not in results:
                results[case.id] = _row(case, args, folder)
                _print(results[case.id])
                _write(args.json, results)
    rows = [row for row in results.values() if fnmatch.fnmatchcase(row["op"], args.filter)]
    print(json.dumps(summarised(rows)))
    if args.page:
        args.page.write_text(page(rows, measured(args.rows), json.loads(REASONS.read_text())))
    return int(any(row["status"] not in SOLVED and not _depends_on_data(row) for row in rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", type=Path, required=True)
    parser.add_argument("--filter", default="*", metavar="GLOB", help="only these operators")
    parser.add_argument("--cases", type=int, default=2, metavar="N", help="of each operator")
    parser.add_argument("--budget", type=int, default=2, metavar="T")
    parser.add_argument("--timeout-s", type=float, default=180.0)
    parser.add_argument("--files", type=Path, help="a folder that keeps the model files")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--rows", type=Path, help="published times of the vendor's calls")
    parser.add_argument("--page", type=Path, help="write the page of docs/results")
    return parser.parse_args()


# --- the cases


def cases(suite: Path, pattern: str, count: int) -> Iterator[Case]:
    """The first cases of each operator that are small enough, in the order of levels and names."""
    for file in sorted((suite / "tasks").glob("level*/*/cases.yaml")):
        level, op = file.parts[-3:-1]
        if fnmatch.fnmatchcase(op, pattern):
            given = yaml.safe_load(file.read_text("utf-8"))["cases"]
            small = [data for data in given if elements(data["input_shape"]) < MOST_ELEMENTS]
            yield from (_case(level, op, data) for data in small[:count])


def elements(shapes: Any) -> int:
    """Of a shape, or of shapes in lists of any depth; None is a tensor that is left out."""
    if not isinstance(shapes, list):
        return 0
    if any(isinstance(part, list) or part is None for part in shapes):
        return sum(map(elements, shapes))
    return math.prod(shapes)


def _case(level: str, op: str, data: Mapping[str, Any]) -> Case:
    row = {
        "shapes": data["input_shape"], "dtypes": data["dtype"], "attrs": data.get("attrs") or {},
        "value_range": data.get("value_range"),
    }  # fmt: skip
    return Case(level, op, int(data["case_id"]), row)


# --- one case


def _row(case: Case, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"id": case.id, "level": case.level, "op": case.op, "case": case.number}
    row |= {"budget": args.budget, "commit": _commit()}
    begun = time.monotonic()
    try:
        published = Row(case.id, case.level, 1.0, load_chip(CHIP), op=case.op, data=case.data)
        row |= synthesised(model_file(published, args.suite, args.suite, folder), args, folder / HOME)
    except NoCase as error:
        row |= {"status": "no case", "reason": str(error)}
    return row | {"seconds": round(time.monotonic() - begun, 1)}


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def synthesised(file: Path, args: argparse.Namespace, home: Path) -> dict[str, Any]:
    """What ``evokernel synth`` says of a model file: status, reason, microseconds of the best kernel."""
    code = "import sys; from evokernel_core.cli.main import main; sys.argv[0] = 'evokernel'; sys.exit(main())"
    asked = ["synth", str(file), "--budget", str(args.budget), "--chip", CHIP, "--symbol", "Model.forward"]
    command = [sys.executable, "-P", "-c", code, *asked, "--json"]
    path = os.pathsep.join((str(ROOT), str(ROOT / "server"), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, "EVOKERNEL_HOME": str(home), "PYTHONPATH": path}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, error = process.communicate(timeout=args.timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate()
        return {"status": "timeout", "reason": f"not ready after {args.timeout_s:g} s"}
    if not out.strip():
        return {"status": "error", "reason": " ".join(error.split())[-400:]}
    return told(json.loads(out))


def told(result: Any) -> dict[str, Any]:
    """A row's figures: of the regions of one symbol: verified if all are, or the first that is not."""
    regions = result["regions"] if isinstance(result, dict) else result
    if not regions:
        return {"status": "error", "reason": "no region"}
    first = next((region for region in regions if region["status"] not in SOLVED), regions[0])
    return {
        "status": first["status"], "reason": first["reason"], "regions": len(regions),
        "best_us": _sum(regions, "best_latency_us"), "baseline_us": _sum(regions, "baseline_us"),
    }  # fmt: skip


def _sum(regions: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [region[name] for region in regions]
    return None if None in values else round(sum(values), 2)


# --- what is told


def summarised(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of cases and of operators all of whose cases are verified, the data-dependent ones apart."""
    asked = [row for row in rows if not _depends_on_data(row)]
    ops = {row["op"] for row in asked}
    failed = {row["op"] for row in asked if row["status"] not in SOLVED}
    return {
        "cases": len(asked), "verified": sum(row["status"] in SOLVED for row in asked),
        "operators": len(ops), "verified_operators": len(ops - failed), "failed": sorted(failed),
        "data_dependent": len(rows) - len(asked),
    }  # fmt: skip


def measured(rows: Path | None) -> Mapping[str, float]:
    """Microseconds of the vendor's calls, by operator and case."""
    published = read_rows(rows) if rows else ()
    return {f"{row.op}_{row.data['case']}": row.us for row in published if isinstance(row, Row) and row.op}


def page(rows: Sequence[Mapping[str, Any]], vendor: Mapping[str, float], reasons: Mapping[str, str]) -> str:
    """The page of docs/results."""
    summary, ratios = summarised(rows), _ratios(rows, vendor)
    mean = f"{statistics.geometric_mean(ratios.values()):.2f}" if ratios else "-"
    commits, budgets = (sorted({str(row[key]) for row in rows if key in row}) for key in ("commit", "budget"))
    lines = [
        "# Operators of a public suite", "",
        f"Written by `python -m benchmarks.suite_tasks`; chip {CHIP}, commit {', '.join(commits)}, "
        f"{', '.join(budgets)} attempt(s) a case. Vendor: **measured**; ours: **estimated** "
        "on the same chip, so that their quotient claims no gain.", "",
        f"- Verified: {summary['verified']} of {summary['cases']} cases whose sizes do not depend on data, "
        f"all cases of {summary['verified_operators']} of {summary['operators']} operators; "
        f"{summary['data_dependent']} more depend on data and are refused by name.",
        f"- Measured over estimated, geometric mean of {len(ratios)} cases: {mean}; "
        f"{sum(ratio < SLOWER for ratio in ratios.values())} below {SLOWER}.", "",
        "| case | status | vendor, us | ours, us | vendor / ours |", "|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [_line(row, vendor, ratios) for row in rows]
    slower = sorted({row["op"] for row in rows if ratios.get(row["id"], 1.0) < SLOWER})
    if slower:
        lines += [
            "",
            f"## Below {SLOWER}",
            "",
            *(f"- {op}: {reasons.get(op, 'not looked into')}" for op in slower),
        ]
    failed = [row for row in rows if row["status"] not in SOLVED]
    if failed:
        lines += ["", "## Not verified", "", *(f"- {row['id']}: {row['reason'][:200]}" for row in failed)]
    return "\n".join(lines) + "\n"


def _ratios(rows: Sequence[Mapping[str, Any]], vendor: Mapping[str, float]) -> Mapping[str, float]:
    known = (row for row in rows if row["id"] in vendor and row.get("best_us"))
    return {row["id"]: vendor[row["id"]] / row["best_us"] for row in known}


def _line(row: Mapping[str, Any], vendor: Mapping[str, float], ratios: Mapping[str, float]) -> str:
    figures = vendor.get(row["id"]), row.get("best_us"), ratios.get(row["id"])
    told = " | ".join("-" if figure is None else f"{figure:.2f}" for figure in figures)
    return f"| {row['id']} | {row['status']} | {told} |"


def _depends_on_data(row: Mapping[str, Any]) -> bool:
    return row["status"] not in SOLVED and DATA_DEPENDENT in row["reason"]


def _print(row: Mapping[str, Any]) -> None:
    best = row.get("best_us")
    figure = f"{best:.2f} us" if best else "-"
    print(
        f"{row['id']:34} {row['status']:12} {figure:>12} {row['seconds']:6.1f} s  {row['reason'][:200]}",
        flush=True,
    )


def _write(path: Path | None, results: Mapping[str, Mapping[str, Any]]) -> None:
    if path:
        rows = list(results.values())
        path.write_text(json.dumps({"rows": rows, "summary": summarised(rows)}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
