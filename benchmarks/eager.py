"""What the product models for eager PyTorch and for a vendor's calls, beside published times of real chips.

    python -m benchmarks.eager --rows FILE --kernelbench DIR --suite DIR [--tasks DIR] [--json OUT]
                               [--picture OUT.svg] [--page OUT.md] [--catalogue OUT] [--fit]

FILE has a row for each measured case (benchmarks/silicon/rows.py). ``--kernelbench``: the folder with the
levels' folders of the commit that was measured; ``--suite``: a checkout of the operators' suite. Each row's
code is captured once (``--tasks`` keeps the graphs for later runs). Compared are problems op by op, operators
as the vendor's call, and the first draft of our kernel on the row's chip. No measured figure of a catalogue
is used. ``--fit`` prints the constants of the chip file's section ``eager`` fitted anew to all rows, and of
fits that leave out a quarter of the operators and of the problems each the figures and the intervals of what
was left out (minutes of a core).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from attrs import asdict, evolve, frozen
from scipy.stats import spearmanr

from benchmarks.latency.picture import Point, draw
from benchmarks.silicon.cases import NoCase, model_file
from benchmarks.silicon.fit import Pair, fit, rows_behind
from benchmarks.silicon.rows import Refused, Row, read_rows
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.accuracy import ANY_SPREAD, EAGER_SPREAD, eager_spread, error_of_quotient
from evokernel_core.hardware.ascend.calls import operations
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.eager import eager_us, fused_us
from evokernel_core.synthesis.offers import gain_of
from evokernel_core.targets.ascendc.target import ASCENDC

_PARTS, _SEED = 4, 38
_LEAST_ROWS = 10
WORTH = 1.19
"""How many times as fast a kernel is that should not be missed."""


@frozen
class Compared:
    """Microseconds: measured, as modelled, and of our first draft; None where none is written. ``kind``: the
    category of the task."""

    row: Row
    category: str
    modelled: float
    ours: float | None
    kind: str = ""

    @property
    def factor(self) -> float:
        return math.exp(abs(math.log(self.modelled / self.row.us)))

    @property
    def is_offered(self) -> bool:
        error = error_of_quotient(eager_spread(self.kind)[0])
        return self.ours is not None and gain_of(self.modelled, self.ours) > error


def main() -> int:
    args = _arguments()
    lines = tuple(read_rows(args.rows))
    rows = [line for line in lines if isinstance(line, Row)]
    refused = [line for line in lines if isinstance(line, Refused)]
    for line in refused:
        print(f"{args.rows}, line {line.line}: left out, {line.reason}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        tasks = captured(rows, args, Path(args.tasks or folder))
    pairs = [(row, task) for row in rows if isinstance(task := tasks[row.id], KernelTask)]
    if args.fit:
        return _fitted(pairs)
    compared, left_out = [], {}
    for row in rows:
        result = compare(row, tasks[row.id])
        if isinstance(result, str):
            left_out[row.id] = result
        else:
            compared.append(result)
    summary = {"rows": len(rows) + len(refused), **summarised(compared, pairs), "refused": len(refused)}
    _print(compared, left_out, summary)
    if args.json:
        told = [_data(item) for item in compared]
        args.json.write_text(
            json.dumps({"summary": summary, "rows": told, "left_out": left_out}, indent=1) + "\n"
        )
    if args.picture:
        points = (Point(item.row.us, item.modelled, "fitted", item.row.id) for item in compared)
        draw(points, args.picture)
    if args.catalogue:
        args.catalogue.write_text(json.dumps(catalogue(pairs), indent=0, sort_keys=True) + "\n")
    if args.page:
        args.page.write_text(page(compared, left_out, summary))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--kernelbench", type=Path, required=True)
    parser.add_argument("--suite", type=Path, required=True)
    parser.add_argument("--tasks", type=Path, help="a folder that keeps captured graphs")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument(
        "--catalogue", type=Path, help="write the measured times of tasks as the product reads them"
    )
    parser.add_argument("--fit", action="store_true")
    return parser.parse_args()


# --- the code of the rows


def captured(rows: Sequence[Row], args: argparse.Namespace, folder: Path) -> Mapping[str, KernelTask | str]:
    """The graph of each row's function, or why there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {op: "kernel" for op in dir(torch.ops.aten) if not op.startswith("_" * 2)} | dict(
        covered_ops(ASCENDC)
    )
    result: dict[str, KernelTask | str] = {}
    with AgentClient(sys.executable, evaluation=False) as agent:
        for row in rows:
            kept = folder / f"{row.id}.json"
            if not kept.exists():
                kept.write_text(json.dumps(_capture(agent, row, args, folder, known)))
            data = json.loads(kept.read_text())
            result[row.id] = from_data(data["task"], KernelTask) if "task" in data else data["reason"]
    return result


