"""Runs a command so that the Python processes in it note what they build and call."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from evokernel_core.capture import agent
from evokernel_core.capture.observations import ObservationStore, Run, read_run
from evokernel_core.domain.errors import UsageError
from evokernel_core.import_root import MARKERS
from evokernel_core.private import private_folder

_STARTUP = Path(agent.__file__).parent / "observation" / "startup"
_PYTHON = re.compile(r"(python|pypy)[\d.]*w?(\.exe)?", re.IGNORECASE)
_TAKES_VALUE = frozenset("WXcm")


@frozen
class Finished:
    """``status`` is the command's exit status."""

    status: int
    run: Run


def workspace_of(folder: Path) -> Path:
    """The project that a folder belongs to: the nearest folder above with a sign of one, else itself."""
    folder = folder.absolute()
    home = Path.home()
    for candidate in (folder, *folder.parents):
        if candidate == home or candidate == Path(candidate.anchor):
            break
        if any((candidate / name).exists() for name in MARKERS):
            return candidate
    return folder


def observe(command: Sequence[str], roots: Sequence[Path], store: ObservationStore) -> Finished:
    """Runs a command once and keeps what it showed of the files below ``roots``.

    Raises UsageError for a command that cannot be observed, StoreError.
    """
    check(command)
    private_folder(store.folder)
    with tempfile.TemporaryDirectory(dir=store.folder, prefix="run-") as folder:
        status = _run(command, environment_of(os.environ, Path(folder), roots))
        run = read_run(Path(folder), shlex.join(command))
    store.add(run.observed)
    return Finished(status, run)


def check(command: Sequence[str]) -> None:
    """Raises UsageError for an interpreter that is told not to look at its environment."""
    if not _PYTHON.fullmatch(Path(command[0]).name):
        return
    for flag in _flags(command[1:]):
        if flag in "IES":
            raise UsageError(
                "{command} -{flag} does not read what observe puts into its environment: leave -{flag} "
                "out for this run.",
                command=command[0],
                flag=flag,
            )


def _flags(arguments: Sequence[str]) -> str:
    """The single-letter options of an interpreter, up to the program."""
    options, rest = "", list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word.startswith("--"):
            continue
        for number, letter in enumerate(word[1:], 2):
            options += letter
            if letter in _TAKES_VALUE:
                if letter in "cm":
                    return options
                if not word[number:] and rest:
                    rest.pop(0)
                break
    return options


def environment_of(before: Mapping[str, str], folder: Path, roots: Sequence[Path]) -> dict[str, str]:
    """The environment of an observed command. Compiled code would hide the calls inside it, so torch.compile
    leaves functions as they are unless the person's environment says otherwise."""
    path = [str(_STARTUP), *filter(None, [before.get("PYTHONPATH", "")])]
    return {
        "TORCHDYNAMO_DISABLE": "1",
        **before,
        "PYTHONPATH": os.pathsep.join(path),
        "EVOKERNEL_OBSERVE": str(folder),
        "EVOKERNEL_OBSERVE_ROOTS": os.pathsep.join(map(str, roots)),
    }


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit status, as a shell gives it: 128 and the number for a command that a signal ended."""
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        raise UsageError(
            "{command} is no program that can be found: check the words after '--'.", command=command[0]
        )
    with _passing_on() as processes:
        process = subprocess.Popen([program, *command[1:]], env=dict(environment))
        processes.append(process)
        while True:
            try:
                status = process.wait()
            except KeyboardInterrupt:  # the command got it too, and what it showed until then is kept
                continue
            return status if status >= 0 else 128 - status


_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def _passing_on() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Signals that end this process go to the commands in the list instead, which end it."""
    processes: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _: object) -> None:
        for process in processes:
            process.send_signal(number)

    if threading.current_thread() is not threading.main_thread():  # only there signals can be handled
        yield processes
        return
    before = {number: signal.signal(number, pass_on) for number in _ENDING}
    try:
        yield processes
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
