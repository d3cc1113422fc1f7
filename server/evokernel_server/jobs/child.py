"""A process that reads and writes lines, started and spoken to without the event loop ever waiting for it.

On a busy machine a new process runs after tens of milliseconds, and whoever starts it waits for that: a
thread does. Others read what it says, write what it is told, and see its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence

from evokernel_server.transport.stdio import QueuedStream


class Child:
    """A process that leads a group of its own. ``heard`` is called on the loop with each line, ``ended`` with
    the exit status once everything was heard; whatever it left running is ended then."""

    def __init__(
        self,
        command: Sequence[str],
        loop: asyncio.AbstractEventLoop,
        heard: Callable[[bytes], None],
        ended: Callable[[Child, int], None],
    ) -> None:
        """Blocks until the process runs: ``start`` calls it on a thread. Raises OSError where it cannot."""
        self._loop, self._heard, self._ended = loop, heard, ended
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        assert self._process.stdin is not None
        self._input = QueuedStream(self._process.stdin)  # type: ignore[arg-type]
        self._listened = threading.Event()
        for work in (self._run, self._reap):
            threading.Thread(target=work, name="worker", daemon=True).start()

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        heard: Callable[[bytes], None],
        ended: Callable[[Child, int], None],
    ) -> Child:
        return await asyncio.to_thread(cls, command, asyncio.get_running_loop(), heard, ended)

    @property
    def pid(self) -> int:
        return self._process.pid

    def listen(self) -> None:
        """From now on its lines and its end are told."""
        self._listened.set()

    def tell(self, line: bytes) -> None:
        """Hands over a line; one to a process that is gone is dropped."""
        self._input.write(line)

    def finish(self) -> None:
        """Closes its input, at whose end an idle worker ends and leaves nothing behind."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """Ends the process and all that it started: compilers and kernels under test are of its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "nt":
                self._process.kill()
            else:
                os.killpg(self.pid, signal.SIGKILL)

    async def gone(self) -> None:
        """Returns once the process has ended."""
        await asyncio.to_thread(self._process.wait)

    def _run(self) -> None:
        self._listened.wait()
        assert self._process.stdout is not None
        with open(self._process.stdout.fileno(), "rb", closefd=False) as lines:
            for line in lines:
                self._tell_loop(self._heard, line)
        status = self._process.wait()
        self._input.close()
        self._tell_loop(self._ended, self, status)
        self._process.stdout.close()

    def _reap(self) -> None:
        """What a process started may hold its output open, so that the end of that is not its own end."""
        self._process.wait()
        self.kill()

    def _tell_loop(self, call: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(call, *arguments)
