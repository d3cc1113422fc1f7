"""Programs that take minutes on a busy machine: they say how far they are, and only hung ones are ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import psutil
from attrs import frozen

POLL_S = 1.0


@frozen
class Patience:
    """``tell_s``: seconds between two lines on a program that runs. ``idle_s``: a program is ended when it
    and all that it started used no processor for so long. Time by the clock ends nothing: it may be others'.
    """

    tell_s: float = 30.0
    idle_s: float = 600.0


def say(words: str) -> None:
    """A line that is there at once, also in a pipe."""
    print(words, flush=True)


def run(
    label: str,
    command: tuple[str, ...],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    patience: Patience = Patience(),
    tell: Callable[[str], None] = say,
) -> bytes:
    """What a program writes to its output. Raises AssertionError with its words where it fails or hangs."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            command, stdin=given, stdout=out, stderr=err, cwd=cwd, env=env, start_new_session=True
        )
        try:
            hung = _wait(label, process, patience, tell)
        finally:
            _end(process)
        said = _text(out) + _text(err)
        assert not hung, f"{label} used no processor for {patience.idle_s:.0f} s and was ended:\n{said}"
        assert process.returncode == 0, f"{label} failed with exit status {process.returncode}:\n{said}"
        out.seek(0)
        return out.read()


def _wait(
    label: str, process: subprocess.Popen[bytes], patience: Patience, tell: Callable[[str], None]
) -> bool:
    """Until the program ends. True where it hangs."""
    began = told = active = time.monotonic()
    used = 0.0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(POLL_S, patience.tell_s, patience.idle_s))
            return False
        now, before, used = time.monotonic(), used, processor_seconds(process.pid)
        active = now if used != before else active
        if now - active >= patience.idle_s:
            return True
        if now - told >= patience.tell_s:
            told = now
            tell(f"         … {label}: {now - began:.0f} s by the clock, {used:.0f} s of a processor")


def processor_seconds(pid: int) -> float:
    """What a process and its descendants, those that ended too, have used."""
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        for process in [top, *top.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])  # own and ended children's, in user and in system
    return total


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends what is left of the program's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
