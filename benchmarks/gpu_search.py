"""Schedules of kernels on a GPU: complete grids, recorded once, and searches that are replayed on them.

    python benchmarks/gpu_search.py --record OUT [--tasks softmax,...] [--jobs 14] [--seconds 480]
                                    [--device nvidia_h200] [--python INTERPRETER] [--commit HASH] [--smoke]
    python benchmarks/gpu_search.py [--landscape FILE] [--policies default,lfbo,...] [--seeds 10]
                                    [--budget 64] [--jobs 2] [--json OUT] [--page PAGE]
    python benchmarks/gpu_search.py --capture

Without ``--record`` searches are replayed on a file of landscapes (benchmarks/data/landscape/h200.xz) without
a GPU or a compiler: a search sees of a schedule a failure or one draw of its samples, and what a memory was
taught never had the operation of the task (landscape/replay.py). ``q`` is the product's default, which the
summary has under that name, too; ``--page`` writes docs/results/gpu_search.md.

``--record`` compiles every point of each task's grid (landscape/grids.py) in so many processes while one
process, alone on the GPU, checks and times: each right point 20 times with a cold L2, the first draft beside
every tenth, and at the end the ten fastest in pairs. Points that make no kernel stay in the file with the
reason. Tasks that OUT has are not run again; no task begins after so many seconds, and each is written when
it ends. ``--smoke`` takes two tasks and six points of each. ``--capture`` writes the tasks of
landscape/functions.py to benchmarks/data/landscape/tasks.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.landscape import grids, rows
from benchmarks.landscape.page import page, table
from benchmarks.landscape.recording import Plan, record
from benchmarks.landscape.replay import DEFAULT, OF_DEFAULT, POLICIES, replayed, summary
from evokernel_core.domain.errors import VerifierUnavailable
from evokernel_core.hardware.gpu.gpu_files import DEFAULT_GPU

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "data" / "landscape" / "h200.xz"
SMOKE, SMOKE_POINTS = ("softmax", "product"), 6


def main() -> int:
    args = _arguments()
    if args.capture:
        grids.capture()
        return 0
    return recorded(args) if args.record else replay(args)


def recorded(args: argparse.Namespace) -> int:
    """Writes a file of landscapes."""
    tasks = SMOKE if args.smoke else tuple(args.tasks.split(",") if args.tasks else grids.GRIDS)
    about = {"commit": args.commit or _commit(), "date": datetime.now(UTC).isoformat(timespec="seconds")}
    most = SMOKE_POINTS if args.smoke else 0
    plan = Plan(
        args.record, tasks, args.device, args.python, args.jobs, args.seconds, args.begun, about, most
    )
    try:
        record(plan)
    except VerifierUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def replay(args: argparse.Namespace) -> int:
    """Prints what searches need on a file of landscapes."""
    policies = [OF_DEFAULT if name == DEFAULT else name for name in args.policies.split(",")]
    outcomes = list(replayed(args.landscape, args.device, args.budget, policies, args.seeds, args.jobs))
    found = summary(outcomes)
    print("\n".join(table(found)))
    if args.json:
        args.json.write_text(json.dumps({"summary": found}, indent=1) + "\n")
    if args.page:
        args.page.write_text(page(rows.read(args.landscape), args.device, outcomes, args.budget))
    return 0


def _commit() -> str:
    """The commit of the tree, "" where git does not say."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", type=Path, metavar="OUT")
    parser.add_argument("--capture", action="store_true")
    parser.add_argument("--landscape", type=Path, default=KEPT, metavar="FILE")
    parser.add_argument("--policies", default=",".join(POLICIES), metavar="NAMES")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=64)
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--tasks", default="", metavar="NAMES")
    parser.add_argument("--jobs", type=int, default=0, help="processes: 14 that compile, 2 that replay")
    parser.add_argument("--seconds", type=float, default=480.0, help="no task begins later")
    parser.add_argument("--device", default=DEFAULT_GPU)
    parser.add_argument("--python", default=sys.executable, help="the interpreter with torch and triton")
    parser.add_argument("--commit", default="", help="what is measured, where the tree does not say")
    parser.add_argument("--smoke", action="store_true", help="two tasks, six points of each")
    args = parser.parse_args()
    for given, known, what in (
        (args.tasks, grids.GRIDS, "task"),
        (args.policies, (DEFAULT, *POLICIES), "policy"),
    ):
        unknown = set(filter(None, given.split(","))) - set(known)
        if unknown:
            parser.error(f"{', '.join(sorted(unknown))} is no {what} of the table")
    args.begun = time.monotonic()
    args.jobs = args.jobs or (14 if args.record else 2)
    return args


if __name__ == "__main__":
    sys.exit(main())
