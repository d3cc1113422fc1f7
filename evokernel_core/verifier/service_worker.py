"""A worker of the verifier service: a child process that judges one kernel at a time.

    python -m evokernel_core.verifier.service_worker MODULE:FUNCTION JSON

calls ``FUNCTION(**JSON)`` for a Verifier when the first kernel comes, then answers each line
``{"task":..., "source":...}`` on stdin with ``{"verdict":...}`` or ``{"error":"sentence"}``, and
``said`` for what the sentence is made of, on stdout, and with the CPU seconds that it took
(``cpu_s``), those of ended children included. Whatever else prints goes to stderr. When stdin ends,
its parent is gone: it ends its own children and itself at once, whatever it is doing.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import psutil

from evokernel_core.domain.admission import read_task
from evokernel_core.domain.errors import EvoKernelError, VerifierError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.settings import Settings
from evokernel_core.process_tree import descendants, kill_all
from evokernel_core.verifier.base import Verifier
from evokernel_core.verifier.unjudged import TOO_DEEP, answered, defect

_PR_SET_CHILD_SUBREAPER = 36


def local_verifier(backend: str, chip: str, interpreter: str) -> Verifier:
    """The verifier of this machine, with its reference in the first interpreter that has torch, of those that
    lie in no folder of anybody's work: in a sandbox, for tasks come from the network."""
    from evokernel_core.capture.interpreter import find_interpreter
    from evokernel_core.verifier.confined import ConfinedReferences
    from evokernel_core.verifier.factory import open_verifier

    python = find_interpreter(interpreter)
    settings = Settings(interpreter=str(python.path), chip=chip)
    return open_verifier(settings, ConfinedReferences(str(python.path)), backend)


def resolve(factory: str) -> Callable[..., Verifier]:
    """The function that ``module:function`` names. Raises VerifierError."""
    module, _, name = factory.partition(":")
    try:
        function: Callable[..., Verifier] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise VerifierError(f"The service's verifier {factory!r} cannot be loaded: {error}.") from error
    return function


class Judge:
    """Opens its verifier with the first kernel, so that a failure is that kernel's answer."""

    def __init__(self, factory: str, arguments: dict[str, Any]) -> None:
        self._factory = factory
        self._arguments = arguments
        self._verifier: Verifier | None = None

    def answer(self, line: str) -> dict[str, Any]:
        """The reply to one line; an error is a sentence, never an exception."""
        before = _cpu_s()
        reply = self._judged(line)
        return reply | {"cpu_s": round(_cpu_s() - before, 3)}

    def _judged(self, line: str) -> dict[str, Any]:
        try:
            request = json.loads(line)
            task = read_task(request["task"])
            source = from_data(request["source"], KernelSource)
            return {"verdict": to_data(self._open().verify(task, source))}
        except EvoKernelError as error:
            return answered(error.sentence)
        except RecursionError:
            return answered(TOO_DEEP)
        except Exception as error:  # a defect of ours is this job's error, not the end of the service
            sys.excepthook(*sys.exc_info())
            return answered(defect(type(error).__name__))

    def _open(self) -> Verifier:
        if self._verifier is None:
            self._verifier = resolve(self._factory)(**self._arguments)
        return self._verifier


def adopt_orphans() -> None:
    """From here on what loses its parent becomes this process's child: a kernel that is killed together with
    its watcher would else take its CPU seconds along, and cost its user nothing."""
    with contextlib.suppress(OSError, AttributeError):  # another system than Linux
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _bury() -> None:
    """Takes the time of ended children. They are orphans: whoever starts a process waits for it."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess, ChildProcessError):
            if child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def _cpu_s() -> float:
    """CPU seconds so far of this process, of what it started, and of what those started and saw end."""
    _bury()
    total = 0.0
    for pid in _family(os.getpid()):
        try:
            used = psutil.Process(pid).cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system + used.children_user + used.children_system
    return total


def _family(pid: int) -> list[int]:
    """The process and its living descendants."""
    result = [pid]
    for parent in result:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                result += map(int, (task / "children").read_text().split())
    return result


def _read(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    _end_everything()


def _end_everything() -> None:
    """Ends the processes that the verifier started, then this one; nothing here is worth saving."""
    kill_all(descendants())
    os._exit(0)


def private_stdout() -> TextIO:
    """The real stdout for answers; from here on, prints go to stderr."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return channel


def main() -> None:
    """Runs until stdin ends."""
    channel = private_stdout()
    adopt_orphans()
    judge = Judge(sys.argv[1], json.loads(sys.argv[2]))
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    while True:
        channel.write(json.dumps(judge.answer(lines.get())) + "\n")
        channel.flush()


if __name__ == "__main__":
    main()
