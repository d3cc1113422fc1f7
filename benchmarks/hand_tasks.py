"""What a strong model is worth beside the author: drawn tasks whose questions are answered by files.

    python -m benchmarks.hand_tasks FOLDER [--tasks 20] [--seed 48] [--budget 6] [--memory half|on|off]
        [--proposer hybrid|llm] [--known FILE] [--at-once 20] [--port N] [--structured]
    python -m benchmarks.hand_tasks FOLDER --table | --open

Each task is searched by the proposer, whose questions appear as FOLDER/TASK/N/question.md and wait for
FOLDER/TASK/N/answer.txt (answering/questions.py), and by the author alone. ``--open`` lists the questions
that wait, ``--table`` prints what there is so far: whether kernels were right, best latencies, tokens.
Tasks wait side by side, compiling and running takes turns. The same command, with FOLDER alone too, goes on
where it was ended: what was judged is kept, and a question with the same words finds its answer.

A task with memory begins with a copy of the memory in ``--known`` (``python -m benchmarks.hand_model --replay
benchmarks/data/answers --memory FILE`` makes one), one without with an empty one, from which nothing is
retrieved either. Tasks for which the author has no kernel are left out, with the reason. All latencies are
modelled.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from attrs import asdict

from benchmarks.answering.bridge import serving
from benchmarks.answering.outcomes import row_of, table
from benchmarks.answering.questions import Questions
from benchmarks.answering.searches import Place, Run, places, search
from evokernel_core.domain.settings import ProposerName

RUN = "run.json"


def main() -> int:
    options = _arguments()
    folder: Path = options.folder.absolute()
    if options.open:
        print(*Questions(folder).open(), sep="\n")
        return 0
    run = _run(folder, options)
    print(f"{run.tasks} tasks of seed {run.seed}, budget {run.budget}, memory {run.memory}.", flush=True)
    found = []
    for place, why in places(folder, run):
        if why:
            print(f"{place.folder.name} is left out: {why}", flush=True)
        else:
            found.append(place)
    if not options.table:
        with serving(folder, options.port, structured=options.structured) as url:
            _search(found, run, url, options.at_once)
    print(table([row_of(place, ProposerName(run.proposer)) for place in found]))
    return 0


def _run(folder: Path, options: argparse.Namespace) -> Run:
    """The run that was begun in the folder, whatever is asked for now, else that of the options."""
    kept = folder / RUN
    if kept.exists():
        return Run(**json.loads(kept.read_text()))
    known = str(options.known.absolute()) if options.known else ""
    run = Run(options.tasks, options.seed, options.budget, options.memory, options.proposer, known)
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(asdict(run)) + "\n")
    return run


def _search(found: Sequence[Place], run: Run, url: str, at_once: int) -> None:
    """Questions first: the author alone is searched beside them, a task after the other."""
    turns = threading.Semaphore(os.cpu_count() or 1)
    with ThreadPoolExecutor(at_once) as asking, ThreadPoolExecutor(1) as alone:
        pools = ((asking, ProposerName(run.proposer)), (alone, ProposerName.SCHEDULE))
        futures: list[Future[None]] = [
            pool.submit(search, place, run, url, turns, proposer)
            for pool, proposer in pools
            for place in found
        ]
        for future in futures:
            future.result()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=48)
    parser.add_argument("--budget", type=int, default=6)
    parser.add_argument("--memory", choices=("half", "on", "off"), default="half")
    parser.add_argument("--proposer", choices=(ProposerName.HYBRID, ProposerName.LLM), default="hybrid")
    parser.add_argument("--known", type=Path, metavar="FILE")
    parser.add_argument("--at-once", type=int, default=20, help="tasks that wait side by side")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--structured", action="store_true", help="ask for JSON instead of files")
    parser.add_argument("--table", action="store_true", help="print what there is, and search nothing")
    parser.add_argument("--open", action="store_true", help="list the questions that wait for an answer")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
