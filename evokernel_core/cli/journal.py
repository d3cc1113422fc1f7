"""What a run of ``evokernel bench`` has done, on disk, so that an interrupted one goes on."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from attrs import asdict, define, field

from evokernel_core.domain.errors import UsageError
from evokernel_core.paths import data_dir
from evokernel_core.synthesis.problems import ProblemResult


@define
class RunJournal:
    """The problems of a run that are done, one JSON object a line, kept until the run is complete.

    The same command with the same options goes on with it; ``run`` names the jobs, so that a problem
    that was interrupted keeps its attempts too. A journal is of one process at a time.
    """

    path: Path
    run: str
    done: dict[str, ProblemResult]
    _file: IO[str]
    _lock: threading.Lock = field(factory=threading.Lock)

    @classmethod
    def open(cls, key: str) -> RunJournal:
        """Raises UsageError while another process has this journal."""
        folder = data_dir() / "bench"
        folder.mkdir(exist_ok=True)
        path = folder / f"{key}.jsonl"
        file = _locked(path)
        run, results = _read(file.read().split("\n"))
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"run": run}) + "\n" + "".join(map(_line, results)))
        file.flush()
        return cls(path, run, {result.key: result for result in results}, file)

    def add(self, result: ProblemResult) -> None:
        with self._lock:
            self._file.write(_line(result))
            self._file.flush()
            self.done[result.key] = result

    def release(self) -> None:
        """Leaves the journal to the next run."""
        self._file.close()

    def close(self) -> None:
        """The run is complete: the next one starts anew."""
        self.path.unlink()
        self.release()


def _locked(path: Path) -> IO[str]:
    """The file, which no other process has; one that was removed since it was opened is another run's."""
    while True:
        file = path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise UsageError(
                "This bench is running already, with the same problems and options; wait for it or end it."
            ) from error
        if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
            file.seek(0)
            return file
        file.close()


def _read(lines: Iterable[str]) -> tuple[str, list[ProblemResult]]:
    """The run's name and its results; a line that was cut is solved again."""
    result = [entry for entry in map(_parsed, lines) if entry]
    if not result or "run" not in result[0]:
        return uuid.uuid4().hex, []
    return result[0]["run"], [ProblemResult(**element) for element in result[1:]]


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        result: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return None
    return result


def _line(result: ProblemResult) -> str:
    return json.dumps(asdict(result)) + "\n"
