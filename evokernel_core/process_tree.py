"""Processes with all that they started."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import psutil


def descendants(pid: int | None = None) -> list[psutil.Process]:
    """What a process started, and what those started; this one's unless ``pid`` names another, none of one
    that has ended."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Kills those that still run."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
