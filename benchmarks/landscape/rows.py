"""The file of recorded landscapes: lines of JSON, compressed. A line with ``machine`` says where the tasks
behind it were timed; every other line is a task, with all its points."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

Line = Mapping[str, Any]


@frozen
class Recorded:
    """A task's line, and that of the machine on which it was timed."""

    machine: Line
    line: Line

    @property
    def name(self) -> str:
        return str(self.line["task"])


def read(path: Path) -> dict[str, Recorded]:
    """Tasks by their names, each as it was timed last; none where there is no file."""
    machine: Line = {}
    found: dict[str, Recorded] = {}
    for line in _lines(path):
        if "machine" in line:
            machine = line["machine"]
        else:
            found[line["task"]] = Recorded(machine, line)
    return found


def _lines(path: Path) -> Iterator[Line]:
    if path.exists():
        with lzma.open(path, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)


def append(path: Path, line: Line) -> None:
    """Adds a line, whole where the process ends right behind it."""
    text = json.dumps(line, separators=(",", ":")) + "\n"
    with path.open("ab") as file:
        file.write(lzma.compress(text.encode(), preset=9))
