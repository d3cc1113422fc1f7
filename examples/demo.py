"""The main job, end to end: every example model gets verified kernels in its place.

Each model file is copied to build/demo/, `evokernel synth --apply` writes, verifies and applies
kernels there, and the edited file is imported and run on the CPU beside the original. Exit status 1
if a region ended without a verified kernel or an edited model computes something else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

EXAMPLES = Path(__file__).parent
MODELS = ("transformer_block.py", "cnn_head.py", "training_loss.py")
OUTPUT = EXAMPLES.parent / "build" / "demo"
BUDGET = 3


def synthesise(file: Path) -> list[dict[str, object]]:
    """The regions of a file as `evokernel synth --json` reports them."""
    command = [Path(sys.executable).parent / "evokernel", "synth", file, "--budget", str(BUDGET)]
    done = subprocess.run([*command, "--apply", "--json"], capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        sys.exit(f"demo: synth gave no answer for {file.name}: {done.stderr.strip()}")
    regions: list[dict[str, object]] = json.loads(done.stdout)["regions"]
    return regions


def same_results(original: Path, edited: Path) -> bool:
    """Whether both files compute the same outputs from the same inputs on the CPU, without kernels and with
    them emulated."""
    check = Path(__file__).parent / "compare.py"
    done = subprocess.run([sys.executable, check, original, edited], cwd=edited.parent, check=False)
    return done.returncode == 0


def microseconds(value: object) -> str:
    return "" if value is None else f"{value:,.1f}"


def _status(region: dict[str, object]) -> str:
    return "verified, left alone" if region["left_alone"] else "[green]verified[/]"


def add_rows(table: Table, file: Path, regions: list[dict[str, object]]) -> None:
    for region in regions:
        verified = region["status"] == "verified"
        table.add_row(
            f"{file.name}:{region['line']}",
            str(region["op_category"]),
            str(region["attempts"] or ""),
            microseconds(region["baseline_us"]),
            microseconds(region["first_latency_us"]),
            microseconds(region["best_latency_us"]),
            "" if region["gain"] is None else f"{region['gain']:.0%}",
            microseconds(region["roofline_us"]),
            _status(region) if verified else f"{region['status']}: {region['reason']}",
        )


def run(name: str) -> tuple[Path, list[dict[str, object]], bool]:
    """One model: the edited copy, its regions, and whether it still computes the same."""
    edited = Path(shutil.copy(EXAMPLES / name, OUTPUT / name))
    regions = synthesise(edited)
    return edited, regions, same_results(EXAMPLES / name, edited)


def main() -> int:
    console = Console(width=None if sys.stdout.isatty() else 140)
    started = time.monotonic()
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    title = "Estimated microseconds on an Ascend 910B1 (no chip was used)"
    table = Table("where", "op", "attempts", "eager", "first draft", "best", "gain", "roofline", "status", title=title)
    failures = 0
    with console.status("writing, verifying and applying kernels"), ThreadPoolExecutor(2) as pool:
        for edited, regions, unchanged in pool.map(run, MODELS):
            add_rows(table, edited, regions)
            failures += sum(region["status"] == "infeasible" for region in regions)
            failures += not any(region["status"] == "verified" for region in regions)
            failures += not unchanged
            words = "the same as the original" if unchanged else "SOMETHING ELSE"
            console.print(
                f"{edited.name}: the edited copy computes {words} on CPU, without its kernels and with them "
                "emulated, and torch.export takes both"
            )
    console.print(table)
    console.print(f"{time.monotonic() - started:.1f} s; edited files and kernel packages: {OUTPUT}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
