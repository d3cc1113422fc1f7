"""Where an observed process writes what it saw: one file of JSON lines a process, whole lines only."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class ObservationJournal:
    """Appends lines to a file of this process in ``folder``; a forked child gets a file of its own."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._pid, self._file = 0, -1

    def write(self, line: dict[str, Any]) -> None:
        """Appends one line. Raises OSError, or ValueError for what is no JSON."""
        text = json.dumps(line, allow_nan=False) + "\n"
        if self._pid != os.getpid():
            self._pid = os.getpid()
            name = self._folder / f"{self._pid}-{time.time_ns()}.jsonl"
            self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        os.write(self._file, text.encode("utf-8", "replace"))
