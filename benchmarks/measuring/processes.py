"""What a process and all below it have taken."""

from __future__ import annotations

import contextlib

import psutil


def tree(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def processor_s(process: psutil.Process) -> float:
    """Processor seconds of a tree, those of children that ended included: on a machine that does other work,
    too, they say more than seconds."""
    taken = 0.0
    for each in tree(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            taken += times.user + times.system + times.children_user + times.children_system
    return taken


def resident_mb(process: psutil.Process) -> float:
    """Resident MiB of a tree."""
    resident = 0
    for each in tree(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            resident += each.memory_info().rss
    return resident / 2**20
