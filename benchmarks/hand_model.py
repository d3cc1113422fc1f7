"""A model whose answers are written by hand, or by another model: its questions are files.

    python -m benchmarks.hand_model FOLDER [--port 8123] [--structured]
    python -m benchmarks.hand_model FOLDER --record DIR
    python -m benchmarks.hand_model --replay DIR [--only TASK ...] [--keep] [--memory FILE]

The first serves an OpenAI-compatible endpoint on loopback, for any target: with ``--model-url
http://127.0.0.1:8123/TASK/v1 --model hand`` a question becomes FOLDER/TASK/N/question.md, and the answer is
what is written to FOLDER/TASK/N/answer.txt (answering/questions.py: cut off, empty, refused, samples).

``--record`` keeps the answers in FOLDER, each with the kernels that its question showed and with
FOLDER/TASK/task.py, the file that was asked about. ``--replay`` asks about those files anew, reads answers
as if they were to today's questions, verifies them, and prints latencies and where gate or code differ from
what is recorded (status 1); ``--keep`` records them. A memory in FILE learns from them as from any run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from attrs import evolve

from benchmarks.answering.bridge import serving
from benchmarks.answering.recorded import TASK, Came, Given, Recorded, judged, keep, kept, recorded
from evokernel_core.domain.settings import Settings
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.session import Session


def serve(folder: Path, port: int, *, structured: bool) -> None:
    with serving(folder, port, structured=structured) as url:
        print(f"Serving {url}/TASK/v1, the questions of which are {folder}/TASK/N/question.md.", flush=True)
        while True:
            time.sleep(3600)


def record(folder: Path, out: Path) -> None:
    date = datetime.now(UTC).date().isoformat()
    for file in sorted(folder.glob(f"*/{TASK}")):
        record = recorded(folder, file.parent.name, date)
        if record.answers:
            keep(out, record)
            print(f"{record.name}: {len(record.answers)} answers, {len(record.kernels)} kernels shown")


def replay(folder: Path, only: Iterable[str], memory: Path | None, *, keeps: bool) -> bool:
    """Whether all answers come to what is recorded."""
    names, same = set(only), True
    for record in kept(folder):
        if names and record.name not in names:
            continue
        made = tuple(replayed(record, memory))
        same &= all(given.came is None or given.came.is_as(came) for given, came in made)
        if keeps:
            keep(folder, evolve(record, answers=tuple(evolve(given, came=came) for given, came in made)))
    return same


def replayed(record: Recorded, memory: Path | None) -> Iterator[tuple[Given, Came]]:
    """A task's answers with what comes of them today, printed as it comes."""
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / TASK
        file.write_text(record.task)
        kept_in = memory or Path(made) / "memory.db"
        with Memory(kept_in) as known, Session(Settings(), file.parent, known) as session:
            (region,) = (region for region in session.regions(file, programs=True) if region.task)
            for number, given in enumerate(record.answers, 1):
                came = judged(record, given, region, session)
                print(_line(f"{record.name:24} {number:2}", given.came, came), flush=True)
                yield given, came


def _line(name: str, before: Came | None, came: Came) -> str:
    words = f"{came.us:.2f} us" if came.us else f"{came.gate} {came.code}"
    if before and not came.is_as(before):
        return f"{name}  {words}, where {f'{before.gate} {before.code}'.strip() or 'a kernel'} is recorded"
    return f"{name}  {words} ({before.us:.2f} recorded)" if before and before.us else f"{name}  {words}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--structured", action="store_true", help="ask for JSON instead of files")
    parser.add_argument("--record", type=Path, metavar="DIR")
    parser.add_argument("--replay", type=Path, metavar="DIR")
    parser.add_argument("--only", nargs="*", default=(), metavar="TASK")
    parser.add_argument("--memory", type=Path, metavar="FILE")
    parser.add_argument("--keep", action="store_true", help="record what came of answers")
    options = parser.parse_args()
    if options.replay:
        return 0 if replay(options.replay, options.only, options.memory, keeps=options.keep) else 1
    if options.folder is None:
        parser.error("give the folder of questions")
    if options.record:
        record(options.folder, options.record)
        return 0
    serve(options.folder, options.port, structured=options.structured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
