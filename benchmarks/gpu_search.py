"""Schedules of kernels on a GPU: complete grids, recorded once, and searches that are replayed on them.

    python benchmarks/gpu_search.py --record OUT [--tasks softmax,...] [--jobs 14] [--seconds 480]
                                    [--device nvidia_h200] [--python INTERPRETER] [--commit HASH] [--smoke]
    python benchmarks/gpu_search.py --capture

``--record`` compiles every point of each task's grid (landscape/grids.py) in so many processes while one
process, alone on the GPU, checks and times: each right point 20 times with a cold L2, the first draft beside
every tenth, and at the end the ten fastest in pairs. Points that make no kernel stay in the file with the
reason. Tasks that OUT has are not run again; no task begins after so many seconds, and each is written when
it ends. ``--smoke`` takes two tasks and six points of each. ``--capture`` writes the tasks of
landscape/functions.py to benchmarks/data/landscape/tasks.json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.landscape import grids
from benchmarks.landscape.recording import Plan, record
from evokernel_core.domain.errors import VerifierUnavailable
from evokernel_core.hardware.gpu.gpu_files import DEFAULT_GPU

ROOT = Path(__file__).parents[1]
SMOKE, SMOKE_POINTS = ("softmax", "product"), 6


def main() -> int:
    args = _arguments()
    if args.capture:
        grids.capture()
        return 0
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


def _commit() -> str:
    """The commit of the tree, "" where git does not say."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", type=Path, metavar="OUT")
    parser.add_argument("--capture", action="store_true")
    parser.add_argument("--tasks", default="", metavar="NAMES")
    parser.add_argument("--jobs", type=int, default=14, help="processes that compile")
    parser.add_argument("--seconds", type=float, default=480.0, help="no task begins later")
    parser.add_argument("--device", default=DEFAULT_GPU)
    parser.add_argument("--python", default=sys.executable, help="the interpreter with torch and triton")
    parser.add_argument("--commit", default="", help="what is measured, where the tree does not say")
    parser.add_argument("--smoke", action="store_true", help="two tasks, six points of each")
    args = parser.parse_args()
    if not args.record and not args.capture:
        parser.error("give --record OUT or --capture")
    unknown = set(filter(None, args.tasks.split(","))) - set(grids.GRIDS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))} is no task of the table")
    args.begun = time.monotonic()
    return args


if __name__ == "__main__":
    sys.exit(main())
