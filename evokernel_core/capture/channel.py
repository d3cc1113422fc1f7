"""A child process that speaks JSON-RPC 2.0 with Content-Length framing, and can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from typing import IO, Any

from evokernel_core.capture.agent.watcher import OPTION
from evokernel_core.domain.errors import AgentFailed, InterpreterUnavailable
from evokernel_core.lifeline import Lifeline

LINES_KEPT = 20


class AgentEnded(AgentFailed):
    """The child was gone before it answered, as when the system ran out of memory and killed it."""


class Channel:
    """One running child. Every failure to answer ends the child and raises AgentFailed, AgentEnded
    where it had ended by itself.

    The child takes ``--until-eof DESCRIPTOR`` and ends with that pipe, which is this process's.
    Starting raises InterpreterUnavailable where the command is no program.
    """

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._lifeline = Lifeline()
        end = self._lifeline.end
        try:
            self._process = subprocess.Popen(
                [*command, OPTION, str(end)],
                pass_fds=(end,),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            self._lifeline.close()
            raise InterpreterUnavailable(
                "The interpreter {path} could not be started ({why}): set another one.",
                path=command[0],
                why=error.strerror,
            ) from error
        self._lifeline.started()
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._next_id = 0
        threading.Thread(target=self._read_answers, daemon=True).start()
        self._errors = threading.Thread(target=self._read_errors, daemon=True)
        self._errors.start()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def last_words(self) -> str:
        """The child's last lines on stderr."""
        return "\n".join(self._lines)

    def request(self, method: str, params: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """The answer message. Raises AgentFailed after a timeout, AgentEnded when the child is gone."""
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        try:
            _write(self._stream(self._process.stdin), message)
            answer = self._answers.get(timeout=timeout_s)
        except OSError:
            answer = None
        except queue.Empty:
            self.kill()
            raise AgentFailed(
                "The torch agent did not finish {method} in {seconds} s and was stopped: look for a "
                "long loop or heavy work at import.",
                method=method,
                seconds=f"{timeout_s:g}",
            ) from None
        if answer is None or answer.get("id") != self._next_id:
            self.kill()
            raise AgentEnded(
                "The torch agent ended during {method} ({how}), twice in a row: correct the file and "
                "try again.",
                method=method,
                how=self._epitaph(),
            )
        return answer

    def _epitaph(self) -> str:
        self._errors.join(timeout=1)
        words = next((line.strip() for line in reversed(self._lines) if line.strip()), "no message")
        status = self._process.returncode
        return f"{signal.Signals(-status).name if status < 0 else f'exit status {status}'}; {words[:200]}"

    def kill(self) -> None:
        """End the child and everything that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._lifeline.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError, ValueError):
                self._stream(stream).close()

    @staticmethod
    def _stream(stream: IO[bytes] | None) -> IO[bytes]:
        if stream is None:
            raise AgentFailed("The torch agent has no channel: try again.")
        return stream

    def _read_answers(self) -> None:
        stream = self._stream(self._process.stdout)
        with contextlib.suppress(OSError, ValueError):
            while (message := _read(stream)) is not None:
                self._answers.put(message)
        self._answers.put(None)

    def _read_errors(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._stream(self._process.stderr):
                self._lines.append(line.decode(errors="replace").rstrip())


def _write(stream: IO[bytes], message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    stream.flush()


def _read(stream: IO[bytes]) -> dict[str, Any] | None:
    """The next message; None at the end or where the frame is broken."""
    length = -1
    while (line := stream.readline()) not in (b"\r\n", b"\n", b""):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    body = stream.read(length) if length > 0 else b""
    return json.loads(body) if length > 0 and len(body) == length else None
