"""Work of a copy of this process, bounded in time and memory, that tells what it finds as it goes."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import torch

from ..errors import describe
from ..sentence import Sentence

Report = Callable[[dict[str, Any]], None]
_STATUS = Path("/proc/self/statm")
"""Its first number is that of the pages that this process has."""


def bounded(work: Callable[[Report], None], seconds: float, most_bytes: int) -> Iterator[dict[str, Any]]:
    """The events that ``work`` reports, which are JSON. Where it did not come to its end, the last one is
    ``{"ended": sentence}`` with the reason, or ``{"failed": text}`` with an error that it raised. Nothing
    that it changes is changed here; it has ``most_bytes`` more than this process has now."""
    if not hasattr(os, "fork"):
        yield {"ended": Sentence("this system does not copy processes").data()}
        return
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _work(work, writer, most_bytes, seconds)
    os.close(writer)
    try:
        finished = yield from _events(reader, time.monotonic() + seconds)
        if finished is None:
            yield {"ended": Sentence("it takes longer than {seconds} s", seconds=f"{seconds:g}").data()}
        elif not finished:
            yield {"ended": Sentence("the process that ran it ended").data()}
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)  # not waited for yet, so the number is still its own
        os.waitpid(child, 0)


def _events(reader: int, until: float) -> Generator[dict[str, Any], None, bool | None]:
    """Gives the events; returns whether the work came to its end, None where its time was over."""
    rest = b""
    finished = False
    while True:
        ready, _, _ = select.select([reader], [], [], max(until - time.monotonic(), 0.0))
        if not ready:
            return None
        data = os.read(reader, 1 << 16)
        if not data:
            return finished
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if event == {"done": True}:
                finished = True
            else:
                yield event


def _work(work: Callable[[Report], None], writer: int, most_bytes: int, seconds: float) -> None:
    """The child's part; it ends with it, whatever happens."""

    def report(event: dict[str, Any]) -> None:
        os.write(writer, json.dumps(event).encode() + b"\n")

    try:
        _limit(most_bytes, seconds)
        torch.set_num_threads(1)  # the threads of a pool are not copied with the process
        work(report)
        report({"done": True})
    except BaseException as error:
        traceback.print_exc()
        sys.stderr.flush()
        report({"failed": describe(error)})
        report({"done": True})
    finally:
        os._exit(0)


def _limit(most_bytes: int, seconds: float) -> None:
    import resource

    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: int(seconds) + 1}
    if _STATUS.exists():
        limits[resource.RLIMIT_AS] = int(_STATUS.read_text().split()[0]) * resource.getpagesize() + most_bytes
    for kind, value in limits.items():
        _, hard = resource.getrlimit(kind)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, hard))
