"""Runs a program of the file's own without an effect on the world around it: nothing is written, no other
program started, no connection made, and it ends after a while."""

from __future__ import annotations

import argparse
import builtins
import ctypes
import io
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import torch

from ..sentence import Sentence
from .devices import patched


class Stopped(BaseException):
    """The program was stopped; the message says why. No ``except Exception`` of the program's holds it."""

    @property
    def sentence(self) -> Sentence:
        return Sentence(*self.args)


class OutOfTime(Stopped):
    """The program ran for as long as it may."""


_STARTS, _FORKS = Sentence("it starts another program"), Sentence("it starts other processes")
_NETWORK, _SIGNALS = Sentence("it uses the network"), Sentence("it sends signals")
_DELETES, _MOVES = Sentence("it deletes files"), Sentence("it moves files")
_WRITES_FILES = Sentence("it writes files")
_REFUSED = {
    "subprocess.Popen": _STARTS, "os.system": _STARTS,
    "os.exec": _STARTS, "os.posix_spawn": _STARTS,
    "os.spawn": _STARTS, "os.startfile": _STARTS,
    "os.fork": _FORKS, "os.forkpty": _FORKS,
    "os.kill": _SIGNALS, "socket.connect": _NETWORK, "socket.bind": _NETWORK,
    "socket.getaddrinfo": _NETWORK, "socket.sendto": _NETWORK,
    "os.remove": _DELETES, "os.rmdir": _DELETES, "shutil.rmtree": _DELETES,
    "os.rename": _MOVES, "os.link": _WRITES_FILES, "os.symlink": _WRITES_FILES,
    "os.truncate": _WRITES_FILES, "os.chmod": _WRITES_FILES, "os.mkdir": _WRITES_FILES,
    "shutil.copyfile": _WRITES_FILES, "shutil.move": _MOVES,
}  # fmt: skip
"""Audit events of Python itself, and what a program does that raises them."""
_WITHOUT_EFFECT: dict[Any, str] = {
    os: "mkdir makedirs rename renames replace remove unlink rmdir removedirs chmod truncate link symlink",
    shutil: "rmtree move copyfile copy copy2 copytree", time: "sleep", torch: "save",
}  # fmt: skip
"""What a program does around its models: it goes on as if that were done."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_ARRIVES_S = 0.001
"""An exception that another thread raises arrives at the next instruction of Python."""
_confined: set[int] = set()
_watching: list[bool] = []


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _confined or threading.get_ident() not in _confined:
        return
    if event == "open":
        _check_open(*args)
    elif event in _REFUSED:
        raise Stopped(_REFUSED[event])


def _check_open(path: Any, mode: Any, flags: Any) -> None:
    if not isinstance(flags, int) or not flags & _WRITES or not isinstance(path, (str, bytes)):
        return
    name = os.fsdecode(path)
    fresh = flags & os.O_EXCL and name.startswith(tempfile.gettempdir())
    if name != os.devnull and not fresh:
        raise Stopped(_WRITES_FILES)


@contextmanager
def confined(path: Path) -> Iterator[Deadline]:
    """What runs inside in this thread has no effects. Raises Stopped where it would."""
    if not _watching:
        _watching.append(True)
        sys.addaudithook(_audit)  # it cannot be taken away again
    environment = dict(os.environ)
    with ExitStack() as patches:
        patches.enter_context(as_program(path))
        patches.enter_context(patched(sys, "dont_write_bytecode", True))
        for owner in (builtins, io):
            patches.enter_context(patched(owner, "open", _reading_only(io.open)))
        for owner, names in _WITHOUT_EFFECT.items():
            for name in names.split():
                patches.enter_context(patched(owner, name, _nothing))
        _confined.add(threading.get_ident())
        try:
            with deadline() as limit:
                yield limit
        finally:
            _confined.discard(threading.get_ident())
            os.environ.clear()
            os.environ.update(environment)


@contextmanager
def as_program(path: Path) -> Iterator[None]:
    """The file is the program that runs, and was given no arguments."""
    with patched(sys, "argv", [str(path)]), patched(argparse.ArgumentParser, "error", _argument_error):
        yield


def _argument_error(self: argparse.ArgumentParser, message: str) -> NoReturn:
    raise Stopped(Sentence("its command line needs arguments: {message}", message=message))


def _reading_only(original: Any) -> Any:
    """``open`` that gives nowhere to write to."""

    def open_(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
        return original(os.devnull if writes and not isinstance(file, int) else file, mode, *args, **kwargs)

    return open_


def _nothing(*args: Any, **kwargs: Any) -> None:
    return


class Deadline:
    """Raises OutOfTime in the thread that made it, once a time that was set is over, until it is ended. Code
    that Python does not run is not interrupted."""

    def __init__(self) -> None:
        self._thread, self._lock = threading.get_ident(), threading.Lock()
        self._timers: list[threading.Timer] = []
        self._ended = self._raised = False

    def set(self, seconds: float) -> None:
        """Leaves so much time from now on, or less where less was left."""
        timer = threading.Timer(seconds, self._interrupt)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def _interrupt(self) -> None:
        with self._lock:
            if not self._ended:
                self._raised = True
                _raise_in(self._thread, OutOfTime)

    def end(self) -> None:
        """Nothing is raised any more: what was raised, but has not arrived, arrives here."""
        with suppress(OutOfTime):
            with self._lock:
                self._ended = True
            if self._raised:
                time.sleep(_ARRIVES_S)
        self._ended = True
        for timer in self._timers:
            timer.cancel()


@contextmanager
def deadline() -> Iterator[Deadline]:
    """A time limit for what runs inside, once it is set."""
    made = Deadline()
    try:
        yield made
    finally:
        made.end()


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Taking one back is no use: in CPython 3.11 its signal stays, and a function under a profiler never
    begins."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