def _capture(
    agent: AgentClient, row: Row, args: argparse.Namespace, folder: Path, known: Mapping[str, str]
) -> Mapping[str, Any]:
    try:
        file = model_file(row, args.kernelbench, args.suite, folder)
        regions = agent.capture(file, None, known, "Model.forward", whole=True)
    except (NoCase, EvoKernelError) as error:
        return {"reason": str(error)}
    whole = [region for region in regions if region.symbol == "Model.forward"]
    task = next((region.task for region in whole if region.task is not None), None)
    if task is None:
        return {"reason": " ".join(str(region.reason) for region in whole) or "nothing was captured"}
    return {"task": to_data(task)}


# --- what is compared


def compare(row: Row, task: KernelTask | str) -> Compared | str:
    """A row beside the model, or why it is not compared."""
    if isinstance(task, str):
        return task
    modelled = modelled_us(row, task, row.chip)
    if modelled <= 0:
        return "its graph computes nothing"
    category = row.op if row.is_operator else f"{row.level} {task.op_category}"
    return Compared(row, category, modelled, _draft_us(task, row), task.op_category)


def modelled_us(row: Row, task: KernelTask, chip: Chip) -> float:
    """An operator as the vendor's one kernel, where it has one; others and problems op by op."""
    return fused_us(task, chip) if row.is_fused else eager_us(task, chip)


def _draft_us(task: KernelTask, row: Row) -> float | None:
    author = KernelAuthor(ASCENDC, row.chip)
    try:
        return author.estimate_us(task, author.initial(task))
    except (EvoKernelError, ArithmeticError):
        return None


def summarised(compared: Sequence[Compared], pairs: Sequence[Pair]) -> dict[str, Any]:
    """The statistics over all rows, and by category."""
    categories = sorted({item.category for item in compared})
    by = {name: _statistics([item for item in compared if item.category == name]) for name in categories}
    wrong = sum(item.is_offered and item.row.us <= (item.ours or math.inf) for item in compared)
    missed = sum(
        item.ours is not None and not item.is_offered and item.row.us >= WORTH * item.ours
        for item in compared
    )
    return {
        **_statistics(compared), "wrong_offers": wrong, "missed_offers": missed,
        "by_category": by, "intervals": {**EAGER_SPREAD, "all": ANY_SPREAD},
        "constants": _constants(compared, pairs) if compared else {},
    }  # fmt: skip


def _statistics(compared: Sequence[Compared]) -> dict[str, Any]:
    factors = [item.factor for item in compared]
    ratios = [math.log(item.modelled / item.row.us) for item in compared]
    ours = [item.row.us / item.ours for item in compared if item.ours]
    correlation = 1.0
    if len(compared) > 2:
        correlation = spearmanr([c.modelled for c in compared], [c.row.us for c in compared]).statistic
    return {
        "compared": len(compared),
        "median_factor": round(statistics.median(factors), 3) if factors else None,
        "spearman": round(float(correlation), 3),
        "within_1_25": round(sum(factor <= 1.25 for factor in factors) / max(len(factors), 1), 3),
        "within_1_5": round(sum(factor <= 1.5 for factor in factors) / max(len(factors), 1), 3),
        "modelled_over_measured": round(math.exp(statistics.fmean(ratios)), 3) if ratios else None,
        "measured_over_ours": round(statistics.geometric_mean(ours), 2) if ours else None,
    }


def intervals(compared: Sequence[Compared]) -> Mapping[str, Sequence[float]]:
    """By category of the tasks, between which factors of the model half of the measured figures lie; those of
    ten rows and more, and of all. They say how far the model is from what it was not fitted to only of rows
    that were left out."""
    ratios: dict[str, list[float]] = {"all": [item.row.us / item.modelled for item in compared]}
    for item in compared:
        ratios.setdefault(item.kind, []).append(item.row.us / item.modelled)
    enough = {kind: values for kind, values in sorted(ratios.items()) if len(values) >= _LEAST_ROWS}
    return {kind: _quartiles(values) for kind, values in enough.items()}


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    low, _, high = statistics.quantiles(map(math.log, values), n=4, method="inclusive")
    return round(math.exp(low), 2), round(math.exp(high), 2)


def _constants(compared: Sequence[Compared], pairs: Sequence[Pair]) -> Mapping[str, Any]:
    """Of the first row's chip: each value, and how many rows it is behind."""
    chip = compared[0].row.chip
    names = {item.row.id for item in compared}
    rows = rows_behind([pair for pair in pairs if pair[0].id in names], chip, modelled_us)
    return {name: {"value": getattr(chip.eager, name), "rows": count} for name, count in rows.items()}


