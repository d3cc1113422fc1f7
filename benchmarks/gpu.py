"""First drafts beside eager PyTorch and torch.compile on a GPU: KernelBench, a row a system and class.

    python benchmarks/gpu.py SUITE --tasks DIR --json OUT [--levels 1,2] [--problems 1..100] [--seconds 420]
                             [--jobs 14] [--device nvidia_h200] [--python INTERPRETER] [--commit HASH]
                             [--others adaexplore=DIR] [--max-autotune N] [--seed S]
    python benchmarks/gpu.py --merge OUT [OUT ...]

SUITE is the folder ``KernelBench`` of a checkout, DIR has its problems as captured tasks. Kernels are
compiled in so many processes while one process, alone on the GPU, times: ours from cubins, the problem's own
file as it is and through torch.compile, taking turns. Problems that OUT has are not run again, so that a run
goes on where another ended; no problem begins after so many seconds. ``--merge`` adds rows to
docs/results/h200.jsonl, the newest of each kind, and writes the table docs/results/h200.md.

``--others NAME=DIR``, as often as there are such folders, has kernels that others published take turns with
these on the same inputs (``measuring/others.py`` says in which layouts and forms). ``--max-autotune`` draws
so many of the problems that are asked for; in these torch.compile with max-autotune is timed as well, without
CUDA graphs, which no system has. What ends the process that times costs its own row: the problem is timed
again without it. docs/contributing.md has the commands of a run on a borrowed GPU.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import evolve

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measuring.classes import MODES, OURS, TUNED
from benchmarks.measuring.gpu_rows import rows_of, ruled
from benchmarks.measuring.gpu_table import merged, summary, table
from benchmarks.measuring.others import file_of
from benchmarks.measuring.problems import Problem, Setting, context, prepare, problems_of, start
from benchmarks.measuring.room import Room
from evokernel_core.domain.errors import VerifierUnavailable
from evokernel_core.hardware.gpu.gpu_files import DEFAULT_GPU
from evokernel_core.targets.triton.backends.gpu_process import JudgeLost, JudgePool, JudgeProcess

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
WARMED_BYTES = 24 << 30
"""Of the GPU's memory, for the inputs of problems that are compiled while others are timed."""
TIMED_SECONDS = 90.0
"""For one problem at the most; what takes longer hangs."""
OTHER_SECONDS, TUNED_SECONDS = 60.0, 240.0
"""More for each kernel of others, and where max-autotune tunes."""
SESSION_SECONDS = 0.4
"""Of device and host for one of a problem's sessions, twenty rounds at the least."""


def main() -> int:
    args = _arguments()
    if args.merge:
        return merge(args.merge)
    result = _earlier(args.json)
    begun = {(row["level"], row["problem"]) for row in result["rows"]}
    asked = [one for one in asked_of(args) if (one.level, one.name) not in begun]
    with TemporaryDirectory(prefix="evokernel-gpu-", ignore_cleanup_errors=True) as folder:
        setting = Setting(args.device, args.python, Path(folder))
        setting.cubins.mkdir()
        run = Run(setting, args, result)
        try:
            run.all_of(asked)
        except VerifierUnavailable as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            run.close()
    print(json.dumps(result["summary"], indent=1))
    return 0


def asked_of(args: argparse.Namespace) -> list[Problem]:
    """The problems that are asked for; which are drawn depends on these and the seed alone."""
    levels = [int(level) for level in args.levels.split(",")]
    known = [one for one in problems_of(args.suite, args.tasks, levels) if one.number in args.numbers]
    drawn = random.Random(args.seed).sample(known, min(args.max_autotune, len(known)))
    return [evolve(one, others=_others(args, one), tuned=one in drawn) for one in known]


