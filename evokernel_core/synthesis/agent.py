"""One torch agent shared by threads: found and started when first needed."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from evokernel_core.capture.calls import FileCalls
from evokernel_core.capture.client import AgentClient, CaptureWay, Way
from evokernel_core.capture.environments import Interpreter
from evokernel_core.capture.interpreter import find_interpreter
from evokernel_core.capture.reference import ReferenceCase
from evokernel_core.closing import Closing
from evokernel_core.domain.eager import EagerComparison
from evokernel_core.domain.errors import CaptureError
from evokernel_core.domain.region import Region
from evokernel_core.domain.task import KernelTask

_MOST_RUNNING = 2
"""Agents kept at a time: files of different projects may have different interpreters."""


class SharedAgent(Closing):
    """Captures and references, one call at a time. ``interpreter`` empty: look for one from each file's
    folder upwards, then from ``workspace`` upwards, a folder whose code may be run, where there is one.

    Its processes end ``idle_s`` after the last call, where that is given: their torch holds 300 MiB. The next
    call starts them again; captures that are known stay known."""

    def __init__(
        self,
        interpreter: str,
        workspace: Path | None,
        *,
        evaluation: bool = False,
        idle_s: float | None = None,
    ) -> None:
        self._interpreter, self.workspace = interpreter, workspace
        self._evaluation, self._idle_s = evaluation, idle_s
        self._lock = threading.Lock()
        self._rest: threading.Timer | None = None
        self._clients: OrderedDict[str, AgentClient] = OrderedDict()

    def start_soon(self, path: Path) -> None:
        """Starts the agent of a file, whose torch is imported while the caller does other things. Why that
        cannot be is said by the call that needs it."""

        def start() -> None:
            with contextlib.suppress(CaptureError), self._working():
                self._near(path).ping()

        threading.Thread(target=start, name="starting the torch agent", daemon=True).start()

    def capture(
        self,
        path: Path,
        text: str | None,
        fusible: Mapping[str, str],
        symbol: str | None = None,
        *,
        whole: bool = False,
        ways: Mapping[str, Way] = MappingProxyType({}),
        group: int = 0,
    ) -> tuple[Region, ...]:
        """As AgentClient.capture."""
        with self._working():
            return self._near(path).capture(path, text, fusible, symbol, whole=whole, ways=ways, group=group)

    def calls(self, path: Path) -> FileCalls:
        """As AgentClient.calls."""
        with self._working():
            return self._near(path).calls(path)

    def compare(self, region: Region, text: str, captures: Sequence[CaptureWay]) -> EagerComparison:
        """As AgentClient.compare."""
        with self._working():
            return self._near(Path(region.file)).compare(region, text, captures)

    def reference(
        self,
        task: KernelTask,
        sizes: Mapping[str, int],
        seed: int,
        distribution: str,
        folder: Path,
        *,
        rounded: bool = False,
    ) -> ReferenceCase:
        """As AgentClient.reference."""
        with self._working():
            return self._any().reference(task, sizes, seed, distribution, folder, rounded=rounded)

    def interpreter(self, path: Path) -> Interpreter:
        """The interpreter that a file's code runs in. Raises InterpreterUnavailable."""
        return find_interpreter(self._interpreter, path.parent, *self._around)

    @property
    def last_used(self) -> str:
        """The interpreter of the last call, "" before there is one."""
        with self._lock:
            return next(reversed(self._clients), "")

    @property
    def _around(self) -> tuple[Path, ...]:
        return (self.workspace,) if self.workspace else ()

    def close(self) -> None:
        with self._lock:
            self._wake()
            while self._clients:
                self._clients.popitem()[1].close()

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """One call at a time; the processes rest a while behind the last one."""
        with self._lock:
            self._wake()
            try:
                yield
            finally:
                if self._idle_s is not None:
                    self._rest = threading.Timer(self._idle_s, self._end_idle)
                    self._rest.daemon = True
                    self._rest.start()

    def _wake(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        self._rest = None

    def _end_idle(self) -> None:
        with self._lock:
            if self._rest is threading.current_thread():  # else a call came while this waited for the lock
                for client in self._clients.values():
                    client.close()

    def _near(self, path: Path) -> AgentClient:
        """The agent in the interpreter of a file."""
        return self._open(self.interpreter(path).path)

    def _any(self) -> AgentClient:
        """The agent last used: a reference is a fixed graph, which any torch computes."""
        last = next(reversed(self._clients), None)
        return self._open(last or find_interpreter(self._interpreter, *self._around).path)

    def _open(self, interpreter: str) -> AgentClient:
        client = self._clients.pop(interpreter, None)
        self._clients[interpreter] = client or AgentClient(interpreter, evaluation=self._evaluation)
        while len(self._clients) > _MOST_RUNNING:
            self._clients.popitem(last=False)[1].close()
        return self._clients[interpreter]