def catalogue(pairs: Sequence[Pair]) -> Mapping[str, Mapping[str, tuple[float, str]]]:
    """What ``hardware.ascend.measured`` reads: rows that are eager PyTorch, problems and calls of one
    operation; what a vendor's fused call takes says nothing of the ops one by one."""
    result: dict[str, dict[str, tuple[float, str]]] = {}
    for row, task in pairs:
        if not row.is_operator or len(operations(task.graph, task.sizes)) == 1:
            source = f"{row.data['suite']}, {row.problem or row.op + ' ' + str(row.data['case'])}"
            result.setdefault(row.chip.name, {})[task.task_id] = (row.us, source)
    return result


# --- the constants


def _fitted(pairs: Sequence[Pair]) -> int:
    """Prints what a fit to all rows gives, and what fits to three quarters say of the rest."""
    known = [(row, task) for row, task in pairs if modelled_us(row, task, row.chip) > 0]
    chip = known[0][0].chip
    groups = sorted({row.op or row.id for row, _ in known})
    Random(_SEED).shuffle(groups)
    held: list[Compared] = []
    for part in range(_PARTS):
        out = set(groups[part::_PARTS])
        costs = fit([pair for pair in known if (pair[0].op or pair[0].id) not in out], chip, modelled_us)
        other = evolve(chip, eager=costs)
        held += [
            Compared(row, row.op or row.level, modelled_us(row, task, other), None, task.op_category)
            for row, task in known
            if (row.op or row.id) in out
        ]
        print(f"{part + 1} of {_PARTS} parts left out", file=sys.stderr, flush=True)
    told = {"constants": asdict(fit(known, chip, modelled_us)), "held_out": _statistics(held)}
    print(json.dumps({**told, "intervals": intervals(held)}, indent=1))
    return 0


# --- what is told


def _data(item: Compared) -> dict[str, Any]:
    return {
        "id": item.row.id, "category": item.category, "measured_us": item.row.us,
        "modelled_us": round(item.modelled, 2), "ours_us": item.ours and round(item.ours, 2),
        "offered": item.is_offered,
    }  # fmt: skip


def _print(compared: Sequence[Compared], left_out: Mapping[str, str], summary: Mapping[str, Any]) -> None:
    for line in _table(summary):
        print(line)
    for name, reason in left_out.items():
        print(f"not compared: {name}: {reason}")
    print(
        json.dumps({key: value for key, value in summary.items() if key not in ("by_category", "constants")})
    )


def _table(summary: Mapping[str, Any]) -> Iterator[str]:
    yield "| category | rows | median factor | estimated / measured | measured / our draft |"
    yield "|---|---|---|---|---|"
    for name, row in [*summary["by_category"].items(), ("all", summary)]:
        ours = row["measured_over_ours"] or ""
        factor, ratio = row["median_factor"], row["modelled_over_measured"]
        yield f"| {name} | {row['compared']} | {factor} | {ratio} | {ours} |"


def page(compared: Sequence[Compared], left_out: Mapping[str, str], summary: Mapping[str, Any]) -> str:
    """The page of docs/results."""
    problems = [item for item in compared if not item.row.is_operator]
    parts = {"problems": _statistics(problems)}
    parts["operators"] = _statistics([item for item in compared if item.row.is_operator])
    lines = [
        "# Estimated eager and vendor's calls beside a 910B2", "",
        f"{summary['rows']} published rows of a real 910B2 (CANN 8.3.RC2), {summary['compared']} compared. "
        "Problems are estimated operation by operation, operators as one call of the vendor. No measured "
        "number is used as an estimated one. Written by `python -m benchmarks.eager`.", "",
        "![Estimated against measured](../images/eager.svg)", "",
        "| rows | compared | median factor | Spearman | within 1.25 | within 1.5 |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, row in {**parts, "all": summary}.items():
        figures = (row[key] for key in ("compared", "median_factor", "spearman", "within_1_25", "within_1_5"))
        lines.append(f"| {name} | {' | '.join(map(str, figures))} |")
    lines += [
        "", f"Wrong offers: {summary['wrong_offers']}; missed: {summary['missed_offers']} (measured at least "
        f"{WORTH} times our first draft, and not offered). A kernel is offered where its gain "
        "exceeds the errors of both numbers.", "", "## By category", "", *_table(summary), "",
        "## Intervals", "", "Half of the measured numbers of operators and problems that were left out whole "
        "of a fit are between these factors of its numbers (`--fit`). A constant that only rows left out "
        "tell stays as it was.", "", "| category of the task | from | to |", "|---|---|---|",
        *(f"| {kind} | {low} | {high} |" for kind, (low, high) in summary["intervals"].items()), "",
        "## Not compared", "",
    ]  # fmt: skip
    by_reason = Counter((name.rpartition("_")[0], reason[:160]) for name, reason in left_out.items())
    lines += [f"- {count} rows, {name}: {reason}" for (name, reason), count in by_reason.items()]
    lines += ["", "## Constants", "", "| constant | value | rows behind it |", "|---|---|---|"]
    lines += [f"| {key} | {told['value']:g} | {told['rows']} |" for key, told in summary["constants"].items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