def _others(args: argparse.Namespace, problem: Problem) -> dict[str, Path]:
    files = {name: file_of(folder, problem.level, problem.name) for name, folder in args.others.items()}
    return {name: file for name, file in files.items() if file is not None}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", type=Path, nargs="?")
    parser.add_argument("--tasks", type=Path)
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--levels", default="1,2")
    parser.add_argument("--problems", default="1..1000", metavar="I..J")
    parser.add_argument("--seconds", type=float, default=420.0, help="no problem begins later")
    parser.add_argument("--jobs", type=int, default=14, help="processes that compile")
    parser.add_argument("--device", default=DEFAULT_GPU)
    parser.add_argument("--python", default="", help="the interpreter with torch and triton")
    parser.add_argument("--commit", default="", help="what is measured, where the tree does not say")
    parser.add_argument("--others", action="append", default=[], metavar="NAME=DIR", help="others' kernels")
    parser.add_argument("--max-autotune", type=int, default=0, metavar="N", help="problems drawn for it")
    parser.add_argument("--seed", type=int, default=0, help="of that draw")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="OUT")
    args = parser.parse_args()
    if not args.merge and not (args.suite and args.tasks and args.json):
        parser.error("give the suite, --tasks and --json, or results with --merge")
    args.others = {name: Path(folder) for name, _, folder in (one.partition("=") for one in args.others)}
    for name, folder in args.others.items():
        if name in (OURS, *MODES) or not folder.is_dir():
            parser.error(f"--others takes NAME=DIR; {name}={folder} names no folder, or a system of ours")
    first, _, last = args.problems.partition("..")
    args.numbers = range(int(first), int(last or first) + 1)
    args.begun = time.monotonic()
    args.commit = args.commit or _commit()
    return args


def _commit() -> str:
    """The commit of the tree, which a copy without git has in a file."""
    if (ROOT / "COMMIT").exists():
        return (ROOT / "COMMIT").read_text().strip()
    done = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _earlier(path: Path) -> dict[str, Any]:
    empty: dict[str, Any] = {"conditions": [], "rows": [], "left_out": {}, "summary": {}}
    if not path.exists():
        return empty
    earlier = {**empty, **json.loads(path.read_text())}
    return {**earlier, "rows": [ruled(row) for row in earlier["rows"]]}


