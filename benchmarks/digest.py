"""What the author plans and writes, as digests: whether a change of its inside changes any text or figure.

    python benchmarks/digest.py SUITE --tasks FOLDER [--levels 1,2] [--moves N] [--json OUT] [--equal OLD]

SUITE is a folder of KernelBench-format problems, a folder a level. Each problem's forward is captured once;
FOLDER holds the tasks for later runs. Of each task the first draft and ``--moves`` schedules one move away
from it are digested: settings, both files, and the estimate in microseconds. With ``--equal`` the rows are
compared with an earlier run's, and the exit status is 1 where one differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.synthesis.problems import whole_forward
from evokernel_core.synthesis.session import Session, Settings
from evokernel_core.targets.ascendc import author

Row = Mapping[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", type=Path)
    parser.add_argument("--tasks", type=Path, required=True)
    parser.add_argument("--levels", default="1,2")
    parser.add_argument("--moves", type=int, default=6)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--equal", type=Path)
    args = parser.parse_args()
    files = [
        file
        for level in args.levels.split(",")
        for file in sorted((args.suite / f"level{level}").glob("*.py"))
    ]
    capture(args.suite, [file for file in files if not task_file(args.tasks, file).exists()], args.tasks)
    chip = load_chip(Settings().chip)
    rows = {
        f"{file.parent.name}/{file.stem}": digested(task_file(args.tasks, file), chip, args.moves)
        for file in files
    }
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    digest = sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]
    differing = [] if args.equal is None else list(differences(json.loads(args.equal.read_text()), rows))
    for line in differing:
        print(line)
    print(json.dumps({"problems": len(rows), "digest": digest, "differences": len(differing)}))
    return 1 if differing else 0


def task_file(folder: Path, file: Path) -> Path:
    """The file of a problem's captured task."""
    return folder / f"{file.parent.name}-{file.stem}.json"


def capture(suite: Path, files: Sequence[Path], folder: Path) -> None:
    """Writes the task of each problem's forward, or the reason why there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    if not files:
        return
    with Session(Settings(evaluation=False), suite) as session:  # as `evokernel bench` runs models
        for file in files:
            try:
                region, reason = whole_forward(session, file, session.agent.calls(file).symbol, 0)
            except EvoKernelError as error:
                region, reason = None, str(error)
            task = region.task if region is not None else None
            data = {"reason": str(reason)} if task is None else {"task": to_data(task)}
            task_file(folder, file).write_text(json.dumps(data))


def digested(file: Path, chip: Chip, moves: int) -> Row:
    """The draft of a task and schedules one move away."""
    data = json.loads(file.read_text())
    if "task" not in data:
        return data
    task = from_data(data["task"], KernelTask)
    try:
        draft = author.initial(task, chip)
        others = author.moves(task, draft, chip)[:moves]
        steps = {str(move.name): schedule(task, move.strategy, chip) for move in others}
        return {"draft": schedule(task, draft, chip), "moves": steps}
    except EvoKernelError as error:
        return {"reason": str(error)}


def schedule(task: KernelTask, strategy: Strategy, chip: Chip) -> Row:
    """The digests of one schedule and of its files, and its estimate."""
    source = author.write(task, strategy, chip)
    return {
        "strategy": sha256(json.dumps(to_data(strategy), sort_keys=True).encode()).hexdigest()[:16],
        "source": source.source_id[:16],
        "us": repr(author.estimate_us(task, strategy, chip)),
    }


def differences(old: Mapping[str, Row], new: Mapping[str, Row]) -> Iterator[str]:
    """A line for each problem whose row is another, with what differs."""
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, {}), new.get(name, {})
        if before != after:
            yield f"{name}: {', '.join(_parts(before, after)) or 'there is no such problem in one of them'}"


def _parts(before: Any, after: Any, path: str = "") -> Iterator[str]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        if before != after:
            yield f"{path} {before} -> {after}"
        return
    for key in sorted(before.keys() | after.keys()):
        yield from _parts(before.get(key), after.get(key), f"{path}/{key}")


if __name__ == "__main__":
    sys.exit(main())
