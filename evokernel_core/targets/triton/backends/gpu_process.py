"""The process that judges on a GPU, seen from here: it is asked in lines of JSON, and killed when it hangs.

A kernel that never ends, or that loses the process its context, costs that process and no more: the next
candidate gets one that was made ready meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from evokernel_core.domain.errors import VerifierUnavailable
from evokernel_core.targets.triton.backends.compile_sandbox import CHILD

START_SECONDS = 120.0
"""For torch's import and a context, on a machine whose disk is cold."""
END_SECONDS = 30.0
PASSED_ON = ("CUDA", "NVIDIA", "LD_LIBRARY_PATH", "PATH", "HOME", "PYTHONPATH")
"""Beginnings of the environment variables that torch needs to find its device."""


class JudgeLost(Exception):
    """The process ended, or was killed because it did not answer; ``hung`` says which."""

    def __init__(self, said: str, *, hung: bool) -> None:
        super().__init__(said)
        self.said, self.hung = said, hung


class JudgeProcess:
    """One process. It starts at once; ``ready`` waits for it."""

    def __init__(self, command: list[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  its end is the process's
        environment = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self._rest = b""
        self._hello: dict[str, Any] | None = None

    def ready(self) -> dict[str, Any]:
        """What machine it is on. Raises VerifierUnavailable where it cannot judge."""
        if self._hello is None:
            try:
                self._hello = self._read(START_SECONDS)
            except JudgeLost as error:
                raise VerifierUnavailable(
                    "The process that verifies on the GPU did not start: {said}",
                    said=error.said or "it said nothing",
                ) from error
        if "ready" not in self._hello:
            raise _missing(self._hello)
        about: dict[str, Any] = self._hello["ready"]
        return about

    def ask(self, request: Mapping[str, Any], wall_s: float) -> dict[str, Any]:
        """The answer. Raises JudgeLost."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        return self._read(wall_s)

    def _read(self, wall_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor, end = self._process.stdout.fileno(), time.monotonic() + wall_s
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while b"\n" not in self._rest:
            if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                self.close()
                raise JudgeLost("", hung=True)
            data = os.read(descriptor, 1 << 16)
            if not data:
                said = self._last_words()
                self.close()
                raise JudgeLost(said, hung=False)
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read()[-4000:].decode(errors="replace").strip().splitlines()
        return (lines or ["it said nothing"])[-1][:300]

    def close(self) -> None:
        """Ends it, whatever it does."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
        with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may need long to end a kernel
            self._process.wait(END_SECONDS)
        for file in (self._process.stdin, self._process.stdout, self._errors):
            if file is not None:
                with contextlib.suppress(BrokenPipeError):
                    file.close()


def _missing(hello: Mapping[str, Any]) -> VerifierUnavailable:
    if hello.get("missing") == "torch":
        return VerifierUnavailable(
            "The interpreter has no PyTorch; install it with `pip install torch`, or name an interpreter "
            "that has it."
        )
    if hello.get("missing") == "gpu":
        return VerifierUnavailable(
            "PyTorch sees no CUDA device here; install NVIDIA's driver and a torch built for CUDA, or verify "
            "with --backend interpreter."
        )
    return VerifierUnavailable(
        "The CUDA device does not start: {said}", said=hello.get("error") or "no driver was found"
    )


def judge_command(python: str) -> list[str]:
    """The process that judges, in an interpreter."""
    return [python or sys.executable, str(CHILD), "judge"]


class JudgePool:
    """A process that judges and one that is made ready for when that is lost. One call at a time."""

    def __init__(self, start: Callable[[], JudgeProcess], spares: int = 1) -> None:
        self._start, self._spares = start, spares
        self._processes: list[JudgeProcess] = []
        self._lock = threading.Lock()

    def conditions(self) -> dict[str, Any]:
        """What machine this is. Raises VerifierUnavailable."""
        with self._lock:
            return self._first().ready()

    def ask(self, request: Mapping[str, Any], wall_s: float) -> dict[str, Any]:
        """The answer of the process in use. Raises JudgeLost, after which another stands in its place, and
        VerifierUnavailable."""
        with self._lock:
            process = self._first()
            process.ready()
            try:
                answer = process.ask(request, wall_s)
            except JudgeLost:
                self._processes.remove(process)
                raise
            if answer.get("broken"):
                self._processes.remove(process)
                process.close()
            return answer

    def _first(self) -> JudgeProcess:
        if not self._processes:
            self._processes.append(self._start())
        process = self._processes[0]
        process.ready()
        while len(self._processes) <= self._spares:
            self._processes.append(self._start())
        return process

    def close(self) -> None:
        """Ends all processes."""
        with self._lock:
            for process in self._processes:
                process.close()
            self._processes.clear()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()