class Run:
    """Problems made ready in a pool of processes, and timed by one, in the order in which they are ready."""

    def __init__(self, setting: Setting, args: argparse.Namespace, result: dict[str, Any]) -> None:
        self._setting, self._args, self._result = setting, args, result
        spawned = context()
        room = Room(spawned, WARMED_BYTES)
        self._pool = ProcessPoolExecutor(args.jobs, spawned, start, (setting, room))
        self._timers = JudgePool(lambda: JudgeProcess(setting.command("timing_process.py")))

    def all_of(self, problems: Sequence[Problem]) -> None:
        """Times them, and writes rows as they come. Raises VerifierUnavailable."""
        conditions = self._timers.conditions()
        self._result["conditions"].append(conditions)
        again: list[tuple[Problem, dict[str, Any]]] = []
        for problem, done in self._prepared(problems):
            if isinstance(done, str):
                self._result["left_out"][_key(problem)] = done
            elif self._timed(problem, done, conditions) == "memory":
                again.append((problem, done))
        for problem, done in again:
            if self._left() > 0:
                self._timed(problem, done, conditions, last=True)
        known = {(row["level"], row["problem"]) for row in self._result["rows"]}
        for problem in problems:
            if (problem.level, problem.name) not in known:
                self._result["left_out"].setdefault(_key(problem), "not reached")
            else:
                self._result["left_out"].pop(_key(problem), None)
        self._write()

    def _left(self) -> float:
        return float(self._args.seconds) - (time.monotonic() - float(self._args.begun))

    def _prepared(self, problems: Sequence[Problem]) -> Iterator[tuple[Problem, dict[str, Any] | str]]:
        """Problems as they become ready, or why they did not, until the time is over."""
        waiting: dict[Future[dict[str, Any]], Problem] = {}
        for problem in problems:
            waiting[self._pool.submit(prepare, problem)] = problem
        while waiting and self._left() > 0:
            ready = wait(waiting, timeout=self._left(), return_when=FIRST_COMPLETED).done
            for future in sorted(ready, key=lambda one: list(waiting).index(one)):
                problem = waiting.pop(future)
                if self._left() <= 0:
                    return
                error = future.exception()
                yield problem, future.result() if error is None else f"{type(error).__name__}: {error}"[:400]

    def _timed(
        self, problem: Problem, done: dict[str, Any], conditions: Mapping[str, Any], *, last: bool = False
    ) -> str:
        """Writes a problem's rows; "memory" where the device had too little for now, unless it is the last
        time."""
        request = {**done["request"], "seconds": SESSION_SECONDS}
        began = time.monotonic()
        answer = self._asked(request)
        if answer.get("memory") and not last:
            self._result["left_out"][_key(problem)] = f"memory: {answer['error']}"
            return "memory"
        lost = dict[str, str]()
        if "error" in answer:
            answer, lost = self._with_fewer(request, answer)
        if "error" in answer:
            self._result["left_out"][_key(problem)] = answer["error"]
            return "error"
        systems = [*([TUNED] if problem.tuned else []), *problem.others]
        about = {**done["about"], "systems": systems, "why": {**answer["why"], **done["why"], **lost}}
        rows = rows_of(problem, about, answer, conditions, self._dated())
        self._result["rows"] += rows
        self._write()
        _print(problem, rows, time.monotonic() - began, answer["seconds"], done["about"]["warm"])
        return ""

    def _with_fewer(
        self, request: Mapping[str, Any], failed: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The answer without the systems that may have ended a request, and why these are not in it."""
        for lost in combinations_of(request):
            answer = self._asked(without(request, lost))
            if "error" not in answer:
                return answer, dict.fromkeys(lost, failed["error"])
        return failed, {}

    def _asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        seconds = TIMED_SECONDS + OTHER_SECONDS * len(request["others"]) + TUNED_SECONDS * request["tuned"]
        try:
            return self._timers.ask(request, seconds)
        except JudgeLost as error:
            return {"error": "it did not end in time" if error.hung else f"the process ended: {error.said}"}

    def _dated(self) -> dict[str, str]:
        return {"commit": self._args.commit, "date": datetime.now(UTC).isoformat(timespec="seconds")}

    def _write(self) -> None:
        self._result["summary"] = summary(self._result["rows"])
        self._args.json.write_text(json.dumps(self._result) + "\n")

    def close(self) -> None:
        """Ends all processes."""
        for process in list((self._pool._processes or {}).values()):
            process.terminate()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._timers.close()


def combinations_of(request: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The systems that a request can do without: each of others' first, ours, then several."""
    foreign = [*request["others"], *([TUNED] if request["tuned"] else [])]
    ours = [OURS] if request["call"] is not None else []
    alone = [(one,) for one in [*foreign, *ours]]
    several = [tuple(foreign), (*foreign, *ours)]
    return list(dict.fromkeys([*alone, *(some for some in several if some)]))


def without(request: Mapping[str, Any], systems: Sequence[str]) -> dict[str, Any]:
    """A request for fewer systems."""
    return {
        **request,
        "others": {name: file for name, file in request["others"].items() if name not in systems},
        "tuned": request["tuned"] and TUNED not in systems,
        "call": None if OURS in systems else request["call"],
    }


def _key(problem: Problem) -> str:
    return f"level{problem.level}/{problem.name}"


def _print(
    problem: Problem, rows: Sequence[Mapping[str, Any]], seconds: float, parts: Sequence[float], warm: str
) -> None:
    figures = [
        f"{row['class']} {row['system']} {row['device_us'] or 0:.1f}{'' if row['right'] else '!'}"
        for row in rows
    ]
    print(f"{_key(problem):60} {seconds:5.1f} s {parts} {warm[:60]} {', '.join(figures)}", flush=True)


def merge(paths: Sequence[Path]) -> int:
    """Adds the rows of runs to those that docs have, and writes the table."""
    results = [json.loads(path.read_text()) for path in paths]
    file = RESULTS / "h200.jsonl"
    old = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    rows = merged(old, [row for result in results for row in result["rows"]])
    left_out = {key: why for result in results for key, why in result["left_out"].items()}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (RESULTS / "h200.md").write_text(table(rows, left_out, _truth()))
    print(json.dumps(summary(rows), indent=1))
    return 0


def _truth() -> dict[str, Any] | None:
    file = RESULTS / "gpu_truth.json"
    return json.loads(file.read_text()) if file.exists() else None


if __name__ == "__main__":
    sys.exit(main())
