"""Whether every supported version of torch gives the same regions, graphs and verdicts.

For each version an environment is made (see torch_environments.py) in which the torch agent captures the
files; what it finds is compared with what the first version finds: symbols, lines, inputs with their sizes,
calls and guards, categories and verdicts. How PyTorch words a region's mathematics is counted apart. Then
`evokernel synth` judges one attempt for each region of the files named by --verdicts, with an empty memory.

Usage: python benchmarks/torch_versions.py [--versions 2.13.0,2.5.1,...] [--folder DIR] [--verdicts GLOB]
                                           [--json OUT] [FILE_OR_FOLDER ...]

Without files: examples/ and tests/capture/models/. The status is 1 where a version differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from torch_environments import FOLDER, VERSIONS, EnvironmentFailed, environment

from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.finder import imports_torch
from evokernel_core.capture.text import read_python
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.errors import CaptureError
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import to_data
from evokernel_core.targets.ascendc.target import ASCENDC

REPOSITORY = Path(__file__).resolve().parent.parent
BASE = "2.13.0"
"""What the others are compared with: the version that the project's own tests run with."""
EVOKERNEL = Path(sys.executable).with_name("evokernel")
SYNTH_S = 900
_SAME = {"aten._unsafe_view.default": "aten.view.default"}
"""Two names for one operation, of which versions choose otherwise."""
Found = dict[str, Any]
"""Rows by what they are of: ``single``, ``program`` or ``verdict``; a text where there are none."""


def main() -> int:
    options = _arguments()
    files = sorted({file for path in options.paths for file in _files(path)})
    results: dict[str, Any] = {}
    for version in options.versions.split(","):
        started = time.monotonic()
        try:
            results[version] = _results(version, files, options)
        except EnvironmentFailed as error:
            results[version] = {"failed": str(error)}
        print(f"torch {version}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    summary = _summary(results)
    print(_table(summary))
    for version, item in summary.items():
        for line in item["differences"]:
            print(f"torch {version}: {line}")
    if options.json:
        options.json.write_text(json.dumps({"results": results, "summary": summary}, indent=1) + "\n")
    return int(any(item["differences"] for item in summary.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    own = [REPOSITORY / "examples", REPOSITORY / "tests" / "capture" / "models"]
    parser.add_argument("paths", nargs="*", type=Path, default=own)
    parser.add_argument("--versions", default=",".join([BASE, *(v for v in VERSIONS if v != BASE)]))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--verdicts", default=f"{REPOSITORY}/examples/*", metavar="GLOB")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _files(path: Path) -> Iterator[Path]:
    """The files with models, under their full names."""
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        if imports_torch(read_python(file)):
            yield file.resolve()


def _results(version: str, files: Iterable[Path], options: argparse.Namespace) -> dict[str, Found]:
    folder = options.folder.absolute()
    python = environment(version, folder)
    results: dict[str, Found] = {}
    with AgentClient(str(python), timeout_s=120) as client:
        for file in files:
            results[str(file)] = {
                "single": _captured(client, file, whole=False),
                "program": _captured(client, file, whole=True),
            }
    for file in files:
        if fnmatch(str(file), options.verdicts):
            results[str(file)]["verdict"] = _verdicts(python, file, folder / "cache")
    return results


def _captured(client: AgentClient, file: Path, whole: bool) -> Any:
    try:
        regions = client.capture(file, None, covered_ops(ASCENDC), whole=whole)
    except CaptureError as error:
        return f"{type(error).__name__}: {error}"
    return [_row(region) for region in regions]


def _row(region: Region) -> dict[str, Any]:
    """What must be the same: the place, the call, and the graph in canonical names."""
    graph = region.task.graph if region.task else None
    return {
        "symbol": region.symbol,
        "lines": [region.span.line, region.span.end_line],
        "category": region.op_category,
        "status": region.status.value,
        "inputs": [[item.expression, list(item.spec.shape), item.spec.dtype] for item in graph.inputs]
        if graph
        else [],
        "ops": [_SAME.get(node.op, node.op) for node in graph.nodes] if graph else [],
        "site": to_data(region.site) if region.site else None,
        "reason": region.reason,
    }


def _verdicts(python: Path, file: Path, cache: Path) -> Any:
    """The status of each region after one attempt, with an empty memory; compiled kernels are shared, since
    the same text is the same kernel."""
    cache.mkdir(parents=True, exist_ok=True)
    command = [EVOKERNEL, "synth", file, "--budget", "1", "--all", "--json", "--interpreter", python]
    with tempfile.TemporaryDirectory(prefix="evokernel-torch-") as home:
        Path(home, "cache").symlink_to(cache)
        variables = {**os.environ, "EVOKERNEL_HOME": home}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SYNTH_S, env=variables
        )
    try:
        rows = json.loads(done.stdout)["regions"]
    except (ValueError, KeyError):
        return done.stderr.strip()
    fields = ("line", "end_line", "op_category", "status", "best_latency_us", "reason")
    return [{name: row[name] for name in fields} for row in rows]


def _summary(results: dict[str, Any]) -> dict[str, Any]:
    base = next(iter(results))
    return {
        version: {
            "single": _count(found, "single"),
            "program": _count(found, "program"),
            "verified": _count(found, "verdict"),
            "differences": list(_differences(results[base], found)),
            "worded_otherwise": list(_worded_otherwise(results[base], found)),
        }
        for version, found in results.items()
    }


def _count(found: dict[str, Found], kind: str) -> int:
    """Regions with a graph, or with a verified kernel."""
    rows = (row for item in found.values() if isinstance(item, dict) for row in _rows(item.get(kind)))
    return sum(row["status"] in ("candidate", "verified") for row in rows)


def _rows(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else []


def _differences(base: dict[str, Found], found: dict[str, Found]) -> Iterator[str]:
    """What is not as in the first version, but for wording."""
    if "failed" in found:
        yield str(found["failed"])
        return
    for file, kinds in base.items():
        for kind, rows in kinds.items():
            other = found[file][kind]
            if isinstance(rows, str) or isinstance(other, str):
                if type(rows) is not type(other):
                    yield f"{Path(file).name} {kind}: {_short(other)} instead of {_short(rows)}"
                continue
            before, after = ([_plain(row) for row in item] for item in (rows, other))
            for row in (row for row in before if row not in after):
                yield f"{Path(file).name} {kind}: lost {_short(row)}"
            for row, whole in zip(after, other, strict=True):
                if row not in before:
                    yield f"{Path(file).name} {kind}: has {_short(whole)}"


def _worded_otherwise(base: dict[str, Found], found: dict[str, Found]) -> Iterator[str]:
    """Regions that are the same but for how PyTorch says their mathematics, or why they have none."""
    for file, kinds in base.items() if "failed" not in found else ():
        for kind, rows in kinds.items():
            others = _rows(found[file][kind])
            for row in _rows(rows):
                if row not in others and _plain(row) in map(_plain, others):
                    symbol = row.get("symbol", "")
                    yield f"{Path(file).name} {kind} {symbol} {row.get('lines', row.get('line'))}"


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("reason", "ops")}


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 600 else text[:597] + "..."


def _table(summary: dict[str, Any]) -> str:
    lines = [
        "| torch | single kernels | programs | verified | as in the first | worded otherwise |",
        "|---|---|---|---|---|---|",
    ]
    for version, item in summary.items():
        same = f"{len(item['differences'])} differ" if item["differences"] else "yes"
        counts = [version, item["single"], item["program"], item["verified"], same]
        lines.append("| " + " | ".join(map(str, [*counts, len(item["worded_otherwise"])])) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
