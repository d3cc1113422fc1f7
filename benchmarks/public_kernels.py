"""How much of public operators' code compiles and runs on the twin as it is.

    python benchmarks/public_kernels.py --sources DIR [DIR ...] [--run] [--chip NAME] [--jobs N] [--filter T]
        [--sample N [--seed S]]

An operator is a folder with ``op_kernel`` and ``op_host``, in its first combination of dtypes. DIRs are
projects, fetched and read in place. Folders named ``question`` hold no answers and are left out. --sample
draws at most N folders of each project with the seed, so that what is looked at is nobody's choice. With
--run those that come with a reference (NPUKernelBench) run with their vendors' tiling, and are compared.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from public_cases import cases_below, write_case

from evokernel_core.domain.errors import EvoKernelError, UsageError
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.hardware.ascend.chip_files import DEFAULT_CHIP
from evokernel_core.twin.operators.folder import read_folder
from evokernel_core.twin.operators.host import build_host
from evokernel_core.twin.operators.report import operator_rows, ran_case
from evokernel_core.twin.operators.run import operator_of
from evokernel_core.twin.run import GIB, Limits, Mode

Row = dict[str, Any]
_LIMITS = Limits(wall_s=150.0, cpu_s=120.0, address_space=12 * GIB)


def main() -> int:
    args = _arguments()
    folders = [
        path
        for source in args.sources
        for path in drawn(
            [path for path in operator_folders(source.resolve()) if args.filter in str(path)],
            args.sample,
            args.seed,
        )
    ]
    with ThreadPoolExecutor(args.jobs) as pool:
        found = pool.map(lambda folder: _told(folder, args.run, load_chip(args.chip)), folders)
        rows = [row for several in found for row in several]
    summary = summarised(rows)
    _print(rows, summary)
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "summary": summary}, indent=1) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sources", type=Path, nargs="+", required=True)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--chip", default=DEFAULT_CHIP)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--filter", default="")
    parser.add_argument("--sample", type=int, help="folders of each project; all without it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def operator_folders(source: Path) -> Iterator[Path]:
    """The folders of operators below a project, with sources on both sides; not those of their unit tests,
    and not what a build put beside them."""
    for kernels in sorted(source.rglob("op_kernel")):
        parts = kernels.relative_to(source).parts
        if not {"question", "tests", "build_out"} & set(parts) and _has_sources(kernels.parent):
            yield kernels.parent


def _has_sources(operator: Path) -> bool:
    try:
        read_folder(operator)
    except UsageError:
        return False
    return True


def drawn(folders: Sequence[Path], count: int | None, seed: int) -> Sequence[Path]:
    """At most ``count`` of the folders at random, in their order; all of them for None."""
    if count is None or count >= len(folders):
        return folders
    return sorted(random.Random(seed).sample(folders, count))


def _told(root: Path, run: bool, chip: Chip) -> list[Row]:
    rows = [{"folder": str(root), **row} for row in operator_rows(root, None, chip)]
    if run:
        rows = [{**row, **_ran(root, row, chip)} if row["compiled"] else row for row in rows]
    for row in rows:
        first = row["error"].partition("\n")[0][:120]
        print(f"{row['stage']:8} {row['operator']:32} {first}", file=sys.stderr, flush=True)
    return rows


def _ran(root: Path, row: Row, chip: Chip) -> Row:
    """What a call of the operator adds to its row; ``stage`` is ``case`` where there is none to be had."""
    validation = cases_below(root)
    if validation is None:
        return {}
    description = build_host(read_folder(root)).describe(chip)
    operator = operator_of(description, row["operator"])
    with tempfile.TemporaryDirectory(prefix="evokernel-case-") as name:
        try:
            case = write_case(validation, operator, Path(name))
        except (ValueError, EvoKernelError, subprocess.TimeoutExpired) as error:
            return {"stage": "case", "error": str(error)}
        try:
            found = ran_case(root, None, chip, case, (Mode.CHECK, _LIMITS, True))
        except Exception as error:  # a defect of ours costs this operator
            return {"stage": "defect", "error": f"{type(error).__name__}: {error}"}
    return {**found, "compiled": True, "stage": found["stage"] or ("" if found["right"] else "run")}


def summarised(rows: Sequence[Row]) -> Row:
    stages = Counter(row["stage"] for row in rows)
    compiled, own = sum(row["compiled"] for row in rows), len(rows) - stages["chip"]
    return {
        "files": len(rows),
        "for_other_chips": stages["chip"],
        "compiled": compiled,
        "compiled_percent_of_this_chips": round(100 * compiled / own) if own else 0,
        "host_failed": stages["host"],
        "kernel_failed": stages["kernel"],
        "without_case": stages["case"],
        "defects": stages["defect"],
        "run": sum(row["ran"] for row in rows),
        "compared": sum(row["compared"] for row in rows),
        "right": sum(row["right"] for row in rows),
        "right_and_clean": sum(row["right"] and row.get("clean", False) for row in rows),
        "refused_or_not_run": sum(row["stage"] in ("call", "run") and not row["ran"] for row in rows),
        "hazards": Counter(code for row in rows for code in {item["code"] for item in row["hazards"]}),
        "host_incomplete": sum(1 for row in rows if not row["stage"] and row["error"]),
        "missing": missing(rows),
    }


def missing(rows: Sequence[Row], most: int = 40) -> list[tuple[str, int]]:
    """Identifiers and headers that are not there, by the number of operators that want them."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(row["missing"])
    return counts.most_common(most)


def _print(rows: Sequence[Row], summary: Row) -> None:
    for row in rows:
        if row["stage"]:
            print(
                f"\n{row['stage']} {row['operator']} ({row['folder']})\n  "
                + row["error"][:600].replace("\n", "\n  ")
            )
    for name, value in summary.items():
        if name not in ("missing", "hazards"):
            print(f"{name}: {value}")
    for name, count in [*summary["hazards"].most_common(), *summary["missing"]]:
        print(f"{count:5} {name}")


if __name__ == "__main__":
    sys.exit(main())
