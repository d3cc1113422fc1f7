"""How much of public operators' code compiles and runs on the twin as it is.

    python benchmarks/public_kernels.py --sources DIR [DIR ...] [--jobs N] [--filter TEXT] [--json OUT]

An operator is a folder with ``op_kernel`` and ``op_host``, in its first combination of dtypes. DIRs are
projects, fetched and read in place. Folders named ``question`` hold no answers and are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from evokernel_core.twin.chip import DEFAULT_CHIP, load_chip
from evokernel_core.twin.operators.report import operator_rows

Row = dict[str, Any]


def main() -> int:
    args = _arguments()
    folders = [
        path
        for source in args.sources
        for path in operator_folders(source.resolve())
        if args.filter in str(path)
    ]
    with ThreadPoolExecutor(args.jobs) as pool:
        rows = [row for found in pool.map(_told, folders) for row in found]
    summary = summarised(rows)
    _print(rows, summary)
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "summary": summary}, indent=1) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sources", type=Path, nargs="+", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--filter", default="")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def operator_folders(source: Path) -> Iterator[Path]:
    """The folders of operators below a project."""
    for kernels in sorted(source.rglob("op_kernel")):
        if (kernels.parent / "op_host").is_dir() and "question" not in kernels.parts:
            yield kernels.parent


def _told(root: Path) -> list[Row]:
    rows = [{"folder": str(root), **row} for row in operator_rows(root, None, load_chip(DEFAULT_CHIP))]
    for row in rows:
        first = row["error"].partition("\n")[0][:120]
        print(f"{row['stage']:8} {row['operator']:32} {first}", file=sys.stderr, flush=True)
    return rows


def summarised(rows: Sequence[Row]) -> Row:
    stages = Counter(row["stage"] for row in rows)
    return {
        "files": len(rows),
        "compiled": stages[""],
        "host_failed": stages["host"],
        "kernel_failed": stages["kernel"],
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
        if name != "missing":
            print(f"{name}: {value}")
    for name, count in summary["missing"]:
        print(f"{count:5} {name}")


if __name__ == "__main__":
    sys.exit(main())
