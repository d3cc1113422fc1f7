"""The process that interprets a candidate: started in the sandbox, asked by frames, killed when late."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from attrs import frozen

from evokernel_core.domain.errors import CompilerMissing, VerifierError, VerifierUnavailable
from evokernel_core.targets.triton.backends.interpreted import frames
from evokernel_core.twin.launcher import prepare_launcher
from evokernel_core.verifier.confined import SYSTEM_FILES, interpreter_folders
from evokernel_core.verifier.sandbox import Level, probe, sandbox_prefix

FOLDER = Path(__file__).parent / "interpreted"
PROCESSOR_S = 3600
"""Seconds of work of one process, which serves all cases of a candidate."""
START_S = 60.0
FILE_SIZE = 1 << 20
_ERRORS_TOLD = 2000
_PROBE = """
import importlib.metadata, importlib.util, json
found = {name: bool(importlib.util.find_spec(name)) for name in ("triton", "numpy")}
version = importlib.metadata.version("triton") if found["triton"] else ""
print(json.dumps({"missing": [name for name in found if not found[name]], "version": version}))
"""


@cache
def triton_version(python: str) -> str:
    """The version of the Triton that an interpreter has. Raises VerifierUnavailable where it does not run, or
    lacks Triton or NumPy."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=START_S, check=True
        )
        told = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise VerifierUnavailable(
            "The interpreter {python} does not run: set another one.", python=python
        ) from error
    if told["missing"]:
        raise VerifierUnavailable(
            "{python} has no {missing}, which kernels in Triton are checked with: `{python} -m pip install "
            "triton numpy`.",
            python=python,
            missing=" and no ".join(told["missing"]),
        )
    return str(told["version"])


def confinement() -> Level:
    """How far this machine confines a candidate's process."""
    try:
        return probe(prepare_launcher().launcher).level
    except CompilerMissing:
        return Level.LIMITS


def _command(python: str, address_space: int) -> tuple[str, ...]:
    """How the process is started: within a sandbox where this machine has a compiler to build one with."""
    program = (python, "-I", "-B", str(FOLDER))
    try:
        built = prepare_launcher()
    except CompilerMissing:
        return (*program, str(address_space))
    read = (*interpreter_folders(python), FOLDER, *SYSTEM_FILES)
    launcher, *sandbox = sandbox_prefix(built, read, [], threads=True)
    limits = ("--address-space", str(address_space), "--file-size", str(FILE_SIZE))
    return (launcher, *limits, "--cpu", str(PROCESSOR_S), *sandbox, *program)


def _environment() -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "TRITON_INTERPRET": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "HOME": "/nonexistent",
    }


@frozen
class Answer:
    """What the process answered, and the blobs with it."""

    head: dict[str, Any]
    blobs: tuple[bytes, ...]


class Late(Exception):
    """The process did not answer in time and was killed."""


class Gone(Exception):
    """The process ended; carries its exit status and last words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status, self.words = status, words


class InterpretingProcess:
    """One process. It ends when the pipe to it closes, as with this process."""

    def __init__(self, python: str, address_space: int) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            _command(python, address_space),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(),
            cwd="/",
            start_new_session=True,
        )
        self._is_ready = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, head: dict[str, Any], blobs: Sequence[bytes], wall_s: float) -> Answer:
        """The answer to a frame. Raises Late and Gone, after which the process is no more, and VerifierError
        where it never began."""
        if not self._is_ready:
            self._begin()
        sender = threading.Thread(target=self._send, args=(head, blobs), daemon=True)
        sender.start()
        answer = self._read(time.monotonic() + wall_s)
        sender.join()
        return answer

    def _begin(self) -> None:
        try:
            self._read(time.monotonic() + START_S)
        except Late as error:
            raise VerifierError("Triton's interpreter did not start in {s} s.", s=f"{START_S:.0f}") from error
        except Gone as error:
            raise VerifierError("Triton's interpreter does not start: {why}", why=error.words) from error
        self._is_ready = True

    def _send(self, head: dict[str, Any], blobs: Sequence[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):  # who reads no more is met when reading its answer
            frames.write(_stream(self._process.stdin), head, blobs)

    def _read(self, deadline: float) -> Answer:
        source = _Timed(_stream(self._process.stdout).fileno(), deadline)
        try:
            frame = frames.read(source)  # type: ignore[arg-type]
        except Late:
            self.close()
            raise
        except (ValueError, KeyError, TypeError, OverflowError, MemoryError):
            frame = None
        if frame is None:
            raise self._gone()
        return Answer(frame[0], tuple(frame[1]))

    def _gone(self) -> Gone:
        try:
            self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self._kill()
        status = self._process.returncode
        self._errors.seek(0)
        words = self._errors.read(_ERRORS_TOLD).decode(errors="replace").strip()
        self.close()
        return Gone(status, words.splitlines()[-1] if words else "")

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """Ends the process. Closing twice is fine."""
        if self._process.poll() is None:
            self._kill()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError, ValueError):
                _stream(stream).close()


class _Timed:
    """Reads a pipe up to a deadline. Raises Late behind it."""

    def __init__(self, descriptor: int, deadline: float) -> None:
        self._descriptor, self._deadline = descriptor, deadline
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def read(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count > 0:
            left = self._deadline - time.monotonic()
            if left <= 0 or not self._poll.poll(left * 1000):
                raise Late
            part = os.read(self._descriptor, min(count, 1 << 20))
            if not part:
                break
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
