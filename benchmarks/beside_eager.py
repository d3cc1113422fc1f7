"""What comes of running the user's own code beside the captured graphs of files, and what that costs.

    python benchmarks/beside_eager.py FILE... [--json OUT]

Regions are those of single kernels and of programs. Each is compared as the product does it before a kernel
of it counts: small sizes at all draws, the file's own at one. Seconds are processor seconds of the agent and
of its forks, which include the capture of the file anew.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from evokernel_core.capture.client import AgentClient, CaptureWay
from evokernel_core.compiler.coverage import covered_ops, single_ops
from evokernel_core.domain.errors import CaptureError
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    with AgentClient(sys.executable, evaluation=True) as agent:
        for path in args.files:
            for row in _rows(agent, path):
                rows.append(row)
                print(_told(row), flush=True)
    found = summary(rows)
    print(json.dumps(found, indent=2))
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "summary": found}, indent=2))


def _rows(agent: AgentClient, path: Path) -> Iterator[dict[str, Any]]:
    text = path.read_text()
    ways = {"single": CaptureWay(single_ops(ASCENDC)), "program": CaptureWay(covered_ops(ASCENDC), True)}
    for name, way in ways.items():
        try:
            regions = agent.capture(path, text, way.fusible, whole=way.whole)
        except CaptureError as error:
            yield {"file": path.name, "kind": name, "failed": str(error)}
            continue
        for region in regions:
            if region.task is not None:
                yield {"file": path.name, "kind": name, **_compared(agent, region, text, way)}


def _compared(agent: AgentClient, region: Region, text: str, way: CaptureWay) -> dict[str, Any]:
    before = _seconds(agent)
    row = {"symbol": region.symbol, "line": region.span.line}
    try:
        found = agent.compare(region, text, (way,))
    except CaptureError as error:
        return {**row, "failed": str(error)}
    return {
        **row,
        "compared": list(found.compared),
        "uncompared": {item.draw: str(item.reason) for item in found.uncompared},
        "difference": str(found.difference),
        "seconds": round(_seconds(agent) - before, 3),
    }


def _seconds(agent: AgentClient) -> float:
    """Processor seconds of the agent and of all that it waited for."""
    assert agent.pid is not None
    times = psutil.Process(agent.pid).cpu_times()
    children = psutil.Process(agent.pid).children(recursive=True)
    others = [child.cpu_times() for child in children]
    return sum(
        item.user + item.system + item.children_user + item.children_system for item in (times, *others)
    )


def _told(row: dict[str, Any]) -> str:
    where = f"{row['file']}:{row.get('line', '')} {row.get('symbol', '')} ({row['kind']})"
    if "failed" in row:
        return f"{where}: failed: {row['failed']}"
    what = f"differs: {row['difference']}" if row["difference"] else f"{len(row['compared'])} draws equal"
    silent = f"; not compared: {row['uncompared']}" if row["uncompared"] else ""
    return f"{where}: {what}{silent}; {row['seconds']:.2f} s"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of regions, and seconds a region."""
    done = [row for row in rows if "seconds" in row]
    seconds = [row["seconds"] for row in done]
    return {
        "regions": len(done),
        "equal_at_all_draws": sum(not row["difference"] and not row["uncompared"] for row in done),
        "equal_but_for_what_was_not_compared": sum(
            not row["difference"] and bool(row["uncompared"]) and bool(row["compared"]) for row in done
        ),
        "not_compared": sum(not row["difference"] and not row["compared"] for row in done),
        "refused": sum(bool(row["difference"]) for row in done),
        "failed": len(rows) - len(done),
        "median_s": statistics.median(seconds) if seconds else 0.0,
        "largest_s": max(seconds, default=0.0),
    }


if __name__ == "__main__":
    main()
