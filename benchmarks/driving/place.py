"""Where one agent runs: its project, its home, and a program evokernel that notes what it answers."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
from attrs import frozen

from driving.story import project

REPOSITORY = Path(__file__).resolve().parents[2]
MAIN = "from evokernel_core.cli.main import main; main()"
ENDS_S = 10
"""Seconds in which all of ours has to be gone after its agent."""


@frozen
class Place:
    """The folders of one run."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def programs(self) -> Path:
        """A folder for PATH with the program evokernel of this checkout."""
        return self.root / "bin"

    def make(self, cache: Path, other: Path | None) -> None:
        """``cache`` is the one of a prepared twin, which runs share."""
        for folder in (self.home, self.programs, self._data):
            folder.mkdir(parents=True)
        project(self.project, other)
        (self._data / "cache").symlink_to(cache)
        settings = {
            "EVOKERNEL_HOME": self._data,
            "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'server'}",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": 0,
        }
        exports = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in settings.items())
        program = self.programs / "evokernel"
        program.write_text(
            f"#!/bin/bash\nexport {exports}\nexec > >(exec tee -a {shlex.quote(str(self._log))})\n"
            f'exec {shlex.quote(sys.executable)} -c "{MAIN}" "$@"\n'
        )
        program.chmod(0o755)

    def answers(self) -> list[dict[str, Any]]:
        """The results that our server sent."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        messages = (json.loads(line) for line in lines)
        return [item["result"] for item in messages if "result" in item]

    def processes(self) -> set[psutil.Process]:
        """Those of ours that live, by their data folder, and what they started without variables."""
        found = {item for item in psutil.process_iter() if self._is_ours(item)}
        for item in tuple(found):
            with contextlib.suppress(psutil.Error):
                found.update(item.children(recursive=True))
        return found

    def left(self, known: Iterable[psutil.Process] = ()) -> int:
        """How many of ours, or of those that are known, live some seconds from now."""
        until = time.monotonic() + ENDS_S
        while (found := {*self.processes(), *filter(is_alive, known)}) and time.monotonic() < until:
            time.sleep(0.2)
        return len(found)

    @property
    def _data(self) -> Path:
        return self.root / "data"

    @property
    def _log(self) -> Path:
        return self.root / "answers.jsonl"

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return is_alive(process) and process.environ().get("EVOKERNEL_HOME") == str(self._data)
        except psutil.Error:
            return False


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs, and is no other process with its number."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
