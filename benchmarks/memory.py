"""What the memory stands: retrieval among many items, bytes an attempt, two writers that are killed.

    python benchmarks/memory.py [--items 1000,10000,100000,1000000] [--budget 30] [--seconds 600] [--json OUT]

A part whose number is 0 is left out. Attempts are those of the example models with the twin.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from remembering import growth, kills, retrieval


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", default="1000,10000,100000,1000000", help="sizes, separated by commas")
    parser.add_argument("--budget", type=int, default=30, help="attempts on each task of the examples")
    parser.add_argument("--seconds", type=float, default=600, help="how long writers are killed")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the result to this file")
    arguments = parser.parse_args()
    summary: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        sizes = [int(size) for size in arguments.items.split(",") if int(size)]
        summary["retrieval"] = [_told_retrieval(retrieval.measure(path, size)) for size in sizes]
        summary["growth"] = growth.measure(path, arguments.budget) if arguments.budget else []
        for row in summary["growth"]:
            print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
        if arguments.seconds:
            summary["kills"] = kills.measure(path, arguments.seconds)
            print("  ".join(f"{name} {value}" for name, value in summary["kills"].items()), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"summary": summary}, indent=1) + "\n")
    killed = summary.get("kills", {})
    if killed and (
        killed["lost"] or killed["torn"] or not killed["log_and_fold_equal"] or not killed["sound"]
    ):
        sys.exit(1)


def _told_retrieval(row: dict[str, Any]) -> dict[str, Any]:
    print(
        f"{row['items']:9,} items  p50 {row['p50_ms']} ms  p95 {row['p95_ms']} ms  processor p95"
        f" {row['cpu_p95_ms']} ms, first {row['first_cpu_s']} s  (load {os.getloadavg()[0]:.1f})",
        flush=True,
    )
    return row


if __name__ == "__main__":
    main()
